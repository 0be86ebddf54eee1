/* SPDX-License-Identifier: MIT
 *
 * The combined worth of findings, and what the report says about communication when ranks are
 * missing.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "analyse_cluster.h"
#include "analyses/findings/findings.h"

static void add_up_to_less_than_the_run(const struct results *r) {
  double sum = 0;
  for (u32 i = 0; i < r->n_findings; i++) {
    const struct finding *finding = &r->findings[i];
    if (isnan(finding->worth_s))
      continue;
    assert_true(finding->worth_added_s >= 0 && finding->worth_added_s <= finding->worth_s);
    sum += finding->worth_added_s;
  }
  assert_true(!(sum > r->looked_at_s * (1 + 1e-9)));
}

/* Runs with many findings, with and without GPUs. */
static void worths_add_up_to_less_than_the_run(void **state) {
  (void)state;
  for (u32 i = 0; i < 8; i++) {
    struct cluster_options o = i & 1 ? healthy_gpu() : healthy_cpu();
    o.noise = 0.3;
    o.slow[3] = i & 2 ? 0.5 : 0;
    o.input = 100 * MS;
    o.transfer = i & 4 ? 400 * MS : o.transfer;
    o.exposed_memcpy = 50 * MS;
    o.late_launch[2] = 150 * MS;
    o.slow_step = 400 * MS;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    assert_true(r->n_findings > 1);
    add_up_to_less_than_the_run(r);
    results_free(r);
    cluster_free(c);
  }
}

/* The same idle time in two findings counts once. */
static void time_that_two_findings_would_save_counts_once(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  for (u32 i = 0; i < o.ranks; i++)
    o.late_launch[i] = 140 * MS;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *recoverable = finding_of(r, "EFFICIENCY.RECOVERABLE");
  assert_non_null(recoverable);
  assert_true(recoverable->worth_added_s == recoverable->worth_s && !recoverable->n_overlaps);
  struct arena arena = {0};
  struct analysis a = *r->analysis;
  a.arena = &arena;
  struct findings f = {.a = &a, .r = r, .room = r->n_findings, .id = FINDING_KERNEL_LAUNCH_BOUND};
  assert_int_equal(finding_add(&f, SEVERITY_WARNING, recoverable->worth_s / 2,
                               arena_text(&arena, "launches"), arena_text(&arena, "140 ms"),
                               arena_text(&arena, "fewer"), NULL, 0),
                   0);
  assert_int_equal(findings_split_worths(&f), 0);
  const struct finding *bound = finding_of(r, "KERNEL.LAUNCH_BOUND");
  assert_non_null(bound);
  assert_true(bound->worth_added_s < 0.01 * bound->worth_s);
  assert_int_equal(bound->n_overlaps, 1);
  assert_string_equal(bound->overlaps[0], "EFFICIENCY.RECOVERABLE");
  add_up_to_less_than_the_run(r);
  arena_release(&arena);
  results_free(r);
  cluster_free(c);
}

/* The others may be waiting for the rank that was not found. */
static void missing_ranks_make_communication_findings_less_severe(void **state) {
  static const char *const ids[] = {"DIST.STRAGGLER", "DIST.COMM_BOUND"};
  (void)state;
  for (size_t i = 0; i < 2; i++)
    for (u32 missing = 0; missing < 2; missing++) {
      struct cluster_options o = healthy_gpu();
      o.slow[3] = i == 0 ? 0.5 : 0;
      o.transfer = i == 1 ? 400 * MS : o.transfer;
      struct cluster *c = cluster_new(&o);
      c->model.world_size += missing;
      struct results *r = cluster_analyse(c, NULL);
      const struct finding *finding = finding_of(r, ids[i]);
      assert_non_null(finding);
      assert_int_equal(finding->severity, missing ? SEVERITY_WARNING : SEVERITY_CRITICAL);
      assert_true(isnan(finding->worth_s) == (missing == 1));
      assert_true((strstr(finding->evidence, "1 of 9 ranks was not found") != NULL) == missing);
      assert_true((strstr(finding->title, "bottleneck") != NULL) == (i == 1 && !missing));
      results_free(r);
      cluster_free(c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(worths_add_up_to_less_than_the_run),
      cmocka_unit_test(time_that_two_findings_would_save_counts_once),
      cmocka_unit_test(missing_ranks_make_communication_findings_less_severe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
