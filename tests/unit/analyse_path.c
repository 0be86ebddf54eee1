/* SPDX-License-Identifier: MIT
 *
 * Critical path and what-if against closed forms of the hand-built cluster.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse_cluster.h"

#define assert_near(a, b, tolerance)                                                               \
  do {                                                                                             \
    double x_ = (a), y_ = (b);                                                                     \
    if (!(fabs(x_ - y_) <= (tolerance)))                                                           \
      fail_msg("%s is %.6f, not %.6f", #a, x_, y_);                                                \
  } while (0)

static double path_ms(const struct results *r, const char *category) {
  for (u32 i = 0; i < r->n_path_categories; i++)
    if (!strcmp(r->path_by_category[i].name, category))
      return r->path_by_category[i].ms;
  return NAN;
}

static double step_if(const struct results *r, enum what_if_kind kind) {
  for (u32 i = 0; i < r->n_what_if; i++)
    if (r->what_if[i].kind == kind)
      return r->what_if[i].step_ms;
  return NAN;
}

static void dump(const struct results *r) {
  printf("step %.4f compute %.4f comm %.4f exposed %.4f wait %.4f transfer %.4f idle %.4f\n",
         r->step_mean_ms, r->ov_compute_ms, r->ov_comm_ms, r->ov_exposed_ms, r->ov_exposed_wait_ms,
         r->ov_exposed_transfer_ms, r->ov_idle_ms);
  for (u32 i = 0; i < r->n_path_categories; i++)
    printf("  path %s %.4f\n", r->path_by_category[i].name, r->path_by_category[i].ms);
  printf("  selfcheck %g reason %s\n", r->path_selfcheck,
         r->what_if_reason ? r->what_if_reason : "-");
  for (u32 i = 0; i < r->n_what_if; i++)
    printf("  if %s: %.4f\n", r->what_if[i].change, r->what_if[i].step_ms);
  for (u32 i = 0; i < r->n_budget; i++)
    printf("  budget %s %.4f\n", r->budget[i].name, r->budget[i].seconds);
  for (u32 i = 0; i < r->n_findings; i++)
    printf("  %s [%g s] %s\n    %s\n    %s\n", r->findings[i].id, r->findings[i].worth_s,
           r->findings[i].title, r->findings[i].evidence, r->findings[i].action);
}

static void slow_rank_on_gpu(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow[3] = 0.5;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  dump(r);
  double step = 1 + 0.008 + 450 + 10 + 0.010;
  assert_near(r->step_mean_ms, step, 1e-6);
  assert_near(r->path_wall_ms, step, 1e-6);
  assert_near(path_ms(r, "compute"), 450, 1e-6);
  assert_near(path_ms(r, "communication"), 10, 1e-6);
  assert_near(path_ms(r, "input"), 1, 1e-6);
  assert_near(path_ms(r, "launch"), 0.018, 1e-6);
  /* all but A2's transfer lies on the slow rank */
  assert_near(r->path_by_rank[3], step, 10.011);
  assert_near(r->path_selfcheck, 0, 1e-9);
  assert_null(r->what_if_reason);
  assert_int_equal(r->what_if[0].rank, 3);
  assert_near(r->what_if[0].step_ms, step - 150, 1e-3);
  assert_near(step_if(r, WHAT_IF_COMMUNICATION), step - 10, 1e-3);
  assert_near(step_if(r, WHAT_IF_INPUT), step - 1, 1e-3);
  results_free(r);
  cluster_free(c);
}

static void slow_rank_on_cpu(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.slow[2] = 0.4;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  dump(r);
  double step = 1 + 420 + 0.005 + 0.008 + 10 + 0.010;
  assert_near(r->step_mean_ms, step, 1e-6);
  assert_near(path_ms(r, "compute"), 420, 1e-6);
  assert_near(path_ms(r, "communication"), 10, 1e-6);
  assert_near(r->what_if[0].step_ms, step - 120, 1e-3);
  results_free(r);
  cluster_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slow_rank_on_gpu),
                                     cmocka_unit_test(slow_rank_on_cpu)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
