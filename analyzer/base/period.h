/* SPDX-License-Identifier: MIT
 *
 * The period with which a sequence of numbers repeats, as collectives, launches, allocations or a
 * loader's batches do in each training step.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

#define PERIOD_LEAST_MATCH 0.95 /* of the later tokens, those that repeat */

struct period {
  u32 length;      /* tokens per period */
  u32 first, last; /* the periodic part of the sequence: [first, last) */
  double match;    /* share of tokens that equal the one a period earlier */
};

/* Finds the smallest period with which enough of the later tokens repeat. It must explain rare
 * tokens, too: a token that comes again and again, but mostly not a period apart, shows that the
 * period is only a part of a step, such as a layer. False if there is none, or fewer than two
 * periods of it. Tokens are any numbers. */
bool find_period(const u32 *tokens, u32 n, struct period *period);

/* Where all collectives look alike, the period is one token, and only pauses show where a step
 * begins: gaps[i] is the one before period i, in any unit. Returns how many periods make one step,
 * and in *first the period with which the first step begins; 1 and 0 if pauses show nothing. */
u32 find_gap_period(const double *gaps, u32 n, u32 *first);

/* The place in a period at which a step begins: the one before which the gaps are longest, if they
 * are clearly longer than those before place 0; else place 0. logs[place] is the sum of the
 * logarithms of counts[place] gaps, and becomes their mean. */
u32 find_longest_gap(double *logs, const u32 *counts, u32 length);
