/* SPDX-License-Identifier: MIT
 *
 * The simulator's only clock: CLOCK_MONOTONIC by system call, so that a preloaded library that
 * changes clock_gettime() has no effect on it.
 */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll

static inline int64_t clock_now(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static inline struct timespec clock_timespec(int64_t ns) {
  return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}
