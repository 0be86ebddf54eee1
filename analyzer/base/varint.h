/* SPDX-License-Identifier: MIT
 *
 * Integers in as few bytes as they need: seven bits a byte, the lowest first, as in protocol
 * buffers.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

enum { VARINT_MOST = 10 }; /* bytes */

/* How many bytes it took. */
static inline u32 varint_write(u8 *to, u64 value) {
  u32 n = 0;
  for (; value >= 0x80; value >>= 7)
    to[n++] = (u8)(value | 0x80);
  to[n++] = (u8)value;
  return n;
}

/* The next one; 0, and `*bad`, where none ends before `end`. */
static inline u64 varint_read(const u8 **at, const u8 *end, bool *bad) {
  u64 value = 0;
  for (u32 shift = 0; shift < 64 && *at < end; shift += 7) {
    u8 byte = *(*at)++;
    value |= (u64)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return value;
  }
  *bad = true;
  return 0;
}
