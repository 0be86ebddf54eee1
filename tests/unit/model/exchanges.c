/* SPDX-License-Identifier: MIT
 *
 * All-to-alls that programs make of sends and receives in one group, and what only looks like them.
 */
#include "format/dtypes.h"
#include "model_support.h"

#include "kernels/communication.h"
#include "model/internal.h"

enum { RANKS = 4 };

/* The calls of ranks, in order: each is a microsecond after the one before. */
struct job {
  struct fixture *fixture;
  struct trace_writer *writers[RANKS];
  u32 ranks;
  u32 transfers[RANKS], collectives[RANKS], groups[RANKS]; /* so far */
  u64 at[RANKS];
};

static struct job new_job(struct fixture *fixture, u32 ranks) {
  struct job job = {.fixture = fixture, .ranks = ranks};
  for (u32 r = 0; r < ranks; r++) {
    job.writers[r] = new_rank(r, ranks);
    write_comm(job.writers[r], 1, 42, r, ranks, TSCOPE_BACKEND_NCCL);
  }
  return job;
}

static void message(struct job *job, u32 rank, enum tscope_op op, u32 comm, u32 peer, u64 count) {
  struct tscope_collective_record *call =
      write_call(job->writers[rank], job->at[rank] += 1000, op, comm, job->transfers[rank]++);
  call->dur = 500;
  call->peer = (i32)peer;
  call->count = count;
  call->bytes = 4 * count;
  call->group = job->groups[rank];
}

static void begin_group(struct job *job, u32 rank) {
  job->groups[rank]++;
}

/* The group's messages run in one kernel. */
static void end_group(struct job *job, u32 rank) {
  struct tscope_group_record *group = trace_add(
      job->writers[rank], retained, AT(job->at[rank] += 1000), TSCOPE_REC_GROUP, 0, sizeof(*group));
  group->dur = 500;
  group->group = job->groups[rank];
  write_run(job->writers[rank], job->at[rank] += 1000, 5000, "ncclDevKernel_SendRecv");
  job->at[rank] += 5000;
}

/* As PyTorch's all_to_all_single: parts[from][to] elements, none where that is 0. */
static void exchange_of(struct job *job, u32 rank, u32 n, u64 parts[RANKS][RANKS]) {
  for (u32 peer = 0; peer < n; peer++) {
    if (parts[rank][peer])
      message(job, rank, TSCOPE_OP_SEND, 1, peer, parts[rank][peer]);
    if (parts[peer][rank])
      message(job, rank, TSCOPE_OP_RECV, 1, peer, parts[peer][rank]);
  }
}

static void exchange(struct job *job, u64 parts[RANKS][RANKS]) {
  for (u32 r = 0; r < RANKS; r++) {
    u64 all = 0;
    for (u32 peer = 0; peer < RANKS; peer++)
      all += parts[r][peer] + parts[peer][r];
    if (!all)
      continue; /* its group is empty: no call, no kernel */
    begin_group(job, r);
    exchange_of(job, r, RANKS, parts);
    end_group(job, r);
  }
}

static void all_reduce(struct job *job, u32 rank) {
  write_call(job->writers[rank], job->at[rank] += 1000, TSCOPE_OP_ALLREDUCE, 1,
             job->collectives[rank]++);
  write_run(job->writers[rank], job->at[rank] += 1000, 1000, "ncclDevKernel_AllReduce_Sum_f32");
  job->at[rank] += 1000;
}

static struct model *run(struct job *job) {
  for (u32 r = 0; r < job->ranks; r++)
    save_rank(job->fixture, job->writers[r]);
  return load(job->fixture->directory, NULL);
}

static u32 count_of(const struct model *model, u8 op) {
  u32 n = 0;
  for (u32 c = 0; c < model->n_collectives; c++)
    n += model->collectives[c].op == op;
  return n;
}

static const struct collective *numbered(const struct model *model, u32 seq) {
  for (u32 c = 0; c < model->n_collectives; c++)
    if (model->collectives[c].seq == seq && !op_is_message(model->collectives[c].op))
      return &model->collectives[c];
  fail_msg("no collective %u", seq);
  return NULL;
}

/* Tokens differ, and some parts are empty. Rank 2 gets most: 100 + 300 + 50 from the others. */
static u64 uneven[RANKS][RANKS] = {
    {10, 20, 100, 0}, {30, 10, 300, 40}, {0, 60, 500, 70}, {5, 0, 50, 0}};
static u64 even[RANKS][RANKS] = {{8, 8, 8, 8}, {8, 8, 8, 8}, {8, 8, 8, 8}, {8, 8, 8, 8}};

static void test_an_exchange_is_one_collective(void **state) {
  struct job job = new_job(*state, RANKS);
  exchange(&job, uneven);
  exchange(&job, even);
  struct model *model = run(&job);
  assert_int_equal(model->n_collectives, 2);
  assert_int_equal(model->n_arrivals, 2 * RANKS);
  for (u32 c = 0; c < 2; c++) {
    const struct collective *one = numbered(model, c);
    assert_int_equal(one->op, TSCOPE_OP_ALLTOALL);
    assert_int_equal(one->n_arrivals, RANKS);
    assert_true(one->complete && !one->mismatched);
    for (u32 r = 0; r < RANKS; r++) {
      const struct arrival *arrival = &model->arrivals[one->first_arrival + r];
      assert_int_equal(arrival->rank, r);
      assert_int_equal(arrival->end - arrival->start, 5000);
      assert_true(arrival->call_start < arrival->call_end && arrival->call_end < arrival->start);
    }
  }
  /* what the busiest rank takes, 450 elements, is 3/4 of it: so bus bandwidth is that of its link
   */
  assert_int_equal(numbered(model, 0)->bytes * 3 / 4, 450 * 4);
  assert_int_equal(numbered(model, 1)->bytes, 8 * RANKS * 4);
  model_free(model);
}

static void test_exchanges_have_numbers_between_those_of_collectives(void **state) {
  static const u8 wanted[] = {TSCOPE_OP_ALLREDUCE, TSCOPE_OP_ALLTOALL, TSCOPE_OP_ALLTOALL,
                              TSCOPE_OP_ALLREDUCE, TSCOPE_OP_ALLTOALL, TSCOPE_OP_ALLREDUCE};
  struct job job = new_job(*state, RANKS);
  for (u32 i = 0; i < 6; i++) {
    if (wanted[i] == TSCOPE_OP_ALLTOALL)
      exchange(&job, i == 2 ? uneven : even);
    else
      for (u32 r = 0; r < RANKS; r++)
        all_reduce(&job, r);
  }
  struct model *model = run(&job);
  assert_int_equal(model->n_collectives, 6);
  for (u32 i = 0; i < 6; i++) {
    assert_int_equal(numbered(model, i)->op, wanted[i]);
    assert_true(numbered(model, i)->complete);
  }
  model_free(model);
}

/* A rank that has nothing to give or to take has no messages: the others are all members. */
static void test_who_exchanges_nothing_is_no_member(void **state) {
  static u64 without_3[RANKS][RANKS] = {{1, 2, 3, 0}, {4, 5, 6, 0}, {7, 8, 9, 0}, {0}};
  struct job job = new_job(*state, RANKS);
  exchange(&job, even);
  exchange(&job, without_3);
  exchange(&job, even);
  struct model *model = run(&job);
  assert_int_equal(model->n_collectives, 3);
  assert_int_equal(numbered(model, 1)->n_arrivals, 3);
  for (u32 i = 0; i < 3; i++)
    assert_true(numbered(model, i)->complete && numbered(model, i)->op == TSCOPE_OP_ALLTOALL);
  model_free(model);
}

static void test_spans_of_an_exchange_lead_to_it(void **state) {
  struct job job = new_job(*state, RANKS);
  exchange(&job, uneven);
  for (u32 r = 0; r < RANKS; r++)
    all_reduce(&job, r);
  struct model *model = run(&job);
  struct timeline timeline;
  u32 seen = 0;
  assert_int_equal(timeline_load(model, 2, &timeline), 0);
  for (u32 i = 0; i < timeline.n_spans; i++) {
    const struct span *span = &timeline.spans[i];
    if (span->kind != SPAN_COLLECTIVE)
      continue;
    const struct arrival *arrival = &model->arrivals[span->link];
    assert_int_equal(arrival->rank, 2);
    assert_int_equal(arrival->op, seen++ ? TSCOPE_OP_ALLREDUCE : TSCOPE_OP_ALLTOALL);
    assert_true(arrival->start == span->start);
  }
  assert_int_equal(seen, 2);
  timeline_release(&timeline);
  model_free(model);
}

/* Rank 1 has not come, and its trace is there: all members wait for it. */
static void test_who_has_not_come_is_missing(void **state) {
  struct job job = new_job(*state, RANKS);
  exchange(&job, even);
  for (u32 r = 0; r < RANKS; r++) {
    if (r == 1)
      continue;
    begin_group(&job, r);
    exchange_of(&job, r, RANKS, even);
  }
  struct model *model = run(&job);
  assert_int_equal(count_of(model, TSCOPE_OP_ALLTOALL), 2);
  assert_int_equal(model->n_collectives, 2);
  assert_true(numbered(model, 0)->complete);
  assert_false(numbered(model, 1)->complete);
  assert_int_equal(numbered(model, 1)->n_arrivals, 3);
  model_free(model);
}

/* Whether rank 3 has nothing to exchange, or has not come, cannot be told while 1 is awaited. */
static void test_an_unfinished_exchange_accuses_no_bystander(void **state) {
  static u64 without_3[RANKS][RANKS] = {{1, 2, 3, 0}, {4, 5, 6, 0}, {7, 8, 9, 0}, {0}};
  struct job job = new_job(*state, RANKS);
  exchange(&job, even);
  for (u32 r = 0; r < 3; r += 2) {
    begin_group(&job, r);
    exchange_of(&job, r, RANKS, without_3);
  }
  struct model *model = run(&job);
  assert_int_equal(count_of(model, TSCOPE_OP_ALLTOALL), 1);
  assert_true(count_of(model, TSCOPE_OP_SEND) > 0);
  model_free(model);
}

/* The trace of a rank was lost: the others' exchanges are what they are. */
static void test_a_rank_without_a_trace_hides_nothing(void **state) {
  struct job job = new_job(*state, RANKS);
  for (u32 i = 0; i < 3; i++)
    exchange(&job, i == 1 ? uneven : even);
  trace_writer_free(job.writers[3]);
  job.ranks = 3;
  struct model *model = run(&job);
  assert_int_equal(model->n_collectives, 3);
  for (u32 i = 0; i < 3; i++) {
    assert_int_equal(numbered(model, i)->op, TSCOPE_OP_ALLTOALL);
    assert_int_equal(numbered(model, i)->n_arrivals, 3);
    assert_false(numbered(model, i)->complete);
  }
  model_free(model);
}

/* Each sends to all others, and copies its own part. */
static void test_a_full_exchange_needs_no_message_to_itself(void **state) {
  static u64 parts[RANKS][RANKS] = {{0, 1, 2, 3}, {4, 0, 5, 6}, {7, 8, 0, 9}, {1, 2, 3, 0}};
  struct job job = new_job(*state, RANKS);
  exchange(&job, parts);
  struct model *model = run(&job);
  assert_int_equal(model->n_collectives, 1);
  assert_int_equal(numbered(model, 0)->op, TSCOPE_OP_ALLTOALL);
  model_free(model);
}

/* Two ranks: only the message to itself distinguishes an exchange from neighbours in a pipeline. */
static void test_two_ranks(void **state) {
  for (u64 own = 0; own < 2; own++) {
    struct fixture *fixture;
    u64 parts[RANKS][RANKS] = {{own, 10}, {20, own}};
    assert_int_equal(make_fixture((void **)&fixture), 0);
    struct job job = new_job(fixture, 2);
    for (u32 r = 0; r < 2; r++) {
      begin_group(&job, r);
      exchange_of(&job, r, 2, parts);
      end_group(&job, r);
    }
    struct model *model = run(&job);
    assert_int_equal(count_of(model, TSCOPE_OP_ALLTOALL), own);
    assert_int_equal(count_of(model, TSCOPE_OP_SEND), own ? 0 : 2);
    model_free(model);
    drop_fixture((void **)&fixture);
  }
  (void)state;
}

/* Of one group on two communicators each has its own exchange: here pairs of experts in both. */
static void test_each_communicator_of_a_group_has_its_own(void **state) {
  struct job job = new_job(*state, RANKS);
  for (u32 r = 0; r < RANKS; r++) {
    u32 of = r % 2, pair = r / 2;
    write_comm(job.writers[r], 2, 100 + pair, of, 2, TSCOPE_BACKEND_NCCL);
    begin_group(&job, r);
    exchange_of(&job, r, RANKS, even);
    for (u32 peer = 0; peer < 2; peer++) {
      message(&job, r, TSCOPE_OP_SEND, 2, peer, 5);
      message(&job, r, TSCOPE_OP_RECV, 2, peer, 5);
    }
    end_group(&job, r);
    write_run(job.writers[r], job.at[r] += 1000, 2000, "ncclDevKernel_SendRecv");
  }
  struct model *model = run(&job);
  assert_int_equal(model->n_collectives, 3);
  assert_int_equal(count_of(model, TSCOPE_OP_ALLTOALL), 3);
  for (u32 c = 0; c < 3; c++) {
    const struct collective *one = &model->collectives[c];
    const struct arrival *first = &model->arrivals[one->first_arrival];
    u32 size = model->comms[one->comm].size;
    assert_true(one->complete && one->n_arrivals == size);
    assert_int_equal(first->end - first->start, size == RANKS ? 5000 : 2000);
  }
  model_free(model);
}

/* What is no all-to-all: from[i] sends to to[i], each rank's messages in one group. */

static const struct pattern {
  const char *what;
  u32 messages, from[8], to[8];
} patterns[] = {
    {"neighbours in a pipeline", 6, {0, 1, 1, 2, 2, 3}, {1, 0, 2, 1, 3, 2}},
    {"a ring", 4, {0, 1, 2, 3}, {1, 2, 3, 0}},
    {"a halo with wrap-around", 8, {0, 1, 1, 2, 2, 3, 3, 0}, {1, 0, 2, 1, 3, 2, 0, 3}},
    {"a scatter, with the root's own part", 4, {0, 0, 0, 0}, {0, 1, 2, 3}},
    {"a gather, with the root's own part", 4, {0, 1, 2, 3}, {2, 2, 2, 2}},
    {"one pair of four that sends both ways", 2, {1, 2}, {2, 1}},
};

static void test_what_is_no_all_to_all_stays_messages(void **state) {
  for (u32 p = 0; p < LENGTH_OF(patterns); p++) {
    const struct pattern *pattern = &patterns[p];
    struct fixture *fixture;
    u64 parts[RANKS][RANKS] = {0};
    assert_int_equal(make_fixture((void **)&fixture), 0);
    struct job job = new_job(fixture, RANKS);
    for (u32 i = 0; i < pattern->messages; i++)
      parts[pattern->from[i]][pattern->to[i]] = 7;
    exchange(&job, parts);
    exchange(&job, parts);
    struct model *model = run(&job);
    if (count_of(model, TSCOPE_OP_SEND) != 2 * pattern->messages)
      fail_msg("%s: %u messages", pattern->what, count_of(model, TSCOPE_OP_SEND));
    assert_int_equal(model->n_collectives, 2 * pattern->messages);
    model_free(model);
    drop_fixture((void **)&fixture);
  }
  (void)state;
}

/* One message outside of groups among them: they are not one exchange. */
static void test_a_message_outside_the_group_is_not_overlooked(void **state) {
  struct job job = new_job(*state, RANKS);
  for (u32 r = 0; r < RANKS; r++) {
    begin_group(&job, r);
    exchange_of(&job, r, RANKS, even);
    end_group(&job, r);
  }
  job.groups[0] = 0;
  message(&job, 0, TSCOPE_OP_SEND, 1, 1, 8);
  begin_group(&job, 1);
  message(&job, 1, TSCOPE_OP_RECV, 1, 0, 8);
  end_group(&job, 1);
  struct model *model = run(&job);
  assert_int_equal(count_of(model, TSCOPE_OP_ALLTOALL), 1);
  assert_int_equal(count_of(model, TSCOPE_OP_SEND), 1);
  model_free(model);
}

static void capture(struct job *job, u32 rank, enum tscope_op op, u32 peer, u32 index) {
  struct tscope_graph_collective_record *call =
      trace_add(job->writers[rank], retained, AT(job->at[rank] += 1000),
                TSCOPE_REC_GRAPH_COLLECTIVE, (u16)op, sizeof(*call));
  call->captured = 1;
  call->count = 16;
  call->bytes = 64;
  call->comm = 1;
  call->index = index;
  call->peer = (i32)peer;
  call->group = 3;
  call->dtype = TSCOPE_DTYPE_F32;
}

static void test_each_replay_of_a_graph_is_an_exchange(void **state) {
  struct job job = new_job(*state, RANKS);
  for (u32 r = 0; r < RANKS; r++) {
    u32 index = 0;
    for (u32 peer = 0; peer < RANKS; peer++) {
      capture(&job, r, TSCOPE_OP_SEND, peer, index++);
      capture(&job, r, TSCOPE_OP_RECV, peer, index++);
    }
    struct tscope_graph_record *graph = trace_add(job.writers[r], retained, AT(job.at[r] += 1000),
                                                  TSCOPE_REC_GRAPH, 0, sizeof(*graph));
    graph->graph = graph->captured = 1;
    for (u32 i = 0; i < 3; i++) {
      struct {
        struct tscope_graph_replay_record record;
        struct tscope_graph_comm comm;
      } *replay = trace_add(job.writers[r], retained, AT(job.at[r] += 100000),
                            TSCOPE_REC_GRAPH_REPLAY, 1, sizeof(*replay));
      replay->record.dur = 500;
      replay->record.graph = 1;
      replay->record.comms = 1;
      replay->comm = (struct tscope_graph_comm){1, 0, i * index, 0};
      write_run(job.writers[r], job.at[r] + 2000, 5000, "ncclDevKernel_SendRecv");
    }
  }
  struct model *model = run(&job);
  assert_int_equal(model->n_collectives, 3);
  for (u32 i = 0; i < 3; i++) {
    const struct collective *one = numbered(model, i);
    assert_int_equal(one->op, TSCOPE_OP_ALLTOALL);
    assert_true(one->complete && one->n_arrivals == RANKS);
    assert_int_equal(one->bytes, 16 * 4 * RANKS);
  }
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(test_an_exchange_is_one_collective),
      WITH_FOLDER(test_exchanges_have_numbers_between_those_of_collectives),
      WITH_FOLDER(test_who_exchanges_nothing_is_no_member),
      WITH_FOLDER(test_spans_of_an_exchange_lead_to_it),
      WITH_FOLDER(test_who_has_not_come_is_missing),
      WITH_FOLDER(test_an_unfinished_exchange_accuses_no_bystander),
      WITH_FOLDER(test_a_rank_without_a_trace_hides_nothing),
      WITH_FOLDER(test_a_full_exchange_needs_no_message_to_itself),
      cmocka_unit_test(test_two_ranks),
      WITH_FOLDER(test_each_communicator_of_a_group_has_its_own),
      cmocka_unit_test(test_what_is_no_all_to_all_stays_messages),
      WITH_FOLDER(test_a_message_outside_the_group_is_not_overlooked),
      WITH_FOLDER(test_each_replay_of_a_graph_is_an_exchange),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
