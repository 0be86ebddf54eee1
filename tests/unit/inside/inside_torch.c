/* SPDX-License-Identifier: MIT
 *
 * The hooks of PyTorch with stand-ins for PyTorch's functions: how they return class objects by
 * value, which C does not have, and what they record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "hooks_trace.h"
#include "inside_torch.h"
#include "record/tick_clock.h"
#include "stalls/step_duration.h"
#include "torch/torch_hooks.def"
#include "torch/torch_record.h"

extern const struct tscope_family
    tscope_stalls_family; /* links who takes steps into this program */

#define COUNT_OF(result, a, b, c, d, e, f, g, n, ...) n
#define COUNT(...) COUNT_OF(__VA_ARGS__, 7, 6, 5, 4, 3, 2, 1, 0)
typedef struct torch_object torch_function(word, word, word, word, word, word, word);

#define NOT_HERE(...)
#define CLASS(function, since, until, type, params, args, recorder, what)                          \
  extern torch_function torch_##function __asm__(#function);
TSCOPE_TORCH_HOOKS(NOT_HERE, NOT_HERE, CLASS)
#undef CLASS

static const struct {
  const char *name;
  torch_function *hooked;
  int parameters; /* without the result */
} functions[] = {
#define CLASS(function, since, until, type, params, args, recorder, what)                          \
  {#function, torch_##function, COUNT args},
    TSCOPE_TORCH_HOOKS(NOT_HERE, NOT_HERE, CLASS)};

extern torch_function allreduce __asm__("_ZN4c10d16ProcessGroupGloo9allreduceERSt6vectorIN2at6"
                                        "TensorESaIS3_EERKNS_16AllreduceOptionsE");
extern torch_function backward __asm__("_ZN5torch8autograd6Engine7executeERKSt6vectorINS"
                                       "0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_");
bool is_completed(void *work) __asm__("_ZN4c10d4Work11isCompletedEv");
void group_made(void *group, const void *store, int rank, int size, void *options) __asm__(
    "_ZN4c10d16ProcessGroupGlooC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_"
    "default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE");

/* Each parameter in turn is 1 and the others are 0, which every type of parameter can hold. The
 * first one, the object itself, is never NULL. */
static void objects_and_parameters_pass(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(functions); i++)
    for (int set = 0; set < functions[i].parameters; set++) {
      word w[TORCH_WORDS] = {0x100};
      w[set] |= 1;
      struct torch_object object = functions[i].hooked(w[0], w[1], w[2], w[3], w[4], w[5], w[6]);
      assert_string_equal(torch_last.name, functions[i].name);
      assert_memory_equal(&object, &torch_returned, sizeof(object));
      for (int at = 0; at < functions[i].parameters; at++)
        if ((torch_last.words[at] & 0xff) != (at == set))
          fail_msg("%s: parameter %d is %#jx", functions[i].name, at,
                   (uintmax_t)torch_last.words[at]);
    }
}

static void ranges_are_phases(void **state) {
  (void)state;
  assert_non_null(torch_callback.start); /* the backward pass before has started the recording */
  assert_int_equal(torch_callback.scopes[7], 1);
  u32 before = count(TSCOPE_REC_PHASE);
  static const char other[] = "aten::mm", forward[] = "DistributedDataParallel.forward";
  assert_null(torch_callback.start(other).pointer);
  torch_callback.end(other, NULL);
  assert_int_equal(count(TSCOPE_REC_PHASE), before);
  assert_null(torch_callback.start(forward).pointer);
  assert_int_equal(count(TSCOPE_REC_PHASE), before + 1);
  assert_true(LAST(PHASE, phase).dur == TSCOPE_DUR_PENDING);
  torch_callback.end(forward, NULL);
  struct tscope_phase_record phase = LAST(PHASE, phase);
  assert_int_equal(phase.header.tag, TSCOPE_PHASE_FORWARD);
  assert_true(phase.dur != TSCOPE_DUR_PENDING);
  assert_string(phase.name, forward);
}

static void names_mean_the_same_as_in_nvtx_and_in_profiles(void **state) {
  (void)state;
  static const struct {
    const char *name;
    u16 phase;
  } ranges[] = {{"optimizer_step", TSCOPE_PHASE_OPTIMIZER},
                {"zero_grad", TSCOPE_PHASE_ZERO_GRAD},
                {"data_loading", TSCOPE_PHASE_DATA},
                {"fwd", TSCOPE_PHASE_FORWARD},
                {"## Forward ##", TSCOPE_PHASE_FORWARD},
                {"# #", 0},
                {"", 0},
                {"optimizer_steps", 0}};
  for (size_t i = 0; i < LENGTH_OF(ranges); i++) {
    u32 before = count(TSCOPE_REC_PHASE);
    torch_callback.start(ranges[i].name);
    torch_callback.end(ranges[i].name, NULL);
    assert_int_equal(count(TSCOPE_REC_PHASE), before + (ranges[i].phase != 0));
    if (ranges[i].phase)
      assert_int_equal(LAST(PHASE, phase).header.tag, ranges[i].phase);
  }
}

/* Ranges around the optimizer's own end no second step, nor does one that never ends on this thread
 * stand in the way of others. */
static void a_step_ends_once(void **state) {
  (void)state;
  static const char *const nested[] = {"optimizer_step", "optimizer", "Optimizer.step#SGD.step"};
  const u64 step_ns = 1000000;
  static const char left[] = "optimizer_step";
  torch_callback.start(left);
  for (u32 step = 0; step < 80; step++) {
    usleep(step_ns / 1000);
    for (size_t i = 0; i < LENGTH_OF(nested); i++)
      torch_callback.start(nested[i]);
    for (size_t i = LENGTH_OF(nested); i-- > 0;)
      torch_callback.end(nested[i], NULL);
  }
  assert_non_null(&tscope_stalls_family);
  assert_true(step_median_ns() >= step_ns);
  torch_callback.end(left, NULL);
}

static void begin_forward(void) {
  torch_callback.start("FSDP::root_pre_forward");
}

static jmp_buf back;
static void leave(void) {
  longjmp(back, 1);
}

/* Where the frames of calls were that are no longer in progress. */
__attribute__((noinline)) static void use_stack(void) {
  volatile char used[16 << 10];
  for (size_t i = 0; i < sizeof(used); i++)
    used[i] = 0x5a;
}

/* As a greenlet leaves a call, for a while or for good. */
static void a_call_that_was_left_is_not_looked_at(void **state) {
  (void)state;
  static char engine[1];
  u32 before = count(TSCOPE_REC_PHASE);
  torch_inside = begin_forward; /* recomputed: part of the backward pass */
  backward((word)engine, 0, 0, 0, 0, 0, 0);
  assert_int_equal(count(TSCOPE_REC_PHASE), before + 1);
  torch_inside = leave;
  if (setjmp(back) == 0)
    backward((word)engine, 0, 0, 0, 0, 0, 0);
  torch_inside = NULL;
  use_stack();
  begin_forward();
  assert_int_equal(LAST(PHASE, phase).header.tag, TSCOPE_PHASE_FORWARD);
  backward((word)engine, 0, 0, 0, 0, 0, 0);
  struct tscope_phase_record phase = LAST(PHASE, phase);
  assert_int_equal(phase.header.tag, TSCOPE_PHASE_BACKWARD);
  assert_true(phase.dur != TSCOPE_DUR_PENDING);
}

/* The second call has its scope where that of the first one was, and nothing has been there since.
 */
static void a_call_after_one_that_was_left_is_none_inside_it(void **state) {
  (void)state;
  static char engine[1];
  volatile int calls = 0;
  u32 before = count(TSCOPE_REC_PHASE);
  torch_inside = leave;
  setjmp(back);
  if (calls++ < 3)
    backward((word)engine, 0, 0, 0, 0, 0, 0);
  torch_inside = NULL;
  assert_int_equal(count(TSCOPE_REC_PHASE), before + 3);
}

static void a_collective_belongs_to_its_call(void **state) {
  (void)state;
  static char group[1];
  int64_t elements[] = {1000, 24};
  const void *tensors[] = {&elements[0], &elements[1]};
  const struct { const void **begin, **end, **room; } vector = {tensors, tensors + 2, tensors + 2};
  const struct {
    void *more[2];
    uint8_t reduction;
  } options = {.reduction = 4}; /* MAX */
  group_made(group, NULL, 3, 8, NULL);
  torch_work = &elements;
  struct torch_object work = allreduce((word)group, (word)&vector, (word)&options, 0, 0, 0, 0);
  torch_work = NULL;
  assert_ptr_equal(work.pointer, &elements);
  struct tscope_collective_record call = LAST(COLLECTIVE, collective);
  assert_int_equal(call.header.tag, TSCOPE_OP_ALLREDUCE);
  assert_true(call.dur != TSCOPE_DUR_PENDING);
  assert_int_equal(call.count, 1024);
  assert_int_equal(call.bytes, 4096);
  assert_int_equal(call.dtype, TSCOPE_DTYPE_F32);
  assert_int_equal(call.redop, TSCOPE_REDOP_MAX);
  struct tscope_comm_record comm = LAST(COMM, comm);
  assert_int_equal(comm.comm, call.comm);
  assert_int_equal(comm.rank, 3);
  assert_int_equal(comm.size, 8);
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void work_ms(long ms) {
  struct timespec now;
  i64 until = 0;
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    i64 ns = now.tv_sec * 1000000000 + now.tv_nsec;
    until = until ? until : ns + ms * 1000000;
    if (ns >= until)
      return;
  } while (true);
}

/* Returns the longest time between two questions, ns: on a busy machine a pause may be long. If one
 * but the first takes as much CPU time as work does, there is no longest. */
static u64 ask(void *work, u32 times, void (*between)(long ms)) {
  const u64 nearly_work_ns = 150000;
  u64 longest = 0;
  for (u32 i = 0; i < times; i++) {
    u64 asked = tscope_clock_ns(CLOCK_MONOTONIC), cpu = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    assert_false(is_completed(work));
    between(2);
    u64 pause = tscope_clock_ns(CLOCK_MONOTONIC) - asked;
    bool works = i && tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu > nearly_work_ns;
    longest = works ? UINT64_MAX : MAX(pause, longest);
  }
  torch_done = true;
  assert_true(is_completed(work));
  torch_done = false;
  return longest;
}

/* The end of the one before was not seen. */
static void another_group_at_the_same_address_is_another_communicator(void **state) {
  (void)state;
  static char group[1];
  int64_t elements = 1;
  torch_work = &elements;
  group_made(group, NULL, 0, 2, NULL);
  allreduce((word)group, 0, 0, 0, 0, 0, 0);
  u32 before = LAST(COLLECTIVE, collective).comm;
  group_made(group, NULL, 1, 4, NULL);
  allreduce((word)group, 0, 0, 0, 0, 0, 0);
  torch_work = NULL;
  assert_int_not_equal(LAST(COLLECTIVE, collective).comm, before);
  assert_int_equal(LAST(COMM, comm).size, 4);
}

static void who_only_asks_whether_it_is_done_waits(void **state) {
  (void)state;
  static char group[1];
  static struct { int64_t words[8]; } work[3];
  const u64 is_a_sleep = 50000000;
  group_made(group, NULL, 0, 2, NULL);
  for (int i = 0; i < 2; i++) {
    torch_work = &work[i];
    allreduce((word)group, 0, 0, 0, 0, 0, 0);
  }
  torch_work = NULL;
  u32 before = count(TSCOPE_REC_COMM_WAIT);
  ask(&work[0], 10, work_ms);
  ask(&work[1], 2, pause_ms);
  assert_int_equal(count(TSCOPE_REC_COMM_WAIT), before);
  struct tscope_collective_record call;
  u64 longest;
  do {
    before = count(TSCOPE_REC_COMM_WAIT);
    torch_work = &work[2];
    allreduce((word)group, 0, 0, 0, 0, 0, 0);
    torch_work = NULL;
    call = LAST(COLLECTIVE, collective);
    longest = ask(&work[2], 10, pause_ms);
  } while (longest > is_a_sleep);
  assert_int_equal(count(TSCOPE_REC_COMM_WAIT), before + 1);
  struct tscope_comm_wait_record wait = LAST(COMM_WAIT, comm_wait);
  assert_int_equal(wait.comm, call.comm);
  assert_int_equal(wait.seq, call.seq);
  /* Nine of ten pauses: where the machine makes the first question take as long as work does, the
   * wait begins with the second. */
  assert_in_range(tscope_ns_of_ticks(wait.dur << tscope_clock.shift), 18000000, 60000000000);
}

enum { GROUPS = 1100 };
static char groups[GROUPS];

static void more_ranges_and_groups_than_the_tables_hold_are_lost(void **state) {
  (void)state;
  enum { RANGES = 70 };
  static char forward[RANGES][sizeof("DistributedDataParallel.forward")];
  int64_t elements = 1;
  u64 ranges_before = lost_for(TSCOPE_LOSS_RANGES), groups_before = lost_for(TSCOPE_LOSS_GROUPS);
  for (int i = 0; i < RANGES; i++)
    torch_callback.start(strcpy(forward[i], "DistributedDataParallel.forward"));
  for (int i = RANGES; i-- > 0;)
    torch_callback.end(forward[i], NULL);
  assert_int_equal(lost_for(TSCOPE_LOSS_RANGES), ranges_before + RANGES - 64);
  for (int i = 0; i < GROUPS; i++)
    group_made(&groups[i], NULL, 0, 1, NULL);
  u32 calls = count(TSCOPE_REC_COLLECTIVE);
  torch_work = &elements;
  allreduce((word)&groups[0], 0, 0, 0, 0, 0, 0);
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE), calls + 1);
  allreduce((word)&groups[GROUPS - 1], 0, 0, 0, 0, 0, 0);
  torch_work = NULL;
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE), calls + 1);
  assert_int_equal(lost_for(TSCOPE_LOSS_GROUPS), groups_before + 1);
}

static void more_work_under_way_than_the_table_holds_is_lost(void **state) {
  (void)state;
  enum { CALLS = 6000, SLOTS = 4096 };
  static struct { int64_t words[8]; } work[CALLS];
  u64 before = lost_for(TSCOPE_LOSS_GROUPS);
  u32 calls = count(TSCOPE_REC_COLLECTIVE);
  for (int i = 0; i < CALLS; i++) {
    torch_work = &work[i];
    allreduce((word)&groups[0], 0, 0, 0, 0, 0, 0);
  }
  torch_work = NULL;
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE), calls + CALLS);
  assert_in_range(lost_for(TSCOPE_LOSS_GROUPS) - before, CALLS - SLOTS, CALLS / 2);
}

static int by_value(const void *left, const void *right) {
  u64 a = *(const u64 *)left, b = *(const u64 *)right;
  return (a > b) - (a < b);
}

/* Each is "0" again, as a program names its groups that makes and ends them in turn. */
static void groups_of_one_name_are_told_apart_however_many(void **state) {
  (void)state;
  enum { TURNS = 5000 };
  static u64 identities[GROUPS + TURNS];
  int64_t elements = 1;
  struct torch_scope scope;
  u32 n = 0, distinct = 1;
  group_end_begin(&scope, &groups[0]);
  group_end_end(&scope);
  torch_work = &elements;
  for (int i = 0; i < TURNS; i++) {
    group_made(&groups[0], NULL, 0, 1, NULL);
    allreduce((word)&groups[0], 0, 0, 0, 0, 0, 0);
    group_end_begin(&scope, &groups[0]);
    group_end_end(&scope);
  }
  torch_work = NULL;
  struct trace trace = trace_read();
  struct trace_record at = {0};
  while (trace_next_of(&trace, &at, TSCOPE_REC_COMM) && n < GROUPS + TURNS)
    identities[n++] = ((const struct tscope_comm_record *)(const void *)at.record)->identity;
  trace_close(&trace);
  qsort(identities, n, sizeof(*identities), by_value);
  for (u32 i = 1; i < n; i++)
    distinct += identities[i] != identities[i - 1];
  assert_true(n > TURNS);
  assert_int_equal(distinct, n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(objects_and_parameters_pass),
      cmocka_unit_test(ranges_are_phases),
      cmocka_unit_test(names_mean_the_same_as_in_nvtx_and_in_profiles),
      cmocka_unit_test(a_step_ends_once),
      cmocka_unit_test(a_call_that_was_left_is_not_looked_at),
      cmocka_unit_test(a_call_after_one_that_was_left_is_none_inside_it),
      cmocka_unit_test(a_collective_belongs_to_its_call),
      cmocka_unit_test(who_only_asks_whether_it_is_done_waits),
      cmocka_unit_test(another_group_at_the_same_address_is_another_communicator),
      cmocka_unit_test(more_ranges_and_groups_than_the_tables_hold_are_lost),
      cmocka_unit_test(more_work_under_way_than_the_table_holds_is_lost),
      cmocka_unit_test(groups_of_one_name_are_told_apart_however_many),
  };
  return cmocka_run_group_tests_name("inside torch", tests, trace_set_up, trace_tear_down);
}
