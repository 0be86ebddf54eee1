/* SPDX-License-Identifier: MIT
 *
 * The run step by step and rank by rank (series_result.h), collected while ranks are analysed.
 * Which steps are kept is decided before, by their lengths in the model.
 */
#pragma once

#include "analyses/analysis.h"

/* One step of one rank, in nanoseconds; the first of SERIES_MEASURES in their order. */
struct step_parts {
  union {
    struct {
      i64 wall, compute, exposed, wait, transfer, memcpy, idle, input;
    };
    i64 of[SERIES_INPUT + 1];
  };
};

/* Adds what one rank did in its windows; thread-safe for different ranks. */
void series_add_rank(struct analysis *a, u32 rank, const struct window *windows,
                     const struct step_parts *parts, u32 n);

/* How long after the first a rank came to a collective of a step; the longest counts. */
void series_add_lateness(struct analysis *a, u32 rank, i32 step, double ms);

/* Most that was allocated on a device of a rank (global number) in each step of the model; the
 * largest device counts. Thread-safe. */
void series_add_memory(struct analysis *a, double global_rank, const double *bytes, u32 n_steps);
