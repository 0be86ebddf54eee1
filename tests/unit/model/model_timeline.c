/* SPDX-License-Identifier: MIT
 *
 * Decodes one rank: checks every nanosecond of compute and communication, and the dependencies.
 */
#include "model_support.h"

#include "base/parallel.h"

static u64 total(const struct intervals *set) {
  u64 sum = 0;
  for (u32 i = 0; i < set->n; i++) {
    assert_true(set->at[i].start < set->at[i].end);
    assert_true(i == 0 || set->at[i - 1].end < set->at[i].start);
    sum += (u64)(set->at[i].end - set->at[i].start);
  }
  return sum;
}

static void check_sorted(const struct timeline *timeline) {
  for (u32 i = 1; i < timeline->n_spans; i++) {
    const struct span *a = &timeline->spans[i - 1], *b = &timeline->spans[i];
    assert_true(a->start < b->start || (a->start == b->start && a->end >= b->end));
  }
  for (u32 i = 1; i < timeline->n_edges; i++) {
    const struct edge *a = &timeline->edges[i - 1], *b = &timeline->edges[i];
    assert_true(a->to < b->to || (a->to == b->to && a->from < b->from));
  }
}

static void test_gpu_job_is_decoded_to_the_nanosecond(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  struct model *model = generate(*state, &options, &truth);
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct timeline timeline;
    assert_int_equal(timeline_load(model, r, &timeline), 0);
    check_sorted(&timeline);
    assert_true(timeline.on_gpu && timeline.has_compute && timeline.has_comm &&
                timeline.has_memcpy);
    assert_int_equal(total(&timeline.compute), truth.ranks[r].compute_ns);
    assert_int_equal(total(&timeline.comm), truth.ranks[r].comm_ns);
    assert_int_equal(total(&timeline.memcpy), options.steps * options.copy_ns);
    u32 kernels = options.steps * (2 * options.buckets * options.kernels + 1);
    assert_int_equal(count_kind(&timeline, SPAN_KERNEL), kernels);
    assert_int_equal(count_kind(&timeline, SPAN_COLLECTIVE), options.steps * options.buckets);
    for (u32 i = 0; i < timeline.n_spans; i++) {
      const struct span *span = &timeline.spans[i];
      if (!SPAN_ON_DEVICE(span->kind))
        continue;
      const struct span *launch = &timeline.spans[span->launch];
      assert_int_equal(launch->link, i);
      assert_true(launch->start <= span->start);
      assert_true(timeline.lanes[span->lane].device && !timeline.lanes[launch->lane].device);
      if (span->kind == SPAN_KERNEL)
        assert_string_equal(timeline_name(&timeline, span->name),
                            timeline_name(&timeline, launch->name));
      if (span->kind == SPAN_COLLECTIVE)
        assert_int_equal(model->arrivals[span->link].end, span->end);
    }
    timeline_release(&timeline);
  }
  model_free(model);
  tracegen_truth_free(&truth);
}

/* The rules of the schedule: the all-reduce of a bucket waits for the kernel before it, the
 * optimizer for the last all-reduce, and the host for the optimizer. */
static void test_edges_say_who_waits_for_whom(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  struct model *model = generate(*state, &options, &truth);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 1, &timeline), 0);
  u32 to_collective = 0, to_optimizer = 0, to_sync = 0;
  for (u32 i = 0; i < timeline.n_edges; i++) {
    const struct span *from = &timeline.spans[timeline.edges[i].from];
    const struct span *to = &timeline.spans[timeline.edges[i].to];
    const char *name = timeline_name(&timeline, to->name);
    assert_true(from->end <= (SPAN_ON_DEVICE(to->kind) ? to->start : to->end));
    to_collective += from->kind == SPAN_KERNEL && to->kind == SPAN_COLLECTIVE;
    to_optimizer += from->kind == SPAN_COLLECTIVE && strcmp(name, "multi_tensor_adam") == 0;
    to_sync += to->kind == SPAN_SYNC &&
               strcmp(timeline_name(&timeline, from->name), "multi_tensor_adam") == 0;
  }
  assert_int_equal(to_collective, options.steps * options.buckets);
  assert_int_equal(to_optimizer, options.steps);
  assert_int_equal(to_sync, options.steps);
  assert_int_equal(timeline.n_edges, to_collective + to_optimizer + to_sync);
  timeline_release(&timeline);
  model_free(model);
  tracegen_truth_free(&truth);
}

static void test_cpu_job_computes_where_it_does_not_wait(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.flavour = TRACEGEN_GLOO;
  options.phases = true;
  options.slow_rank = 2;
  struct model *model = generate(*state, &options, &truth);
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct timeline timeline;
    assert_int_equal(timeline_load(model, r, &timeline), 0);
    check_sorted(&timeline);
    assert_true(!timeline.on_gpu && timeline.has_compute && timeline.has_comm);
    /* times in the file are in units of 1.6 ns */
    u64 edges = 8 * options.steps;
    assert_in_range(total(&timeline.compute), truth.ranks[r].compute_ns - 2 * edges,
                    truth.ranks[r].compute_ns + 2 * edges);
    assert_in_range(total(&timeline.comm), truth.ranks[r].comm_ns - 2 * edges,
                    truth.ranks[r].comm_ns + 2 * edges);
    u32 waits = count_kind(&timeline, SPAN_COMM_WAIT);
    assert_true(waits > 0);
    assert_int_equal(timeline.n_edges, waits); /* each ends with a collective */
    timeline_release(&timeline);
  }
  model_free(model);
  tracegen_truth_free(&truth);
}

static void test_without_gpu_time_nothing_is_invented(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.gpu_spans = false;
  struct model *model = generate(*state, &options, &truth);
  struct timeline timeline;
  assert_int_equal(model->ranks[0].collective_runs, 0);
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  assert_true(timeline.on_gpu);
  assert_false(timeline.has_compute || timeline.has_comm || timeline.has_memcpy);
  assert_int_equal(timeline.compute.n + timeline.comm.n + timeline.memcpy.n, 0);
  timeline_release(&timeline);
  model_free(model);
  tracegen_truth_free(&truth);
}

/* One copy whose call takes 50 us, and that runs for so long from 9 us after the call's beginning.
 */
static struct model *trace_with_copy(struct fixture *fixture, u32 flags, u32 runs_ns) {
  struct trace_writer *writer = new_rank(0, 1);
  struct tscope_memcpy_record *copy =
      trace_add(writer, in_ring, AT(1000), TSCOPE_REC_MEMCPY, 3, sizeof(*copy));
  copy->dur = 50000;
  copy->kind = TSCOPE_MEMCPY_D2H | flags;
  copy->bytes = 64;
  struct tscope_gpu_memcpy_record *ran =
      trace_add(writer, on_gpu, AT(10000), TSCOPE_REC_GPU_MEMCPY, 3, sizeof(*ran));
  ran->dur = runs_ns;
  ran->kind = TSCOPE_MEMCPY_D2H;
  ran->bytes = 64;
  save_rank(fixture, writer);
  return load(fixture->directory, NULL);
}

static void copy_waits_for_itself(struct fixture *fixture, u32 flags) {
  struct model *model = trace_with_copy(fixture, flags, 40000);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  assert_int_equal(timeline.n_spans, 3);
  assert_int_equal(timeline.spans[0].kind, SPAN_LAUNCH);
  assert_int_equal(timeline.spans[0].link, 2);
  assert_int_equal(timeline.spans[1].kind, SPAN_SYNC);
  assert_int_equal(timeline.spans[1].end - timeline.spans[0].start, 50000);
  assert_int_equal(timeline.n_edges, 1);
  assert_int_equal(timeline.edges[0].from, 2);
  assert_int_equal(timeline.edges[0].to, 1);
  timeline_release(&timeline);
  model_free(model);
}

/* A blocking copy launches and then waits for the copy itself. */
static void test_blocking_copy_waits_for_itself(void **state) {
  copy_waits_for_itself(*state, 0);
}

/* So does an asynchronous one from or to memory that is not pinned: its call lasts until the copy
 * has ended. */
static void test_asynchronous_copy_may_block(void **state) {
  copy_waits_for_itself(*state, TSCOPE_MEMCPY_ASYNC);
}

/* A call that takes long, because the stream's queue is full, and returns before the copy ends. */
static void test_asynchronous_copy_waits_for_nothing(void **state) {
  struct model *model = trace_with_copy(*state, TSCOPE_MEMCPY_ASYNC, 90000);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  assert_int_equal(timeline.n_spans, 2);
  assert_int_equal(timeline.n_edges, 0);
  assert_int_equal(timeline.spans[0].end - timeline.spans[0].start, 50000);
  timeline_release(&timeline);
  model_free(model);
}

static void add_launch(struct trace_writer *writer, u64 at, u32 shape) {
  struct tscope_launch_record *launch =
      trace_add(writer, in_ring, AT(at), TSCOPE_REC_LAUNCH, 0, sizeof(*launch));
  launch->dur = 1000;
  launch->shape = shape;
}

static void add_named_kernel(struct trace_writer *writer, u64 at, u32 dur, u32 name) {
  struct tscope_gpu_kernel_record *kernel =
      trace_add(writer, on_gpu, AT(at), TSCOPE_REC_GPU_KERNEL, 0, sizeof(*kernel));
  kernel->dur = dur;
  kernel->name = name;
}

static void add_shape(struct trace_writer *writer, u32 number, u32 kernel) {
  struct tscope_shape_record *shape =
      trace_add(writer, retained, AT(0), TSCOPE_REC_SHAPE, 0, sizeof(*shape));
  shape->shape = number;
  shape->kernel = kernel;
}

/* Without a GPU it computes in all phases of training, not in loading nor in ranges of the user. */
static void test_a_cpu_job_computes_in_phases_of_training(void **state) {
  static const u8 kinds[] = {TSCOPE_PHASE_DATA,      TSCOPE_PHASE_FORWARD,   TSCOPE_PHASE_BACKWARD,
                             TSCOPE_PHASE_OPTIMIZER, TSCOPE_PHASE_ZERO_GRAD, TSCOPE_PHASE_USER};
  struct fixture *fixture = *state;
  struct trace_writer *writer = new_rank(0, 1);
  for (u32 i = 0; i < LENGTH_OF(kinds); i++) {
    struct tscope_phase_record *phase =
        trace_add(writer, retained, AT(i * 1000000), TSCOPE_REC_PHASE, kinds[i], sizeof(*phase));
    phase->dur = 100000u << i;
  }
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  assert_int_equal(total(&timeline.compute), 100000 * (2 + 4 + 8 + 16));
  timeline_release(&timeline);
  model_free(model);
}

/* A host that launches a kernel which notifies, makes no call, and goes on as it ends, waits for
 * it: the first time. The second time it goes on long before, and the third kernel computes. */
static void test_a_host_may_wait_without_a_call(void **state) {
  struct fixture *fixture = *state;
  struct trace_writer *writer = new_rank(0, 1);
  trace_string(writer, "_ZN7deep_ep9internode15notify_dispatchILb0ELi8EEEvPKiPii");
  trace_string(writer, "compute");
  add_shape(writer, 1, 1);
  add_shape(writer, 2, 2);
  add_launch(writer, 1000, 1);
  add_named_kernel(writer, 3000, 400000, 1); /* until 403000 */
  add_launch(writer, 410000, 2);
  add_named_kernel(writer, 412000, 100000, 2);
  add_launch(writer, 520000, 1);
  add_named_kernel(writer, 522000, 400000, 1);
  add_launch(writer, 600000, 2);
  add_named_kernel(writer, 922000, 300000, 2);
  add_launch(writer, 1225000, 2);
  add_named_kernel(writer, 1227000, 1000, 2);
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  check_sorted(&timeline);
  assert_int_equal(count_kind(&timeline, SPAN_SYNC), 1);
  assert_int_equal(timeline.n_edges, 1);
  const struct span *kernel = &timeline.spans[timeline.edges[0].from];
  const struct span *wait = &timeline.spans[timeline.edges[0].to];
  i64 origin = timeline.spans[0].start - 1000;
  assert_int_equal(wait->kind, SPAN_SYNC);
  assert_int_equal(wait->start, origin + 2000);
  assert_int_equal(wait->end, origin + 410000);
  assert_int_equal(kernel->end, origin + 403000);
  for (u32 i = 0; i < timeline.n_spans; i++) /* what is linked stays linked */
    if (timeline.spans[i].kind == SPAN_LAUNCH)
      assert_int_equal(timeline.spans[timeline.spans[i].link].launch, i);
  timeline_release(&timeline);
  model_free(model);
}

/* A replay in each of four steps: 40 fills and a kernel under the replay's call, and after it a
 * kernel that the host launches itself. Fills do not say that they were in a graph. */
static void test_fills_of_a_replay_are_no_launchs_work(void **state) {
  enum { STEPS = 4, FILLS = 40, STEP = 1000000 };
  struct fixture *fixture = *state;
  struct trace_writer *writer = new_rank(0, 1);
  trace_string(writer, "own");
  trace_string(writer, "replayed");
  add_shape(writer, 1, 1);
  for (u64 at = 0, call = 100; at < STEPS * STEP; at += STEP, call += 2) {
    struct tscope_graph_launch_record *replay =
        trace_add(writer, in_ring, AT(at), TSCOPE_REC_GRAPH_LAUNCH, 0, sizeof(*replay));
    *replay =
        (struct tscope_graph_launch_record){.header = replay->header, .dur = 1000, .graph = 1};
    add_launch(writer, at + 2000, 1);
    struct tscope_gpu_kernel_record *inside =
        trace_add(writer, on_gpu, AT(at + 5000), TSCOPE_REC_GPU_KERNEL, 0, sizeof(*inside));
    *inside = (struct tscope_gpu_kernel_record){
        .header = inside->header, .dur = 900, .name = 2, .correlation = (u32)call, .graph = 5};
    for (u64 i = 1; i <= FILLS; i++) {
      struct tscope_gpu_memset_record *fill = trace_add(writer, on_gpu, AT(at + 5000 + 1000 * i),
                                                        TSCOPE_REC_GPU_MEMSET, 0, sizeof(*fill));
      *fill = (struct tscope_gpu_memset_record){
          .header = fill->header, .dur = 900, .correlation = (u32)call, .bytes = 64};
    }
    add_named_kernel(writer, at + 400000, 900, 1);
  }
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  u32 own = 0;
  for (u32 i = 0; i < timeline.n_spans; i++) {
    const struct span *span = &timeline.spans[i];
    if (span->kind != SPAN_KERNEL || span->start - timeline.spans[0].start != own * STEP + 400000)
      continue;
    assert_int_not_equal(span->launch, INDEX_NONE);
    assert_int_equal(timeline.spans[span->launch].start - timeline.spans[0].start,
                     own++ * STEP + 2000);
  }
  assert_int_equal(own, STEPS);
  timeline_release(&timeline);
  model_free(model);
}

/* The ring dropped the first chunk: the timeline says from when on it is complete. The header has
 * counted its records, unless the process was killed just before; so many were lost beside them. */
static void overwritten_ring_records_are_reported(struct fixture *fixture, bool counted,
                                                  u64 singly) {
  struct trace_writer *writer = new_rank(0, 1);
  for (u32 i = 0; i < 10000; i++)
    trace_add(writer, in_ring, AT(1000 * i), TSCOPE_REC_LAUNCH, 0,
              sizeof(struct tscope_launch_record));
  size_t bytes;
  u8 *data = (u8 *)(uintptr_t)trace_writer_data(writer, &bytes);
  struct tscope_chunk_header *first = (void *)(data + TSCOPE_HEADER_BYTES);
  u64 lost = first->committed >> 32;
  first->committed = 0;
  first->given_up_empty = lost;
  first->given_up_as = TSCOPE_LOSS_RING;
  trace_writer_header(writer)->lost_singly = singly;
  trace_writer_header(writer)->lost[TSCOPE_LOSS_RING] = singly + (counted ? lost : 0);
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  assert_int_equal(model->ranks[0].lost[TSCOPE_LOSS_RING], lost + singly);
  assert_int_equal(timeline.n_spans, 10000 - lost);
  assert_int_equal(timeline.ring_begin, timeline.spans[0].start);
  timeline_release(&timeline);
  model_free(model);
}

static void test_overwritten_ring_records_are_reported(void **state) {
  overwritten_ring_records_are_reported(*state, true, 0);
}

static void test_records_given_up_at_the_kill_are_reported(void **state) {
  overwritten_ring_records_are_reported(*state, false, 0);
  overwritten_ring_records_are_reported(*state, false, 5000);
}

static u32 loaded; /* ranks */

static void load_one(void *user, u32 rank, unsigned worker) {
  struct timeline timeline;
  (void)worker;
  if (timeline_load(user, rank, &timeline) < 0)
    return;
  __atomic_fetch_add(&loaded, 1, __ATOMIC_RELAXED);
  timeline_release(&timeline);
}

static void test_timelines_load_in_parallel(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.ranks = 16;
  options.steps = 5;
  struct model *model = generate(*state, &options, &truth);
  parallel_for(model->n_ranks, 8, load_one, model);
  assert_int_equal(loaded, options.ranks);
  struct timeline timeline;
  assert_true(timeline_load(model, 16, &timeline) < 0);
  model_free(model);
  tracegen_truth_free(&truth);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(test_gpu_job_is_decoded_to_the_nanosecond),
      WITH_FOLDER(test_edges_say_who_waits_for_whom),
      WITH_FOLDER(test_cpu_job_computes_where_it_does_not_wait),
      WITH_FOLDER(test_a_cpu_job_computes_in_phases_of_training),
      WITH_FOLDER(test_without_gpu_time_nothing_is_invented),
      WITH_FOLDER(test_blocking_copy_waits_for_itself),
      WITH_FOLDER(test_asynchronous_copy_may_block),
      WITH_FOLDER(test_asynchronous_copy_waits_for_nothing),
      WITH_FOLDER(test_a_host_may_wait_without_a_call),
      WITH_FOLDER(test_fills_of_a_replay_are_no_launchs_work),
      WITH_FOLDER(test_overwritten_ring_records_are_reported),
      WITH_FOLDER(test_records_given_up_at_the_kill_are_reported),
      WITH_FOLDER(test_timelines_load_in_parallel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
