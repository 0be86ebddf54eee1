/* SPDX-License-Identifier: MIT */
#include "base/sorting.h"

#include "base/sort_runs.h"

struct by_order {
  int (*order)(const void *, const void *);
};

struct by_order_of {
  int (*order)(const void *, const void *, void *);
  void *of;
};

static bool is_before(const void *by, const char *a, const char *b) {
  return ((const struct by_order *)by)->order(a, b) < 0;
}

static bool is_before_of(const void *user, const char *a, const char *b) {
  const struct by_order_of *by = user;
  return by->order(a, b, by->of) < 0;
}

void sort_list(void *at, u32 n, size_t bytes, int (*order)(const void *, const void *)) {
  sort_runs(at, n, bytes, is_before, &(struct by_order){order});
}

void sort_list_of(void *at, u32 n, size_t bytes, int (*order)(const void *, const void *, void *),
                  void *of) {
  sort_runs(at, n, bytes, is_before_of, &(struct by_order_of){order, of});
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
