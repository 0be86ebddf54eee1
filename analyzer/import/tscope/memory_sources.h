/* SPDX-License-Identifier: MIT
 *
 * Where allocations come from: the training phase that they were made in and, where the trace has
 * their call site, the line of the program.
 */
#pragma once

#include "model/building.h"
#include "model/memory_history.h"
#include "model/span_call_sites.h"

struct memory_sources_of {
  const struct model *model;
  u32 rank; /* index into model.ranks */
  struct memory_history *history;
  const struct call_sites *sites; /* frames and stacks */
  const u32 *stacks;              /* [history.n_events] index into the stacks, INDEX_NONE */
  struct arena *arena, *scratch;  /* for what the history keeps, and for what it does not */
};

/* Makes the history's sources and the tree of its stacks, and gives each allocation its own. */
void memory_name_sources(const struct memory_sources_of *of);
