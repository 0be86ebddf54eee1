/* SPDX-License-Identifier: MIT
 *
 * What the analyses found: the input of every report, and nothing else is. Numbers are doubles;
 * NAN is "unknown" and is printed as such, as null in JSON, never as 0. The shape follows
 * docs/outputs/report-json.md. Everything lives in the results' arena.
 */
#pragma once

#define REPORT_SCHEMA "tscope.report/1" /* of the JSON made of them */

#include "analyses/convergence/convergence_result.h"
#include "analyses/gpu/module_result.h"
#include "analyses/hang/check_result.h"
#include "analyses/memory/memory_result.h"
#include "analyses/path/cure.h"
#include "analyses/results/words.h"
#include "analyses/stalls/stall_result.h"
#include "analyses/steps/series_result.h"
#include "kernels/precision.h"
#include "model/model.h"

#define RESULT_TABLE "analyses/run_end/run_end_result.def"
#include "analyses/results/result_structs.h"

#define RESULT_TABLE "analyses/lines/line_result.def"
#include "analyses/results/result_structs.h"

#define RESULT_TABLE "analyses/gpu/gemm_result.def"
#include "analyses/results/result_structs.h"

#define RESULT_TABLE "analyses/findings/finding_result.def"
#include "analyses/results/result_structs.h"

#define RESULT_TABLE "analyses/ranks/rank_result.def"
#include "analyses/results/result_structs.h"

#define RESULT_TABLE "analyses/overlap/overlap_result.def"
#include "analyses/results/result_structs.h"

enum what_if_kind {
  WHAT_IF_RANK,          /* `rank` as fast as the median of its peers, and those that act with it */
  WHAT_IF_STAGE,         /* stage `rank` of a pipeline as fast as the others */
  WHAT_IF_STAGES,        /* those that wait least, together */
  WHAT_IF_EVERY_RANK,    /* every rank as fast as that */
  WHAT_IF_COMMUNICATION, /* transfers take no time; ranks still wait for each other */
  WHAT_IF_LAUNCHES,      /* the host takes no time but for input */
  WHAT_IF_GPU_AWAY,      /* launched work begins as soon as it can */
  WHAT_IF_INPUT,         /* the data phase takes no time */
  WHAT_IF_OUTSIDE,       /* the host takes no time outside its phases */
  WHAT_IF_LINE           /* the host does not wait at one line of the program */
};

#define RESULT_TABLE "analyses/path/path_result.def"
#include "analyses/results/result_structs.h"

#define RESULT_TABLE "analyses/gpu/gpu_result.def"
#include "analyses/results/result_structs.h"

#define RESULT_TABLE "analyses/steps/step_result.def"
#include "analyses/results/result_structs.h"

struct analysis;

struct diff_result; /* diff/ */

#define RESULT_TABLE "analyses/results/results.def"
#include "analyses/results/result_structs.h"

/* Of the whole input, as sums of kernels are: more than step_count where --steps left some out. */
static inline double steps_of_input(const struct results *results) {
  u32 all = results->model->steps.chosen_from;
  return all ? all : results->step_count;
}

/* The first step that is analysed, by index: what is before it is warm-up. */
static inline u32 first_analysed_step(const struct results *r) {
  return r->warmup_excluded > 0 ? (u32)r->warmup_excluded : 0;
}

/* Sums of kernels, divided by this, are those of one rank that has kernels, and of one step if that
 * is wanted. The time in which no GPU was watched is taken as like the rest; but what was not seen
 * before an engine's first iteration belongs to earlier ones. */
static inline double kernels_are_of(const struct results *r, bool per_step) {
  bool partly = r->kernels_seen > 0 && r->kernels_seen < 1 && !r->n_step_kinds;
  return MAX(r->kernels_ranks, 1) * (partly ? r->kernels_seen : 1) *
         (per_step ? steps_of_input(r) : 1);
}

struct kernel_names;

struct analyse_options {
  struct kernel_names *kernel_names; /* kernels.h; NULL: the built-in categories */
  double flops_per_step;             /* NAN if not given */
  double params, tokens_per_step;    /* NAN if not given; 6 x params x tokens */
  double peak_tflops;                /* NAN: from the device table */
  unsigned top;                      /* most rows of long lists, where more than their own caps */
  double gpu_bytes;                  /* memory of one device; NAN or 0: from the input */
  unsigned threads;
  void (*progress)(void *user, const char *what, double fraction);
  void *user;
  const struct rank_keeper *keeper; /* NULL: nothing is kept of ranks */
};

struct carrier; /* base/carrier.h */

/* For `tscope reduce`: what is found on each rank is written, and nothing is summarised. From
 * several threads at once, for different ranks. */
struct rank_keeper {
  /* False: the rank is left out. May write something of its own first. */
  bool (*begin)(void *keeping, const struct model *model, u32 rank, struct carrier *found);
  void (*end)(void *keeping, const struct model *model, u32 rank, const struct carrier *found);
  void *keeping;
};

/* Pure: the same model and options give the same results. */
struct results *analyse(const struct model *model, const struct analyse_options *options);
void results_free(struct results *results);
