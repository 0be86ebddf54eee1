/* SPDX-License-Identifier: MIT */
#include "base/sorting.h"

#include "base/checked_memory.h"

/* Runs of elements that are in order are merged, each with the next one, until one is left. */
struct sorting {
  char *at;
  size_t bytes; /* of an element */
  int (*order)(const void *, const void *);
  int (*order_of)(const void *, const void *, void *); /* instead of that, if that is NULL */
  void *of;
  u32 *runs; /* where they begin, and the end of the last */
  u32 n_runs;
  char *room; /* for as many elements as there are */
};

static bool is_before(const struct sorting *s, const char *a, const char *b) {
  return (s->order ? s->order(a, b) : s->order_of(a, b, s->of)) < 0;
}

/* Sizes that the compiler knows are copied without a call. */
static inline void copy_element(char *to, const char *from, size_t bytes) {
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
static u32 end_of_run(const struct sorting *s, u32 from, u32 n) {
  const char *next = s->at + (from + 1) * s->bytes;
  u32 end = from + 1;
  for (; end < n && !is_before(s, next, next - s->bytes); end++)
    next += s->bytes;
  return end;
}

/* What comes before the first of the second run stays; the rest of the first goes to the room, and
 * comes back with the second. */
static void merge(const struct sorting *s, u32 first, u32 second, u32 end) {
  size_t bytes = s->bytes;
  char *b = s->at + second * bytes, *b_end = s->at + end * bytes;
  first = FIRST_NOT(first, second, i, !is_before(s, b, s->at + i * bytes));
  char *out = s->at + first * bytes, *a = s->room, *a_end = a + (second - first) * bytes;
  memcpy(a, out, (size_t)(a_end - a));
  while (a < a_end && b < b_end) {
    bool from_b = is_before(s, b, a);
    copy_element(out, from_b ? b : a, bytes);
    out += bytes;
    a += from_b ? 0 : bytes;
    b += from_b ? bytes : 0;
  }
  memcpy(out, a, (size_t)(a_end - a));
}

static void merge_runs(struct sorting *s) {
  while (s->n_runs > 1) {
    u32 left = 0;
    for (u32 r = 0; r < s->n_runs; r += 2) {
      if (r + 1 < s->n_runs)
        merge(s, s->runs[r], s->runs[r + 1], s->runs[r + 2]);
      s->runs[left++] = s->runs[r];
    }
    s->runs[left] = s->runs[s->n_runs];
    s->n_runs = left;
  }
}

static void sort(struct sorting *s, u32 n) {
  u32 end = n ? end_of_run(s, 0, n) : 0;
  if (end == n)
    return;
  s->runs = memory_array(size_sum(n, 1), sizeof(u32));
  s->room = memory_array(n, s->bytes);
  for (u32 begin = 0; begin < n; begin = end) {
    end = begin ? end_of_run(s, begin, n) : end;
    s->runs[s->n_runs++] = begin;
  }
  s->runs[s->n_runs] = n;
  merge_runs(s);
  FREE_EACH(s, runs, room);
}

void sort_list(void *at, u32 n, size_t bytes, int (*order)(const void *, const void *)) {
  sort(&(struct sorting){.at = at, .bytes = bytes, .order = order}, n);
}

void sort_list_of(void *at, u32 n, size_t bytes, int (*order)(const void *, const void *, void *),
                  void *of) {
  sort(&(struct sorting){.at = at, .bytes = bytes, .order_of = order, .of = of}, n);
}

#define BY_VALUE(function, type)                                                                   \
  int function(const void *left, const void *right) {                                              \
    type a = *(const type *)left, b = *(const type *)right;                                        \
    return (a > b) - (a < b);                                                                      \
  }
BY_VALUE(by_u32, u32)
BY_VALUE(by_u64, u64)
BY_VALUE(by_i64, i64)
BY_VALUE(by_double, double)
