/* SPDX-License-Identifier: MIT */
#include "model/memory_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

#define MOST_FRAMES 200000u /* what is deeper then belongs to who called it */

u32 memory_frames_find_or_add(struct memory_frames *frames, u32 caller, const char *name,
                              bool own) {
  u64 hash = hash_text(HASH_SEED ^ (caller * 0x9e3779b97f4a7c15ull), name);
  if (!frames->all.n)
    VECTOR_PUSH(&frames->all, (struct memory_frame){0});
  HASH_INDEX_EACH(&frames->index, hash, i)
    if (frames->all.at[i].caller == caller && strcmp(frames->all.at[i].name, name) == 0)
      return i;
  if (frames->all.n > MOST_FRAMES && caller)
    return caller;
  hash_index_add(&frames->index, hash, frames->all.n);
  VECTOR_PUSH(&frames->all, (struct memory_frame){name, caller, own});
  return frames->all.n - 1;
}

void memory_frames_finish(struct memory_frames *frames, struct arena *arena,
                          struct memory_history *history) {
  history->frames = VECTOR_KEPT(&frames->all, arena);
  history->n_frames = frames->all.n;
  memory_frames_free(frames);
}

void memory_frames_free(struct memory_frames *frames) {
  free(frames->all.at);
  free(frames->index.slots);
  *frames = (struct memory_frames){0};
}
