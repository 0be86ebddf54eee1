/* SPDX-License-Identifier: MIT
 *
 * What a carrier does not believe, even if no byte was damaged: a bool that is neither, an instant
 * that no clock can have.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/carrier.h"

struct made {
  i64 time, end;
  u8 flag;
};
struct element {
  i64 time, end;
  bool flag;
};

static const struct column as_made[] = {
    {.name = "time", .bytes = 8, .coding = COLUMN_STEPS},
    {.name = "end", .offset = offsetof(struct made, end), .bytes = 8, .coding = COLUMN_STEPS},
    COLUMN(struct made, flag)};
static const struct column columns[] = {COLUMN(struct element, time), COLUMN(struct element, end),
                                        COLUMN(struct element, flag)};

static bool is_believed(i64 time, i64 end, u8 flag) {
  struct arena arena = {0};
  struct made made[2] = {{time, end, 1}, {time, end, flag}};
  struct element read[2] = {{0}};
  struct carrier writer = carrier_to_write(&arena);
  carry_columns(&writer, made, 2, sizeof(*made), as_made, 3);
  struct carrier reader = carrier_to_read(writer.written.at, writer.written.n, &arena);
  carry_columns(&reader, read, 2, sizeof(*read), columns, 3);
  bool believed = !carrier_is_bad(&reader);
  if (believed)
    assert_true(read[1].time == time && read[1].end == end && read[1].flag == (flag == 1));
  carrier_free(&writer);
  carrier_free(&reader);
  arena_release(&arena);
  return believed;
}

static void columns_hold_what_their_types_can(void **state) {
  (void)state;
  assert_true(is_believed(0, 1, 0));
  assert_true(is_believed(INT64_MIN, INT64_MAX, 1)); /* not known */
  assert_true(is_believed(-CARRIED_MOST, CARRIED_MOST, 1));
  assert_false(is_believed(CARRIED_MOST + 1, 0, 1));
  assert_false(is_believed(0, INT64_MIN + 1, 1));
  assert_false(is_believed(0, 1, 2));
  assert_false(is_believed(0, 1, 201));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(columns_hold_what_their_types_can)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
