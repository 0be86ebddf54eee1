/* SPDX-License-Identifier: MIT
 *
 * What time it is.
 */
#pragma once

#include <time.h>

#include "format/tscope_format.h"

/* One of the system's clocks, ns. The shim's own threads use tscope_clock_ns(), which no other
 * library can make up. */
static inline i64 clock_ns(clockid_t clock) {
  struct timespec time = {0};
  clock_gettime(clock, &time);
  return (i64)time.tv_sec * 1000000000 + time.tv_nsec;
}
