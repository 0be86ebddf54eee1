/* SPDX-License-Identifier: MIT
 *
 * Where writers get their chunks from. The helper keeps fresh chunks in the `ready` queue; filled
 * ring chunks wait in the `filled` queue, oldest first, to be used again once the file may grow no
 * more. Both are lock-free, so that a thread that needs a chunk waits for no other thread.
 */
#ifndef TSCOPE_CHUNK_POOL_H
#define TSCOPE_CHUNK_POOL_H

#include "record/hook.h"
#include "record/queue.h"

#pragma GCC visibility push(hidden)

/* Most chunks kept ready, and fewest; the retained records alone may take the last few. */
enum { TSCOPE_READY_MAX = 256, TSCOPE_READY_MIN = 16, TSCOPE_READY_FOR_RETAINED = 2 };

struct tscope_chunk_pool {
  struct tscope_queue ready, filled;
  u32 ring_max, retained_max,
      retained_kept; /* retained_kept: part of retained_max for definitions alone */
  u32 ring_used, retained_used;
  void (*call_helper)(void);
  u32 ready_wanted; /* how many the helper keeps ready; grows when that was not enough */
  bool closed;
};
extern struct tscope_chunk_pool tscope_chunk_pool;

/* Who asks: definitions and anchors may use the part of the retained records kept for them. */
enum tscope_need { TSCOPE_EVENTS, TSCOPE_DEFINITIONS };

/* 0 or a negative errno. Numbers are of chunks. `call_helper` wakes the helper, so that it calls
 * tscope_chunk_pool_refill() before its time. */
int tscope_chunk_pool_init(u32 ring_max, u32 retained_max, void (*call_helper)(void));

/* A chunk for `retention`, not visible to readers yet: its magic or its committed is 0. NULL when
 * there is none, the reason in *loss. */
struct tscope_chunk_header *tscope_chunk_pool_take(enum tscope_retention retention,
                                                   enum tscope_need need, enum tscope_loss *loss);

/* Hands a ring chunk back whose records may be overwritten when their turn comes. */
void tscope_chunk_pool_give_back(struct tscope_chunk_header *chunk);

/* Makes ready what is wanted; on the helper, and at wake. */
void tscope_chunk_pool_refill(void);

/* Keeps what is written next free of page faults: once the kernel has written a page to the disk,
 * the next store into it would take one. Every tick, on the helper. */
void tscope_chunk_pool_touch(void);

/* Gives out no more chunks, and cuts unused chunks off the file's end. */
void tscope_chunk_pool_close(void);

#pragma GCC visibility pop

#endif
