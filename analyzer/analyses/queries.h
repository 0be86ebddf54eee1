/* SPDX-License-Identifier: MIT
 *
 * Questions that analyses and outputs have while analyses still run: when a step was, whether it
 * was seen, where GPU times come from. A function here is in queries.c, or in the file of the
 * analysis that knows the answer.
 */
#pragma once

#include <stddef.h>

#include "analyses/analysis.h"
#include "kernels/communication.h"
#include "model/phase_times.h"

/* A loop over the analysed steps; a run without steps has none. */
#define FOR_EACH_STEP(a, step)                                                                     \
  for (u32 step = (a)->first_step, step##_end = (a)->whole_run ? 0 : step + (a)->n_steps;          \
       step < step##_end; step++)

/* The step on one rank; false where it does not have it. */
bool analysis_window(const struct analysis *a, u32 rank, u32 step, struct window *window);

/* How long that is; NS_UNKNOWN if it is not known. */
i64 analysis_step_length(const struct analysis *a, u32 rank, u32 step);

/* The ranks' steps, kernels of collectives and replays of graphs, added up. */
struct rank_summary analysis_sums(const struct analysis *a);

/* steps/other_work.c: whether a step is one of training, as far as is known. */
bool analysis_is_training(const struct analysis *a, u32 step);

/* steps/turns.c: 1 + index into results.turns of what the step holds in turn; 0: nothing. */
u32 analysis_turn_of(const struct analysis *a, u32 step);

/* How many steps of training figures are means of; the whole run is one. */
static inline u32 analysis_windows(const struct analysis *a) {
  return a->whole_run ? 1 : a->n_training;
}

/* Whether a rank's host has the step. */
bool analysis_has_step(const struct analysis *a, u32 rank, u32 step);

/* The step that a rank is in at an instant, on its host or its GPU; -1. */
i32 analysis_step_at(const struct analysis *a, u32 rank, i64 time);

/* How long before the GPU's end of `step` the host had ended step `later`; NS_UNKNOWN if the GPU's
 * end is not known or the host has none. */
i64 analysis_host_ahead(const struct analysis *a, u32 rank, u32 step, u32 later);

/* Whether at the end of a step the GPU was still busy when the host had finished. */
bool analysis_ends_on_gpu(const struct analysis *a, u32 rank, u32 step);

/* phase_shares.c: the time a step in one phase (model/phase_times.h) of the rank in the middle, or
 * below it, of all ranks: what only one of two does is not in it. NAN where no rank has the phase.
 */
double phase_of_middle_rank_ms(const struct analysis *a, u32 kind);

/* Where a phase begins: an optimizer's that gets a closure (LBFGS; Lightning always) where the last
 * backward pass in it ends. join/measure_phases.c does the same for model.phases. `span`: a phase's
 * number. */
i64 phase_begin(const struct timeline *t, u32 span);

/* compared_work.c: the copies of a rank that nothing hides, a step; NAN if it has no GPU. */
double exposed_copies_ms(const struct analysis *a, u32 rank);

/* Which times are kept of the collectives in a step: enum kept_times. */
u8 analysis_times_of(const struct analysis *a, i32 step);

/* untimed.c: whether so many of a rank's collectives called in an analysed step have no times that
 * their sum would be too small. */
bool analysis_untimed(const struct analysis *a, u32 rank, u32 step);

/* Whether that is so of more than a few steps of a rank. */
bool rank_lacks_times(const struct rank_summary *rank);

/* How much is known of what a rank's GPU did in a step; from GPU_STEP_UNSEEN on, kernels are
 * missing too. */
enum gpu_step {
  GPU_STEP_KNOWN,
  GPU_STEP_UNTIMED,    /* not when many of its collectives ran: analysis_untimed() */
  GPU_STEP_LEFT_OUT,   /* the times of its collectives are not kept: analysis_times_of() */
  GPU_STEP_UNSEEN,     /* CUPTI rested, or another client used it */
  GPU_STEP_OVERWRITTEN /* in the ring */
};

/* The same of all steps from window.begin on up to window.step. `t`: the timeline of the rank; NULL
 * before it is read. */
enum gpu_step analysis_gpu_step(const struct analysis *a, u32 rank, const struct timeline *t,
                                const struct window *window);

/* gpu_timing.c: the source of GPU time, and why it does not cover all of the run. */
const char *gpu_timing_describe(struct analysis *a);
/* Nanoseconds of the run since CUPTI was first opened. What it adds to each launch it adds also
 * while it rests. */
double gpu_timing_since_cupti(const struct rank *rank);
const char *gpu_timing_why_no_times(struct analysis *a);
const char *gpu_timing_why_not_watched(const struct analysis *a); /* NULL where it always was */

/* gpu_timeline.c: the share of the time of all ranks with GPUs in which all their work was watched
 * and is still in the trace; `timelines`: of ranks whose gpu_timelines are known. */
double gpu_share_known(const struct analysis *a, bool timelines);

/* Whether any rank has GPU work. If none of it has times: why. */
bool gpu_timing_any_work(const struct analysis *a);
const char *gpu_timing_why_nothing(const struct analysis *a);

/* Why a rank's GPU work has no times, if it has none; NULL if the reason is not known. */
const char *gpu_timing_reason(const struct model *model, const struct rank *rank);

/* What to do about that reason, which may be NULL. */
const char *gpu_timing_remedy(const struct model *model, const char *reason);

/* Whether a collective is in an analysed step of training. */
bool analysis_includes(const struct analysis *a, const struct collective *collective);

/* What savings and costs are shares of, in ms: a step, or without steps what a rank took for the
 * run, mean over ranks (the path is longer where ranks begin at different times). */
double analysis_length_ms(const struct analysis *a);

/* arrival_times.c: whether the clocks of a communicator's ranks are known well enough to tell who
 * comes late. */
bool clocks_tell_who_is_late(const struct analysis *a, u32 comm);

/* stragglers.c: whether a straggler is late in a step of the run. */
bool straggler_is_late_in(const struct rank_result *rank, double step);

/* Why each straggler is late, as far as what it does in a step tells. */
void straggler_reasons_fill(struct analysis *a);

/* Bus bandwidth over algorithm bandwidth for n ranks (nccl-tests, doc/PERFORMANCE.md); NAN where
 * nothing is moved. */
double op_bus_factor(u8 op, u32 n);

/* Where an arrival stopped waiting and its transfer began; NS_UNKNOWN if not known. A kernel that
 * runs several calls waits for the members of all of them. */
i64 arrival_transfer_begin(const struct analysis *a, const struct arrival *arrival);

/* NAN of what is not known. */
static inline double ms_if_known(i64 ns) {
  return ns == NS_UNKNOWN ? (double)NAN : ns_to_ms(ns);
}

/* The ranks of these numbers, as [n_ranks]. */
bool *mark_ranks(const struct analysis *a, const u32 *ranks, u32 n);

/* A pause of the host that the model takes for loading of input, before the copy that `span`
 * launches. */
struct input_pause {
  i64 begin, end;
  u32 span; /* of the timeline */
};

/* Lists them in order; none where the trace names its data phases. */
void input_pauses(const struct analysis *a, const struct timeline *timeline, struct arena *arena,
                  struct input_pause **pauses, u32 *n);

/* If all steps were left out: why most of them were. */
const char *overlap_why_no_steps(struct analysis *a);

/* Wait and transfer represent the whole only if nearly all of it could be split. */
bool wait_is_known(i64 exposed, i64 wait, i64 transfer);

/* Whether the identity of overlap.c holds for this rank with nothing missing. */
bool rank_overlap_known(const struct rank_summary *rank);

/* Idle outside the phases, where the rank has phases: on a CPU job it is then asleep. */
static inline i64 rank_idle_outside(const struct rank_summary *rank) {
  return rank->idle - rank->begun_late - rank->capturing - rank->data_stall - rank->host_bound;
}

/* Whether a job of several ranks on GPUs showed no collective at all: then communication is not
 * zero but unknown. */
bool communication_unseen(const struct analysis *a);

/* Dense peak of one device in a precision, by its name (peaks.def); NAN if it is not in the table
 * or has none. */
double device_peak_tflops(const char *name, enum precision precision);

/* The same of a rank's device, but what the options say for all precisions, known or not. */
double rank_peak_tflops(const struct analysis *a, u32 rank, enum precision precision);

/* The call with known arithmetic that a launch was made in: index into timeline.arithmetic, or
 * INDEX_NONE. */
u32 arithmetic_around(const struct timeline *timeline, const struct span *launch);

/* Summed over the ranks; if `only_gemms`, only those that were seen to call a GEMM. */
struct rank_flops flops_all(const struct analysis *a, bool only_gemms);

/* ranks/last_arrivals.c: which rank came last in each analysed step, of collectives in which every
 * member waits for every other: the one for which its peers waited longest in all; and how long the
 * mean peer did at one of them, at most: it may come late to several at once. [n_steps], INDEX_NONE
 * and NAN where that is not known. */
void last_ranks_of_steps(const struct analysis *a, u32 *last, double *waited_ms);

/* Why the kernels of a rank take longer than its peers': kernels that it runs oftener than the
 * median of them, and the same kernels that each take longer there. */
struct longer_kernels {
  double oftener_ns, longer_ns; /* in the whole input */
  const char *most;             /* shortened name of the one that takes most more */
  double times, peers_times;    /* how often it ran */
};

/* gpu/kernels_over_ranks.c: false if no kernel takes longer there, or none are known. */
bool kernels_that_take_longer(const struct analysis *a, u32 rank, struct longer_kernels *found);
