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

static const struct column lasting[] = {COLUMN_LASTING(struct element, time, end)};

static size_t bytes_of_spans(const struct element *spans, u32 n, bool read_back) {
  struct arena arena = {0};
  struct element *read = arena_array(&arena, n, sizeof(*read));
  struct element *written = arena_elements(&arena, spans, n, sizeof(*written));
  struct carrier writer = carrier_to_write(&arena);
  carry_columns(&writer, written, n, sizeof(*written), lasting, 1);
  struct carrier reader = carrier_to_read(writer.written.at, writer.written.n, &arena);
  carry_columns(&reader, read, n, sizeof(*read), lasting, 1);
  size_t bytes = writer.written.n;
  assert_int_equal(carrier_is_bad(&reader), !read_back);
  for (u32 i = 0; i < n && read_back; i++)
    assert_true(read[i].time == spans[i].time && read[i].end == spans[i].end);
  carrier_free(&writer);
  carrier_free(&reader);
  arena_release(&arena);
  return bytes;
}

/* Also those that never ended, overlap, or of which nothing is known. */
static void spans_are_what_they_were(void **state) {
  const struct element all[] = {{1000, 2000, 0},       {2001, INT64_MIN, 0},
                                {2500, 9000, 0},       {3000, 3000, 0},
                                {INT64_MIN, 7, 0},     {INT64_MIN, INT64_MIN, 0},
                                {-CARRIED_MOST, 0, 0}, {0, INT64_MAX, 0},
                                {5, CARRIED_MOST, 0},  {1, 2, 0}};
  const struct element never[] = {{1, 2, 0}, {CARRIED_MOST + 1, 3, 0}};
  (void)state;
  bytes_of_spans(all, LENGTH_OF(all), true);
  bytes_of_spans(never, 2, false);
}

/* Work that follows other work in a queue takes what its length takes, and a byte. */
static void what_follows_at_once_is_short(void **state) {
  struct element queue[1000];
  i64 free_from = 1000000000;
  (void)state;
  for (u32 i = 0; i < 1000; i++) {
    queue[i] = (struct element){free_from + 2, free_from + 2 + 8192 + 37 * i, 0};
    free_from = queue[i].end;
  }
  assert_in_range(bytes_of_spans(queue, 1000, true), 3001, 1000 * 4 + 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(columns_hold_what_their_types_can),
                                     cmocka_unit_test(spans_are_what_they_were),
                                     cmocka_unit_test(what_follows_at_once_is_short)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
