/* SPDX-License-Identifier: MIT
 *
 * Which ranks ran on one host.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include "model/building.h"

enum { RANKS = 8 };

static struct model *model_of(struct rank *ranks, const char *const hosts[RANKS],
                              const char *const clocks[RANKS]) {
  static struct model model;
  model = (struct model){.n_ranks = RANKS, .ranks = ranks};
  for (u32 r = 0; r < RANKS; r++)
    ranks[r] = (struct rank){
        .rank = r, .host = hosts[r], .info[TSCOPE_INFO_CLOCK] = clocks ? clocks[r] : NULL};
  model_number_hosts(&model);
  return &model;
}

static void one_host_has_one_number(void **state) {
  static const char *const hosts[RANKS] = {"b", "b", "a", "a", "b", NULL, "c", NULL};
  static const u32 numbers[RANKS] = {0, 0, 1, 1, 0, 3, 2, 4};
  struct rank ranks[RANKS];
  (void)state;
  const struct model *model = model_of(ranks, hosts, NULL);
  assert_int_equal(model->n_hosts, 3);
  for (u32 r = 0; r < RANKS; r++)
    assert_int_equal(ranks[r].host_number, numbers[r]);
  assert_true(model_same_host(model, 0, 4) && model_same_host(model, 5, 5));
  assert_false(model_same_host(model, 5, 7)); /* where they ran is not known */
}

/* As containers that are all called "trainer"; of one rank the clock is not known. */
static void clocks_tell_hosts_of_one_name_apart(void **state) {
  static const char *const hosts[RANKS] = {"trainer", "trainer", "trainer", "trainer",
                                           "trainer", "trainer", "pod",     "pod"};
  static const char *const clocks[RANKS] = {"x", "x", "y", "y", "x", NULL, "x", "x"};
  static const u32 numbers[RANKS] = {0, 0, 1, 1, 0, 0, 2, 2};
  struct rank ranks[RANKS];
  (void)state;
  assert_int_equal(model_of(ranks, hosts, clocks)->n_hosts, 3);
  for (u32 r = 0; r < RANKS; r++)
    assert_int_equal(ranks[r].host_number, numbers[r]);
}

static void the_host_of_some_ranks(void **state) {
  static const char *const two[RANKS] = {"a", "a", "a", "a", "b", "b", "b", "b"};
  static const char *const one[RANKS] = {"a", "a", "a", "a", "a", "a", "a", "a"};
  static const bool first[RANKS] = {true, true}, across[RANKS] = {[3] = true, [4] = true};
  static const bool none[RANKS];
  struct rank ranks[RANKS];
  (void)state;
  const struct model *model = model_of(ranks, two, NULL);
  assert_string_equal(model_host_of(model, first), "a");
  assert_null(model_host_of(model, across));
  assert_null(model_host_of(model, none));
  assert_null(model_host_of(model_of(ranks, one, NULL), first)); /* the job is on one */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_host_has_one_number),
                                     cmocka_unit_test(clocks_tell_hosts_of_one_name_apart),
                                     cmocka_unit_test(the_host_of_some_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
