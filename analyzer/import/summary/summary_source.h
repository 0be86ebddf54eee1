/* SPDX-License-Identifier: MIT
 *
 * What summaries answer about a rank (struct timeline_source): what was kept when it was reduced.
 */
#ifndef TSCOPE_SUMMARY_SOURCE_H
#define TSCOPE_SUMMARY_SOURCE_H

#include "import/summary/summaries.h"

struct summary_source {
  const struct timeline_source *inner;  /* of ranks without a summary; NULL */
  const struct known_summary **of_rank; /* [n_ranks] of the model; NULL: the inner source's */
  bool *settled;                        /* [n_ranks] what was found may be used */
  bool traces;                          /* recorded by libtscope.so */
};

extern const struct timeline_source summary_timelines;

/* What the importer adds to what is found on a rank, before the analyses do: in this order. */
void summary_keep_rank(const struct model *model, u32 rank, struct settled_ranks *settled,
                       struct carrier *found);

#endif
