/* SPDX-License-Identifier: MIT
 *
 * Stacks and the frames in them, each written to the trace once. A stack is identified by a hash of
 * its code objects, the position in each, and their tags. If two threads meet the same stack at
 * once, both write it, which does no harm.
 */
#pragma once

#include "callsites/native_here.h"
#include "callsites/python_here.h"
#include "inspect/memory_window.h"
#include "inspect/python_code.h"
#include "resolve/unloading.h"

#pragma GCC visibility push(hidden)

enum {
  MAX_STACK_FRAMES = 128, /* of one stack; frames further out are cut off */
  MAX_NATIVE_FRAMES = 64,
  KNOWN_BITS = 15,
  KNOWN_SLOTS = 1 << KNOWN_BITS,
};

/* Hashes that are written to the trace. Slots only ever fill up. */
struct hash_set {
  u64 *slots;
  u32 n;
};
struct known_stacks {
  struct hash_set frames, stacks;
};
extern struct known_stacks known_stacks;

/* A walk over a thread's frames, innermost first, and room to write what it found. */
struct stack_walk {
  u32 n;
  bool more; /* there are further ones */
  u64 keys[MAX_STACK_FRAMES];
  struct python_frame frames[MAX_STACK_FRAMES];
  u64 addresses[MAX_NATIVE_FRAMES]; /* instead of these where it is a native stack */
  struct python_location place;
  struct memory_window window;
  struct {
    struct tscope_stack_record record;
    u64 keys[MAX_STACK_FRAMES];
  } stack;
};

/* Makes the tables, unless they are there. False without memory. From any thread. */
bool known_stacks_init(void);

static inline u64 nonzero_hash(u64 hash) {
  return hash | (u64)!hash;
}

PYTHON_INLINE u64 frame_key(const struct python_frame *frame) {
  return nonzero_hash(
      python_mix(python_mix(frame->tag, frame->code), (u64)(u32)frame->instruction));
}

/* False where the frames cannot be read. */
PYTHON_INLINE bool stack_walk(struct stack_walk *walk, python_read *read, const void *context,
                              u64 state) {
  u64 at;
  walk->n = 0;
  walk->more = false;
  if (!python_first_frame(&python_here, read, context, state, &at))
    return false;
  for (;;) {
    struct python_frame frame;
    enum python_walk next = python_next_frame(&python_here, read, context, &at, &frame);
    if (next == PYTHON_UNREADABLE)
      return false;
    walk->more = next == PYTHON_FRAME;
    if (next == PYTHON_END || walk->n == MAX_STACK_FRAMES)
      return true;
    walk->frames[walk->n] = frame;
    walk->keys[walk->n++] = frame_key(&frame);
  }
}

/* The same of frames of C and C++. */
static inline void stack_walk_native(struct stack_walk *walk) {
  u64 tag = tscope_unloads(); /* another library may have the addresses of one that is gone */
  walk->n = native_here_walk(walk->addresses, MAX_NATIVE_FRAMES, &walk->more);
  for (u32 i = 0; i < walk->n; i++)
    walk->keys[i] = nonzero_hash(python_mix(tag + 1, walk->addresses[i]));
}

static inline u64 stack_hash(const struct stack_walk *walk) {
  u64 hash = walk->n;
  for (u32 i = 0; i < walk->n; i++)
    hash = python_mix(hash, walk->keys[i]);
  return nonzero_hash(hash);
}

static inline bool hash_set_has(const struct hash_set *set, u64 hash) {
  for (u64 i = hash >> (64 - KNOWN_BITS);; i++) {
    u64 found = __atomic_load_n(&set->slots[i & (KNOWN_SLOTS - 1)], __ATOMIC_ACQUIRE);
    if (found == hash)
      return true;
    if (!found)
      return false;
  }
}

static inline bool stack_is_known(u64 hash) {
  return hash_set_has(&known_stacks.stacks, hash);
}

/* Writes a new stack of `process` (NULL: a native one of this process), with those of its frames
 * that are new. False if there is no room for it, or if a running thread has left a frame meanwhile
 * and its code is gone. */
bool stack_define(struct stack_walk *walk, u64 hash, const struct python_process *process);

/* The hash of the stack, which is in the trace then; 0 where it cannot be. */
u64 stack_in_trace(struct stack_walk *walk, const struct python_process *process);

/* Reads where a frame of process `pid` is into the walk's place; false if that cannot be read. Sets
 * whether the frame is still there: else a running thread has left it, and its code is gone. */
bool stack_frame_place(struct stack_walk *walk, u32 i, pid_t pid, bool *is_there);

#pragma GCC visibility pop
