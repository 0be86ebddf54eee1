/* SPDX-License-Identifier: MIT
 *
 * FNV-1a with 64 bits: short, and the same on every machine. Facts in the trace depend on it
 * (identities of communicators), so its values never change.
 */
#pragma once

#include <stddef.h>

#include "format/tscope_format.h"

#define TSCOPE_FNV_SEED 0xcbf29ce484222325ull

static inline u64 tscope_fnv(u64 seed, const void *bytes, size_t n) {
  for (const u8 *byte = bytes; n; byte++, n--)
    seed = (seed ^ *byte) * 0x100000001b3ull;
  return seed;
}
