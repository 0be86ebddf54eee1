/* SPDX-License-Identifier: MIT
 *
 * Numbers formatted for people.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/host_list.h"
#include "base/plain_numbers.h"
#include "base/quantity.h"
#include "base/rank_list.h"

static void unknown_is_never_a_number(void **state) {
  (void)state;
  assert_string_equal(duration_s(NAN).text, "unknown");
  assert_string_equal(duration_ms(NAN).text, "unknown");
  assert_string_equal(byte_size(NAN).text, "unknown");
  assert_string_equal(memory_size(NAN).text, "unknown");
  assert_string_equal(count_of(NAN).text, "unknown");
  assert_string_equal(percent(NAN).text, "unknown");
  assert_string_equal(signed_percent(NAN).text, "unknown");
  assert_string_equal(rate(NAN, "steps").text, "unknown");
  assert_string_equal(bandwidth(NAN).text, "unknown");
  assert_string_equal(flops(NAN, "FLOP").text, "unknown");
  assert_string_equal(probability(NAN).text, "unknown");
  assert_string_equal(decimal(NAN, 1).text, "unknown");
}

static void durations_keep_three_digits(void **state) {
  static const struct {
    double seconds;
    const char *text;
  } cases[] = {
      {0, "0 s"},           {4.2e-8, "42.0 ns"},   {1.5e-6, "1.50 µs"},   {999.7e-6, "1.00 ms"},
      {0.0123, "12.3 ms"},  {0.3132, "313 ms"},    {1, "1.00 s"},         {99.96, "100 s"},
      {119.4, "119 s"},     {119.6, "2 min 00 s"}, {200, "3 min 20 s"},   {3599.6, "1 h 00 min"},
      {7500, "2 h 05 min"}, {172800, "2 d 0 h"},   {-0.0015, "-1.50 ms"},
  };
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++)
    assert_string_equal(duration_s(cases[i].seconds).text, cases[i].text);
  assert_string_equal(duration_ms(313.2).text, "313 ms");
  assert_string_equal(compared_ms(313.24).text, "313.2 ms");
  assert_string_equal(compared_ms(1943.6).text, "1.944 s");
}

static void memory_has_the_units_of_devices(void **state) {
  (void)state;
  assert_string_equal(memory_size(80.0 * (1ull << 30)).text, "80.0 GiB");
  assert_string_equal(memory_size(-34.5 * (1ull << 30)).text, "-34.5 GiB");
  assert_string_equal(memory_size(1023).text, "1023 B");
  assert_string_equal(memory_size(1024).text, "1.00 KiB");
}

static void shares_are_never_rounded_to_nothing_or_all(void **state) {
  (void)state;
  assert_string_equal(percent(0).text, "0 %");
  assert_string_equal(percent(0.0001).text, "<0.1 %");
  assert_string_equal(percent(0.031).text, "3.1 %");
  assert_string_equal(percent(0.31).text, "31 %");
  assert_string_equal(percent(0.996).text, "99.6 %");
  assert_string_equal(percent(0.99999).text, "99.9 %");
  assert_string_equal(percent(1).text, "100 %");
  assert_string_equal(signed_percent(0.316).text, "+32 %");
  assert_string_equal(signed_percent(-0.004).text, "-0.4 %");
  assert_string_equal(signed_percent(-0.0001).text, "0 %");
}

static void sizes_counts_and_rates(void **state) {
  (void)state;
  assert_string_equal(byte_size(0).text, "0 B");
  assert_string_equal(byte_size(999).text, "999 B");
  assert_string_equal(byte_size(26214400).text, "26.2 MB");
  assert_string_equal(count_of(0).text, "0");
  assert_string_equal(count_of(999).text, "999");
  assert_string_equal(count_of(12345).text, "12,345");
  assert_string_equal(count_of(999999).text, "999,999");
  assert_string_equal(count_of(1240000).text, "1.24 M");
  assert_string_equal(plural(1, "step").text, "1 step");
  assert_string_equal(plural(12, "step").text, "12 steps");
  assert_string_equal(plural(0, "process").text, "0 processes");
  assert_string_equal(plural(2, "copy").text, "2 copies");
  assert_string_equal(plural(1, "copy").text, "1 copy");
  assert_string_equal(plural(2, "day").text, "2 days");
  assert_string_equal(plural(3, "launch").text, "3 launches");
  assert_string_equal(rate(3.163, "steps").text, "3.16 steps/s");
  assert_string_equal(rate(26200, "tokens").text, "26.2 k tokens/s");
  assert_string_equal(bandwidth(61.8).text, "61.8 GB/s");
  assert_string_equal(bandwidth(0.0034).text, "3.40 MB/s");
  assert_string_equal(flops(1.2e15, "FLOP").text, "1.20 PFLOP");
  assert_string_equal(probability(3e-41).text, "<1e-12");
  assert_string_equal(probability(2e-7).text, "2e-07");
  assert_string_equal(probability(0.034).text, "0.034");
  assert_string_equal(probability(1).text, "1");
  assert_string_equal(p_value(3e-41).text, "p <1e-12");
  assert_string_equal(p_value(0.034).text, "p = 0.034");
}

static void check_ranks(const u32 *ranks, u32 n, size_t limit, const char *text) {
  char *list = rank_list(ranks, n, limit);
  assert_string_equal(list, text);
  free(list);
}

static void rank_lists_fold_and_stop(void **state) {
  const u32 mixed[] = {12, 3, 4, 0, 5, 13};
  u32 odd[500];
  (void)state;
  check_ranks(mixed, 6, 40, "0, 3-5, 12, 13");
  check_ranks(mixed, 0, 40, "");
  for (u32 i = 0; i < 500; i++)
    odd[i] = 2 * i + 1;
  check_ranks(odd, 500, 20, "1, 3, 5, 7, 9 and 495 more");
}

static void lists_of_ranks_are_whole_or_not_taken(void **state) {
  static const char *const not_whole[] = {"",       "[]",      "[0, 1, ...]", "[0, 1",
                                          "[0, 8]", "[-1, 0]", "[0 1 2 3]",   "[0+1]"};
  SCOPED_ARENA struct arena arena = {0};
  u32 *ranks = NULL;
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(not_whole); i++)
    assert_int_equal(ranks_listed(&arena, not_whole[i], 8, &ranks), 0);
  assert_null(ranks);
  assert_int_equal(ranks_listed(&arena, "[0, 3,7]", 8, &ranks), 3);
  assert_memory_equal(ranks, ((u32[]){0, 3, 7}), 3 * sizeof(u32));
}

static void sentences_have_plain_numbers(void **state) {
  static const struct {
    const char *from, *to;
  } cases[] = {
      {"4.36e+03 ms a step: half.", "4,360 ms a step: half."},
      {"took 1.2e+07 ms, 1e+10.", "took 12,000,000 ms, 10,000,000,000."},
      {"nan GB/s, -nan, of inf.", "unknown GB/s, unknown, of unknown."},
      {"nan", "unknown"},
      {"p 3e-05, 2.5 ms", "p 3e-05, 2.5 ms"},
      {"nan.py, a-nan, infer, x1e+05, nan/inf.c:7, 1e+05.c",
       "nan.py, a-nan, infer, x1e+05, nan/inf.c:7, 1e+05.c"},
      {"", ""},
  };
  struct arena arena = {0};
  for (size_t i = 0; i < LENGTH_OF(cases); i++)
    assert_string_equal(plain_numbers(&arena, cases[i].from), cases[i].to);
  arena_release(&arena);
  (void)state;
}

static void check_hosts(const char *const *names, u32 n, const char *want, u32 want_hosts) {
  struct arena arena = {0};
  u32 hosts;
  assert_string_equal(host_list_in(&arena, names, n, &hosts), want);
  assert_int_equal(hosts, want_hosts);
  arena_release(&arena);
}

static void host_lists_fold_and_stop(void **state) {
  (void)state;
  check_hosts(NULL, 0, "", 0);
  check_hosts((const char *[]){"node10", NULL, "node9", "login", "node11", "node9", "node11"}, 7,
              "login, node9, node[10-11]", 4);
  check_hosts((const char *[]){"gpu-3-08.big", "gpu-3-07.big", "gpu-3-09.small", "gpu-2-10.big"}, 4,
              "gpu-2-10.big, gpu-3-[07-08].big, gpu-3-09.small", 4);
  check_hosts((const char *[]){"a4294967295", "a4294967296", "7", "8", ""}, 5,
              ", [7-8], a4[294967295-294967296]", 5);
  const char *odd[100];
  char text[100][8];
  for (u32 i = 0; i < 100; i++) {
    snprintf(text[i], sizeof(text[i]), "n%03u", 2 * i);
    odd[i] = text[i];
  }
  check_hosts(odd, 100,
              "n000, n002, n004, n006, n008, n010, n012, n014, n016, n018, n020 and 89 more", 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unknown_is_never_a_number),
      cmocka_unit_test(durations_keep_three_digits),
      cmocka_unit_test(memory_has_the_units_of_devices),
      cmocka_unit_test(shares_are_never_rounded_to_nothing_or_all),
      cmocka_unit_test(sizes_counts_and_rates),
      cmocka_unit_test(rank_lists_fold_and_stop),
      cmocka_unit_test(lists_of_ranks_are_whole_or_not_taken),
      cmocka_unit_test(host_lists_fold_and_stop),
      cmocka_unit_test(sentences_have_plain_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
