/* SPDX-License-Identifier: MIT
 *
 * Tables that find by hash: names made to fall on one slot do not, and what has one hash is found
 * in the order in which it was added.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/hash.h"
#include "base/hash_index.h"
#include "base/sorting.h"

enum { BLOCKS = 10, NAMES = 1 << BLOCKS };

/* Each block is in one of two forms, which lead a hash of fixed constants from any state to the
 * same one. */
static void make_name(u32 number, char name[16 * BLOCKS]) {
  for (u32 block = 0; block < BLOCKS; block++) {
    char *at = name + (size_t)16 * block;
    memcpy(at, "ncclDevKernel_ab", 16);
    if (number >> block & 1)
      at[7] ^= '\x80', at[11] ^= '\x80', at[15] ^= '\x80';
  }
}

static u32 number_of_hashes(u64 (*hash)(const char *name)) {
  u64 hashes[NAMES];
  for (u32 i = 0; i < NAMES; i++) {
    char name[16 * BLOCKS];
    make_name(i, name);
    hashes[i] = hash(name);
  }
  SORT(hashes, NAMES, by_u64);
  return KEEP_FIRST(hashes, NAMES, last, one, *last == *one);
}

static u64 fixed_hash(const char *name) {
  return hash_bytes(HASH_SEED, name, 16 * BLOCKS);
}

static u64 hash_of_table(const char *name) {
  return table_hash(0, name, 16 * BLOCKS);
}

static void names_made_to_have_one_hash_have_many(void **state) {
  (void)state;
  assert_int_equal(number_of_hashes(fixed_hash), 1);
  assert_int_equal(number_of_hashes(hash_of_table), NAMES);
}

static void equal_hashes_keep_their_order(void **state) {
  (void)state;
  for (u64 start = 0; start < 64; start++) {
    struct hash_index index = {0};
    for (u32 i = 0; i < 1000; i++)
      hash_index_add(&index, start + i % 3, i);
    for (u64 hash = 0; hash < 3; hash++) {
      u32 next = (u32)hash;
      HASH_INDEX_EACH(&index, start + hash, i) {
        assert_int_equal(i, next);
        next += 3;
      }
      assert_true(next >= 1000);
    }
    free(index.slots);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_made_to_have_one_hash_have_many),
      cmocka_unit_test(equal_hashes_keep_their_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
