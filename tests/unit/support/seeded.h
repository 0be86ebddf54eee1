/* SPDX-License-Identifier: MIT
 *
 * Numbers as if by chance, the same in each run.
 */
#pragma once

#include "format/values.h"

/* 24 bits. */
static inline u32 random_bits(u32 *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static inline u32 random_below(u32 *seed, u32 n) {
  return random_bits(seed) % n;
}

/* Above 0 and below 1. */
static inline double uniform_share(u32 *seed) {
  return (random_bits(seed) + 0.5) / (1 << 24);
}
