/* SPDX-License-Identifier: MIT
 *
 * Where allocations come from: the many stacks of a snapshot, of which most are the same list of
 * the file, told once each as a place in the program and a category (allocation_categories.def).
 */
#ifndef TSCOPE_MEMORY_STACKS_H
#define TSCOPE_MEMORY_STACKS_H

#include "base/vector.h"
#include "import/value.h"
#include "model/memory_frames.h"

struct stack {
  const struct value_items *frames;
  u32 source; /* index into sources, 0 not known */
  u32 stack;  /* index into tree, likewise */
};

struct stacks {
  VECTOR(struct stack) all;      /* sorted by address once resolved */
  struct memory_source *sources; /* [0] is the unknown one */
  u32 n_sources;
  struct memory_frames tree;
};

/* Takes note of a list of frames, innermost first; anything else is no stack. False without memory.
 */
bool stacks_add(struct stacks *stacks, const struct value *frames);

/* Tells all of them: sources, and names of the tree's frames, live in `arena`. 0, or -ENOMEM. */
int stacks_resolve(struct stacks *stacks, struct arena *arena);

/* One of them; the unknown stack if the value is not a stack. */
const struct stack *stacks_find(const struct stacks *stacks, const struct value *frames);

void stacks_free(struct stacks *stacks);

#endif
