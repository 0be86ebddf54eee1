/* SPDX-License-Identifier: MIT
 *
 * Whole stacks of a process: its Python frames replace the interpreter's calls that run them,
 * between the frames of C and C++.
 */
#pragma once

#include "attach/native_frames.h"
#include "model/stalls.h"

enum native_which {
  NATIVE_NONE,
  NATIVE_CALLED, /* without the interpreter's own frames between and outside of Python frames */
  NATIVE_ALL,
};

/* What came of it. */
struct native_outcome {
  const char *why_none;                  /* NULL: some stacks are whole */
  u32 taken, stuck, refused, gone, left; /* threads; `left`: could not be copied */
  u32 unmatched; /* Python frames and calls of the interpreter did not match: they are listed
                    separately */
  u32 cut;       /* stacks whose outer frames could not be found */
  i64 longest_ns, all_ns;
};

/* Puts whole stacks, as far as possible, into the threads of `look`, which have only Python frames
 * until then. `python` is NULL if the process has none; `states` are the PyThreadStates of the
 * threads, 0 for those without one. */
void native_stacks_add(struct arena *arena, pid_t pid, const struct python *python,
                       const u64 *states, enum native_which which, struct rank_stall *look,
                       struct native_outcome *outcome);
