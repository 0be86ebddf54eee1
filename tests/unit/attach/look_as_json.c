/* SPDX-License-Identifier: MIT
 *
 * A look at a process written as JSON is read back unchanged; any other text is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "attach/look_json.h"

static const struct call_frame python = {
    .file = "/home/me/train.py", .function = "Net.forward", .line = 88, .first_line = 80};
static const struct call_frame native = {
    .file = "libc.so.6", .function = "poll", .library = "/lib/libc.so.6"};
static const struct call_frame unread = {0};

static void same_text(const char *a, const char *b) {
  assert_true(!a == !b);
  if (a)
    assert_string_equal(a, b);
}

static void same_frame(const struct call_frame *a, const struct call_frame *b) {
  same_text(a->file, b->file);
  same_text(a->function, b->function);
  same_text(a->library, b->library);
  assert_int_equal(a->line, b->line);
  assert_int_equal(a->first_line, b->first_line);
}

static void test_comes_back_as_it_was(void **state) {
  (void)state;
  const struct call_frame *frames[] = {&native, &python, &unread};
  struct stalled_thread threads[] = {
      {.tid = 4000000000u, /* larger than a signed number can be */
       .state = 'D',
       .name = "pt_autograd_0",
       .wait = "folio_wait",
       .call = "read",
       .file = "/data/a \"b\"\n\\",
       .main = true,
       .python = true,
       .holds_gil = true,
       .frames = frames,
       .n_frames = 3},
      {.tid = 7, .moved = true, .cut = true},
  };
  struct rank_stall look = {.all_threads = 9, .threads = threads, .n_threads = 2}, again;
  struct native_outcome outcome = {.taken = 1,
                                   .stuck = 2,
                                   .refused = 3,
                                   .gone = 4,
                                   .unmatched = 5,
                                   .cut = 6,
                                   .longest_ns = 5000000000,
                                   .all_ns = 7000000000},
                        outcome_again;
  struct arena arena = {0};
  char *text = look_json_write(&look, &outcome);
  assert_non_null(text);
  assert_null(strchr(text, '\n'));
  assert_int_equal(look_json_read(&arena, text, strlen(text), &again, &outcome_again), 0);
  free(text);
  assert_int_equal(again.all_threads, 9);
  assert_null(again.no_python);
  assert_int_equal(again.n_threads, 2);
  const struct stalled_thread *first = &again.threads[0], *second = &again.threads[1];
  assert_int_equal(first->tid, 4000000000u);
  assert_int_equal(first->state, 'D');
  same_text(first->name, "pt_autograd_0");
  same_text(first->wait, "folio_wait");
  same_text(first->call, "read");
  same_text(first->file, "/data/a \"b\"\n\\");
  assert_true(first->main && first->python && first->holds_gil && !first->moved && !first->cut);
  assert_int_equal(first->n_frames, 3);
  for (int i = 0; i < 3; i++)
    same_frame(first->frames[i], frames[i]);
  assert_true(!second->main && !second->python && !second->holds_gil);
  assert_true(second->moved && second->cut && !second->name && !second->state);
  assert_int_equal(second->n_frames, 0);
  assert_null(outcome_again.why_none);
  assert_int_equal(outcome_again.taken, 1);
  assert_int_equal(outcome_again.stuck, 2);
  assert_int_equal(outcome_again.refused, 3);
  assert_int_equal(outcome_again.gone, 4);
  assert_int_equal(outcome_again.unmatched, 5);
  assert_int_equal(outcome_again.cut, 6);
  assert_int_equal(outcome_again.longest_ns, 5000000000);
  assert_int_equal(outcome_again.all_ns, 7000000000);
  arena_release(&arena);
}

static void test_reasons_come_too(void **state) {
  (void)state;
  struct rank_stall look = {.no_python = ""}, again;
  struct native_outcome outcome = {.why_none = "its files cannot be read"}, outcome_again;
  struct arena arena = {0};
  char *text = look_json_write(&look, &outcome);
  assert_int_equal(look_json_read(&arena, text, strlen(text), &again, &outcome_again), 0);
  free(text);
  same_text(again.no_python, ""); /* it has no Python; NULL would mean something else */
  same_text(outcome_again.why_none, "its files cannot be read");
  assert_true(isnan(again.limit_s) && again.begin == NS_UNKNOWN);
  arena_release(&arena);
}

static void test_bytes_that_are_not_text(void **state) {
  (void)state;
  struct stalled_thread thread = {.tid = 1, .name = "bad\xff\xc3name"};
  struct rank_stall look = {.threads = &thread, .n_threads = 1}, again;
  struct native_outcome outcome = {0};
  struct arena arena = {0};
  char *text = look_json_write(&look, &outcome);
  assert_non_null(text);
  assert_int_equal(look_json_read(&arena, text, strlen(text), &again, &outcome), 0);
  free(text);
  assert_int_equal(again.n_threads, 1);
  assert_non_null(again.threads[0].name);
  assert_memory_equal(again.threads[0].name, "bad", 3);
  arena_release(&arena);
}

static void test_anything_else_is_refused_or_unknown(void **state) {
  (void)state;
  static const char *const refused[] = {"", "x", "{", "[]", "{}", "{\"threads\": 1}", "null"};
  static const char *const unknown[] = {
      "{\"threads\": []}",
      "{\"threads\": [1, null, {}, {\"frames\": 3}, {\"frames\": [1, {}, {\"file\": 7}]}]}",
      "{\"threads\": [{\"tid\": \"x\", \"state\": 5, \"main\": 3}], \"native\": 4}"};
  struct arena arena = {0};
  struct rank_stall look;
  struct native_outcome outcome;
  for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
    assert_int_equal(look_json_read(&arena, refused[i], strlen(refused[i]), &look, &outcome),
                     -EPROTO);
  for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
    assert_int_equal(look_json_read(&arena, unknown[i], strlen(unknown[i]), &look, &outcome), 0);
    for (u32 t = 0; t < look.n_threads; t++)
      assert_true(!look.threads[t].name && !look.threads[t].main && !look.threads[t].state);
  }
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_comes_back_as_it_was),
      cmocka_unit_test(test_reasons_come_too),
      cmocka_unit_test(test_bytes_that_are_not_text),
      cmocka_unit_test(test_anything_else_is_refused_or_unknown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
