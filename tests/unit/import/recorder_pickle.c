/* SPDX-License-Identifier: MIT
 *
 * Feeds the pickle reader with files that no pickler wrote: programs that need more than plain
 * data, claim more bytes than there are, or never end. recorder_pickle.py compares it with Python's
 * own reader.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the above first */
#include <cmocka.h>

#include "import/pickle/pickle.h"

struct reading {
  struct arena arena;
  struct value root;
  char why[300];
  int error;
};

static void read_bytes(struct reading *r, const void *bytes, size_t n) {
  *r = (struct reading){0};
  r->error = pickle_read(bytes, n, &r->arena, &r->root, r->why, sizeof(r->why));
}

#define READ(r, text) read_bytes(r, text, sizeof(text) - 1)

static void refused(const void *bytes, size_t n, int error, const char *says) {
  struct reading r;
  read_bytes(&r, bytes, n);
  if (r.error != -error || !strstr(r.why, says))
    fail_msg("%d \"%s\", wanted %d \"%s\"", r.error, r.why, -error, says);
  arena_release(&r.arena);
}

#define REFUSED(text, error, says) refused(text, sizeof(text) - 1, error, says)

static void calls_and_references_are_refused_by_name(void **state) {
  (void)state;
  REFUSED("cos\nsystem\n(S'echo run'\ntR.", EPERM, "os.system");
  REFUSED("(ios\nsystem\n.", EPERM, "INST asks for os.system");
  REFUSED("\x80\x04\x8c\x02os\x8c\x06system\x93.", EPERM, "os.system");
  REFUSED("\x80\x02)R.", EPERM, "REDUCE");
  REFUSED("\x80\x02)}b.", EPERM, "BUILD");
  REFUSED("\x80\x02)\x81.", EPERM, "NEWOBJ");
  REFUSED("\x80\x04)\x92.", EPERM, "NEWOBJ");
  REFUSED("(o.", EPERM, "NEWOBJ");
  REFUSED("Pid\n.", EPERM, "PERSID");
  REFUSED("NQ.", EPERM, "PERSID");
  REFUSED("\x82\x01.", EPERM, "EXT");
  REFUSED("\x80\x05\x97.", EPERM, "NEXT_BUFFER");
  REFUSED("c\x1b[2J\nboo\a\n.", EPERM, "?[2J.boo?");
}

static void missing_data_is_not_believed(void **state) {
  (void)state;
  REFUSED("", EBADMSG, "ends before");
  REFUSED("\x80", EBADMSG, "ends inside");
  REFUSED("\x80\x09N.", EBADMSG, "protocol newer");
  REFUSED("]", EBADMSG, "ends before");
  REFUSED("X\xff\xff\xff\xff"
          "a",
          EBADMSG, "size beyond");
  REFUSED("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
          "a",
          EBADMSG, "size beyond");
  REFUSED("\x8b\xff\xff\xff\x7f"
          "a",
          EBADMSG, "size beyond");
  REFUSED("\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", EBADMSG, "frame");
  REFUSED("Nr\xff\xff\xff\xff.", EBADMSG, "memo number beyond");
  REFUSED("j\xff\xff\xff\xff.", EBADMSG, "not memoized");
  REFUSED("h\x00.", EBADMSG, "not memoized");
  REFUSED(".", EBADMSG, "more or less");
  REFUSED("NN.", EBADMSG, "more or less");
  REFUSED("(N.", EBADMSG, "more or less");
  REFUSED("t.", EBADMSG, "mark");
  REFUSED("\x86.", EBADMSG, "more values");
  REFUSED("N(\x85.", EBADMSG, "more values");
  REFUSED("NNa.", EBADMSG, "not there");
  REFUSED("}NNa.", EBADMSG, "not there");
  REFUSED("}(Nu.", EBADMSG, "without a value");
  REFUSED("}]Ns.", EBADMSG, "as a key");
  REFUSED("\x8f(]\x90.", EBADMSG, "inside a set");
  REFUSED("]e.", EBADMSG, "mark");
  REFUSED("\xff.", EBADMSG, "not an instruction");
  REFUSED("I12\n.", EBADMSG, "not an instruction"); /* of protocol 0 */
}

static void cycles_are_refused(void **state) {
  (void)state;
  REFUSED("]q\0h\0a.", EBADMSG, "contains itself");
  REFUSED("}q\0(Nh\0u.", EBADMSG, "contains itself");
  REFUSED("]q\0(h\0ta.", EBADMSG, "contains itself");
}

/* n nested lists */
static size_t nested(char *at, size_t n) {
  memset(at, ']', n);
  memset(at + n, 'a', n - 1);
  at[2 * n - 1] = '.';
  return 2 * n;
}

static void nesting_has_an_end(void **state) {
  (void)state;
  size_t deep = 1000000;
  char *bytes = malloc(2 * deep);
  assert_non_null(bytes);
  struct reading r;
  read_bytes(&r, bytes, nested(bytes, PICKLE_MOST_DEPTH));
  assert_int_equal(r.error, 0);
  assert_int_equal(r.root.items->depth, PICKLE_MOST_DEPTH);
  arena_release(&r.arena);
  refused(bytes, nested(bytes, PICKLE_MOST_DEPTH + 1), EBADMSG, "nested too deeply");
  refused(bytes, nested(bytes, deep), EBADMSG, "nested too deeply");
  free(bytes);
}

/* A list of lists, each of which holds the one before: seen from each list, the next level is only
 * one deeper. */
static void nesting_through_references_has_an_end_too(void **state) {
  (void)state;
  char bytes[6000] = "(";
  size_t n = 1;
  for (int i = 0; i < 300; i++) {
    const char one[] = {']', 'r', (char)i, (char)(i >> 8), 0, 0}; /* LONG_BINPUT */
    const char before[] = {'j', (char)(i - 1), (char)((i - 1) >> 8), 0, 0, 'a'};
    memcpy(mempcpy(bytes + n, one, sizeof(one)), before, sizeof(before));
    n += sizeof(one) + (i ? sizeof(before) : 0);
  }
  memcpy(bytes + n, "l.", 2);
  n += 2;
  refused(bytes, n, EBADMSG, "nested too deeply");
}

/* Forty lists, each of ten references to the one before. */
static void shared_objects_are_read_once(void **state) {
  (void)state;
  char bytes[4000];
  char *end = mempcpy(bytes, "((K\7lq\0", 7);
  for (char level = 0; level < 40; level++) {
    *end++ = '(';
    for (int i = 0; i < 10; i++)
      end = mempcpy(end, (const char[]){'h', level}, 2);
    end = mempcpy(end, (const char[]){'l', 'q', (char)(level + 1)}, 3);
  }
  end = mempcpy(end, "l.", 2);
  struct reading r;
  read_bytes(&r, bytes, (size_t)(end - bytes));
  assert_int_equal(r.error, 0);
  assert_int_equal(value_count(&r.root), 41);
  const struct value *last = value_item(&r.root, 40);
  assert_ptr_equal(value_item(last, 0)->items, value_item(last, 9)->items);
  /* 1 for the list, 2 x 10^n for each level, and the outer list */
  assert_true(value_spread(&r.root) >= 1e30);
  arena_release(&r.arena);
}

#define SIZE "\x8c\4size" /* SHORT_BINUNICODE */
#define ADDR "\x8c\4addr"

static void texts_and_keys_are_kept_once(void **state) {
  (void)state;
  struct reading r;
  READ(&r, "](}(" SIZE "K\1" ADDR "K\2u}(" SIZE "K\3" ADDR "K\4u}" SIZE ADDR "se.");
  assert_int_equal(r.error, 0);
  const struct value *a = value_item(&r.root, 0), *b = value_item(&r.root, 1);
  assert_ptr_equal(a->items->keys, b->items->keys);
  assert_ptr_equal(value_key(a, 1)->text, value_get(value_item(&r.root, 2), "size")->text);
  i64 n;
  assert_true(value_integer(value_get(b, "addr"), &n));
  assert_int_equal(n, 4);
  arena_release(&r.arena);
}

static void a_dict_that_grows_leaves_its_twin_alone(void **state) {
  (void)state;
  struct reading r;
  READ(&r, "](}(\x8c\1aK\1u}(\x8c\1aK\2u\x8c\1bK\3s\x8c\1aK\4se.");
  assert_int_equal(r.error, 0);
  assert_int_equal(value_count(value_item(&r.root, 0)), 1);
  assert_int_equal(value_count(value_item(&r.root, 1)), 3);
  assert_null(value_get(value_item(&r.root, 0), "b"));
  assert_int_equal(value_get(value_item(&r.root, 1), "a")->integer, 4);
  arena_release(&r.arena);
}

static void a_value_of_another_kind_is_not_returned(void **state) {
  (void)state;
  struct reading r;
  READ(&r, "(\x8c\1aK\1d.");
  assert_int_equal(r.error, 0);
  i64 n = 7;
  assert_null(value_get(value_get(&r.root, "a"), "b"));
  assert_null(value_item(value_get(NULL, "a"), 0));
  assert_null(value_text(value_get(&r.root, "a")));
  assert_false(value_integer(&r.root, &n));
  assert_int_equal(n, 7);
  assert_int_equal(value_count(value_get(&r.root, "a")), 0);
  assert_true(isnan(value_number(&r.root)));
  assert_true(value_number(value_get(&r.root, "a")) == 1);
  arena_release(&r.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_and_references_are_refused_by_name),
      cmocka_unit_test(missing_data_is_not_believed),
      cmocka_unit_test(cycles_are_refused),
      cmocka_unit_test(nesting_has_an_end),
      cmocka_unit_test(nesting_through_references_has_an_end_too),
      cmocka_unit_test(shared_objects_are_read_once),
      cmocka_unit_test(texts_and_keys_are_kept_once),
      cmocka_unit_test(a_dict_that_grows_leaves_its_twin_alone),
      cmocka_unit_test(a_value_of_another_kind_is_not_returned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
