/* SPDX-License-Identifier: MIT
 *
 * Matching: calls and their runs, the ranks of a collective, sends and receives.
 */
#include "format/dtypes.h"
#include "model_support.h"

#include "import/tscope/gpu_runs/pairing.h"
#include "model/internal.h"

static void test_equal_counts_pair_in_order(void **state) {
  (void)state;
  struct ordered calls[] = {{0, 1}, {10, 2}, {20, 1}}, work[] = {{500, 1}, {600, 2}, {700, 0}};
  u32 of[3];
  assert_int_equal(pair_in_order(calls, 3, work, 3, false, of), 3);
  for (u32 i = 0; i < 3; i++)
    assert_int_equal(of[i], i);
}

/* The record of one of five kernels was lost. Each starts soon after its call, so only one pairing
 * has no effect before its cause. */
static void test_a_lost_effect_is_found_by_time(void **state) {
  (void)state;
  struct ordered calls[5], work[4];
  for (u32 lost = 0; lost < 5; lost++) {
    u32 of[5], n = 0;
    for (u32 i = 0; i < 5; i++) {
      calls[i] = (struct ordered){i * 1000000, 1};
      if (i != lost)
        work[n++] = (struct ordered){i * 1000000 + 50000, 1};
    }
    assert_int_equal(pair_in_order(calls, 5, work, 4, false, of), 4);
    for (u32 i = 0; i < 5; i++)
      assert_int_equal(of[i], i == lost ? INDEX_NONE : i < lost ? i : i - 1);
  }
}

/* Between the kernels whose launch was seen are kernels of a library that launches without the
 * hooks. */
static void test_names_show_unseen_launches(void **state) {
  (void)state;
  struct ordered calls[] = {{0, 1}, {10, 2}, {20, 3}};
  struct ordered work[] = {{100, 9}, {110, 1}, {120, 9}, {130, 9}, {140, 2}, {150, 3}, {160, 9}};
  u32 of[3];
  assert_int_equal(pair_in_order(calls, 3, work, 7, false, of), 3);
  assert_int_equal(of[0], 1);
  assert_int_equal(of[1], 4);
  assert_int_equal(of[2], 5);
}

/* A process was killed while its host was two calls ahead of the GPU: the runs of the last calls
 * are unknown. */
static void test_effects_lost_at_the_end_shift_no_others(void **state) {
  (void)state;
  struct ordered calls[6], work[3];
  u32 of[6];
  for (u32 i = 0; i < 6; i++)
    calls[i] = (struct ordered){i * 100, 1 + i % 2};
  for (u32 i = 0; i < 3; i++)
    work[i] = (struct ordered){250 + i * 1000000, 1 + i % 2};
  assert_int_equal(pair_in_order(calls, 6, work, 3, true, of), 3);
  for (u32 i = 0; i < 6; i++)
    assert_int_equal(of[i], i < 3 ? i : INDEX_NONE);
}

static void test_every_collective_of_a_run_is_matched(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.skew = true; /* matching must not depend on clocks */
  options.ranks_per_host = 1;
  struct model *model = generate(*state, &options, &truth);
  assert_int_equal(model->n_comms, 1);
  assert_int_equal(model->n_collectives, options.steps * options.buckets);
  for (u32 c = 0; c < model->n_collectives; c++) {
    const struct collective *collective = &model->collectives[c];
    u64 transfer = truth.collective_end[collective->seq] - truth.collective_start[collective->seq];
    assert_true(collective->complete && !collective->mismatched);
    assert_int_equal(collective->n_arrivals, options.ranks);
    assert_int_equal(collective->seq, c);
    for (u32 i = 0; i < collective->n_arrivals; i++) {
      const struct arrival *arrival = &model->arrivals[collective->first_arrival + i];
      assert_int_equal(arrival->rank, i);
      assert_int_equal(arrival->collective, c);
      assert_true(arrival->start >= arrival->call_start && arrival->end > arrival->start);
      assert_in_range(arrival->end - collective->last_start, transfer - 3000, transfer + 5000);
    }
  }
  model_free(model);
  tracegen_truth_free(&truth);
}

static void test_lost_rank_and_cut_rank_leave_the_rest_whole(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.lost_ranks = 1;
  options.cut_rank = 1;
  options.cut_bytes = TSCOPE_HEADER_BYTES + 4000; /* some calls, no GPU times */
  struct model *model = generate(*state, &options, &truth);
  assert_int_equal(model->world_size, 4);
  assert_int_equal(model->n_ranks, 3);
  assert_null(model->ranks[0].damage);
  assert_non_null(strstr(model->ranks[1].damage, "cut"));
  assert_int_equal(model->comms[0].members[3], INDEX_NONE);
  assert_int_equal(model->n_collectives, options.steps * options.buckets);
  for (u32 c = 0; c < model->n_collectives; c++) {
    const struct collective *collective = &model->collectives[c];
    assert_false(collective->complete);
    assert_int_equal(collective->n_arrivals,
                     collective->seq < model->ranks[1].collective_calls ? 3 : 2);
    assert_int_equal(collective->last_start == NS_UNKNOWN, collective->n_arrivals == 3);
  }
  assert_in_range(model->ranks[1].collective_calls, 1, model->n_collectives - 1);
  model_free(model);
  tracegen_truth_free(&truth);
}

/* Rank 0 sends five messages to rank 1 and receives three; one answer was never received. */
static void test_sends_meet_receives_in_order(void **state) {
  struct fixture *fixture = *state;
  for (u32 rank = 0; rank < 2; rank++) {
    struct trace_writer *writer = new_rank(rank, 2);
    u32 seq = 0;
    write_comm(writer, 1, 42, rank, 2, TSCOPE_BACKEND_NCCL);
    for (u32 i = 0; i < 5; i++) {
      struct tscope_collective_record *call =
          write_call(writer, i * 100000, rank == 0 ? TSCOPE_OP_SEND : TSCOPE_OP_RECV, 1, seq++);
      call->peer = (i32)(1 - rank);
      call->count = 100 + i;
      write_run(writer, i * 100000 + 2000, 3000, "ncclDevKernel_SendRecv");
    }
    for (u32 i = 0; i < (rank == 0 ? 2 : 3); i++) {
      struct tscope_collective_record *call = write_call(
          writer, 600000 + i * 100000, rank == 0 ? TSCOPE_OP_RECV : TSCOPE_OP_SEND, 1, seq++);
      call->peer = (i32)(1 - rank);
      call->count = 7;
      write_run(writer, 602000 + i * 100000, 3000, "ncclDevKernel_SendRecv");
    }
    save_rank(fixture, writer);
  }
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->n_collectives, 8);
  u32 whole = 0, lone = 0;
  for (u32 c = 0; c < model->n_collectives; c++) {
    const struct collective *message = &model->collectives[c];
    const struct arrival *arrival = &model->arrivals[message->first_arrival];
    assert_int_equal(message->op, TSCOPE_OP_SEND);
    assert_int_equal(arrival->op, TSCOPE_OP_SEND);
    assert_false(message->mismatched);
    if (message->n_arrivals == 2) {
      whole++;
      assert_true(message->complete);
      assert_int_equal(arrival[1].op, TSCOPE_OP_RECV);
      assert_int_equal(message->count, arrival->rank == 0 ? 100 + message->seq : 7);
    } else {
      lone++;
      assert_false(message->complete);
      assert_int_equal(arrival->rank, 1);
      assert_int_equal(message->seq, 2);
    }
  }
  assert_int_equal(whole, 7);
  assert_int_equal(lone, 1);
  model_free(model);
}

/* Whose creation was not seen: with one of them on each rank, it is the same one, or none shows
 * otherwise; of several, nothing says which of one rank is which of another. */
static void test_communicators_without_identity(void **state) {
  struct fixture *fixture = *state;
  for (u32 each = 1; each <= 2; each++) {
    for (u32 rank = 0; rank < 2; rank++) {
      struct trace_writer *writer = new_rank(rank, 2);
      for (u32 comm = 0; comm < each + (rank == 1); comm++) {
        write_comm(writer, comm, each == 1 && comm ? 42 : 0, rank, 2, TSCOPE_BACKEND_NCCL);
        write_call(writer, 1000 * comm, TSCOPE_OP_ALLREDUCE, comm, 0);
      }
      save_rank(fixture, writer);
    }
    struct model *model = load(fixture->directory, NULL);
    assert_int_equal(model->n_comms, each == 1 ? 2 : 5);
    assert_int_equal(model->n_collectives, each == 1 ? 2 : 5);
    model_free(model);
  }
}

/* A group of three all-reduces on two communicators launches two kernels when it ends. */
static void test_group_members_share_their_kernel(void **state) {
  struct fixture *fixture = *state;
  struct trace_writer *writer = new_rank(0, 2);
  write_comm(writer, 1, 42, 0, 2, TSCOPE_BACKEND_NCCL);
  write_comm(writer, 2, 43, 0, 2, TSCOPE_BACKEND_NCCL);
  for (u32 i = 0; i < 3; i++)
    write_call(writer, 1000 * i, TSCOPE_OP_ALLREDUCE, i == 2 ? 2 : 1, i % 2)->group = 9;
  struct tscope_group_record *group =
      trace_add(writer, retained, AT(10000), TSCOPE_REC_GROUP, 0, sizeof(*group));
  group->dur = 5000;
  group->group = 9;
  group->calls = 3;
  write_run(writer, 20000, 1000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  write_run(writer, 30000, 2000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  write_call(writer, 40000, TSCOPE_OP_ALLGATHER, 1, 2);
  write_run(writer, 50000, 3000, "ncclDevKernel_AllGather_RING_LL");
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  const struct rank_events *events = &internal_of(model)->events[0];
  assert_int_equal(events->calls.n, 4);
  assert_int_equal(events->calls.at[0].run, 0);
  assert_int_equal(events->calls.at[1].run, 0);
  assert_int_equal(events->calls.at[2].run, 1);
  assert_int_equal(events->calls.at[3].run, 2);
  assert_int_equal(events->unpaired_calls, 0);
  assert_int_equal(model->ranks[0].collective_runs, 4);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  u32 calls = 0, ran = 0;
  for (u32 i = 0; i < timeline.n_spans; i++) {
    const struct span *span = &timeline.spans[i];
    calls += span->kind == SPAN_COLL_CALL; /* the end of the group, and the call outside it */
    if (span->kind == SPAN_COLLECTIVE) {
      ran++;
      assert_int_equal(timeline.spans[span->launch].kind, SPAN_COLL_CALL);
      assert_true(timeline.spans[span->launch].start < span->start);
    }
  }
  assert_int_equal(calls, 2);
  assert_int_equal(ran, 3);
  timeline_release(&timeline);
  model_free(model);
}

static void write_graph(struct trace_writer *writer, u32 gpu_graph) {
  struct tscope_graph_record *graph =
      trace_add(writer, retained, AT(0), TSCOPE_REC_GRAPH, 0, sizeof(*graph));
  graph->graph = graph->captured = 1;
  graph->gpu_graph = gpu_graph;
}

static void write_captured(struct trace_writer *writer, u64 at, enum tscope_op op, u32 comm,
                           u32 index) {
  struct tscope_graph_collective_record *call =
      trace_add(writer, retained, AT(at), TSCOPE_REC_GRAPH_COLLECTIVE, (u16)op, sizeof(*call));
  call->captured = 1;
  call->count = 16;
  call->comm = comm;
  call->index = index;
  call->peer = -1;
}

/* A replay of graph 1 with calls on communicators 1 and 2. */
static void write_replay(struct trace_writer *writer, u64 at, u32 first) {
  struct {
    struct tscope_graph_replay_record record;
    struct tscope_graph_comm comms[2];
  } *replay = trace_add(writer, retained, AT(at), TSCOPE_REC_GRAPH_REPLAY, 1, sizeof(*replay));
  replay->record.dur = 500;
  replay->record.graph = 1;
  replay->record.comms = 2;
  replay->comms[0] = (struct tscope_graph_comm){1, first, 0, 0};
  replay->comms[1] = (struct tscope_graph_comm){2, first, 0, 0};
}

static void write_graph_run(struct trace_writer *writer, u64 at, u16 stream, u32 correlation,
                            u64 node, const char *name) {
  u32 string = trace_string(writer, name);
  struct {
    struct tscope_collective_run_record record;
    struct tscope_graph_node node;
  } *run = trace_add(writer, gpu_retained, AT(at), TSCOPE_REC_COLLECTIVE_RUN, stream, sizeof(*run));
  run->record.dur = 1000;
  run->record.comm = run->record.seq = TSCOPE_UNKNOWN;
  run->record.name = string;
  run->record.correlation = correlation;
  run->node = (struct tscope_graph_node){node, 7, 0};
}

static const char *const sum_kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
static const char *const gather_kernel = "ncclDevKernel_AllGather_RING_LL";

/* Captured: a sum on 1, a sum on 2, a gather on 1. In each of two replays the second runs first, on
 * an unknown stream. In addition there is a sum outside the graph. */
static struct model *replayed_twice(struct fixture *fixture, u64 high_half, bool lose_one) {
  struct trace_writer *writer = new_rank(0, 2);
  write_comm(writer, 1, 42, 0, 2, TSCOPE_BACKEND_NCCL);
  write_comm(writer, 2, 43, 0, 2, TSCOPE_BACKEND_NCCL);
  write_captured(writer, 1000, TSCOPE_OP_ALLREDUCE, 1, 0);
  write_captured(writer, 2000, TSCOPE_OP_ALLREDUCE, 2, 0);
  write_captured(writer, 3000, TSCOPE_OP_ALLGATHER, 1, 1);
  write_graph(writer, 7);
  for (u32 i = 0; i < 2; i++) {
    u64 at = 10000 + 40000 * i;
    write_replay(writer, at, 10 * i);
    if (!lose_one || i == 0)
      write_graph_run(writer, at + 9000, 1, 50 + i, high_half ? high_half | 2 : 0, sum_kernel);
    write_graph_run(writer, at + 5000, 9, 50 + i, high_half ? high_half | 6 : 0, sum_kernel);
    write_graph_run(writer, at + 20000, 8, 50 + i, high_half ? high_half | 9 : 0, gather_kernel);
  }
  write_call(writer, 90000, TSCOPE_OP_ALLREDUCE, 1, 30);
  write_run(writer, 95000, 1000, sum_kernel);
  save_rank(fixture, writer);
  return load(fixture->directory, NULL);
}

/* When the call with this number on a communicator ran; 0 if unknown. */
static i64 ran_at(const struct model *model, u32 comm, u32 seq) {
  const struct rank_events *events = &internal_of(model)->events[0];
  i64 first = events->calls.at[0].start;
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    if (events->comms[call->comm].comm == comm && call->seq == seq)
      return call->run == INDEX_NONE ? 0 : events->runs.at[call->run].start - first;
  }
  fail_msg("no call %u on communicator %u", seq, comm);
  return 0;
}

static void test_nodes_identify_the_kernels_of_a_replay(void **state) {
  struct model *model = replayed_twice(*state, 7ull << 32, false);
  for (u32 i = 0; i < 2; i++) {
    assert_int_equal(ran_at(model, 1, 10 * i), 40000 * i + 9000);
    assert_int_equal(ran_at(model, 2, 10 * i), 40000 * i + 5000);
    assert_int_equal(ran_at(model, 1, 10 * i + 1), 40000 * i + 20000);
  }
  assert_int_equal(ran_at(model, 1, 30), 85000);
  assert_int_equal(model->ranks[0].replayed_runs, 6);
  assert_int_equal(model->ranks[0].replayed_known, 6);
  model_free(model);
}

static void test_without_nodes_order_is_used_and_reported(void **state) {
  struct model *model = replayed_twice(*state, 0, false);
  assert_int_equal(ran_at(model, 1, 1), 20000); /* the only one of its kind */
  assert_int_equal(ran_at(model, 1, 0), 5000);  /* a guess */
  assert_int_equal(model->ranks[0].replayed_runs, 6);
  assert_int_equal(model->ranks[0].replayed_known, 0);
  model_free(model);
}

/* One of two sums was lost; it is unknown which. */
static void test_a_replay_with_a_kernel_lost_keeps_what_is_certain(void **state) {
  struct model *model = replayed_twice(*state, 7ull << 32, true);
  assert_int_equal(ran_at(model, 1, 0), 9000);
  assert_int_equal(ran_at(model, 1, 10), 0);
  assert_int_equal(ran_at(model, 2, 10), 0);
  assert_int_equal(ran_at(model, 1, 11), 60000);
  assert_int_equal(ran_at(model, 1, 30), 85000);
  assert_int_equal(model->ranks[0].replayed_known, 3);
  model_free(model);
}

/* Bus bandwidth counts the whole array; the count of an all-gather is one rank's part. */
static void test_bytes_are_of_the_whole_array(void **state) {
  struct fixture *fixture = *state;
  static const struct {
    u8 op;
    u64 bytes;
  } wanted[] = {{TSCOPE_OP_ALLREDUCE, 1024},
                {TSCOPE_OP_BROADCAST, 1024},
                {TSCOPE_OP_ALLGATHER, 4096},
                {TSCOPE_OP_REDUCE_SCATTER, 4096},
                {TSCOPE_OP_ALLTOALL, 4096}};
  struct trace_writer *writer = new_rank(0, 4);
  write_comm(writer, 1, 42, 0, 4, TSCOPE_BACKEND_NCCL);
  for (u32 i = 0; i < 5; i++)
    write_call(writer, i * 1000, wanted[i].op, 1, i);
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  for (u32 i = 0; i < 5; i++)
    assert_int_equal(model->collectives[i].bytes, wanted[i].bytes);
  assert_true(model->collectives[0].last_start == NS_UNKNOWN); /* only the host was seen */
  model_free(model);
}

static void test_disagreement_is_a_mismatch(void **state) {
  struct fixture *fixture = *state;
  for (u32 rank = 0; rank < 2; rank++) {
    struct trace_writer *writer = new_rank(rank, 2);
    write_comm(writer, 1 + rank, 42, rank, 2, TSCOPE_BACKEND_NCCL); /* numbers are per process */
    write_call(writer, 0, TSCOPE_OP_ALLREDUCE, 1 + rank, 0);
    write_call(writer, 1000, TSCOPE_OP_ALLREDUCE, 1 + rank, 1)->count = 10 + rank;
    write_call(writer, 2000, rank ? TSCOPE_OP_BROADCAST : TSCOPE_OP_ALLREDUCE, 1 + rank, 2);
    save_rank(fixture, writer);
  }
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->n_collectives, 3);
  for (u32 i = 0; i < 3; i++)
    assert_int_equal(model->collectives[i].mismatched, model->collectives[i].seq > 0);
  model_free(model);
}

/* Experts get as many tokens as the others send them. The array is that of the largest part. */
static void test_parts_of_an_all_to_all_may_differ(void **state) {
  struct fixture *fixture = *state;
  for (u32 rank = 0; rank < 4; rank++) {
    struct trace_writer *writer = new_rank(rank, 4);
    write_comm(writer, 1 + rank, 42, rank, 4, TSCOPE_BACKEND_NCCL);
    write_call(writer, 0, TSCOPE_OP_ALLTOALL, 1 + rank, 0)->count = rank == 2 ? 1024 : 64;
    write_call(writer, 1000, TSCOPE_OP_ALLTOALL, 1 + rank, 1)->dtype =
        rank ? TSCOPE_DTYPE_F32 : TSCOPE_DTYPE_F16;
    save_rank(fixture, writer);
  }
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->n_collectives, 2);
  assert_false(model->collectives[0].mismatched);
  assert_int_equal(model->collectives[0].bytes,
                   4 * 1024 * tscope_dtype_bytes(model->collectives[0].dtype));
  assert_true(model->collectives[1].mismatched);
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_counts_pair_in_order),
      cmocka_unit_test(test_effects_lost_at_the_end_shift_no_others),
      cmocka_unit_test(test_a_lost_effect_is_found_by_time),
      cmocka_unit_test(test_names_show_unseen_launches),
      WITH_FOLDER(test_every_collective_of_a_run_is_matched),
      WITH_FOLDER(test_lost_rank_and_cut_rank_leave_the_rest_whole),
      WITH_FOLDER(test_sends_meet_receives_in_order),
      WITH_FOLDER(test_communicators_without_identity),
      WITH_FOLDER(test_group_members_share_their_kernel),
      WITH_FOLDER(test_nodes_identify_the_kernels_of_a_replay),
      WITH_FOLDER(test_without_nodes_order_is_used_and_reported),
      WITH_FOLDER(test_a_replay_with_a_kernel_lost_keeps_what_is_certain),
      WITH_FOLDER(test_bytes_are_of_the_whole_array),
      WITH_FOLDER(test_disagreement_is_a_mismatch),
      WITH_FOLDER(test_parts_of_an_all_to_all_may_differ),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
