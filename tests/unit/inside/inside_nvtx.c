/* SPDX-License-Identifier: MIT
 *
 * NVTX as a program uses it, with NVIDIA's own headers: checks what is recorded of its ranges, and
 * that the program sees the same as without a tool.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

/* tests/hazards loads the tool as a library of NVTX; here it is linked in. */
#define NVTX_SUPPORT_DYNAMIC_INJECTION_LIBRARY 0
#include <nvtx3/nvToolsExt.h>

#include "hooks_trace.h"
#include "nvtx/nvtx_abi.h"
#include "nvtx/nvtx_names.h"
#include "stalls/step_duration.h"

extern const struct tscope_family
    tscope_stalls_family; /* links who takes steps into this program */

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t));
void tscope_step(uint64_t step);

static int set_up(void **state) {
  InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;
  return trace_set_up(state);
}

static void run_in(nvtxDomainHandle_t domain, const char *range) {
  nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                      .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                      .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                      .message.ascii = range};
  nvtxDomainRangePushEx(domain, &attributes);
  nvtxDomainRangePop(domain);
}

/* Ranges do not start the recording of a process; ranges pushed before it starts are not recorded.
 */
static void a_range_wakes_nothing(void **state) {
  (void)state;
  assert_int_equal(nvtxRangePushA("early"), NVTX_NO_PUSH_POP_TRACKING);
  nvtxDomainHandle_t early = nvtxDomainCreateA("early domain");
  struct trace trace = trace_read();
  assert_null(trace.bytes);
  tscope_step(0);
  nvtxRangePop();
  assert_int_equal(count(TSCOPE_REC_RANGE), 0);
  run_in(early, "of an early domain");
  assert_string(LAST(RANGE, range).domain, "early domain");
}

static void the_interface_is_that_of_the_headers(void **state) {
  (void)state;
  assert_int_equal(sizeof(struct nvtx_attributes), sizeof(nvtxEventAttributes_t));
#define SAME(ours, theirs)                                                                         \
  assert_int_equal(offsetof(struct nvtx_attributes, ours), offsetof(nvtxEventAttributes_t, theirs))
  SAME(size, size);
  SAME(message_type, messageType);
  SAME(message, message);
#undef SAME
  assert_int_equal(NVTX_UNTRACKED, NVTX_NO_PUSH_POP_TRACKING);
  assert_int_equal(NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
  assert_int_equal(NVTX_MESSAGE_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
  assert_int_equal(NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
}

static void pushed_ranges_are_recorded_when_popped(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_RANGE);
  assert_int_equal(nvtxRangePushA("outer"), NVTX_NO_PUSH_POP_TRACKING);
  assert_int_equal(nvtxRangePushW(L"layer.17"), NVTX_NO_PUSH_POP_TRACKING);
  nvtxRangePop();
  struct tscope_range_record inner = LAST(RANGE, range);
  assert_string(inner.name, "layer");
  assert_int_equal(inner.number, 17);
  assert_int_equal(inner.domain, 0);
  assert_int_equal(inner.header.tag, TSCOPE_RANGE_NESTED);
  nvtxRangePop();
  nvtxRangePop(); /* one pop too many */
  assert_int_equal(count(TSCOPE_REC_RANGE), before + 2);
}

static nvtxEventAttributes_t registered(nvtxStringHandle_t string) {
  return (nvtxEventAttributes_t){.version = NVTX_VERSION,
                                 .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                 .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                 .message.registered = string};
}

/* Each domain has its own stack. */
static void domains_nest_apart(void **state) {
  (void)state;
  nvtxDomainHandle_t a = nvtxDomainCreateA("library a"), b = nvtxDomainCreateW(L"library b");
  nvtxEventAttributes_t of_a = registered(nvtxDomainRegisterStringA(a, "work of a"));
  nvtxEventAttributes_t of_b = registered(nvtxDomainRegisterStringW(b, L"work of b"));
  nvtxDomainRangePushEx(a, &of_a);
  nvtxDomainRangePushEx(b, &of_b);
  nvtxDomainRangePop(a);
  struct tscope_range_record range = LAST(RANGE, range);
  assert_string(range.name, "work of a");
  assert_string(range.domain, "library a");
  nvtxDomainRangePop(b);
  range = LAST(RANGE, range);
  assert_string(range.name, "work of b");
  assert_string(range.domain, "library b");

  u32 before = count(TSCOPE_REC_RANGE);
  nvtxDomainHandle_t nccl = nvtxDomainCreateA("NCCL");
  nvtxDomainRangePushEx(nccl, &of_a);
  nvtxDomainRangePop(nccl);
  assert_int_equal(count(TSCOPE_REC_RANGE), before); /* NCCL has its own hooks */
}

static void *end_range(void *range) {
  nvtxRangeEnd(*(nvtxRangeId_t *)range);
  return NULL;
}

static void a_range_may_end_on_another_thread(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_RANGE);
  nvtxRangeId_t range = nvtxRangeStartA("prefetch"), other = nvtxRangeStartA("other");
  pthread_t thread;
  pthread_create(&thread, NULL, end_range, &range);
  pthread_join(thread, NULL);
  assert_int_equal(count(TSCOPE_REC_RANGE), before + 1);
  nvtxRangeEnd(range); /* a second time: it is not a range any more */
  nvtxRangeEnd(0);
  nvtxRangeEnd(UINT64_MAX);
  assert_int_equal(count(TSCOPE_REC_RANGE), before + 1);
  nvtxRangeEnd(other);
  struct tscope_range_record last = LAST(RANGE, range);
  assert_string(last.name, "other");
  assert_int_equal(last.header.tag, TSCOPE_RANGE_FREE);
  nvtxMarkA("here");
  last = LAST(RANGE, range);
  assert_string(last.name, "here");
  assert_int_equal(last.header.tag, TSCOPE_RANGE_MARK);
  assert_int_equal(last.dur, 0);
}

static void more_open_ranges_than_the_table_holds_are_lost(void **state) {
  (void)state;
  enum { RANGES = 1500 };
  static nvtxRangeId_t ranges[RANGES];
  u32 before = count(TSCOPE_REC_RANGE), kept = 0;
  u64 lost_before = lost_for(TSCOPE_LOSS_RANGES);
  for (u32 i = 0; i < RANGES; i++)
    kept += (ranges[i] = nvtxRangeStartA("many")) != 0;
  assert_true(kept >= 1000 && kept < RANGES);
  for (u32 i = 0; i < RANGES; i++)
    nvtxRangeEnd(ranges[i]);
  assert_int_equal(count(TSCOPE_REC_RANGE), before + kept);
  assert_int_equal(lost_for(TSCOPE_LOSS_RANGES), lost_before + RANGES - kept);
}

static void names_of_phases_and_steps_are_recorded_as_such(void **state) {
  (void)state;
  u32 ranges = count(TSCOPE_REC_RANGE), phases = count(TSCOPE_REC_PHASE);
  nvtxRangePushA("iteration 41");
  struct tscope_step_range_record step = LAST(STEP_RANGE, step_range);
  assert_string(step.name, "iteration");
  assert_int_equal(step.number, 41);
  assert_true(step.dur == TSCOPE_DUR_PENDING); /* a killed process has the record too */
  nvtxRangePushA("Forward");
  struct tscope_phase_record phase = LAST(PHASE, phase);
  assert_int_equal(phase.header.tag, TSCOPE_PHASE_FORWARD);
  assert_true(phase.dur == TSCOPE_DUR_PENDING);
  nvtxRangePushA("forward"); /* a module's own forward */
  nvtxRangePop();
  assert_int_equal(count(TSCOPE_REC_PHASE), phases + 1);
  nvtxRangePop();
  assert_true(LAST(PHASE, phase).dur != TSCOPE_DUR_PENDING);
  nvtxRangePushA("DeepSpeedEngine.step");
  nvtxRangePop();
  assert_int_equal(LAST(PHASE, phase).header.tag, TSCOPE_PHASE_OPTIMIZER);
  nvtxRangePop();
  assert_true(LAST(STEP_RANGE, step_range).dur != TSCOPE_DUR_PENDING);
  assert_int_equal(count(TSCOPE_REC_RANGE), ranges + 1); /* the inner forward */
}

/* First the ranges of optimizers, two in a step; where steps have their own, these count. Before
 * any other test names a step. */
static void steps_are_as_long_as_their_ranges_say(void **state) {
  (void)state;
  assert_non_null(&tscope_stalls_family);
  const u64 part_ns = 1000000;
  for (u32 turn = 0; turn < 2; turn++)
    for (u32 i = 0; i < 80; i++) {
      if (turn)
        nvtxRangePushA("step 1");
      for (u32 part = 0; part < 2; part++) {
        nvtxRangePushA("optimizer");
        nvtxRangePushA("Optimizer.step#SGD.step");
        usleep(part_ns / 1000);
        nvtxRangePop();
        nvtxRangePop();
      }
      if (turn)
        nvtxRangePop();
      else if (i == 79)
        assert_true(step_median_ns() >= part_ns);
    }
  assert_true(step_median_ns() >= 2 * part_ns);
}

static void deep_nesting_keeps_its_balance(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_RANGE);
  u64 lost_before = lost_for(TSCOPE_LOSS_RANGES);
  for (int i = 0; i < 200; i++)
    nvtxRangePushA("down");
  for (int i = 0; i < 200; i++)
    nvtxRangePop();
  assert_int_equal(count(TSCOPE_REC_RANGE), before + 64);
  assert_int_equal(lost_for(TSCOPE_LOSS_RANGES), lost_before + 200 - 64);
  nvtxRangePushA("after");
  nvtxRangePop();
  assert_string(LAST(RANGE, range).name, "after");
}

/* The last test that makes a domain: the table is full. */
static void ranges_of_very_many_domains_are_kept(void **state) {
  (void)state;
  nvtxDomainHandle_t domain = NULL;
  for (int i = 0; i < 300; i++)
    domain = nvtxDomainCreateA("one of many");
  run_in(domain, "of the last domain");
  assert_string(LAST(RANGE, range).name, "of the last domain");
  assert_string(LAST(RANGE, range).domain, "(beyond the table of domains)");
}

static void assert_split(const char *name, const char *text, u32 number) {
  struct nvtx_text split = nvtx_text_of(name);
  assert_int_equal(split.bytes, strlen(text));
  assert_memory_equal(split.text, text, split.bytes);
  assert_int_equal(split.number, number);
}

static void numbers_are_separated_from_names(void **state) {
  (void)state;
  assert_split("iteration 12", "iteration", 12);
  assert_split("step_007", "step", 7);
  assert_split("Batch (7)", "Batch", 7);
  assert_split("ProfilerStep#3", "ProfilerStep", 3);
  assert_split("layers[11]", "layers", 11);
  assert_split("fp16", "fp16", TSCOPE_UNKNOWN);
  assert_split("12", "12", TSCOPE_UNKNOWN);
  assert_split("", "", TSCOPE_UNKNOWN);
  assert_split("loss (train)", "loss (train)", TSCOPE_UNKNOWN);
  assert_split("id 99999999999999", "id 99999999999999", TSCOPE_UNKNOWN);
  assert_split("aten::linear, op_id = 24, seq = 7", "aten::linear", TSCOPE_UNKNOWN);
  assert_split("forward, then backward", "forward, then backward", TSCOPE_UNKNOWN);
}

static void meanings_are_those_of_the_table(void **state) {
  (void)state;
  assert_int_equal(nvtx_meaning_of("step", 4, true), NVTX_STEP);
  assert_int_equal(nvtx_meaning_of("step", 4, false), NVTX_PLAIN); /* perhaps the optimizer's */
  assert_int_equal(nvtx_meaning_of("BACKWARD", 8, false), TSCOPE_PHASE_BACKWARD);
  assert_int_equal(nvtx_meaning_of("backwards", 9, false), NVTX_PLAIN);
  assert_int_equal(nvtx_meaning_of("next_batch", 10, false), TSCOPE_PHASE_DATA);
  assert_int_equal(nvtx_meaning_of("## forward ##", 13, false), TSCOPE_PHASE_FORWARD);
  assert_int_equal(nvtx_meaning_of("Optimizer.step#AdamW.step", 25, false), TSCOPE_PHASE_OPTIMIZER);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_range_wakes_nothing),
      cmocka_unit_test(the_interface_is_that_of_the_headers),
      cmocka_unit_test(pushed_ranges_are_recorded_when_popped),
      cmocka_unit_test(domains_nest_apart),
      cmocka_unit_test(a_range_may_end_on_another_thread),
      cmocka_unit_test(more_open_ranges_than_the_table_holds_are_lost),
      cmocka_unit_test(steps_are_as_long_as_their_ranges_say),
      cmocka_unit_test(names_of_phases_and_steps_are_recorded_as_such),
      cmocka_unit_test(deep_nesting_keeps_its_balance),
      cmocka_unit_test(ranges_of_very_many_domains_are_kept),
      cmocka_unit_test(numbers_are_separated_from_names),
      cmocka_unit_test(meanings_are_those_of_the_table),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
