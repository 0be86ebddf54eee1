/* SPDX-License-Identifier: MIT
 *
 * A rank's time in one phase of a step, by the kind of the phase.
 */
#pragma once

#include "model/model.h"

/* Those of enum tscope_phase that have times; 0 is what is outside them. */
enum { PHASE_OTHER = 0, PHASE_KINDS = TSCOPE_PHASE_OPTIMIZER + 1 };

static inline i64 *phase_time_at(struct phase_times *times, u32 kind) {
  return kind == TSCOPE_PHASE_DATA        ? &times->data
         : kind == TSCOPE_PHASE_FORWARD   ? &times->forward
         : kind == TSCOPE_PHASE_BACKWARD  ? &times->backward
         : kind == TSCOPE_PHASE_OPTIMIZER ? &times->optimizer
                                          : &times->other;
}

/* Whether a phase, none is 0, is time in which a rank without a GPU computes. */
static inline bool phase_computes(u8 phase) {
  return phase && phase != TSCOPE_PHASE_USER && phase != TSCOPE_PHASE_DATA;
}

/* Of a step of which nothing is known. */
#define PHASES_UNKNOWN                                                                             \
  ((struct phase_times){NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN})

/* The time in those phases of a step that are known; NS_UNKNOWN if none is. */
static inline i64 phases_sum(struct phase_times *times) {
  i64 sum = NS_UNKNOWN;
  for (u32 kind = TSCOPE_PHASE_DATA; kind < PHASE_KINDS; kind++) {
    i64 time = *phase_time_at(times, kind);
    if (time != NS_UNKNOWN)
      sum = sum == NS_UNKNOWN ? time : sum + time;
  }
  return sum;
}

/* NAN where it is not known. */
static inline double phase_ms(const struct model *model, u32 rank, u32 step, u32 kind) {
  i64 ns = *phase_time_at(&model->phases[cell_of_step(model, step, rank)], kind);
  return ns == NS_UNKNOWN ? (double)__builtin_nan("") : ns_to_ms(ns);
}
