/* SPDX-License-Identifier: MIT
 *
 * Types of numbers, as records name them (enums.def): their sizes and names.
 */
#pragma once

#include <stddef.h>

#include "format/tscope_format.h"

/* 0: not known. */
static inline u32 tscope_dtype_bytes(u8 dtype) {
#define X(NAME, value, text, bytes) [value] = bytes,
  static const u8 sizes[] = {TSCOPE_DTYPES(X)};
#undef X
  return dtype < sizeof(sizes) ? sizes[dtype] : 0;
}

/* NULL: not known. */
static inline const char *tscope_dtype_name(u8 dtype) {
#define X(NAME, value, text, bytes) [value] = text,
  static const char *const names[] = {TSCOPE_DTYPES(X)};
#undef X
  return dtype && dtype < LENGTH_OF(names) ? names[dtype] : NULL;
}
