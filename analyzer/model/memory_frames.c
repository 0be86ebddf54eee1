/* SPDX-License-Identifier: MIT */
#include "model/memory_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

#define MOST_FRAMES 200000u /* what is deeper then belongs to who called it */

static u32 home_of(const struct memory_frames *frames, u32 caller, const char *name) {
  u64 hash = hash_text(HASH_SEED ^ (caller * 0x9e3779b97f4a7c15ull), name);
  return (u32)(hash ^ hash >> 32) & (frames->n_slots - 1);
}

static void make_room(struct memory_frames *frames) {
  if (!frames->all.n) {
    VECTOR_PUSH(&frames->all, (struct memory_frame){0});
  }
  if (frames->all.n < frames->n_slots / 2)
    return;
  u32 n = frames->n_slots ? frames->n_slots * 2 : 1024;
  u32 *slots = memory_zeroed(n, sizeof(*slots));
  free(frames->slots);
  frames->slots = slots;
  frames->n_slots = n;
  for (u32 i = 1; i < frames->all.n; i++) {
    u32 slot = home_of(frames, frames->all.at[i].caller, frames->all.at[i].name);
    while (slots[slot])
      slot = (slot + 1) & (n - 1);
    slots[slot] = i;
  }
}

u32 memory_frames_find_or_add(struct memory_frames *frames, u32 caller, const char *name,
                              bool own) {
  make_room(frames);
  u32 slot = home_of(frames, caller, name);
  for (; frames->slots[slot]; slot = (slot + 1) & (frames->n_slots - 1)) {
    const struct memory_frame *known = &frames->all.at[frames->slots[slot]];
    if (known->caller == caller && strcmp(known->name, name) == 0)
      return frames->slots[slot];
  }
  if (frames->all.n > MOST_FRAMES && caller)
    return caller;
  u32 index = frames->all.n;
  VECTOR_PUSH(&frames->all, (struct memory_frame){name, caller, own});
  frames->slots[slot] = index;
  return index;
}

void memory_frames_finish(struct memory_frames *frames, struct arena *arena,
                          struct memory_history *history) {
  u32 n = frames->all.n;
  history->frames = arena_array(arena, size_sum(n, 1), sizeof(*history->frames));
  if (n)
    memcpy(history->frames, frames->all.at, n * sizeof(*history->frames));
  history->n_frames = n;
  memory_frames_free(frames);
}

void memory_frames_free(struct memory_frames *frames) {
  free(frames->all.at);
  free(frames->slots);
  *frames = (struct memory_frames){0};
}
