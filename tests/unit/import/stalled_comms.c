/* SPDX-License-Identifier: MIT
 *
 * What a communicator of a stall is called.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include "base/each.h"
#include "import/tscope/events/read_stall_records.h"

/* One that the program gave no name is told as in all other places. */
static void a_communicator_has_its_name_or_its_label(void **state) {
  (void)state;
  struct comm_definition comms[] = {{.comm = 1, .identity = 0xabcd1a2b, .size = 4},
                                    {.comm = 2, .identity = 0xabcd1a2c, .size = 2, .name = "dp"}};
  struct tscope_stall_record stall = {.header.type = TSCOPE_REC_STALL, .stall = 1};
  struct tick_stretch stretch = {.ns_per_tick = 1};
  SCOPED_ARENA struct arena arena = {0};
  struct definitions definitions = {.comms = comms,
                                    .n_comms = LENGTH_OF(comms),
                                    .ticks = {.stretches = &stretch, .n = 1, .latest = INT64_MAX}};
  struct stall_records records = {0};
  stall_records_add(&records, &stall.header);
  for (u32 comm = 1; comm <= 3; comm++)
    stall_records_add(
        &records,
        &(struct tscope_comm_state_record){
            .header.type = TSCOPE_REC_COMM_STATE, .stall = 1, .comm = comm, .result = 6}
             .header);
  stall_records_finish(&records, 1, &definitions, &arena);
  assert_int_equal(definitions.n_stalls, 1);
  assert_int_equal(definitions.stalls[0].n_comms, 3);
  assert_string_equal(definitions.stalls[0].comms[0].name, "1a2b (4 ranks)");
  assert_string_equal(definitions.stalls[0].comms[1].name, "dp");
  assert_string_equal(definitions.stalls[0].comms[2].name, "a communicator");
  stall_records_release(&records);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_communicator_has_its_name_or_its_label),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
