/* SPDX-License-Identifier: MIT */

#include "base/checked_memory.h"
#include "import/tscope/timeline/timeline_build.h"

struct sort_key {
  i64 start;
  u32 span;
};

struct sorting {
  const struct span *spans;
  struct sort_key *keys, *other;
  u32 *runs; /* where sorted runs begin, and n at the end */
  u32 n_runs;
};

/* By start, longer first; equal spans keep the order they were decoded in. */
static bool is_before(const struct span *spans, const struct sort_key *a,
                      const struct sort_key *b) {
  if (a->start != b->start)
    return a->start < b->start;
  if (spans[a->span].end != spans[b->span].end)
    return spans[a->span].end > spans[b->span].end;
  return a->span < b->span;
}

static void find_runs(struct sorting *sorting, u32 n) {
  VECTOR(u32) runs = {0};
  for (u32 i = 0; i < n; i++)
    if (i == 0 || is_before(sorting->spans, &sorting->keys[i], &sorting->keys[i - 1]))
      VECTOR_PUSH(&runs, i);
  sorting->n_runs = runs.n;
  VECTOR_PUSH(&runs, n);
  sorting->runs = runs.at;
}

static void merge(const struct span *spans, const struct sort_key *a, const struct sort_key *a_end,
                  const struct sort_key *b, const struct sort_key *b_end, struct sort_key *out) {
  while (a < a_end &&
         b < b_end) { /* which comes next cannot be predicted: no branch depends on it */
    bool second = b->start < a->start;
    if (b->start == a->start)
      second = is_before(spans, b, a);
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
      merge(sorting->spans, sorting->keys + sorting->runs[r], sorting->keys + middle,
            sorting->keys + middle, sorting->keys + end, sorting->other + sorting->runs[r]);
      sorting->runs[left++] = sorting->runs[r];
    }
    sorting->runs[left] = sorting->runs[sorting->n_runs];
    sorting->n_runs = left;
    struct sort_key *swap = sorting->keys;
    sorting->keys = sorting->other;
    sorting->other = swap;
  }
}

/* Moves spans and facts into order, and links between spans with them. */
static void apply_order(struct timeline_build *build, const struct sort_key *keys) {
  u32 n = build->spans.n;
  struct span *spans = memory_array(size_sum(n, 1), sizeof(*spans));
  struct span_facts *facts = memory_array(size_sum(n, 1), sizeof(*facts));
  SCOPED u32 *place = memory_array(size_sum(n, 1), sizeof(*place));
  for (u32 i = 0; i < n; i++) {
    spans[i] = build->spans.at[keys[i].span];
    facts[i] = build->facts.at[keys[i].span];
    place[keys[i].span] = i;
  }
  for (u32 i = 0; i < n; i++) {
    u8 kind = spans[i].kind;
    bool to_span = kind == SPAN_COLL_CALL || kind == SPAN_COMM_WAIT || kind == SPAN_LAUNCH ||
                   (SPAN_ON_DEVICE(kind) && kind != SPAN_COLLECTIVE);
    if (to_span && spans[i].link != INDEX_NONE)
      spans[i].link = place[spans[i].link];
    if (spans[i].launch != INDEX_NONE)
      spans[i].launch = place[spans[i].launch];
  }
  free(build->spans.at);
  free(build->facts.at);
  build->spans.at = spans;
  build->facts.at = facts;
  build->spans.room = build->facts.room = n + 1;
}

void timeline_sort(struct timeline_build *build) {
  u32 n = build->spans.n;
  struct sorting sorting = {.spans = build->spans.at,
                            .keys = memory_array(size_sum(n, 1), sizeof(*sorting.keys)),
                            .other = memory_array(size_sum(n, 1), sizeof(*sorting.other))};
  for (u32 i = 0; i < n; i++)
    sorting.keys[i] = (struct sort_key){build->spans.at[i].start, i};
  find_runs(&sorting, n);
  merge_runs(&sorting);
  apply_order(build, sorting.keys);

  FREE_EACH(&sorting, keys, other, runs);
}
