/* SPDX-License-Identifier: MIT
 *
 * A bounded queue of numbers, in which any number of threads push and pop without a lock (Dmitry
 * Vyukov's bounded MPMC queue): each cell carries a ticket that says whose turn it is.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

struct tscope_queue_cell {
  u32 turn;
  u32 value;
};

struct tscope_queue {
  struct tscope_queue_cell *cells;
  u32 mask; /* capacity - 1; capacity is a power of two */
  u32 head __attribute__((aligned(64)));
  u32 tail __attribute__((aligned(64)));
};

static inline void tscope_queue_init(struct tscope_queue *queue, struct tscope_queue_cell *cells,
                                     u32 capacity) {
  queue->cells = cells;
  queue->mask = capacity - 1;
  queue->head = queue->tail = 0;
  for (u32 i = 0; i < capacity; i++)
    cells[i].turn = i;
}

/* False when the queue is full. */
static inline bool tscope_queue_push(struct tscope_queue *queue, u32 value) {
  u32 tail = __atomic_load_n(&queue->tail, __ATOMIC_RELAXED);
  for (;;) {
    struct tscope_queue_cell *cell = &queue->cells[tail & queue->mask];
    i32 turn = (i32)(__atomic_load_n(&cell->turn, __ATOMIC_ACQUIRE) - tail);
    if (turn < 0)
      return false;
    if (turn > 0) {
      tail = __atomic_load_n(&queue->tail, __ATOMIC_RELAXED);
    } else if (__atomic_compare_exchange_n(&queue->tail, &tail, tail + 1, true, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED)) {
      __atomic_store_n(&cell->value, value, __ATOMIC_RELAXED);
      __atomic_store_n(&cell->turn, tail + 1, __ATOMIC_RELEASE);
      return true;
    }
  }
}

/* False when the queue is empty. */
static inline bool tscope_queue_pop(struct tscope_queue *queue, u32 *value) {
  u32 head = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);
  for (;;) {
    struct tscope_queue_cell *cell = &queue->cells[head & queue->mask];
    i32 turn = (i32)(__atomic_load_n(&cell->turn, __ATOMIC_ACQUIRE) - (head + 1));
    if (turn < 0)
      return false;
    if (turn > 0) {
      head = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);
    } else if (__atomic_compare_exchange_n(&queue->head, &head, head + 1, true, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED)) {
      *value = cell->value;
      __atomic_store_n(&cell->turn, head + queue->mask + 1, __ATOMIC_RELEASE);
      return true;
    }
  }
}

/* The number at a position, counted from the head, without removing it. False if there is none. */
static inline bool tscope_queue_peek(const struct tscope_queue *queue, u32 position, u32 *value) {
  const struct tscope_queue_cell *cell = &queue->cells[position & queue->mask];
  *value = __atomic_load_n(&cell->value, __ATOMIC_RELAXED);
  return __atomic_load_n(&cell->turn, __ATOMIC_ACQUIRE) == position + 1;
}

/* How many are in it; those that are being pushed or popped now may or may not count. */
static inline u32 tscope_queue_length(const struct tscope_queue *queue) {
  return __atomic_load_n(&queue->tail, __ATOMIC_RELAXED) -
         __atomic_load_n(&queue->head, __ATOMIC_RELAXED);
}
