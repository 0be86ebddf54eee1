/* SPDX-License-Identifier: MIT
 *
 * Values: their types, how many an array has, and the smaller and the larger of two.
 */
#pragma once

#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

/* How many elements an array has, which is not a pointer to its first. */
#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Each of the two is calculated once, in the type that both have in common. Where one of them is
 * NAN, it is the second. What may be NAN and then is to be left out is for fmin() and fmax(). */
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
