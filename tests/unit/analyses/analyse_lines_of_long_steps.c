/* SPDX-License-Identifier: MIT
 *
 * What long steps run that others do not: the line, how often it is there, what it waits for.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "analyse_cluster.h"
#include "model/span_call_sites.h"
#include "sampled_cluster.h"

enum { RANKS = 8, STEPS = 98 };

/* In some steps all ranks are at line 20 for 120 ms. */
static struct cluster *long_at_line(void) {
  static i64 late[STEPS * RANKS];
  u32 seed = 3;
  for (u32 s = 0; s < STEPS; s++)
    late[s * RANKS] = uniform_share(&seed) < 0.15 ? 120 * MS : 0;
  for (u32 i = 0; i < STEPS * RANKS; i++)
    late[i] = late[i / RANKS * RANKS];
  return cluster_late(STEPS, RANKS, 0, late, late, 1);
}

static void who_holds_the_gil_in_long_steps_is_told(void **state) {
  (void)state;
  struct cluster *c = long_at_line();
  cluster_hold_gil(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "TIMING.JITTER");
  assert_non_null(found);
  assert_non_null(strstr(found->evidence, "waiting for the GIL for 100 % of it, while another "
                                          "thread is at me/train.py:40 (check), with the GIL"));
  assert_non_null(strstr(found->action, "what another thread does at me/train.py:40"));
  cluster_end(r, c);
}

/* Rank 1 alone is at line 20 for 400 ms more in every tenth step. */
static struct cluster *tenth_at_line(void) {
  static i64 late[STEPS * RANKS];
  for (u32 i = 0; i < STEPS * RANKS; i++)
    late[i] = i % RANKS == 1 && i / RANKS % 10 == 9 ? 400 * MS : 0;
  return cluster_late(STEPS, RANKS, 0, late, late, 1);
}

/* The line is called in every step: it is told how the tenth ones call it. */
static void the_call_that_only_some_steps_make_is_told(void **state) {
  (void)state;
  struct cluster *c = tenth_at_line();
  cluster_call_twice(c);
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(r->n_other_work, 1);
  assert_non_null(strstr(finding_of(r, "TIMING.JITTER")->evidence,
                         "train.py:20 (log), longer when called at me/train.py:40: "));
  cluster_end(r, c);
}

/* Another thread has the GIL in these steps: if that writes a checkpoint it is in the background
 * already. */
static void the_thread_that_holds_up_some_steps_is_looked_at(void **state) {
  (void)state;
  struct cluster *c = tenth_at_line();
  cluster_hold_gil(c);
  struct results *r = cluster_analyse(c, NULL);
  const char *action = finding_of(r, "TIMING.JITTER")->action;
  assert_int_equal(r->n_other_work, 1);
  assert_non_null(strstr(action, "what another thread does at me/train.py:40"));
  assert_non_null(strstr(action, "a process of its own"));
  assert_null(strstr(action, "in the background"));
  cluster_end(r, c);
}

static void long_steps_that_compile_are_told(void **state) {
  (void)state;
  for (u32 compiles = 0; compiles < 2; compiles++) {
    struct cluster *c = long_at_line();
    cluster_call_library(
        c, 1, compiles ? "torch/_dynamo/convert_frame.py" : "torch/_dynamo/eval_frame.py",
        "_compile.<locals>.compile_inner");
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *found = finding_of(r, "TIMING.JITTER");
    assert_non_null(found);
    assert_int_equal(compiles, strstr(found->evidence, "in torch.compile for 100 %") != NULL);
    assert_int_equal(compiles, strstr(found->action, "At me/train.py:20 torch.compile") != NULL);
    cluster_end(r, c);
  }
}

/* Of the long steps most are at line 20, the others have more to compute: in how many it is, and
 * for how long there, is told, but not that these steps are long for it. */
static void line_of_some_long_steps_is_counted(void **state) {
  static i64 late[STEPS * RANKS];
  (void)state;
  u32 seed = 3, at_line = 0, longer = 0;
  struct cluster_options o = healthy_cpu();
  for (u32 s = 0; s < STEPS; s++) {
    bool is_at_line = uniform_share(&seed) < 0.15, computes = s % 10 == 9;
    for (u32 r = 0; r < RANKS; r++)
      late[s * RANKS + r] = is_at_line ? 120 * MS : 0;
    at_line += is_at_line && s >= 2;
    longer += (is_at_line || computes) && s >= 2;
  }
  o.ranks = RANKS;
  o.steps = STEPS;
  o.late_input = late;
  o.slow_step = 100 * MS;
  struct cluster *c = cluster_new(&o);
  cluster_sample(c, late, 0, 10 * MS, 1);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "TIMING.JITTER");
  char text[256];
  assert_non_null(found);
  assert_null(strstr(found->title, "train.py"));
  snprintf(text, sizeof(text), "train.py:20 (log): in %u of these %u steps, 12", at_line, longer);
  if (!strstr(found->evidence, text))
    fail_msg("%s: not %s", found->evidence, text);
  cluster_end(r, c);
}

/* In steps at random all ranks are at line 20 for 100 ms; a look each 400 ms. NULL: no line is
 * said. */
static const char *said_of_rare_looks(u32 steps, u32 share, struct cluster **c,
                                      struct results **r) {
  static i64 late[1000 * RANKS];
  struct cluster_options o = healthy_cpu();
  u32 seed = 3;
  for (u32 s = 0; s < steps; s++) {
    bool is_long = uniform_share(&seed) * 100 < share;
    for (u32 k = 0; k < RANKS; k++)
      late[s * RANKS + k] = is_long ? 100 * MS : 0;
  }
  o.ranks = RANKS;
  o.steps = steps;
  o.late_input = late;
  *c = cluster_new(&o);
  cluster_sample(*c, late, 0, 400 * MS, 7);
  *r = cluster_analyse(*c, NULL);
  return finding_of(*r, "TIMING.JITTER")->evidence;
}

/* Where looks are too rare for a line, the report says how many more steps would tell: so many more
 * do. */
static void steps_that_would_tell(void **state) {
  struct cluster *c;
  struct results *r;
  double more = 0;
  (void)state;
  const char *said = said_of_rare_looks(24, 25, &c, &r);
  const char *about = strstr(said, "about ");
  if (!about)
    fail_msg("%s", said);
  assert_null(strstr(said, "train.py"));
  assert_int_equal(sscanf(about, "about %lf more steps would", &more), 1);
  cluster_end(r, c);
  said = said_of_rare_looks(24 + (u32)more, 25, &c, &r);
  if (!strstr(said, "train.py:20 (log)"))
    fail_msg("%g more steps: %s", more, said);
  cluster_end(r, c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_holds_the_gil_in_long_steps_is_told),
      cmocka_unit_test(the_call_that_only_some_steps_make_is_told),
      cmocka_unit_test(the_thread_that_holds_up_some_steps_is_looked_at),
      cmocka_unit_test(long_steps_that_compile_are_told),
      cmocka_unit_test(line_of_some_long_steps_is_counted),
      cmocka_unit_test(steps_that_would_tell)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
