/* SPDX-License-Identifier: MIT
 *
 * The state of floating-point arithmetic, which each thread has: how results are rounded, which
 * exceptions end in SIGFPE, and which have come so far. It is the job's.
 */
#pragma once

#include "format/tscope_format.h"

#if defined(__x86_64__)

struct tscope_floats {
  u32 control_and_status;
};

static inline struct tscope_floats tscope_floats_get(void) {
  return (struct tscope_floats){__builtin_ia32_stmxcsr()};
}

static inline void tscope_floats_set(const struct tscope_floats *floats) {
  __builtin_ia32_ldmxcsr(floats->control_and_status);
}

/* As a program begins: to nearest, no SIGFPE, nothing has come. */
static const struct tscope_floats tscope_floats_at_first = {0x1f80};

#elif defined(__aarch64__)

struct tscope_floats {
  u64 control, status;
};

static inline struct tscope_floats tscope_floats_get(void) {
  struct tscope_floats floats;
  __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(floats.control), "=r"(floats.status));
  return floats;
}

static inline void tscope_floats_set(const struct tscope_floats *floats) {
  __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(floats->control), "r"(floats->status));
}

static const struct tscope_floats tscope_floats_at_first = {0, 0};

#endif

/* From here to the end of this block, functions that are called calculate as a program does at its
 * start, and the job's state stays what it is. Not for arithmetic in the block itself: the compiler
 * may move it out. */
#define TSCOPE_KEEP_FLOATS                                                                         \
  struct tscope_floats floats_ __attribute__((cleanup(tscope_floats_set))) = tscope_floats_get();  \
  tscope_floats_set(&tscope_floats_at_first)
