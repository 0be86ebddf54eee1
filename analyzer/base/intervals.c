/* SPDX-License-Identifier: MIT */
#include "base/intervals.h"

#include <stdbool.h>

#include "base/checked_memory.h"
#include "base/each.h"
#include "base/sorting.h"

void intervals_append(struct intervals *set, i64 start, i64 end) {
  if (end <= start)
    return;
  struct interval *last = set->n ? &set->at[set->n - 1] : NULL;
  if (last && start <= last->end) {
    last->end = MAX(end, last->end);
    return;
  }
  set->at[set->n++] = (struct interval){start, end};
}

void intervals_unite(struct arena *arena, struct interval *at, u32 n, struct intervals *out) {
  *out = (struct intervals){arena_array(arena, n, sizeof(*at)), 0};
  SORT(at, n, by_i64);
  FOR_EACH(at, n, one)
    intervals_append(out, one->start, one->end);
}

void intervals_union(struct arena *arena, const struct intervals *a, const struct intervals *b,
                     struct intervals *out) {
  *out = (struct intervals){0};
  if (a->n + b->n == 0)
    return;
  out->at = arena_array(arena, size_sum(a->n, b->n), sizeof(*out->at));
  u32 i = 0, j = 0;
  while (i < a->n || j < b->n) {
    bool first = j == b->n || (i < a->n && a->at[i].start <= b->at[j].start);
    const struct interval *next = first ? &a->at[i++] : &b->at[j++];
    intervals_append(out, next->start, next->end);
  }
}

void intervals_subtract(struct arena *arena, const struct intervals *a, const struct intervals *b,
                        struct intervals *out) {
  *out = (struct intervals){0};
  if (a->n == 0)
    return;
  out->at = arena_array(arena, size_sum(a->n, b->n), sizeof(*out->at));
  u32 j = 0;
  FOR_EACH(a->at, a->n, each) {
    i64 from = each->start, end = each->end;
    while (j < b->n && b->at[j].end <= from)
      j++;
    for (u32 k = j; k < b->n && b->at[k].start < end; k++) {
      intervals_append(out, from, b->at[k].start);
      from = MAX(b->at[k].end, from);
    }
    intervals_append(out, from, end);
  }
}

void intervals_within(const struct intervals *set, u32 *cursor, i64 start, i64 end,
                      struct intervals *out) {
  out->n = 0;
  while (*cursor < set->n && set->at[*cursor].end <= start)
    ++*cursor;
  for (u32 i = *cursor; i < set->n && set->at[i].start < end; i++) {
    i64 from = MAX(set->at[i].start, start);
    i64 to = MIN(set->at[i].end, end);
    intervals_append(out, from, to);
  }
}

i64 intervals_covered(const struct intervals *set, u32 *cursor, i64 start, i64 end) {
  while (*cursor < set->n && set->at[*cursor].end <= start)
    ++*cursor;
  i64 sum = 0;
  for (u32 i = *cursor; i < set->n && set->at[i].start < end; i++) {
    i64 from = MAX(set->at[i].start, start);
    i64 to = MIN(set->at[i].end, end);
    sum += to - from;
  }
  return sum;
}
