/* SPDX-License-Identifier: MIT
 *
 * Optional annotations for programs profiled by tscope. Never needed: tscope finds steps and
 * phases by itself where it can. The functions are weak: a program that links nothing and runs
 * without the preload sees them as NULL, so use the TSCOPE_* macros, or check first. From Python:
 *
 *   import ctypes; tscope = ctypes.CDLL(None)
 *   if hasattr(tscope, "tscope_step"): tscope.tscope_step(ctypes.c_uint64(step))
 *
 * All are safe from any thread, never fail, and do nothing in a process that tscope leaves alone.
 */
#ifndef TSCOPE_H
#define TSCOPE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the start of training step `step`. These marks take precedence over all other ways of
 * finding steps. */
void tscope_step(uint64_t step) __attribute__((weak));

/* Records a named value, such as a loss, at step `step`. The name is copied. */
void tscope_scalar(const char *name, double value, uint64_t step) __attribute__((weak));

/* Opens and closes a named range on the calling thread; ranges nest. Names such as "data",
 * "forward", "backward" and "optimizer" mean training phases (docs/recording/pytorch.md). */
void tscope_range_push(const char *name) __attribute__((weak));
void tscope_range_pop(void) __attribute__((weak));

#define TSCOPE_STEP(step) (tscope_step ? tscope_step(step) : (void)0)
#define TSCOPE_SCALAR(name, value, step)                                                           \
  (tscope_scalar ? tscope_scalar(name, value, step) : (void)0)
#define TSCOPE_RANGE_PUSH(name) (tscope_range_push ? tscope_range_push(name) : (void)0)
#define TSCOPE_RANGE_POP() (tscope_range_pop ? tscope_range_pop() : (void)0)

#ifdef __cplusplus
}
#endif

#endif
