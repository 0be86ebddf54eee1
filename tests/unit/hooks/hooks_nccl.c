/* SPDX-License-Identifier: MIT
 *
 * What is recorded of NCCL: sequence numbers, groups, communicators and their identity.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "hooks_fakes.h"
#include "hooks_trace.h"
#include "nccl/communicator.h"

/* How the library behaves in the current test: the handle of the next communicator, the properties
 * of a communicator, and the results of its calls. */
static struct {
  ncclComm_t next;
  int size, rank, device;
  ncclResult_t result; /* of the calls under test */
  ncclResult_t state;  /* of a communicator */
  bool late;           /* handles are set at the end of the group, or when the parent is ready */
  ncclComm_t *late_handle;
  int queries;
} library;

static ncclComm_t handle(int n) {
  return (ncclComm_t)(uintptr_t)(0x10000 + 64 * n);
}

static void give(ncclComm_t *where) {
  if (library.late) {
    *where = NULL;
    library.late_handle = where;
  } else {
    *where = library.next;
  }
}

static int behave(const struct fake_call *call) {
  const char *name = call->name;
  if (!strcmp(name, "ncclCommCount") || !strcmp(name, "ncclCommUserRank") ||
      !strcmp(name, "ncclCommCuDevice")) {
    library.queries++;
    *FAKE_ARG(call, 1, int *) = !strcmp(name, "ncclCommCount")      ? library.size
                                : !strcmp(name, "ncclCommUserRank") ? library.rank
                                                                    : library.device;
    return ncclSuccess;
  }
  if (!strcmp(name, "ncclCommGetAsyncError")) {
    *FAKE_ARG(call, 1, ncclResult_t *) = library.state;
    if (library.late_handle && library.state == ncclSuccess)
      *library.late_handle = library.next;
    return ncclSuccess;
  }
  if (!strcmp(name, "ncclGetVersion")) {
    *FAKE_ARG(call, 0, int *) = 22809;
    return ncclSuccess;
  }
  if (!strcmp(name, "ncclCommInitRank") || !strcmp(name, "ncclCommInitRankConfig") ||
      !strcmp(name, "ncclCommInitRankScalable"))
    give(FAKE_ARG(call, 0, ncclComm_t *));
  if (!strcmp(name, "ncclCommSplit") && FAKE_ARG(call, 1, int) != NCCL_SPLIT_NOCOLOR)
    give(FAKE_ARG(call, 3, ncclComm_t *));
  if (!strcmp(name, "ncclCommShrink"))
    give(FAKE_ARG(call, 3, ncclComm_t *));
  if (!strcmp(name, "ncclCommGrow"))
    give(FAKE_ARG(call, 4, ncclComm_t *));
  if (!strcmp(name, "ncclCommInitAll"))
    for (int i = 0; i < FAKE_ARG(call, 1, int); i++)
      FAKE_ARG(call, 0, ncclComm_t *)[i] = handle(900 + i);
  if (!strcmp(name, "ncclGroupEnd") && library.late_handle)
    *library.late_handle = library.next;
  if (!strcmp(name, "ncclBcast")) { /* like the real one */
    void *buffer = FAKE_ARG(call, 0, void *);
    return ncclBroadcast(buffer, buffer, FAKE_ARG(call, 1, size_t),
                         FAKE_ARG(call, 2, ncclDataType_t), FAKE_ARG(call, 3, int),
                         FAKE_ARG(call, 4, ncclComm_t), FAKE_ARG(call, 5, cudaStream_t));
  }
  return library.result;
}

static int fresh_library(void **state) {
  (void)state;
  memset(&library, 0, sizeof(library));
  library.size = 4;
  library.rank = 2;
  library.device = 1;
  fake_behaviour = behave;
  return 0;
}

static ncclComm_t make(int n, const char *id_text) {
  ncclUniqueId id = {{0}};
  strcpy(id.internal, id_text);
  ncclComm_t comm = NULL;
  library.next = handle(n);
  assert_int_equal(ncclCommInitRank(&comm, 4, id, 2), ncclSuccess);
  return comm;
}

static void reduce(ncclComm_t comm) {
  ncclAllReduce(NULL, NULL, 1000, ncclFloat16, ncclSum, comm, (cudaStream_t)0x5000);
}

static void a_collective_is_recorded_whole(void **state) {
  (void)state;
  ncclComm_t comm = make(1, "one");
  reduce(comm);
  struct tscope_collective_record all_reduce = LAST(COLLECTIVE, collective);
  assert_int_equal(all_reduce.header.tag, TSCOPE_OP_ALLREDUCE);
  assert_int_equal(all_reduce.count, 1000);
  assert_int_equal(all_reduce.bytes, 2000);
  assert_int_equal(all_reduce.dtype, TSCOPE_DTYPE_F16);
  assert_int_equal(all_reduce.redop, TSCOPE_REDOP_SUM);
  assert_int_equal(all_reduce.peer, -1);
  assert_int_equal(all_reduce.seq, 0);
  assert_int_equal(all_reduce.group, 0);
  assert_int_equal(all_reduce.result, 0);
  assert_true(all_reduce.dur != TSCOPE_DUR_PENDING);
  struct tscope_comm_record made = LAST(COMM, comm);
  assert_int_equal(made.comm, all_reduce.comm);
  assert_int_equal(made.rank, 2);
  assert_int_equal(made.size, 4);
  assert_int_equal(made.device, 1);
  assert_int_equal(made.header.tag, TSCOPE_BACKEND_NCCL);
  assert_true(made.identity != 0);
  ncclReduce(NULL, NULL, 3, ncclInt64, ncclMax, 1, comm, NULL);
  struct tscope_collective_record to_root = LAST(COLLECTIVE, collective);
  assert_int_equal(to_root.peer, 1);
  assert_int_equal(to_root.bytes, 24);
  assert_int_equal(to_root.redop, TSCOPE_REDOP_MAX);
  assert_true(to_root.stream != all_reduce.stream);
}

static void sequence_numbers_count_per_communicator_and_kind(void **state) {
  (void)state;
  ncclComm_t a = make(10, "a"), b = make(11, "b");
  reduce(a);
  reduce(a);
  ncclSend(NULL, 1, ncclInt8, 3, a, NULL);
  ncclRecv(NULL, 1, ncclInt8, 3, a, NULL);
  reduce(b);
  assert_int_equal(LAST(COLLECTIVE, collective).seq, 0);
  reduce(a);
  assert_int_equal(LAST(COLLECTIVE, collective).seq, 2);
  ncclSend(NULL, 1, ncclInt8, 1, a, NULL);
  struct tscope_collective_record send = LAST(COLLECTIVE, collective);
  assert_int_equal(send.header.tag, TSCOPE_OP_SEND);
  assert_int_equal(send.seq, 2);
  assert_int_equal(send.peer, 1);
}

static void a_call_made_inside_a_call_is_one_call(void **state) {
  (void)state;
  ncclComm_t comm = make(20, "bcast");
  u32 before = count(TSCOPE_REC_COLLECTIVE);
  ncclBcast(NULL, 8, ncclFloat32, 3, comm, NULL);
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE), before + 1);
  assert_int_equal(LAST(COLLECTIVE, collective).header.tag, TSCOPE_OP_BROADCAST);
  reduce(comm);
  assert_int_equal(LAST(COLLECTIVE, collective).seq, 1);
}

static void calls_of_a_group_share_its_number(void **state) {
  (void)state;
  ncclComm_t comm = make(30, "group");
  u32 before = count(TSCOPE_REC_GROUP);
  ncclGroupStart();
  ncclSend(NULL, 1, ncclInt8, 1, comm, NULL);
  u32 group = LAST(COLLECTIVE, collective).group;
  ncclGroupStart();
  ncclRecv(NULL, 1, ncclInt8, 1, comm, NULL);
  assert_int_equal(LAST(COLLECTIVE, collective).group, group);
  ncclGroupEnd();
  assert_int_equal(count(TSCOPE_REC_GROUP), before);
  library.result = ncclSystemError;
  assert_int_equal(ncclGroupEnd(), ncclSystemError);
  library.result = ncclSuccess;
  struct tscope_group_record record = LAST(GROUP, group);
  assert_int_equal(count(TSCOPE_REC_GROUP), before + 1);
  assert_int_equal(record.group, group);
  assert_int_equal(record.calls, 2);
  assert_int_equal(record.result, ncclSystemError);
  assert_true(group != 0);
  reduce(comm);
  assert_int_equal(LAST(COLLECTIVE, collective).group, 0);
  ncclGroupStart();
  ncclGroupEnd();
  assert_int_equal(count(TSCOPE_REC_GROUP), before + 1); /* the group was empty */
}

static void identity_comes_from_the_unique_id(void **state) {
  (void)state;
  make(40, "same");
  u64 first = LAST(COMM, comm).identity;
  make(41, "same");
  assert_true(LAST(COMM, comm).identity == first);
  make(42, "other");
  assert_true(LAST(COMM, comm).identity != first);
  ncclUniqueId ids[2] = {{"x"}, {"y"}}, swapped[2] = {{"y"}, {"x"}};
  ncclComm_t comm;
  library.next = handle(43);
  ncclCommInitRankScalable(&comm, 4, 2, 2, ids, NULL);
  u64 scalable = LAST(COMM, comm).identity;
  library.next = handle(44);
  ncclCommInitRankScalable(&comm, 4, 2, 2, swapped, NULL);
  assert_true(LAST(COMM, comm).identity != scalable);
}

/* Two parents with the same id represent the same parent on two ranks. */
static void splits_agree_between_ranks_and_differ_from_each_other(void **state) {
  (void)state;
  ncclComm_t rank0 = make(50, "parent"), rank1 = make(51, "parent"), child;
  u64 parent = LAST(COMM, comm).identity;
  u64 seen[2][3];
  for (int rank = 0; rank < 2; rank++) {
    ncclComm_t on = rank ? rank1 : rank0;
    for (int split = 0; split < 3; split++) {
      library.next = handle(52 + 3 * rank + split);
      library.rank = rank;
      library.size = 2;
      ncclCommSplit(on, split == 2 ? 8 : 7, 0, &child, NULL);
      struct tscope_comm_record record = LAST(COMM, comm);
      assert_true(record.parent == parent);
      assert_int_equal(record.color, split == 2 ? 8 : 7);
      assert_int_equal(record.rank, rank); /* from the library */
      assert_int_equal(record.size, 2);
      seen[rank][split] = record.identity;
    }
  }
  assert_memory_equal(seen[0], seen[1], sizeof(seen[0]));
  assert_true(seen[0][0] != seen[0][1] && seen[0][1] != seen[0][2] && seen[0][0] != seen[0][2]);
}

static void a_rank_left_out_of_a_split_stays_in_step(void **state) {
  (void)state;
  ncclComm_t in = make(60, "left out"), out = make(61, "left out"), child = NULL;
  library.next = handle(62);
  ncclCommSplit(in, 1, 0, &child, NULL);
  u32 before = count(TSCOPE_REC_COMM);
  ncclCommSplit(out, NCCL_SPLIT_NOCOLOR, 0, &child, NULL);
  assert_int_equal(count(TSCOPE_REC_COMM), before);
  library.next = handle(63);
  ncclCommSplit(in, 1, 0, &child, NULL);
  u64 identity = LAST(COMM, comm).identity;
  library.next = handle(64);
  ncclCommSplit(out, 1, 0, &child, NULL);
  assert_true(LAST(COMM, comm).identity == identity);
}

static void a_handle_that_comes_with_the_groups_end_is_known(void **state) {
  (void)state;
  ncclComm_t parent = make(70, "late"), child = NULL;
  library.late = true;
  ncclGroupStart();
  library.next = handle(71);
  ncclCommSplit(parent, 5, 0, &child, NULL);
  assert_null(child);
  ncclGroupEnd();
  reduce(child);
  struct tscope_comm_record record = LAST(COMM, comm);
  assert_int_equal(record.comm, LAST(COLLECTIVE, collective).comm);
  assert_int_equal(record.color, 5);
  assert_true(record.identity != 0);
}

static void a_split_that_does_not_block_is_known_once_it_is_done(void **state) {
  (void)state;
  ncclComm_t parent = make(80, "non-blocking"), child = NULL;
  library.late = true;
  library.result = library.state = ncclInProgress;
  library.next = handle(81);
  assert_int_equal(ncclCommSplit(parent, 6, 0, &child, NULL), ncclInProgress);
  ncclResult_t now;
  ncclCommGetAsyncError(parent, &now);
  assert_null(child);
  library.state = library.result = ncclSuccess;
  ncclCommGetAsyncError(parent, &now);
  assert_ptr_equal(child, handle(81));
  struct tscope_comm_record record = LAST(COMM, comm);
  assert_int_equal(record.color, 6);
  assert_int_equal(record.rank, 2);
  reduce(child);
  assert_int_equal(LAST(COLLECTIVE, collective).comm, record.comm);
}

static void a_communicator_that_is_not_ready_is_not_asked(void **state) {
  (void)state;
  ncclUniqueId id = {{"in progress"}};
  ncclComm_t comm;
  library.result = library.state = ncclInProgress;
  library.next = handle(90);
  ncclCommInitRankConfig(&comm, 8, id, 5, NULL);
  assert_int_equal(library.queries, 0);
  struct tscope_comm_record record = LAST(COMM, comm);
  assert_int_equal(record.rank, 5); /* from the job's call */
  assert_int_equal(record.size, 8);
}

static void a_communicator_whose_creation_was_not_seen_has_no_identity(void **state) {
  (void)state;
  reduce(handle(100));
  struct tscope_comm_record record = LAST(COMM, comm);
  assert_int_equal(record.comm, LAST(COLLECTIVE, collective).comm);
  assert_int_equal(record.identity, 0);
  assert_int_equal(record.size, 4);
  ncclComm_t child;
  library.next = handle(101);
  ncclCommSplit(handle(100), 1, 0, &child, NULL);
  assert_int_equal(LAST(COMM, comm).identity, 0);
}

static void a_handle_used_again_is_another_communicator(void **state) {
  (void)state;
  ncclComm_t comm = make(110, "first life");
  reduce(comm);
  u32 first = LAST(COMM, comm).comm;
  ncclCommFinalize(comm);
  assert_int_equal(LAST(COMM_END, comm_end).header.tag, TSCOPE_COMM_END_FINALIZE);
  ncclCommDestroy(comm);
  struct tscope_comm_end_record end = LAST(COMM_END, comm_end);
  assert_int_equal(end.comm, first);
  assert_int_equal(end.header.tag, TSCOPE_COMM_END_DESTROY);
  comm = make(110, "second life");
  reduce(comm);
  struct tscope_collective_record after = LAST(COLLECTIVE, collective);
  assert_true(after.comm != first);
  assert_int_equal(after.seq, 0);
  ncclCommAbort(comm);
  assert_int_equal(LAST(COMM_END, comm_end).header.tag, TSCOPE_COMM_END_ABORT);
}

static void one_process_with_all_ranks(void **state) {
  (void)state;
  ncclComm_t comms[3];
  u32 before = count(TSCOPE_REC_COMM);
  ncclCommInitAll(comms, 3, (int[]){4, 5, 6});
  struct trace trace = trace_read();
  u64 identity = 0;
  for (u32 i = 0; i < 3; i++) {
    const struct tscope_comm_record *record = trace_record(&trace, TSCOPE_REC_COMM, before + i);
    assert_non_null(record);
    assert_int_equal(record->rank, i);
    assert_int_equal(record->size, 3);
    assert_int_equal(record->device, 4 + i);
    assert_true(!identity || record->identity == identity);
    identity = record->identity;
  }
  trace_close(&trace);
  assert_true(identity != 0);
}

static const char *name_to_come(void) {
  return NULL;
}

/* As PyTorch 2.15 does: first the communicator, then the group's name, then its description. */
static void a_name_that_comes_later_is_the_communicators(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_COMM);
  communicator_label = name_to_come;
  make(125, "named"), make(126, "named");
  communicator_label = NULL;
  assert_int_equal(count(TSCOPE_REC_COMM), before);
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  assert_non_null(thread);
  communicators_named(thread, "3", false);
  assert_int_equal(count(TSCOPE_REC_COMM), before);
  communicators_named(thread, "tensor parallel", true);
  communicators_named(thread, "the next group", true);
  tscope_leave(thread);
  assert_int_equal(count(TSCOPE_REC_COMM), before + 2);
  assert_string(LAST(COMM, comm).name, "tensor parallel");
}

/* Used, or ended, before anybody names it. */
static void a_communicator_does_not_wait_for_its_name_when_it_is_used(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_COMM);
  communicator_label = name_to_come;
  ncclComm_t used = make(127, "nameless"), ended = make(128, "nameless");
  communicator_label = NULL;
  reduce(used);
  assert_int_equal(count(TSCOPE_REC_COMM), before + 1);
  assert_int_equal(LAST(COMM, comm).name, 0);
  ncclCommDestroy(ended);
  assert_int_equal(count(TSCOPE_REC_COMM), before + 2);
}

static void a_failure_is_recorded_and_returned(void **state) {
  (void)state;
  ncclComm_t comm = make(120, "failing");
  library.result = ncclInvalidArgument;
  assert_int_equal(ncclAllGather(NULL, NULL, 1, ncclBfloat16, comm, NULL), ncclInvalidArgument);
  assert_int_equal(LAST(COLLECTIVE, collective).result, ncclInvalidArgument);
}

static void more_communicators_than_the_table_holds(void **state) {
  (void)state;
  u64 before = lost_for(TSCOPE_LOSS_GROUPS);
  for (int i = 0; i < 3000; i++)
    reduce(handle(1000 + i));
  assert_in_range(lost_for(TSCOPE_LOSS_GROUPS) - before, 3000 - 2048, 2000);
  struct tscope_collective_record record = LAST(COLLECTIVE, collective);
  assert_int_equal(record.comm, TSCOPE_UNKNOWN);
  assert_int_equal(record.seq, TSCOPE_UNKNOWN);
}

static void gpu_times_can_be_declined(void **state) {
  (void)state;
  reduce(make(130, "off"));
  struct tscope_gpu_clock_record clock = LAST(GPU_CLOCK, gpu_clock);
  assert_int_equal(clock.header.tag, TSCOPE_GPU_CLOCK_HOST);
  assert_string(clock.reason, "TSCOPE_GPU=off");
}

static int set_up(void **state) {
  return setenv("TSCOPE_GPU", "off", 1) || trace_set_up(state);
}

/* Functions of NCCL 2.29. They have other names here, because a header of 2.29 would conflict with
 * these types. */
ncclResult_t put_signal(const void *, size_t, ncclDataType_t, int, void *, size_t, int, int,
                        unsigned, ncclComm_t, cudaStream_t) __asm__("ncclPutSignal");
ncclResult_t wait_signal(int, void *, ncclComm_t, cudaStream_t) __asm__("ncclWaitSignal");
ncclResult_t grow(ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *,
                  ncclConfig_t *) __asm__("ncclCommGrow");

static void one_sided_calls_are_recorded_apart(void **state) {
  (void)state;
  ncclComm_t comm = make(51, "one-sided");
  u32 collectives = count(TSCOPE_REC_COLLECTIVE);
  put_signal(NULL, 100, ncclFloat16, 3, NULL, 64, 0, 0, 0, comm, (cudaStream_t)0x5000);
  struct tscope_one_sided_record call = LAST(ONE_SIDED, one_sided);
  assert_int_equal(call.header.tag, TSCOPE_ONE_SIDED_PUT_SIGNAL);
  assert_int_equal(call.count, 100);
  assert_int_equal(call.bytes, 200);
  assert_int_equal(call.peer, 3);
  assert_int_equal(call.comm, LAST(COMM, comm).comm);
  assert_true(call.dur != TSCOPE_DUR_PENDING);
  library.result = ncclInvalidUsage;
  u32 failures = count(TSCOPE_REC_FAILED_CALL);
  assert_int_equal(wait_signal(2, NULL, comm, NULL), ncclInvalidUsage);
  assert_int_equal(count(TSCOPE_REC_FAILED_CALL), failures + 1);
  assert_string(LAST(FAILED_CALL, failed_call).what, "a one-sided call");
  call = LAST(ONE_SIDED, one_sided);
  assert_int_equal(call.header.tag, TSCOPE_ONE_SIDED_WAIT_SIGNAL);
  assert_int_equal(call.count, 2);
  assert_int_equal(call.bytes, 0);
  assert_int_equal(call.peer, -1);
  assert_int_equal(call.result, ncclInvalidUsage);
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE), collectives);
  library.result = ncclSuccess;
  reduce(comm); /* only collectives count in the order of collectives */
  assert_int_equal(LAST(COLLECTIVE, collective).seq, 0);
}

static void a_grown_communicator_has_a_parent_but_no_identity(void **state) {
  (void)state;
  ncclComm_t comm = make(52, "small"), grown = NULL;
  u64 parent = LAST(COMM, comm).identity;
  library.next = handle(53);
  library.size = 6;
  assert_int_equal(grow(comm, 6, NULL, -1, &grown, NULL), ncclSuccess);
  assert_ptr_equal(grown, handle(53));
  struct tscope_comm_record made = LAST(COMM, comm);
  assert_true(made.identity == 0 && made.parent == parent);
  assert_int_equal(made.size, 6);
  assert_int_equal(made.rank, 2);
}

static bool accepted(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

static void every_result_of_a_call_on_a_communicator(void **state) {
  (void)state;
  ncclComm_t comm = make(140, "results");
  for (int result = 0; result <= (int)ncclNumResults; result++) {
    library.result = (ncclResult_t)result;
    u32 all_reduces = count(TSCOPE_REC_COLLECTIVE), puts = count(TSCOPE_REC_ONE_SIDED);
    assert_int_equal(ncclAllReduce(NULL, NULL, 1, ncclFloat16, ncclSum, comm, (cudaStream_t)0x5000),
                     result);
    struct tscope_collective_record call = LAST(COLLECTIVE, collective);
    assert_int_equal(call.result, result);
    assert_int_equal(call.seq, result);
    assert_true(call.dur != TSCOPE_DUR_PENDING);
    assert_int_equal(put_signal(NULL, 1, ncclFloat16, 3, NULL, 0, 0, 0, 0, comm, NULL), result);
    assert_int_equal(LAST(ONE_SIDED, one_sided).result, result);
    assert_int_equal(count(TSCOPE_REC_COLLECTIVE), all_reduces + 1);
    assert_int_equal(count(TSCOPE_REC_ONE_SIDED), puts + 1);
  }
}

static void every_result_of_a_group(void **state) {
  (void)state;
  ncclComm_t comm = make(141, "groups");
  for (int result = 0; result <= (int)ncclNumResults; result++) {
    u32 groups = count(TSCOPE_REC_GROUP);
    library.result = (ncclResult_t)result;
    assert_int_equal(ncclGroupStart(), result);
    library.result = ncclSuccess;
    reduce(comm);
    bool open = LAST(COLLECTIVE, collective).group != 0;
    assert_int_equal(open, accepted((ncclResult_t)result));
    library.result = (ncclResult_t)result;
    if (open)
      assert_int_equal(ncclGroupEnd(), result);
    assert_int_equal(count(TSCOPE_REC_GROUP), groups + open);
    if (open)
      assert_int_equal(LAST(GROUP, group).result, result);
    library.result = ncclSuccess;
    reduce(comm);
    assert_int_equal(LAST(COLLECTIVE, collective).group, 0);
  }
}

/* A communicator exists as soon as the call that creates it was accepted, outside a group and
 * inside. */
static void every_result_of_making_and_ending_a_communicator(void **state) {
  (void)state;
  for (int result = 0; result <= (int)ncclNumResults; result++) {
    for (int grouped = 0; grouped < 2; grouped++) {
      u32 made = count(TSCOPE_REC_COMM);
      ncclComm_t comm = NULL;
      library.next = handle(150 + 2 * result + grouped);
      if (grouped)
        ncclGroupStart();
      library.result = (ncclResult_t)result;
      assert_int_equal(ncclCommInitRank(&comm, 4, (ncclUniqueId){{"life"}}, 2), result);
      library.result = ncclSuccess;
      if (grouped)
        ncclGroupEnd();
      assert_int_equal(count(TSCOPE_REC_COMM), made + accepted((ncclResult_t)result));
      if (!accepted((ncclResult_t)result))
        continue;
      library.result = (ncclResult_t)result;
      assert_int_equal(ncclCommDestroy(comm), result);
      assert_int_equal(LAST(COMM_END, comm_end).result, result);
      library.result = ncclSuccess;
    }
  }
}

static void a_group_that_is_only_simulated_leaves_nothing(void **state) {
  (void)state;
  ncclComm_t comm = make(190, "simulated");
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  reduce(comm);
  for (int result = 0; result <= (int)ncclNumResults; result++) {
    ncclGroupStart();
    reduce(comm);
    ncclSend(NULL, 1, ncclInt8, 1, comm, NULL);
    u32 group = LAST(COLLECTIVE, collective).group;
    library.result = (ncclResult_t)result;
    assert_int_equal(ncclGroupSimulateEnd(&info), result);
    library.result = ncclSuccess;
    struct tscope_group_record end = LAST(GROUP, group);
    assert_int_equal(end.header.tag, TSCOPE_GROUP_SIMULATED);
    assert_int_equal(end.group, group);
    reduce(comm);
    struct tscope_collective_record next = LAST(COLLECTIVE, collective);
    assert_int_equal(next.group, 0);
    assert_int_equal(next.seq, 1 + result); /* as on ranks that did not simulate */
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, fresh_library)
  const struct CMUnitTest tests[] = {
      TEST(a_collective_is_recorded_whole),
      TEST(sequence_numbers_count_per_communicator_and_kind),
      TEST(a_call_made_inside_a_call_is_one_call),
      TEST(calls_of_a_group_share_its_number),
      TEST(identity_comes_from_the_unique_id),
      TEST(splits_agree_between_ranks_and_differ_from_each_other),
      TEST(a_rank_left_out_of_a_split_stays_in_step),
      TEST(a_handle_that_comes_with_the_groups_end_is_known),
      TEST(a_split_that_does_not_block_is_known_once_it_is_done),
      TEST(a_communicator_that_is_not_ready_is_not_asked),
      TEST(a_communicator_whose_creation_was_not_seen_has_no_identity),
      TEST(a_handle_used_again_is_another_communicator),
      TEST(one_process_with_all_ranks),
      TEST(a_name_that_comes_later_is_the_communicators),
      TEST(a_communicator_does_not_wait_for_its_name_when_it_is_used),
      TEST(a_failure_is_recorded_and_returned),
      TEST(gpu_times_can_be_declined),
      TEST(one_sided_calls_are_recorded_apart),
      TEST(a_grown_communicator_has_a_parent_but_no_identity),
      TEST(every_result_of_a_call_on_a_communicator),
      TEST(every_result_of_a_group),
      TEST(every_result_of_making_and_ending_a_communicator),
      TEST(a_group_that_is_only_simulated_leaves_nothing),
      TEST(more_communicators_than_the_table_holds),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
