/* SPDX-License-Identifier: MIT
 *
 * Which files of Python are the user's own code.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "format/own_code.h"

static void what_others_wrote_is_not(void **state) {
  (void)state;
  assert_false(tscope_is_own_code("/home/me/env/lib/python3.12/site-packages/torch/_ops.py"));
  assert_false(tscope_is_own_code("<frozen runpy>"));
  assert_true(tscope_is_own_code("/home/me/train.py"));
  assert_true(tscope_is_own_code("<stdin>"));
}

/* Names of files that PyTorch 2.11 wrote on an H100, with TORCHINDUCTOR_CACHE_DIR=/tmp/mine. */
static void what_torch_compile_wrote_is_not_in_any_folder(void **state) {
  (void)state;
  assert_false(
      tscope_is_own_code("/tmp/mine/hd/chdvaz4licdsd6ttghhvafgkp62cl6ql4in6qgjemxnc56irfdo4.py"));
  assert_false(
      tscope_is_own_code("/tmp/mine/de/cdehxonksp7ntcrkfijsjl62panibw6roonfhspdbmvatmuydbfj.py"));
  assert_true(tscope_is_own_code("/tmp/mine/hd/chd.py"));
  assert_true(
      tscope_is_own_code("/tmp/mine/xx/chdvaz4licdsd6ttghhvafgkp62cl6ql4in6qgjemxnc56irfdo4.py"));
  assert_true(tscope_is_own_code("chdvaz4licdsd6ttghhvafgkp62cl6ql4in6qgjemxnc56irfdo4.py"));
}

/* Files that PyTorch 2.11 has where it is run from, and files of a user whose folder has its name.
 */
static void pytorch_in_a_folder_of_its_own_is_not(void **state) {
  (void)state;
  assert_false(tscope_is_own_code("/opt/site/torch/library.py"));
  assert_false(tscope_is_own_code("/opt/site/torch/_ops.py"));
  assert_false(tscope_is_own_code("/opt/site/torch/export/exported_program.py"));
  assert_false(tscope_is_own_code("/opt/torch/torch/serialization.py"));
  assert_true(tscope_is_own_code("/home/me/torch/train.py"));
  assert_true(tscope_is_own_code("/home/me/torch/torch/my_library.py"));
  assert_true(tscope_is_own_code("/home/me/mytorch/library.py"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_others_wrote_is_not),
      cmocka_unit_test(pytorch_in_a_folder_of_its_own_is_not),
      cmocka_unit_test(what_torch_compile_wrote_is_not_in_any_folder)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
