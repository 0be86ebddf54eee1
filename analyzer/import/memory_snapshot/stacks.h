/* SPDX-License-Identifier: MIT
 *
 * Where allocations come from. A snapshot has many stacks, and most of them are the same list in
 * the file. Each list is described once: a place in the program, and a category
 * (allocation_categories.def).
 */
#pragma once

#include "base/vector.h"
#include "import/value.h"
#include "model/memory_frames.h"

struct stack {
  const struct value_items *frames;
  u32 source; /* index into sources, 0 not known */
  u32 stack;  /* index into tree, likewise */
  u32 nth;    /* in the order of the recording */
};

struct stacks {
  VECTOR(struct stack) all;      /* sorted by address once resolved */
  struct memory_source *sources; /* [0] is the unknown one */
  u32 n_sources;
  struct memory_frames tree;
};

/* Adds a list of frames, innermost first. A value that is not a list of frames is ignored. False
 * without memory. */
void stacks_add(struct stacks *stacks, const struct value *frames);

/* Describes all of them. The sources and the names of the tree's frames are in `arena`. */
void stacks_resolve(struct stacks *stacks, struct arena *arena);

/* The stack of a list of frames; the unknown stack if the value is not such a list. */
const struct stack *stacks_find(const struct stacks *stacks, const struct value *frames);

void stacks_free(struct stacks *stacks);
