/* SPDX-License-Identifier: MIT
 *
 * The functions that analyses.def names, in its order, but those that path/path_graph.h and
 * steps/series.h declare. Each but those that free returns 0 or negative errno.
 */
#ifndef TSCOPE_ANALYSES_H
#define TSCOPE_ANALYSES_H

#include "analyses/analysis.h"

int steps_prepare(struct analysis *a);
int steps_on_gpu_rank(struct analysis *a, const struct timeline *timeline);
int steps_analyse(struct analysis *a);
int steps_count_warmup(struct analysis *a);
int other_work_prepare(struct analysis *a);
int rank_summaries_prepare(struct analysis *a);
int untimed_prepare(struct analysis *a);

int overlap_rank(struct analysis *a, const struct timeline *timeline);
int overlap_summarise(struct analysis *a);
int phases_analyse(struct analysis *a);
int collectives_prepare(struct analysis *a);
int collectives_analyse(struct analysis *a);
int group_calls_join(struct analysis *a);
int stragglers_analyse(struct analysis *a);
int last_arrivals_analyse(struct analysis *a);

int graph_plan(struct analysis *a);
int critical_path_analyse(struct analysis *a);
void graph_free(struct analysis *a);

enum { KERNELS_LISTED = 100 };
int kernel_times_prepare(struct analysis *a);
int kernel_times_rank(struct analysis *a, const struct timeline *timeline);
int kernel_times_summarise(struct analysis *a);
void kernel_times_free(struct analysis *a);
int gpu_timeline_prepare(struct analysis *a);
int gpu_timeline_rank(struct analysis *a, const struct timeline *timeline);
int gpu_timeline_summarise(struct analysis *a);
int kernels_over_ranks_prepare(struct analysis *a);
int kernels_over_ranks_rank(struct analysis *a, const struct timeline *timeline);
int kernels_over_ranks_summarise(struct analysis *a);
void kernels_over_ranks_free(struct analysis *a);
int operators_prepare(struct analysis *a);
int operators_rank(struct analysis *a, const struct timeline *timeline);
int operators_summarise(struct analysis *a);
void operators_free(struct analysis *a);
int launches_prepare(struct analysis *a);
int launches_rank(struct analysis *a, const struct timeline *timeline);
int launches_summarise(struct analysis *a);
void launches_free(struct analysis *a);

int pipeline_analyse(struct analysis *a);
enum { NAMED_RANGES_LISTED = 100 };
int named_ranges_analyse(struct analysis *a);
int gemms_prepare(struct analysis *a);
int flops_rank(struct analysis *a, const struct timeline *timeline);
int gemms_summarise(struct analysis *a);
void gemms_free(struct analysis *a);
int utilisation_analyse(struct analysis *a);
int budget_analyse(struct analysis *a);
int memory_analyse(struct analysis *a);
int verdict_analyse(struct analysis *a);
int run_end_analyse(struct analysis *a);
int stalls_analyse(struct analysis *a);
int modules_analyse(struct analysis *a);
int convergence_analyse(struct analysis *a);
int quality_analyse(struct analysis *a);
int undecided_analyse(struct analysis *a);
int findings_analyse(struct analysis *a);
int verdict_word_analyse(struct analysis *a);

#endif
