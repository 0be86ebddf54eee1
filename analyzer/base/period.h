/* SPDX-License-Identifier: MIT
 *
 * The period of a sequence of collectives: a training step, as it looks if only the communication
 * is visible.
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

/* Finds the smallest period with which enough of the later tokens repeat, and which explains
 * the rare ones too: if a token comes again and again, but mostly not a period apart, the period is
 * only a part of a step, such as a layer. False if there is none, or fewer than two periods of it.
 * Tokens are any numbers. */
bool find_period(const u32 *tokens, u32 n, struct period *period);

/* If all collectives of a step look alike, the period is one token. Then only time separates them:
 * gaps[i] is the pause before period i (any unit). Returns how many periods make one step, and in
 * *first the period with which a step begins; 1 and 0 if time shows nothing more. */
u32 find_gap_period(const double *gaps, u32 n, u32 *first);

/* Where in a period something begins: at the place before which the gaps are longest, if these are
 * clearly longer than those at place 0, else there. logs[place] is the sum of the logarithms of
 * counts[place] gaps, and becomes their mean. */
u32 find_longest_gap(double *logs, const u32 *counts, u32 length);
