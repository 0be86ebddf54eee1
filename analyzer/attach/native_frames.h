/* SPDX-License-Identifier: MIT
 *
 * Frames of C and C++ from snapshots of threads, by elfutils' libdwfl: unwound with the tables that
 * C++ exceptions use (.eh_frame), named from the symbols of the files that the process has mapped,
 * with file and line if debug information is beside them. The process itself is not touched.
 */
#pragma once

#include "attach/thread_snapshot.h"
#include "base/arena.h"

/* Texts live in the arena; NULL where not known. */
struct native_frame {
  const char *function; /* C++ names as people write them, without arguments */
  const char *symbol;   /* likewise: the function into which the compiler may have put it */
  const char *library;  /* path as the process has it; NULL: code that is of no file */
  const char *file;     /* if debug information has it */
  u32 line;             /* likewise, 0 */
  const char *build_id; /* in hex */
  u64 offset;           /* in the library; the address itself where there is none */
};

struct native_process;

/* NULL, or why this program knows no native frames. */
const char *native_frames_unavailable(void);

/* The files that `pid` has mapped. `snapshots` stays the caller's and outlives what is returned.
 * NULL when they cannot be read. */
struct native_process *native_open(struct arena *arena, pid_t pid,
                                   const struct snapshots *snapshots);

/* The frames of a thread that has a snapshot, innermost first: how many. *whole: to the
 * outermost. Of functions that the compiler put into another only the innermost is there. */
u32 native_unwind(struct native_process *process, const struct thread_snapshot *thread,
                  struct native_frame *frames, u32 most, bool *whole);

void native_close(struct native_process *process);
