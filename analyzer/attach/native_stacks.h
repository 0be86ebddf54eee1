/* SPDX-License-Identifier: MIT
 *
 * Whole stacks of a process that was looked at: its Python frames in the place of the calls of the
 * interpreter that run them, between the frames of C and C++.
 */
#ifndef TSCOPE_NATIVE_STACKS_H
#define TSCOPE_NATIVE_STACKS_H

#include "attach/native_frames.h"
#include "model/stalls.h"

enum native_which {
  NATIVE_NONE,
  NATIVE_CALLED, /* but the interpreter's own between and outside of Python frames */
  NATIVE_ALL,
};

/* What came of it. */
struct native_outcome {
  const char *why_none; /* NULL: some stacks are whole */
  u32 taken, stuck, refused, gone;
  u32 unmatched; /* Python frames and calls of the interpreter did not fit: these stand apart */
  u32 cut;       /* stacks whose outer frames could not be found */
  i64 longest_ns, all_ns;
};

/* Puts whole stacks into the threads of `look` in which Python frames alone are now, as far as they
 * can be had. `python` is NULL where the process has none; `states` are the PyThreadStates of the
 * threads, 0 where they have none. 0, or -ENOMEM. */
int native_stacks_add(struct arena *arena, pid_t pid, const struct python *python,
                      const u64 *states, enum native_which which, struct rank_stall *look,
                      struct native_outcome *outcome);

#endif
