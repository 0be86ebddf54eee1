/* SPDX-License-Identifier: MIT
 *
 * Numbers by chance (Marsaglia's xorshift), for calls that are sampled: what is regular in a
 * program must not decide which.
 */
#pragma once

#include "record/hook.h"

/* Below `n`. The state is the caller's alone; it may begin as 0. */
static inline u32 tscope_random_below(u64 *state, u32 n) {
  u64 next = *state ? *state : (tscope_ticks() ^ (u64)(uintptr_t)state) | 1;
  next ^= next << 13;
  next ^= next >> 7;
  next ^= next << 17;
  *state = next;
  return (u32)((next >> 32) * n >> 32);
}
