/* SPDX-License-Identifier: MIT */
#include "model/memory_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

#define MOST_FRAMES 200000u /* what is deeper then belongs to who called it */

u32 memory_frames_find_or_add(struct memory_frames *frames, u32 caller, const char *name,
                              bool own) {
  u64 hash = table_hash_text(caller, name);
  if (!frames->all.n)
    VECTOR_PUSH(&frames->all, (struct memory_frame){0});
  u32 known =
      HASHED_INDEX(&frames->all, hash, one, one->caller == caller && strcmp(one->name, name) == 0);
  if (known != INDEX_NONE || (frames->all.n > MOST_FRAMES && caller))
    return known != INDEX_NONE ? known : caller;
  return HASHED_ADD(&frames->all, hash, (struct memory_frame){name, caller, own});
}

void memory_frames_finish(struct memory_frames *frames, struct arena *arena,
                          struct memory_history *history) {
  history->frames = VECTOR_KEPT(&frames->all, arena);
  history->n_frames = frames->all.n;
  memory_frames_free(frames);
}

void memory_frames_free(struct memory_frames *frames) {
  FREE_EACH(&frames->all, at, index.slots);
  *frames = (struct memory_frames){0};
}
