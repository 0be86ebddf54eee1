/* SPDX-License-Identifier: MIT
 *
 * Device memory: what the files memory*.c of this folder share. Each takes one device's history
 * and fills its part of the result.
 */
#pragma once

#include "analyses/memory/memory_result.h"
#include "base/arena.h"
#include "model/block_table.h"
#include "model/memory_history.h"

/* Rows of a table that are kept; what is left is summed into one more. */
#define MEMORY_ROWS 40u
#define MEMORY_STACKS_LISTED 400u /* frames of the tree of stacks, those with most bytes */

/* A position in the time of a history. The history begins with what was there before recording,
 * derived from what is freed without having been allocated and from what is there at the end. */
struct memory_replay {
  const struct memory_history *history;
  struct block_table live;
  u32 next;        /* event */
  u32 conflicts;   /* blocks where events and segments disagree */
  i64 known_bytes; /* of the blocks in `live` */
};

/* To be freed in either case. */
void memory_replay_begin(struct memory_replay *replay, const struct memory_history *history);

/* Goes on to the moment before event `until`. */
void memory_replay_to(struct memory_replay *replay, u32 until);
void memory_replay_free(struct memory_replay *replay);

/* The parts. Text of the result lives in `arena`. */
void memory_find_peak(const struct memory_history *history, struct arena *arena,
                      struct memory_result *result);
/* Sets result->stacks_at_peak: `live` is what lived then. */
void memory_stacks_at_peak(const struct memory_history *history, const struct block_table *live,
                           double peak, struct arena *arena, struct memory_result *result);
void memory_peak_without(const struct memory_history *history, struct memory_result *result);
/* Sets result->peak_needed_bytes, where it can be known. */
void memory_find_needed(const struct memory_history *history, struct memory_result *result);
void memory_find_churn(const struct memory_history *history, struct arena *arena,
                       struct memory_result *result);
void memory_find_growth(const struct memory_history *history, struct arena *arena,
                        struct memory_result *result);
void memory_analyse_segments(const struct memory_history *history, struct arena *arena,
                             struct memory_result *result);

/* memory_curve.c: what pictures need. */
void memory_draw_curve(const struct memory_history *history, struct arena *arena,
                       struct memory_result *result);
void memory_draw_segments(const struct memory_history *history, struct arena *arena,
                          struct memory_result *result);

struct carrier;
void memory_carry_result(struct carrier *c, struct memory_result *result);

/* A size that is not known is below 0. */
static inline double memory_bytes(i64 bytes) {
  return bytes < 0 ? __builtin_nan("") : (double)bytes;
}
