/* SPDX-License-Identifier: MIT
 *
 * Ranges that the program named through NVTX, summed by name. Steps and phases among them are in
 * the model already; these are all others.
 */
#pragma once

#include "base/arena.h"
#include "model/model.h"

struct named_range {
  const char *name;   /* without a number at its end; "" beyond the trace's table */
  const char *domain; /* the library that named it, "" for the program itself */
  u64 count;
  i64 sum, longest; /* ns, with the ranges inside it */
};

/* The ranges of one rank, in no order, as far as the ring kept them; none if the input has none.
 * Everything lives in `arena`. 0, or negative errno. */
int model_named_ranges(const struct model *model, u32 rank, struct arena *arena,
                       struct named_range **ranges, u32 *n);
