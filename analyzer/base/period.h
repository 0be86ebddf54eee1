/* SPDX-License-Identifier: MIT
 *
 * The period of a sequence of collectives: a training step as seen by somebody who only sees what
 * is communicated.
 */
#ifndef TSCOPE_PERIOD_H
#define TSCOPE_PERIOD_H

#include <stdbool.h>

#include "format/tscope_format.h"

struct period {
  u32 length;      /* tokens per period */
  u32 first, last; /* the periodic part of the sequence: [first, last) */
  double match;    /* share of tokens that equal the one a period earlier */
};

/* Finds the smallest period that at least 95 % of the later tokens repeat with, and that explains
 * the rare ones too: a token that comes again and again but mostly not a period apart shows that
 * the period is a part of a step only, such as a layer. False when there is none, or fewer than
 * two periods of it. Tokens are any numbers. */
bool find_period(const u32 *tokens, u32 n, struct period *period);

/* Steps whose collectives all look alike have a period of one token. What tells them apart then is
 * time: gaps[i] is the pause before period i (any unit). Returns how many periods make one step,
 * and in *first which of those the step begins with, 1 and 0 where time tells nothing more. */
u32 find_gap_period(const double *gaps, u32 n, u32 *first);

#endif
