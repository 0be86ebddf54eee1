/* SPDX-License-Identifier: MIT
 *
 * Where writers get their chunks. The helper keeps fresh chunks in the `ready` queue. Filled ring
 * chunks wait in the `filled` queue, oldest first, to be used again when the file may not grow any
 * more. Both queues are lock-free, so that a thread that needs a chunk waits for no other thread.
 */
#pragma once

#include "record/hook.h"
#include "record/queue.h"

#pragma GCC visibility push(hidden)

/* Most and fewest chunks kept ready; only retained records may take the last few. */
enum { TSCOPE_READY_MAX = 256, TSCOPE_READY_MIN = 16, TSCOPE_READY_FOR_RETAINED = 2 };

struct tscope_chunk_pool {
  struct tscope_queue ready, filled;
  u32 ring_max, retained_max,
      retained_kept; /* retained_kept: the part of retained_max that only definitions may use */
  u32 ring_used, retained_used;
  void (*wake_helper)(void);
  u32 ready_wanted; /* how many the helper keeps ready; grows if that was not enough */
  bool closed;
};
extern struct tscope_chunk_pool tscope_chunk_pool;

/* Who needs the chunk: definitions and anchors may use the part of the retained records that is
 * kept for them. */
enum tscope_need { TSCOPE_EVENTS, TSCOPE_DEFINITIONS };

/* Where so many chunks of each kind are more than `bytes`: makes both less in proportion, but there
 * are at least TSCOPE_RETAINED_LEAST retained ones. Returns whether they were more. */
enum { TSCOPE_RETAINED_LEAST = 4 };
bool tscope_chunks_within(u64 bytes, u32 *ring, u32 *retained);

/* 0 or a negative errno. Numbers are of chunks. `wake_helper` wakes the helper, so that it calls
 * tscope_chunk_pool_refill() before its time. */
int tscope_chunk_pool_init(u32 ring_max, u32 retained_max, void (*wake_helper)(void));

/* A chunk for `retention`, not yet visible to readers: its magic or its committed is 0. NULL if
 * there is none, with the reason in *loss. */
struct tscope_chunk_header *tscope_chunk_pool_acquire(enum tscope_retention retention,
                                                      enum tscope_need need,
                                                      enum tscope_loss *loss);

/* Returns a filled ring chunk, whose records may be overwritten when its turn comes. */
void tscope_chunk_pool_release(struct tscope_chunk_header *chunk);

/* Makes as many chunks ready as wanted; on the helper, and when the process wakes. */
void tscope_chunk_pool_refill(void);

/* Prevents page faults in the next stores: once the kernel has written a page to the disk, the next
 * store into it would fault. Every tick, on the helper. */
void tscope_chunk_pool_touch(void);

/* tscope_trace_leave_reserve(), and the other one, while no thread makes chunks. False: another
 * thread does; then the second must not be called. */
bool tscope_chunk_pool_leave_reserve(void);
void tscope_chunk_pool_take_reserve(void);

/* The trace is to take at most `bytes` of the address space, or what it has already. If another
 * thread makes chunks for long, the helper does it as soon as that is done. */
void tscope_chunk_pool_limit(u64 bytes);

/* Gives out no more chunks, and cuts unused chunks off the file's end. */
void tscope_chunk_pool_close(void);

#pragma GCC visibility pop
