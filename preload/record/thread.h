/* SPDX-License-Identifier: MIT
 *
 * The state of each thread that records. A thread number is a slot: when a thread ends, the next
 * one to start takes over its slot with the number and the partly filled chunks, so that a job that
 * starts a million short threads uses no more slots and chunks than it has threads at one time. A
 * THREAD record says from which time on a number means which thread.
 */
#pragma once

#include "record/hook.h"

/* Most threads that record at one time; the records of further ones are counted as
 * TSCOPE_LOSS_THREADS. */
enum { TSCOPE_THREAD_SLOTS = 4096 };

void tscope_threads_init(void);

/* The calling thread's state, set up if that is still to do; NULL while it is being set up or torn
 * down, or if no slot is left. */
struct tscope_thread *tscope_thread_here(void);

/* For a thread of tscope whose work another one continues: gives up the calling thread's state, as
 * it is, and takes one that was given up. */
void tscope_thread_hand_over(void);
void tscope_thread_take_over(struct tscope_thread *thread);

/* The newest of all threads ever set up; `before` leads to the next. NULL at the end. */
struct tscope_thread *tscope_thread_newest(void);

/* Whether the kernel's thread `tid` has written records. False if very many threads did so, some
 * hundreds, and another one has got its place. */
bool tscope_thread_writes(u32 tid);

/* Marks the calling thread as inside tscope, where no hook records; false if it was already. */
bool tscope_thread_busy(void);
void tscope_thread_idle(void);

/* Releases the writer's chunk. */
void tscope_writer_retire(struct tscope_writer *writer);
