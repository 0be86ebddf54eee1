/* SPDX-License-Identifier: MIT
 *
 * The smaller and the larger of two values, each of which is calculated once, in the type that both
 * have in common. Where one of them is NAN, it is the second. What may be NAN and then is to be
 * left out is for fmin() and fmax().
 */
#pragma once

#define MIN(a, b) CHOSEN(a, <, b, __COUNTER__)
#define MAX(a, b) CHOSEN(a, >, b, __COUNTER__)

/* The value, or the end of [low, high] that is nearest to it; `high` for NAN. */
#define CLAMP(value, low, high) MAX(low, MIN(value, high))

/* Names of their own, because one may be in the other. */
#define CHOSEN(a, is, b, n) CHOSEN_AS(a, is, b, n)
#define CHOSEN_AS(a, is, b, n)                                                                     \
  ({                                                                                               \
    __typeof__(1 ? (a) : (b)) a_##n = (a), b_##n = (b);                                            \
    a_##n is b_##n ? a_##n : b_##n;                                                                \
  })
