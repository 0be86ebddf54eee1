/* SPDX-License-Identifier: MIT
 *
 * What the threads of this process are doing now: for a stall that is recorded, and for somebody
 * who asks. On the helper, which has descriptors of its own: nothing of the job is waited for,
 * stopped or allocated from.
 */
#pragma once

#include "callsites/known_stacks.h"
#include "inspect/python_threads.h"
#include "inspect/thread_state.h"

/* On the thread that wakes the process, which may look up symbols: finds Python. */
void threads_now_find_python(struct tscope_thread *thread);

/* Why Python's frames cannot be read: "" where there is no Python, or before it was looked for;
 * NULL where they can. */
const char *threads_now_python_why(void);

/* The number of the job's threads. */
u32 threads_now_count(void);

/* Calls `each` with the state of each thread of the job. What the kernel reports needs none of the
 * process's memory, so it comes before the stacks. */
void threads_now_states(void (*each)(const struct thread_state *state, void *more), void *more);

/* Calls `each` with the Python frames of each thread that Python knows, innermost first. Only
 * if threads_now_python_why() is NULL; `walk` is NULL where they cannot be read. `moved`: they were
 * not the same a moment later, so the thread runs. */
void threads_now_stacks(void (*each)(const struct python_thread *thread, struct stack_walk *walk,
                                     bool moved, void *more),
                        void *more);

/* Calls `each` with the first thread of those processes of the same parent, as ranks of one
 * launcher are, that cannot tell about themselves: they are stopped, have ended, or do not come
 * back from the kernel. */
void threads_now_peers(void (*each)(u32 pid, const struct thread_state *state, void *more),
                       void *more);
