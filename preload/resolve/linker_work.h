/* SPDX-License-Identifier: MIT
 *
 * Work that needs the dynamic linker's lock, such as loading a library. A thread of the job must
 * not wait for that lock: who holds it may run a constructor that waits for this very thread. So
 * the poller does it. The thread waits until it is done, unless somebody else holds the lock: then
 * it goes on, and the work is done later.
 */
#pragma once

#include "record/hook.h"

/* Static; used once. */
struct tscope_linker_work {
  void (*run)(struct tscope_thread *poller);
  u32 state; /* futex */
  struct tscope_linker_work *next;
};

/* Has the work done, once in the process's life; in a process without a poller, or on the poller
 * itself, here and now. Preserves errno. */
void tscope_linker_work(struct tscope_thread *thread, struct tscope_linker_work *work);

/* The poller's part: `wake` makes it call tscope_linker_work_do(). NULL: it is there no more. */
void tscope_linker_work_begin(void (*wake)(void));
void tscope_linker_work_do(struct tscope_thread *poller);
