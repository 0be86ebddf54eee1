/* SPDX-License-Identifier: MIT
 *
 * The Python frames of a thread that runs, read again and again from another thread. What the last
 * look found says what the next one will need: the heads of those frames, and their code objects.
 * They are read in one system call. If nothing has changed, that is all. Else everything is read
 * again, some times: only what is the same each time counts, from the outermost frame inwards
 * (docs/lines.md says why that is enough).
 */
#pragma once

#include "callsites/known_stacks.h"
#include "inspect/memory_gather.h"

enum { GIL_LOCK_BYTES = 208 };     /* sizeof(struct _gil_runtime_state), ever since 3.9 */
enum { MAX_WATCHED_FRAMES = 512 }; /* those that are no Python's among them */
enum { MAX_OUTERMOST = 8 }; /* coroutines with stacks of their own (greenlets) have one each */

/* What changes in a frame. */
struct frame_head {
  u64 at, previous, code, instruction, owner;
};

struct watched_stack {
  pid_t pid;     /* of the process; a child's too */
  u64 state;     /* address of the thread's PyThreadState; 0: nothing is watched */
  u64 thread_id; /* the pthread_t in it */
  u64 interpreter;
  u64 holder;   /* where the state of the thread that holds the GIL is kept; 0: not known */
  u64 gil_lock; /* the GIL's own lock; 0: not known */
  u64 cframe;   /* of 3.11 and 3.12 */
  u64 outermost[MAX_OUTERMOST]; /* frames that are believed, the newest first; 0: none further */
  u64 other_outermost;          /* another one */
  u32 times_other;              /* that it was found in a row */
  bool whole;                   /* all of the heads were the same twice */
  u32 n;
  struct frame_head heads[MAX_WATCHED_FRAMES];
};

/* What else was read of the interpreter at that moment. */
struct watched_moment {
  u64 gil_holder; /* address of a PyThreadState; 0: nobody has it, or not known */
  bool collecting;
  bool no_frames; /* the thread runs no Python: it has not begun to, or it has ended that */
};

/* Begins to watch a thread. `runtime` is the address of _PyRuntime in its process. False if its
 * state cannot be read, or the structures of this version are larger than what is read of them. */
bool watched_stack_begin(struct watched_stack *watched, struct memory_gather *gather, pid_t pid,
                         u64 state, u64 runtime);

/* The frames of the thread that did not change while they were read, into `walk`; the innermost may
 * be missing. False if there are none, or they cannot be read. Sets `watched->state` to 0 if this
 * is not the thread's state any more. */
bool watched_stack_read(struct watched_stack *watched, struct memory_gather *gather,
                        struct stack_walk *walk, struct watched_moment *moment);
