/* SPDX-License-Identifier: MIT
 *
 * Recordings that others made, against what others say of them. They lie in ../shared/testdata,
 * beside the source; without it there is nothing to test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "import.h"

static char folder[4096];

static const char *at(const char *name) {
  static char path[8192];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static struct model *load(const char *path) {
  char why[512] = "";
  struct model *model = NULL;
  if (import_load(&path, 1, NULL, &model, why, sizeof why) != 0)
    fail_msg("%s: %s", path, why);
  return model;
}

/* Eight ranks of one step: notes/analysis.md measured that each collective ends within 7 us. */
static void eight_ranks_are_put_on_one_axis(void **state) {
  (void)state;
  char where[] = "/tmp/tscope-kineto-XXXXXX", command[8300];
  assert_non_null(mkdtemp(where));
  snprintf(command, sizeof command, "tar xzf '%s' -C %s", at("dlrm_8rank/dlrm_kineto.tar.gz"),
           where);
  assert_int_equal(system(command), 0);
  struct model *model = load(where);
  snprintf(command, sizeof command, "rm -r %s", where);
  assert_int_equal(system(command), 0);

  assert_int_equal(model->n_ranks, 8);
  assert_int_equal(model->world_size, 8);
  assert_true(model->clock_aligned);
  assert_true(model->clock_residual_us <= 10);
  u32 complete = 0, all_to_all = 0;
  for (u32 c = 0; c < model->n_collectives; c++) {
    complete += model->collectives[c].complete && model->collectives[c].n_arrivals == 8 &&
                !model->collectives[c].mismatched;
    all_to_all += model->collectives[c].op == TSCOPE_OP_ALLTOALL;
  }
  assert_int_equal(model->n_collectives, 8);
  assert_int_equal(complete, 8);
  assert_int_equal(all_to_all, 5);
  assert_int_equal(model->steps.n, 1);
  assert_string_equal(model->steps.method, "ProfilerStep annotations");
  model_free(model);
}

int main(int argc, char **argv) {
  if (argc < 2 || !realpath(argv[1], folder)) {
    puts("skipped: there is no ../shared/testdata/kineto beside the source");
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(eight_ranks_are_put_on_one_axis),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
