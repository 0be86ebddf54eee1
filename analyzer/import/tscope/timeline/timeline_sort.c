/* SPDX-License-Identifier: MIT */

#include "base/checked_memory.h"
#include "import/tscope/timeline/timeline_build.h"

struct sorting {
  const struct span *spans;
  u32 *order, *other;
  u32 *runs; /* where sorted runs begin, and n at the end */
  u32 n_runs;
};

/* By start, longer first; equal spans keep the order they were decoded in. */
static bool is_before(const struct span *spans, u32 a, u32 b) {
  if (spans[a].start != spans[b].start)
    return spans[a].start < spans[b].start;
  if (spans[a].end != spans[b].end)
    return spans[a].end > spans[b].end;
  return a < b;
}

static void find_runs(struct sorting *sorting, u32 n) {
  VECTOR(u32) runs = {0};
  for (u32 i = 0; i < n; i++)
    if (i == 0 || is_before(sorting->spans, i, i - 1))
      VECTOR_PUSH(&runs, i);
  sorting->n_runs = runs.n;
  VECTOR_PUSH(&runs, n);
  sorting->runs = runs.at;
}

static void merge(const struct span *spans, const u32 *a, const u32 *a_end, const u32 *b,
                  const u32 *b_end, u32 *out) {
  while (a < a_end &&
         b < b_end) { /* which comes next cannot be predicted: no branch depends on it */
    i64 a_start = spans[*a].start, b_start = spans[*b].start;
    bool second = b_start < a_start;
    if (b_start == a_start)
      second = is_before(spans, *b, *a);
    *out++ = *(second ? b : a);
    b += second;
    a += !second;
  }
  while (a < a_end)
    *out++ = *a++;
  while (b < b_end)
    *out++ = *b++;
}

/* Merges neighbouring runs pairwise until one is left. The spans of one thread or stream are mostly
 * sorted already, so there are few runs. */
static void merge_runs(struct sorting *sorting) {
  while (sorting->n_runs > 1) {
    u32 left = 0;
    for (u32 r = 0; r < sorting->n_runs; r += 2) {
      u32 middle = sorting->runs[r + 1];
      u32 end = r + 1 < sorting->n_runs ? sorting->runs[r + 2] : middle;
      merge(sorting->spans, sorting->order + sorting->runs[r], sorting->order + middle,
            sorting->order + middle, sorting->order + end, sorting->other + sorting->runs[r]);
      sorting->runs[left++] = sorting->runs[r];
    }
    sorting->runs[left] = sorting->runs[sorting->n_runs];
    sorting->n_runs = left;
    u32 *swap = sorting->order;
    sorting->order = sorting->other;
    sorting->other = swap;
  }
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
  struct sorting sorting = {.spans = build->spans.at,
                            .order = memory_array(size_sum(n, 1), sizeof(u32)),
                            .other = memory_array(size_sum(n, 1), sizeof(u32))};
  for (u32 i = 0; i < n; i++)
    sorting.order[i] = i;
  find_runs(&sorting, n);
  merge_runs(&sorting);
  apply_order(build, sorting.order, sorting.other);
  FREE_EACH(&sorting, order, other, runs);
}
