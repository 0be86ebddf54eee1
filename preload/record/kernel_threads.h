/* SPDX-License-Identifier: MIT
 *
 * Threads as the kernel knows them: their numbers, whether they are still there, and how they wait
 * for each other. By system calls: the C library has no functions for these, or not in each of its
 * versions.
 */
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "format/tscope_format.h"
#include "inspect/kept_errno.h"

static inline u32 tscope_tid(void) {
  TSCOPE_KEEP_ERRNO; /* a filter (seccomp) may refuse it */
  return (u32)syscall(SYS_gettid);
}

/* Whether this process has no thread of that number any more. */
static inline bool tscope_tid_is_gone(u32 tid) {
  TSCOPE_KEEP_ERRNO;
  return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

/* Sleeps while the futex has that value, until another thread wakes this one, or for so long. It
 * may come back sooner. */
static inline void tscope_futex_wait(u32 *futex, u32 value, u64 ns) {
  TSCOPE_KEEP_ERRNO;
  struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
  syscall(SYS_futex, futex, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

static inline void tscope_futex_wake(u32 *futex, i32 threads) {
  TSCOPE_KEEP_ERRNO;
  syscall(SYS_futex, futex, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}
