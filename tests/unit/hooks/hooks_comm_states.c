/* SPDX-License-Identifier: MIT
 *
 * When NCCL is asked about communicators while the job stalls, and above all when it is not
 * asked.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "hooks_fakes.h"
#include "hooks_trace.h"
#include "nccl/communicator.h"
#include "record/process_trace.h"

enum { HANDLES = 64, ROUNDS = 20000 };

/* Handles are addresses of memory, as NCCL's are. */
static u64 memory[HANDLES];
static struct {
  ncclComm_t next;
  ncclResult_t result; /* of creating one */
  ncclResult_t state[HANDLES];
  bool alive[HANDLES];
  void *(*meanwhile)(void *); /* runs on another thread while NCCL is asked */
  u32 asked[HANDLES], asked_dead;
} library;

static ncclComm_t handle(u32 n) {
  return (ncclComm_t)(void *)&memory[n];
}

static u32 index_of(ncclComm_t comm) {
  return (u32)((u64 *)(void *)comm - memory);
}

static int behave(const struct fake_call *call) {
  const char *name = call->name;
  if (!strcmp(name, "ncclCommGetAsyncError")) {
    u32 n = index_of(FAKE_ARG(call, 0, ncclComm_t));
    __atomic_add_fetch(&library.asked[n], 1, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&library.alive[n], __ATOMIC_SEQ_CST))
      __atomic_add_fetch(&library.asked_dead, 1, __ATOMIC_RELAXED);
    *FAKE_ARG(call, 1, ncclResult_t *) = library.state[n];
    void *(*meanwhile)(void *) = library.meanwhile;
    pthread_t thread;
    library.meanwhile = NULL;
    if (meanwhile && pthread_create(&thread, NULL, meanwhile, NULL) == 0)
      pthread_join(thread, NULL);
    return ncclSuccess;
  }
  if (!strcmp(name, "ncclCommInitRank") || !strcmp(name, "ncclCommInitRankConfig")) {
    __atomic_store_n(&library.alive[index_of(library.next)], true, __ATOMIC_SEQ_CST);
    *FAKE_ARG(call, 0, ncclComm_t *) = library.next;
    return library.result;
  }
  if (!strcmp(name, "ncclCommSplit") || !strcmp(name, "ncclCommShrink")) {
    __atomic_store_n(&library.alive[index_of(library.next)], true, __ATOMIC_SEQ_CST);
    *FAKE_ARG(call, 3, ncclComm_t *) = library.next;
  }
  if (!strcmp(name, "ncclCommDestroy"))
    __atomic_store_n(&library.alive[index_of(FAKE_ARG(call, 0, ncclComm_t))], false,
                     __ATOMIC_SEQ_CST);
  return ncclSuccess;
}

static int fresh_library(void **state) {
  (void)state;
  memset(&library, 0, sizeof(library));
  fake_behaviour = behave;
  return 0;
}

static ncclComm_t make(u32 n) {
  ncclUniqueId id = {{"states"}};
  ncclComm_t comm = NULL;
  library.next = handle(n);
  ncclCommInitRank(&comm, 4, id, 1);
  return comm;
}

/* How often NCCL is asked about it during `looks` looks at a stall. */
static u32 asked_in_stall(u32 n, u32 stall, u32 looks) {
  u32 before = library.asked[n];
  for (u32 i = 0; i < looks; i++)
    communicators_write_states(stall, i == 0);
  return library.asked[n] - before;
}

static void a_healthy_one_is_recorded_once(void **state) {
  (void)state;
  ncclComm_t comm = make(1);
  u32 before = count(TSCOPE_REC_COMM_STATE);
  assert_int_equal(asked_in_stall(1, 101, 3), 3);
  assert_int_equal(count(TSCOPE_REC_COMM_STATE), before + 1);
  struct tscope_comm_state_record said = LAST(COMM_STATE, comm_state);
  assert_int_equal(said.stall, 101);
  assert_int_equal(said.comm, communicator_number(comm));
  assert_int_equal(said.result, 0);
  assert_int_equal(said.header.tag, TSCOPE_COMM_STATE_ASKED);
  ncclCommDestroy(comm);
}

static void an_error_during_the_stall_is_recorded_once(void **state) {
  (void)state;
  ncclComm_t comm = make(2);
  asked_in_stall(2, 102, 2);
  u32 before = count(TSCOPE_REC_COMM_STATE);
  library.state[2] = ncclRemoteError;
  communicators_write_states(102, false);
  communicators_write_states(102, false);
  assert_int_equal(count(TSCOPE_REC_COMM_STATE), before + 1);
  assert_int_equal(LAST(COMM_STATE, comm_state).result, ncclRemoteError);
  communicators_write_states(103, true); /* the next stall says it again */
  assert_int_equal(LAST(COMM_STATE, comm_state).stall, 103);
  ncclCommDestroy(comm);
}

static void one_whose_calls_do_not_block_is_not_asked(void **state) {
  (void)state;
  ncclUniqueId id = {{"states"}};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm;
  config.blocking = 0;
  library.next = handle(3);
  ncclCommInitRankConfig(&comm, 4, id, 1, &config);
  assert_int_equal(asked_in_stall(3, 104, 3), 0);
  ncclCommDestroy(comm);
}

/* The parent's calls block, the child's as its own configuration says. */
static void one_that_is_split_off_is_asked_if_it_blocks(void **state) {
  (void)state;
  ncclComm_t parent = make(8), child;
  int left_out = 0;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  for (u32 i = 9; i < 13; i++) {
    bool blocks = i % 2;
    config.blocking = blocks;
    library.next = handle(i);
    if (i < 11)
      ncclCommSplit(parent, 1, 0, &child, &config);
    else
      ncclCommShrink(parent, &left_out, 1, &child, &config, 0);
    assert_int_equal(asked_in_stall(i, 110 + i, 3), blocks ? 3 : 0);
    ncclCommDestroy(child);
  }
  ncclCommDestroy(parent);
}

/* NCCL_COMM_BLOCKING=0 makes them non-blocking without any argument of the call. */
static void one_that_was_in_progress_is_not_asked(void **state) {
  (void)state;
  library.state[4] = library.result = ncclInProgress;
  ncclComm_t comm = make(4);
  library.state[4] = library.result = ncclSuccess;
  assert_int_equal(asked_in_stall(4, 105, 3), 0);
  ncclCommDestroy(comm);
}

static void one_that_turns_out_to_be_in_progress_is_not_asked_again(void **state) {
  (void)state;
  ncclComm_t comm = make(5);
  library.state[5] = ncclInProgress;
  u32 before = count(TSCOPE_REC_COMM_STATE);
  assert_int_equal(asked_in_stall(5, 106, 3), 1);
  assert_int_equal(count(TSCOPE_REC_COMM_STATE), before);
  ncclCommDestroy(comm);
}

static void one_that_begins_to_end_is_not_asked(void **state) {
  (void)state;
  ncclComm_t finalized = make(6), destroyed = make(7);
  ncclCommFinalize(finalized);
  ncclCommDestroy(destroyed);
  assert_int_equal(asked_in_stall(6, 107, 2), 0);
  assert_int_equal(asked_in_stall(7, 107, 2), 0);
  ncclCommDestroy(finalized);
}

static void one_whose_creation_was_not_seen_is_not_asked(void **state) {
  (void)state;
  library.alive[8] = true;
  ncclAllReduce(NULL, NULL, 10, ncclFloat, ncclSum, handle(8), NULL);
  u32 before = library.asked[8]; /* during that call, for the size of the communicator */
  communicators_write_states(108, true);
  assert_int_equal(library.asked[8], before);
  ncclCommDestroy(handle(8));
}

/* The way PyTorch's watchdog asks, ten times a second. */
static void errors_that_the_job_gets_are_recorded_too(void **state) {
  (void)state;
  ncclUniqueId id = {{"states"}};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm;
  ncclResult_t now;
  config.blocking = 0;
  library.next = handle(9);
  ncclCommInitRankConfig(&comm, 4, id, 1, &config);
  library.state[9] = ncclSystemError;
  u32 failures = count(TSCOPE_REC_FAILED_CALL);
  for (int i = 0; i < 10; i++)
    ncclCommGetAsyncError(comm, &now);
  assert_int_equal(now, ncclSystemError);
  assert_int_equal(count(TSCOPE_REC_FAILED_CALL), failures + 1);
  assert_int_equal(asked_in_stall(9, 109, 2), 0);
  struct tscope_comm_state_record said = LAST(COMM_STATE, comm_state);
  assert_int_equal(said.stall, 109);
  assert_int_equal(said.result, ncclSystemError);
  assert_int_equal(said.header.tag, TSCOPE_COMM_STATE_HEARD);
  ncclCommDestroy(comm);
}

static bool over;
static void *ask_repeatedly(void *nothing) {
  (void)nothing;
  while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
    communicators_write_states(110, false);
  return NULL;
}

static void none_is_asked_while_it_is_destroyed(void **state) {
  (void)state;
  pthread_t asker;
  assert_int_equal(pthread_create(&asker, NULL, ask_repeatedly, NULL), 0);
  for (u32 i = 0; i < ROUNDS; i++) {
    ncclComm_t comm = make(10 + i % 40);
    ncclCommDestroy(comm);
  }
  __atomic_store_n(&over, true, __ATOMIC_RELEASE);
  pthread_join(asker, NULL);
  u32 asked = 0;
  for (u32 i = 10; i < 50; i++)
    asked += library.asked[i];
  assert_int_equal(library.asked_dead, 0);
  print_message("asked %u times while %d were made and destroyed\n", asked - ROUNDS, ROUNDS);
}

static void *use_others(void *nothing) {
  ncclComm_t comm = make(51);
  ncclAllReduce(NULL, NULL, 10, ncclFloat, ncclSum, comm, NULL);
  ncclCommDestroy(comm);
  return nothing;
}

/* NCCL may take long to answer, above all while the job hangs. */
static void calls_on_others_do_not_wait_for_an_answer(void **state) {
  (void)state;
  ncclComm_t comm = make(50);
  u32 comms = count(TSCOPE_REC_COMM), states = count(TSCOPE_REC_COMM_STATE);
  u64 lost = tscope_trace.header->lost[TSCOPE_LOSS_LOCKED];
  library.meanwhile = use_others;
  communicators_write_states(111, true);
  assert_null(library.meanwhile);
  assert_int_equal(count(TSCOPE_REC_COMM), comms + 1);
  assert_int_equal(LAST(COMM, comm).size, 4);
  assert_int_equal(count(TSCOPE_REC_COMM_STATE), states + 1);
  assert_true(tscope_trace.header->lost[TSCOPE_LOSS_LOCKED] == lost);
  ncclCommDestroy(comm);
}

static u32 asked_when_destroyed;
static void *destroy_it(void *nothing) {
  ncclCommDestroy(handle(52));
  asked_when_destroyed = library.asked[52];
  return nothing;
}

/* It waits, but not for ever: in this test the answer comes only after the destroying call. */
static void a_call_that_ends_one_does_not_wait_for_ever_for_an_answer(void **state) {
  (void)state;
  make(52);
  u32 asked = library.asked[52];
  library.meanwhile = destroy_it;
  communicators_write_states(112, true);
  assert_int_equal(asked_when_destroyed, asked + 1);
  assert_int_equal(communicator_number(handle(52)), TSCOPE_UNKNOWN);
}

/* Without it tscope does not ask, because it cannot check first whether the communicator still
 * exists. */
static bool memory_can_be_looked_at(void) {
  u64 word, other = 1;
  struct iovec here = {&word, sizeof(word)}, there = {&other, sizeof(other)};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof(word);
}

int main(void) {
  if (!memory_can_be_looked_at()) {
    puts("SKIP: there is no process_vm_readv() here, as under an emulator");
    return 77;
  }
#define TEST(name) cmocka_unit_test_setup(name, fresh_library)
  const struct CMUnitTest tests[] = {
      TEST(a_healthy_one_is_recorded_once),
      TEST(an_error_during_the_stall_is_recorded_once),
      TEST(one_whose_calls_do_not_block_is_not_asked),
      TEST(one_that_is_split_off_is_asked_if_it_blocks),
      TEST(one_that_was_in_progress_is_not_asked),
      TEST(one_that_turns_out_to_be_in_progress_is_not_asked_again),
      TEST(one_that_begins_to_end_is_not_asked),
      TEST(one_whose_creation_was_not_seen_is_not_asked),
      TEST(errors_that_the_job_gets_are_recorded_too),
      TEST(none_is_asked_while_it_is_destroyed),
      TEST(calls_on_others_do_not_wait_for_an_answer),
      TEST(a_call_that_ends_one_does_not_wait_for_ever_for_an_answer),
  };
  return cmocka_run_group_tests(tests, trace_set_up, trace_tear_down);
}
