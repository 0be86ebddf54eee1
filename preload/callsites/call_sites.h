/* SPDX-License-Identifier: MIT
 *
 * From which line of the program a call came. Each stack is written once per process: of Python
 * frames, or in a process without Python of frames of C and C++. Beside the record of the call goes
 * a record that names the stack. The two have the same start time, which shows that they belong
 * together.
 *
 * The hot path takes no lock, allocates nothing and makes no system call. The meaning of a stack or
 * frame is found and written when it is first met.
 */
#pragma once

#include "record/families.h"

#pragma GCC visibility push(hidden)

enum call_site_class {
  CALL_SITE_ALWAYS,  /* collectives, synchronisation, waits, device memory */
  CALL_SITE_LARGE,   /* tensors of a MiB and more: all of them, while the budget allows it */
  CALL_SITE_SAMPLED, /* launches, other tensors: one of so many, picked at random */
  CALL_SITE_FORWARD, /* operators whose backward is sampled: one of so many, chosen by number */
  CALL_SITE_CLASSES
};

/* Bit 1 << class: whether that class is sampled. 0 until it is known how stacks are read. */
extern u8 call_sites_wanted;

/* At the start of the thread's family memory: calls until the next one that is sampled. */
struct call_site_countdown {
  u32 left[CALL_SITE_CLASSES];
  u32 rate[CALL_SITE_CLASSES]; /* one of so many, when `left` was set; 0: never yet */
  u32 calls;                   /* whose stack was taken: shows that the thread trains */
  u64 last_stack;              /* of the last of them */
  u32 calls_seen;              /* the helper's: how many it saw, and when (ticks) there were more */
  u64 called;
};

void call_site_record(struct tscope_thread *thread, struct tscope_writer *writer, u64 start,
                      enum call_site_class class);

/* Notes from where a call came. Its record goes to `writer` and has the start `start` (raw ticks).
 * No reservation may be open on `writer`. Preserves errno. */
__attribute__((always_inline)) static inline void call_site(struct tscope_thread *thread,
                                                            struct tscope_writer *writer, u64 start,
                                                            enum call_site_class class) {
  if (TSCOPE_LIKELY(!(__atomic_load_n(&call_sites_wanted, __ATOMIC_RELAXED) & 1 << class)))
    return;
  struct call_site_countdown *countdown = thread->family[TSCOPE_FAMILY_CALL_SITES];
  if (class != CALL_SITE_ALWAYS && TSCOPE_LIKELY(countdown->left[class]-- > 1))
    return;
  call_site_record(thread, writer, start, class);
}

/* This thread is about to end the process: notes where it is in Python. Faults nowhere, for it may
 * be in a signal handler. */
void call_site_of_end(struct tscope_thread *thread);

/* A backward pass has begun, or ended, on this thread. Autograd's own threads run its operators
 * without Python frames; their calls are attributed to the line that started the pass. */
void call_site_backward_begin(struct tscope_thread *thread, u64 start);
void call_site_backward_end(void);

/* The operator whose backward a thread runs. */
struct call_site_operator {
  u64 stack;  /* of its forward, 0 where that is not known */
  u32 weight; /* how many operators it stands for; 0: no operator, or one that is not sampled */
  u32 left;   /* of the countdown outside */
};

/* Whether operators are sampled. */
static inline bool call_site_forward_is_wanted(void) {
  return __atomic_load_n(&call_sites_wanted, __ATOMIC_RELAXED) & 1 << CALL_SITE_FORWARD;
}

/* Whether the operator `key` is one of those. */
bool call_site_forward_is_sampled(u64 key);

/* This thread calls an operator of the forward pass that will have a backward: its stack is kept
 * under `key`. */
void call_site_forward_put(struct tscope_thread *thread, u64 key);

/* An autograd thread begins, or ends, the backward of the operator `key`. `outer` keeps the
 * previous state. */
void call_site_operator_begin(struct tscope_thread *thread, u64 key,
                              struct call_site_operator *outer);
void call_site_operator_end(const struct tscope_thread *thread,
                            const struct call_site_operator *outer);

/* Looks for Python, unless it was found before; for hooks that may run before the family could. */
void call_sites_init(struct tscope_thread *thread);

#pragma GCC visibility pop
