/* SPDX-License-Identifier: MIT
 *
 * How sorting.h sorts, to be compiled together with what elements are compared by, for those who
 * sort millions: a call for each comparison would take half of the time.
 *
 * Runs of elements that are in order are merged, each with the next one, until one is left.
 */
#pragma once

#include "base/checked_memory.h"
#include "base/sorting.h"

/* Whether an element comes before another one; `of` is what is known beside them. */
typedef bool comes_before(const void *of, const char *a, const char *b);

struct sorted_runs {
  char *at;
  size_t bytes; /* of an element */
  const void *of;
  u32 *runs; /* where they begin, and the end of the last */
  u32 n;
  char *room; /* for as many elements as there are */
};

#define INTO_CALLER static inline __attribute__((always_inline))

/* Sizes that the compiler knows are copied without a call. */
INTO_CALLER void copy_element(char *to, const char *from, size_t bytes) {
  switch (bytes) {
  case 4:
    memcpy(to, from, 4);
    return;
  case 8:
    memcpy(to, from, 8);
    return;
  case 16:
    memcpy(to, from, 16);
    return;
  case 32:
    memcpy(to, from, 32);
    return;
  default:
    memcpy(to, from, bytes);
  }
}

/* Where the first elements end that are in order. */
INTO_CALLER u32 end_of_run(const struct sorted_runs *s, comes_before *before, u32 from, u32 n) {
  const char *next = s->at + (from + 1) * s->bytes;
  u32 end = from + 1;
  for (; end < n && !before(s->of, next, next - s->bytes); end++)
    next += s->bytes;
  return end;
}

/* What comes before the first of the second run stays; the rest of the first goes to the room, and
 * comes back with the second. Which comes next cannot be predicted: no branch depends on it. */
INTO_CALLER void merge_two(const struct sorted_runs *s, comes_before *before, u32 first, u32 second,
                           u32 end) {
  size_t bytes = s->bytes;
  char *b = s->at + second * bytes, *b_end = s->at + end * bytes;
  first = FIRST_NOT(first, second, i, !before(s->of, b, s->at + i * bytes));
  char *out = s->at + first * bytes, *a = s->room, *a_end = a + (second - first) * bytes;
  memcpy(a, out, (size_t)(a_end - a));
  while (a < a_end && b < b_end) {
    bool from_b = before(s->of, b, a);
    copy_element(out, from_b ? b : a, bytes);
    out += bytes;
    a += from_b ? 0 : bytes;
    b += from_b ? bytes : 0;
  }
  memcpy(out, a, (size_t)(a_end - a));
}

INTO_CALLER void merge_all(struct sorted_runs *s, comes_before *before) {
  while (s->n > 1) {
    u32 left = 0;
    for (u32 r = 0; r < s->n; r += 2) {
      if (r + 1 < s->n)
        merge_two(s, before, s->runs[r], s->runs[r + 1], s->runs[r + 2]);
      s->runs[left++] = s->runs[r];
    }
    s->runs[left] = s->runs[s->n];
    s->n = left;
  }
}

INTO_CALLER void sort_runs(void *at, u32 n, size_t bytes, comes_before *before, const void *of) {
  struct sorted_runs s = {.at = at, .bytes = bytes, .of = of};
  u32 end = n ? end_of_run(&s, before, 0, n) : 0;
  if (end == n)
    return;
  s.runs = memory_array(size_sum(n, 1), sizeof(u32));
  s.room = memory_array(n, bytes);
  for (u32 begin = 0; begin < n; begin = end) {
    end = begin ? end_of_run(&s, before, begin, n) : end;
    s.runs[s.n++] = begin;
  }
  s.runs[s.n] = n;
  merge_all(&s, before);
  FREE_EACH(&s, runs, room);
}
