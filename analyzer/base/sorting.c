/* SPDX-License-Identifier: MIT */
#include "base/sorting.h"
#include "format/tscope_format.h"

#define BY_VALUE(function, type)                                                                   \
  int function(const void *left, const void *right) {                                              \
    type a = *(const type *)left, b = *(const type *)right;                                        \
    return (a > b) - (a < b);                                                                      \
  }
BY_VALUE(by_u32, u32)
BY_VALUE(by_u64, u64)
BY_VALUE(by_i64, i64)
BY_VALUE(by_double, double)
