/* SPDX-License-Identifier: MIT
 *
 * Of a long run the times at which collectives ran are kept for some steps only: they are most of
 * what the facts about a rank are, and a sample of them tells waits and transfers as well. All else
 * stays: every step with its length and its phases, what was called in it, when its first
 * collective ran if that tells who is late, and how the run ended.
 */
#pragma once

#include "model/rank_events.h"

/* How steps are dealt with that are numbered from 0 to n: enum kept_times for each. Blocks of
 * consecutive steps, spread over the run, and the last steps. What is chosen of a longer run is
 * among what is chosen of a shorter one, but for the last steps: so nodes that know of different
 * numbers of steps keep the same. */
enum { STEPS_IN_A_BLOCK = 8 };
void choose_timed_steps(u32 n, u32 most, u8 *times);

/* Leaves the times of collectives out of the ranks of a model that has not been joined, beyond
 * those of `most` steps; 0: of none. Only where something names the steps (bounds_by_names()). Not
 * of a rank that exchanges messages, or whose collectives are kernels without calls: these are told
 * apart by their times. */
void leave_times_out(struct model *model, u32 most);
