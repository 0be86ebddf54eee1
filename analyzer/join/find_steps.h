/* SPDX-License-Identifier: MIT
 *
 * Where training steps begin and end. Each way to find them fills one list of bounds per rank.
 */
#pragma once

#include "join/joining.h"

#define LEAST_STEPS 3u /* that show that something repeats */

/* Step s of this rank is [at[s], at[s + 1]) on its host; its number in the run is first + s. */
struct rank_bounds {
  VECTOR(i64) at;
  VECTOR(i64) gpu; /* the same on its GPU, NS_UNKNOWN where not known */
  u32 first;
  bool open; /* the last bound is only the last thing known about the rank's host */
};

/* All fill bounds[n_ranks] and give the confidence; false if there is no evidence of this kind. The
 * caller frees them: bounds_release(). */
bool bounds_by_marks(const struct model *model, struct rank_bounds *bounds, double *confidence);
bool bounds_by_ranges(const struct model *model, struct rank_bounds *bounds, double *confidence);
bool bounds_by_optimizer(const struct model *model, struct rank_bounds *bounds, double *confidence);

/* The phases of one kind of a rank that have ended and are not inside another such, in order of
 * time: indices into events.phases. `phases` has room for all. Returns how many. */
u32 list_phases(const struct rank_events *events, u8 kind, u32 *phases);

/* How many of these phases make a step: the period of their names. A model with several optimizers
 * steps them in a fixed order. */
u32 phases_per_step(const struct rank_events *events, const u32 *phases, u32 n);

/* The first step has no step before it: it begins with its first training phase, of those up to
 * `first`. */
i64 begin_of_phases(const struct rank_events *events, u32 first);

/* By the period of the collective sequence: a step ends with a collective, on the GPU where that
 * ran. Sets arrival.step relative to the bounds, since work that the host enqueued ahead of time
 * belongs to the step of its call. */
bool bounds_by_period(const struct model *model, struct rank_bounds *bounds, double *confidence,
                      unsigned threads);

/* Whether a job without an optimizer's phases has passes of a kind (backward, forward) that follow
 * each other in steps that are alike. */
bool bounds_by_passes(const struct model *model, u8 kind, struct rank_bounds *bounds,
                      double *confidence);

/* By what the host launches again and again: see launch_rounds.h. */
bool bounds_by_launches(const struct model *model, struct rank_bounds *bounds, double *confidence);

/* The parts of find_steps(), in order, with the period between them; they give the method, or NULL.
 * By what the program, or the framework, calls a step. */
const char *bounds_by_names(const struct model *model, struct rank_bounds *bounds,
                            double *confidence);
/* By what comes again and again beside collectives. */
const char *bounds_by_repetition(const struct model *model, struct rank_bounds *bounds,
                                 double *confidence);

/* Where the first of those values is that are there most often, of equally common ones the first;
 * `times`: how often. 0 of none. */
u32 commonest(u64 *values, u32 n, u32 *times);

/* How many steps there are, by the numbers that all ranks give them. */
u32 bounds_steps(const struct rank_bounds *bounds, u32 n_ranks);

/* Bounds are believed where at least half of the ranks have steps, and one of them `least` bounds:
 * the share of ranks that have as many as the one with most, but for `fewer`. 0 where they are not:
 * then they are forgotten. */
double bounds_believed(const struct model *model, struct rank_bounds *bounds, u32 least, u32 fewer);
void bounds_forget(struct rank_bounds *bounds, u32 n_ranks);

static inline bool bounds_has_steps(const struct rank_bounds *bounds) {
  return bounds->at.n > 1;
}

void bounds_release(struct rank_bounds *bounds, u32 n_ranks);

/* The number of the step of the rank in which an instant of its host lies; -1: in none. */
i32 bounds_step_at(const struct rank_bounds *bounds, i64 time);

/* Gives the steps of ranks that began earlier or later the numbers that they have on most ranks,
 * and takes away those of ranks that are at other places than the steps of their peers; the
 * confidence is then the share of the ranks that agree. */
void bounds_agree(const struct model *model, struct rank_bounds *bounds, double *confidence);

/* Gives ranks that have no steps those of the ranks that they meet, if they meet in order. */
void bounds_of_peers(const struct model *model, struct rank_bounds *bounds);

/* Bounds of a rank on its GPU, from those on its host: there a step is over when the collectives
 * that were launched before are over. */
void bounds_on_gpu(const struct rank_events *events, struct rank_bounds *bounds);
