/* SPDX-License-Identifier: MIT
 *
 * What the reports of many runs say of hosts: one record for each run, from its JSON report. Hosts,
 * jobs and kinds of messages are numbers here, in the order in which they were first seen.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/text_numbers.h"

/* How a device is named, and a link: "HOST, device 3", "HOST -> OTHER". */
#define DEVICE_OF ", device "
#define ARROW " -> "

struct rank_record {
  u32 rank, host;
  u32 position;  /* of the rank in its job, over all runs of the job */
  u32 device;    /* host and place of the rank among those of its host */
  double own_ms; /* its own work, per step, median over steps; NAN */
  double late;   /* share of the step that the others wait for it; NAN */
  bool lost;     /* a signal, or silence, of this rank ended the run */
};

/* Messages of one kind from a host to another. */
struct link_record {
  u32 from, to; /* hosts */
  u32 link;     /* number of the pair of hosts */
  u32 kind;     /* operation and size: only equal kinds are compared */
  double ms;
};

struct run_record {
  const char *name;
  u32 job;        /* number of its command line and number of ranks */
  double began_s; /* since 1970, NAN */
  double step_ms; /* wall time of a step, NAN */
  VECTOR(struct rank_record) ranks;
  VECTOR(struct link_record) links;
};

struct run_records {
  struct arena arena;
  VECTOR(struct run_record) runs;
  struct text_numbers hosts, devices, positions, links, kinds, jobs;
  struct text_numbers known; /* runs, with the times at which they began */
  bool in_order;             /* by the time at which they began; else as they were added */
};

/* Adds what a document of schema tscope.report/1 says; `name` is used if it has none. False if it
 * is no such document, or another one of a run that is there: by its name, and when it began. */
bool run_records_add(struct run_records *records, const json_t *report, const char *name);

/* Sorts the runs by the time at which they began, if that is known of all. */
void run_records_order(struct run_records *records);

void run_records_free(struct run_records *records);
