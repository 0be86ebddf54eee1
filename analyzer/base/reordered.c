/* SPDX-License-Identifier: MIT */
#include "base/reordered.h"

#include "base/each.h"

static u32 count(const u64 *list, u32 n, u64 key) {
  return NUMBER_OF(list, n, one, *one == key);
}

u32 reordered_until(const u64 *a, const u64 *b, u32 n) {
  enum { MOST = 64 };
  u32 end = n;
  while (end && a[end - 1] == b[end - 1])
    end--;
  if (end == n || end < 2 || end > MOST)
    return 0;
  FOR_EACH(a, end, one)
    if (count(a, end, *one) != count(b, end, *one))
      return 0;
  return end;
}
