/* SPDX-License-Identifier: MIT
 *
 * Rounds of a rank whose steps nothing names: what its host puts on the GPU comes again and again
 * in the same order. For importers, which see each launch.
 */
#pragma once

#include "model/rank_events.h"

/* A call that put something on the GPU. Equal numbers are equal work: `shape` also distinguishes
 * sizes, `name` does not. */
struct launched {
  i64 start, end;
  u32 shape, name;
  u32 thread;
};

/* Whether rounds would tell the steps of this rank: it launches, and has neither marks nor phases,
 * and hardly any collectives. Finding rounds costs more than all else of reading a rank. */
bool rank_needs_rounds(const struct rank_events *events);

/* Fills events.rounds from what the busiest thread launched; nothing if nothing repeats. Changes
 * the order of `launched`. */
void find_launch_rounds(struct rank_events *events, struct launched *launched, u32 n);
