/* SPDX-License-Identifier: MIT
 *
 * What is about many runs: `tscope list`, `tscope prune` and `tscope hosts`. Each returns 0, or
 * negative errno with a line in `why`.
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "report/options.h"

/* list_runs.c: one line for each run, newest first: when, ranks, size, how it ended; of the first
 * ones also the finding to name, which `worst` puts into the arena, NULL if there is none. */
typedef const char *run_finding(const struct options *options, const char *run,
                                struct arena *arena);
int list_runs(const struct options *options, run_finding *worst, char *why, size_t why_bytes);

/* list_runs.c: removes the runs that the options choose, or says which. A run that runs, or
 * may run on another host, is never removed. */
int prune_runs(const struct options *options, char *why, size_t why_bytes);

/* compare_hosts.c: hosts, devices and links over the JSON reports in options->paths, and over those
 * of runs whose traces are there without one: `document_of` makes these, NULL with a line in `why`
 * where it cannot. */
typedef json_t *run_document(const struct options *options, const char *run, char *why,
                             size_t why_bytes);
int compare_hosts(const struct options *options, run_document *document_of, char *why,
                  size_t why_bytes);
