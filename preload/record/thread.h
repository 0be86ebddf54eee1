/* SPDX-License-Identifier: MIT
 *
 * The state of each thread that records. A thread number is a slot: when a thread ends, the next
 * one to start takes over its slot with the number and the partly filled chunks, so that a job that
 * starts a million short threads uses no more slots and chunks than it has threads at one time. A
 * THREAD record says from when on a number means which thread.
 */
#ifndef TSCOPE_THREAD_H
#define TSCOPE_THREAD_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Most threads that record at one time; further ones are counted as TSCOPE_LOSS_THREADS. */
enum { TSCOPE_THREAD_SLOTS = 4096 };

/* 0 or a negative errno. */
int tscope_threads_init(void);

/* The calling thread's state, set up where that is due; NULL while it is being set up or torn down,
 * or when no slot is left. */
struct tscope_thread *tscope_thread_here(void);

/* Of all threads ever set up, with `before` the next; NULL at the end. */
struct tscope_thread *tscope_thread_newest(void);

/* Whether the kernel's thread `tid` has written records: of the last 1024 that began to, and false
 * of one whose place another has taken. */
bool tscope_thread_writes(u32 tid);

/* Marks the calling thread as one that is inside tscope, where no hook records; false if it was. */
bool tscope_thread_busy(void);
void tscope_thread_idle(void);

/* Hands the writer's chunk back. */
void tscope_writer_retire(struct tscope_writer *writer);

#pragma GCC visibility pop

#endif
