/* SPDX-License-Identifier: MIT
 *
 * What summaries answer about a rank (struct timeline_source): what was kept when it was reduced.
 */
#pragma once

#include "import/summary/summaries.h"
#include "model/rank_events.h"
#include "model/rank_timeline.h"

/* A rank whose trace was looked for: only if something shows its spans. */
struct summary_trace {
  struct rank_events events; /* as its trace has them, where it could be read */
  bool read;
  const char *why; /* it could not; NULL */
  struct arena texts;
};

struct summary_source {
  const struct timeline_source *inner;  /* of ranks without a summary; NULL */
  const struct known_summary **of_rank; /* [n_ranks] of the model; NULL: the inner source's */
  bool *settled;                        /* [n_ranks] what was found may be used */
  struct summary_trace *trace_of;       /* [n_ranks] */
  u32 n_ranks;
  struct kernel_names *kernel_names;
  bool traces; /* recorded by libtscope.so */
};

/* Frees what belongs to a struct summary_source, which lives in the model's arena. */
void summary_source_release(void *source);

extern const struct timeline_source summary_timelines;

/* What the importer adds to what is found on a rank, before the analyses do: in this order. */
void summary_keep_rank(const struct model *model, u32 rank, struct settled_ranks *settled,
                       struct carrier *found);
