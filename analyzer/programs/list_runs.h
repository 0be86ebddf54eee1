/* SPDX-License-Identifier: MIT
 *
 * What `tscope list` and `tscope prune` do: the runs of a directory.
 */
#ifndef TSCOPE_LIST_RUNS_H
#define TSCOPE_LIST_RUNS_H

#include "base/arena.h"
#include "report/options.h"

/* The finding to name of a run, NULL if there is none; in `arena`. */
typedef const char *run_finding(const struct options *options, const char *run,
                                struct arena *arena);

/* One line for each run, newest first: when, ranks, size, how it ended; of the first ones also what
 * `worst` says. 0, or negative errno with a line in `why`. */
int list_runs(const struct options *options, run_finding *worst, char *why, size_t why_bytes);

/* Removes the runs that the options choose, or says which. A run that runs is never removed. 0, or
 * negative errno with a line in `why`. */
int prune_runs(const struct options *options, char *why, size_t why_bytes);

#endif
