/* SPDX-License-Identifier: MIT */
#include "resolve/linker_work.h"

#include <dlfcn.h>

#include "record/tick_clock.h"

enum { NEW, WAITS, BEGUN, DONE }; /* for `state` */

static void (*wake_poller)(void);
static struct tscope_linker_work *waiting; /* newest first */
static struct tscope_thread *poller_thread;

static void set_state(struct tscope_linker_work *work, u32 state) {
  __atomic_store_n(&work->state, state, __ATOMIC_SEQ_CST);
  tscope_futex_wake(&work->state, INT32_MAX);
}

void tscope_linker_work(struct tscope_thread *thread, struct tscope_linker_work *work) {
  const u64 lock_ns = 200000000, work_ns = 10000000000;
  void (*wake)(void) = __atomic_load_n(&wake_poller, __ATOMIC_ACQUIRE);
  u32 new = NEW;
  TSCOPE_KEEP_ERRNO;
  if (!__atomic_compare_exchange_n(&work->state, &new, WAITS, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST))
    return;
  if (!wake || thread == __atomic_load_n(&poller_thread, __ATOMIC_RELAXED)) {
    work->run(thread);
    set_state(work, DONE);
  } else {
    work->next = __atomic_load_n(&waiting, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&waiting, &work->next, work, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
      ;
    wake();
    if (tscope_wait_while(&work->state, WAITS, lock_ns))
      tscope_wait_while(&work->state, BEGUN, work_ns);
  }
}

void tscope_linker_work_begin(void (*wake)(void)) {
  __atomic_store_n(&wake_poller, wake, __ATOMIC_RELEASE);
}

/* dladdr() takes the lock that the thread which is waited for may hold. A fork need not wait for
 * it: of the linker's locks this is the one that fork() resets in the child, other than that of
 * dl_iterate_phdr() (loaded_objects.h). */
void tscope_linker_work_do(struct tscope_thread *poller) {
  __atomic_store_n(&poller_thread, poller, __ATOMIC_RELAXED);
  struct tscope_linker_work *work = __atomic_exchange_n(&waiting, NULL, __ATOMIC_SEQ_CST);
  while (work) {
    struct tscope_linker_work *next = work->next;
    Dl_info info;
    if (dladdr)
      dladdr(&waiting, &info); /* waits for the lock */
    set_state(work, BEGUN);
    if (poller)
      work->run(poller);
    set_state(work, DONE);
    work = next;
  }
}
