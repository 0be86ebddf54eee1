/* SPDX-License-Identifier: MIT */

#include "base/sort_runs.h"
#include "import/tscope/timeline/timeline_build.h"

/* By start, longer first; equal spans keep the order they were decoded in. Those of one thread or
 * stream are mostly in order already. */
static bool is_before(const void *spans, const char *one, const char *other) {
  const struct span *a = (const struct span *)spans + *(const u32 *)one,
                    *b = (const struct span *)spans + *(const u32 *)other;
  bool before = a->start < b->start;
  if (a->start == b->start)
    before = a->end > b->end;
  return before;
}

/* The elements in order, in other memory. */
#define PUT_IN_ORDER(elements, order, memory)                                                      \
  do {                                                                                             \
    __typeof__((elements)->at) from_ = (elements)->at, to_ = memory;                               \
    for (u32 i_ = 0, n_ = (elements)->n; i_ < n_; i_++)                                            \
      to_[i_] = from_[(order)[i_]];                                                                \
    (elements)->at = to_;                                                                          \
    (elements)->room = (elements)->n;                                                              \
  } while (0)

/* Moves spans and facts into order, and links between spans with them. `place` becomes where each
 * went. Facts go to where the spans were: memory that nobody has touched costs more than this. */
static void apply_order(struct timeline_build *build, const u32 *order, u32 *place) {
  _Static_assert(sizeof(struct span_facts) <= sizeof(struct span), "there is room for them");
  void *were = build->spans.at, *facts_were = build->facts.at;
  PUT_IN_ORDER(&build->spans, order,
               memory_array(size_sum(build->spans.n, 1), sizeof(struct span)));
  PUT_IN_ORDER(&build->facts, order, were);
  free(facts_were);
  for (u32 i = 0; i < build->spans.n; i++)
    place[order[i]] = i;
  FOR_EACH_CHANGED(build->spans.at, build->spans.n, span) {
    u8 kind = span->kind;
    bool to_span = kind == SPAN_COLL_CALL || kind == SPAN_COMM_WAIT || kind == SPAN_LAUNCH ||
                   (SPAN_ON_DEVICE(kind) && kind != SPAN_COLLECTIVE);
    if (span->link != INDEX_NONE && to_span)
      span->link = place[span->link];
    if (span->launch != INDEX_NONE)
      span->launch = place[span->launch];
  }
}

void timeline_sort(struct timeline_build *build) {
  u32 n = build->spans.n;
  if (!n)
    return;
  u32 *order = memory_array(n, sizeof(u32));
  for (u32 i = 0; i < n; i++)
    order[i] = i;
  sort_runs(order, n, sizeof(*order), is_before, build->spans.at);
  u32 *place = memory_array(n, sizeof(u32));
  apply_order(build, order, place);
  free(order);
  free(place);
}
