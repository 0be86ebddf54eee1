/* SPDX-License-Identifier: MIT
 *
 * Sorting: equal elements keep their order, whatever was in order before and however large they
 * are.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/hash.h"
#include "base/sorting.h"

enum { MOST = 300 };

struct small {
  u16 key, place;
};
struct middle {
  u64 key, place;
};
struct large {
  u32 key, place;
  char rest[29];
};

ORDER_BY(small_by_key, struct small, UP(key))
ORDER_BY(middle_by_key, struct middle, UP(key))
ORDER_BY(large_by_key, struct large, UP(key))
ORDER_INDICES_BY(index_by_key, struct small, DOWN(key))

/* Keys of a list: by chance, going up but for some, going down, few of them. */
enum keys { BY_CHANCE, NEARLY_IN_ORDER, BACKWARDS, FEW, KEYS };

static u32 key_at(enum keys keys, u32 i, u32 n) {
  u32 chance = hash_number(i + 1, n * 7 + 1) % 1000;
  switch (keys) {
  case NEARLY_IN_ORDER:
    return chance < 50 ? chance : i;
  case BACKWARDS:
    return n - i;
  case FEW:
    return chance % 3;
  default:
    return chance;
  }
}

#define ASSERT_SORTED(type, order)                                                                 \
  do {                                                                                             \
    type list[MOST] = {0};                                                                         \
    for (u32 i = 0; i < n; i++)                                                                    \
      list[i] = (type){.key = key_at(keys, i, n), .place = i};                                     \
    SORT(list, n, order);                                                                          \
    for (u32 i = 1; i < n; i++)                                                                    \
      assert_true(list[i - 1].key < list[i].key ||                                                 \
                  (list[i - 1].key == list[i].key && list[i - 1].place < list[i].place));          \
    for (u32 i = 0; i < n; i++)                                                                    \
      assert_int_equal(list[i].key, key_at(keys, (u32)list[i].place, n));                          \
  } while (0)

static void equal_elements_keep_their_order(void **state) {
  (void)state;
  for (enum keys keys = 0; keys < KEYS; keys++)
    for (u32 n = 0; n <= MOST; n += n < 20 ? 1 : 37) {
      ASSERT_SORTED(struct small, small_by_key);
      ASSERT_SORTED(struct middle, middle_by_key);
      ASSERT_SORTED(struct large, large_by_key);
    }
}

static void indices_are_sorted_by_what_they_mean(void **state) {
  (void)state;
  struct small list[MOST];
  u32 indices[MOST];
  for (u32 i = 0; i < MOST; i++) {
    list[i] = (struct small){.key = (u16)key_at(FEW, i, MOST)};
    indices[i] = i;
  }
  SORT_INDICES(indices, MOST, list, index_by_key);
  for (u32 i = 1; i < MOST; i++) {
    u16 before = list[indices[i - 1]].key, key = list[indices[i]].key;
    assert_true(before > key || (before == key && indices[i - 1] < indices[i]));
  }
}

static void nothing_may_be_sorted(void **state) {
  (void)state;
  u64 *none = NULL;
  u32 n = 0;
  SORT(none, n, by_u64);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_elements_keep_their_order),
      cmocka_unit_test(indices_are_sorted_by_what_they_mean),
      cmocka_unit_test(nothing_may_be_sorted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
