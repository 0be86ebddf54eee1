/* SPDX-License-Identifier: MIT
 *
 * Where writers get their chunks from. The helper keeps fresh chunks in the `ready` queue; filled
 * detail chunks wait in the `filled` queue, oldest first, to be used again once the file may grow
 * no more. Both are lock-free, so that a thread that needs a chunk waits for nobody.
 */
#ifndef TSCOPE_SUPPLY_H
#define TSCOPE_SUPPLY_H

#include "record/hook.h"
#include "record/queue.h"

#pragma GCC visibility push(hidden)

/* Most chunks kept ready, and fewest; the spine alone may take the last few. */
enum { TSCOPE_READY_MAX = 256, TSCOPE_READY_MIN = 16, TSCOPE_READY_FOR_SPINE = 2 };

struct tscope_supply {
  struct tscope_queue ready, filled;
  u32 detail_max, spine_max, spine_kept; /* spine_kept: part of spine_max for definitions alone */
  u32 detail_used, spine_used;
  u32 ready_wanted; /* how many the helper keeps ready; grows when that was not enough */
  bool closed;
};
extern struct tscope_supply tscope_supply;

/* Who asks: definitions and anchors may use the part of the spine kept for them. */
enum tscope_need { TSCOPE_EVENTS, TSCOPE_DEFINITIONS };

/* 0 or a negative errno. Numbers are of chunks. */
int tscope_supply_init(u32 detail_max, u32 spine_max);

/* A chunk for `home`, not visible to readers yet: its magic or its committed is 0. NULL when there
 * is none, the reason in *loss. */
struct tscope_chunk_header *tscope_supply_take(enum tscope_home home, enum tscope_need need,
                                               enum tscope_loss *loss);

/* Hands a detail chunk back whose records may be overwritten when their turn comes. */
void tscope_supply_give_back(struct tscope_chunk_header *chunk);

/* Makes ready what is wanted; on the helper, and at wake. */
void tscope_supply_refill(void);

/* Keeps what is written next free of page faults: once the kernel has written a page to the disk,
 * the next store into it would take one. Every tick, on the helper. */
void tscope_supply_touch(void);

/* Ends the supply and cuts unused chunks off the file's end. */
void tscope_supply_close(void);

#pragma GCC visibility pop

#endif
