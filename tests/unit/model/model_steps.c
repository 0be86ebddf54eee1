/* SPDX-License-Identifier: MIT
 *
 * Steps are found at the right places and counted right.
 */
#include <math.h>

#include "model_support.h"

#include "join/leave_times_out.h"

/* The largest difference between the begins of the model's steps and the true ones, relative to the
 * first step: the mark of a step may have a constant offset on all ranks, but the length must be
 * right. */
static double length_error_us(const struct model *model, const struct tracegen_options *options,
                              const struct tracegen_truth *truth) {
  double worst = 0;
  for (u32 s = 1; s < model->steps.n; s++)
    for (u32 r = 0; r < model->n_ranks; r++) {
      const u64 *begin = truth->step_begin + (size_t)s * options->ranks + r;
      size_t cell = (size_t)s * model->n_ranks + r;
      double found = (double)(model->steps.end[cell] - model->steps.begin[cell]);
      worst = fmax(worst, fabs(found - (double)(begin[options->ranks] - begin[0])) / 1e3);
    }
  return worst;
}

static void test_steps_of_a_gpu_job_without_annotation(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.steps = 30;
  options.buckets = 12; /* eleven are equal, one has another size */
  struct model *model = generate(*state, &options, &truth);
  assert_string_equal(model->steps.method, "collective period");
  assert_int_equal(model->steps.n, 30);
  assert_int_equal(model->steps.warmup, 1);
  assert_true(model->steps.confidence > 0.99);
  /* steps are bounded by ends that differ by up to 3 us */
  assert_true(length_error_us(model, &options, &truth) < 2 * 3.1);
  for (u32 c = 0; c < model->n_collectives; c++)
    assert_int_equal(model->collectives[c].step, model->collectives[c].seq / 12);
  model_free(model);
  tracegen_truth_free(&truth);
}

static void test_steps_from_optimizer_ranges(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.flavour = TRACEGEN_GLOO;
  options.phases = true;
  struct model *model = generate(*state, &options, &truth);
  assert_string_equal(model->steps.method, "optimizer phases");
  assert_int_equal(model->steps.n, options.steps);
  assert_true(length_error_us(model, &options, &truth) < 0.1);
  for (u32 c = 0; c < model->n_collectives; c++)
    assert_int_equal(model->collectives[c].step, model->collectives[c].seq / options.buckets);
  model_free(model);
  tracegen_truth_free(&truth);
}

static void add_phase(struct trace_writer *writer, u64 at, u64 dur, u16 kind, u32 name) {
  struct tscope_phase_record *phase =
      trace_add(writer, retained, at, TSCOPE_REC_PHASE, kind, sizeof(*phase));
  phase->dur = dur;
  phase->name = name;
}

/* Each of three parameters takes its step inside of the backward pass: one step of the job. */
static void test_optimizers_inside_the_backward_pass_are_one_step(void **state) {
  struct fixture *fixture = *state;
  for (u32 r = 0; r < 2; r++) {
    struct trace_writer *writer = new_rank(r, 2);
    u32 name = trace_string(writer, "Optimizer.step#SGD.step");
    for (u32 i = 0; i < 20; i++) {
      u64 at = AT(5000000 + i * 1000000);
      add_phase(writer, at, 900000, TSCOPE_PHASE_BACKWARD, 0);
      for (u32 k = 1; k <= 3; k++)
        add_phase(writer, at + k * 200000, 50000, TSCOPE_PHASE_OPTIMIZER, name);
    }
    save_rank(fixture, writer);
  }
  struct model *model = load(fixture->directory, NULL);
  assert_string_equal(model->steps.method, "optimizer phases");
  assert_int_equal(model->steps.n, 20);
  for (u32 s = 1; s < 20; s++)
    assert_int_equal(model->steps.end[2 * s] - model->steps.end[2 * (s - 1)], 1000000);
  model_free(model);
}

/* Two ranks; the second records from step 2 on. Each step has `ranges` ranges, each with a range
 * inside it; the optimizer runs once per step. */
static struct model *model_of_ranges(struct fixture *fixture, u32 ranges, bool optimizer,
                                     bool marks) {
  enum { STEPS = 12, STEP_NS = 1000000 };
  for (u32 r = 0; r < 2; r++) {
    struct trace_writer *writer = new_rank(r, 2);
    u32 name = trace_string(writer, "iteration");
    for (u32 i = r == 0 ? 0 : 2 * ranges; i < STEPS * ranges; i++) {
      u64 dur = STEP_NS / ranges, at = AT(5000000 + i * dur);
      struct tscope_step_range_record *range =
          trace_add(writer, retained, at, TSCOPE_REC_STEP_RANGE, 0, sizeof(*range));
      range->dur = dur * 3 / 4; /* then data is loaded */
      range->name = name;
      range->number = 100 + i;
      range = trace_add(writer, retained, at + 10, TSCOPE_REC_STEP_RANGE, 0, sizeof(*range));
      range->dur = dur / 2; /* "train_step" inside "iteration" */
      range->number = TSCOPE_UNKNOWN;
      if (marks) {
        struct tscope_step_record *mark =
            trace_add(writer, retained, at + 20, TSCOPE_REC_STEP, 0, sizeof(*mark));
        mark->step = i;
      }
      if (optimizer && i % ranges == ranges - 1) {
        struct tscope_phase_record *phase =
            trace_add(writer, retained, at + dur / 2, TSCOPE_REC_PHASE, TSCOPE_PHASE_OPTIMIZER,
                      sizeof(*phase));
        phase->dur = dur / 8;
      }
    }
    save_rank(fixture, writer);
  }
  return load(fixture->directory, NULL);
}

static void test_ranges_that_the_program_calls_steps(void **state) {
  struct model *model = model_of_ranges(*state, 1, true, false);
  assert_string_equal(model->steps.method, "NVTX ranges");
  assert_int_equal(model->steps.n, 12);
  assert_int_equal(model->steps.begin[0], model->begin);    /* on the time axis of the run */
  assert_true(model->steps.begin[1 * 2 + 1] == NS_UNKNOWN); /* by its step numbers it began later */
  for (u32 s = 2; s + 1 < 12; s++)
    for (u32 r = 0; r < 2; r++)
      assert_int_equal(model->steps.end[s * 2 + r] - model->steps.begin[s * 2 + r], 1000000);
  assert_int_equal(model->steps.end[11 * 2] - model->steps.begin[11 * 2], 750000);
  model_free(model);
}

static void test_ranges_of_micro_batches_are_no_steps(void **state) {
  struct model *model = model_of_ranges(*state, 4, true, false);
  assert_string_equal(model->steps.method, "optimizer phases");
  model_free(model);
}

static void test_ranges_without_an_optimizer_are_believed(void **state) {
  struct model *model = model_of_ranges(*state, 4, false, false);
  assert_string_equal(model->steps.method, "NVTX ranges");
  assert_int_equal(model->steps.n, 48);
  model_free(model);
}

static void test_marks_win_over_ranges(void **state) {
  struct model *model = model_of_ranges(*state, 1, true, true);
  assert_string_equal(model->steps.method, "step marks");
  model_free(model);
}

static void test_the_users_marks_win(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.step_marks = options.phases = true;
  struct model *model = generate(*state, &options, &truth);
  assert_string_equal(model->steps.method, "step marks");
  assert_int_equal(model->steps.n, options.steps);
  model_free(model);
  model = load(((struct fixture *)*state)->directory, &(struct model_options){.steps = "5:8"});
  assert_int_equal(model->steps.n, 4);
  assert_int_equal(model->steps.first, 5);
  assert_int_equal(model->steps.warmup, 0);
  u64 wanted = truth.step_begin[6 * options.ranks] - truth.step_begin[5 * options.ranks];
  assert_in_range(model->steps.end[0] - model->steps.begin[0], wanted - 10, wanted + 10);
  model_free(model);
  tracegen_truth_free(&truth);
}

/* Two optimizers step alternately (a generator and a discriminator): together they are one step. */
static void test_several_optimizers_are_one_step(void **state) {
  struct fixture *fixture = *state;
  struct trace_writer *writer = new_rank(0, 1);
  u32 names[] = {trace_string(writer, "Optimizer.step#Adam.step"),
                 trace_string(writer, "Optimizer.step#SGD.step")};
  for (u32 i = 0; i < 20; i++) {
    static const u8 kinds[] = {TSCOPE_PHASE_FORWARD, TSCOPE_PHASE_BACKWARD, TSCOPE_PHASE_OPTIMIZER};
    for (u32 k = 0; k < 3; k++) {
      struct tscope_phase_record *phase = trace_add(writer, retained, AT(i * 3000000 + k * 1000000),
                                                    TSCOPE_REC_PHASE, kinds[k], sizeof(*phase));
      phase->dur = 900000;
      phase->name = k == 2 ? names[i % 2] : 0;
    }
  }
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->steps.n, 10);
  assert_int_equal(model->steps.begin[0], 0);
  assert_int_equal(model->steps.end[0], 5900000);
  model_free(model);
}

struct range {
  u8 kind;
  u64 from, to; /* microseconds in a step of 1,000 */
};

/* Four steps of the same ranges. */
static struct model *steps_of_ranges(struct fixture *fixture, const struct range *ranges, u32 n) {
  struct trace_writer *writer = new_rank(0, 1);
  for (u32 step = 0; step < 4; step++)
    for (u32 i = 0; i < n; i++) {
      struct tscope_phase_record *phase =
          trace_add(writer, retained, AT(step * 1000000 + ranges[i].from * 1000), TSCOPE_REC_PHASE,
                    ranges[i].kind, sizeof(*phase));
      phase->dur = (ranges[i].to - ranges[i].from) * 1000;
    }
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->steps.n, 4);
  return model;
}

/* Activation checkpointing runs forward again inside backward: this time belongs to backward. */
static void test_recomputed_forward_is_backward(void **state) {
  static const struct range ranges[] = {
      {TSCOPE_PHASE_DATA, 0, 50},       {TSCOPE_PHASE_FORWARD, 50, 300},
      {TSCOPE_PHASE_FORWARD, 60, 200},  {TSCOPE_PHASE_BACKWARD, 300, 800},
      {TSCOPE_PHASE_FORWARD, 400, 500}, {TSCOPE_PHASE_OPTIMIZER, 850, 1000}};
  struct model *model = steps_of_ranges(*state, ranges, LENGTH_OF(ranges));
  for (u32 s = 0; s < 4; s++) {
    assert_int_equal(model->phases[s].data, 50000);
    assert_int_equal(model->phases[s].forward, 250000);
    assert_int_equal(model->phases[s].backward, 500000);
    assert_int_equal(model->phases[s].optimizer, 150000);
    assert_int_equal(model->phases[s].other, 50000);
  }
  model_free(model);
}

/* An optimizer that gets a closure runs forward and backward inside its step. What else it does
 * before the last backward pass may be a forward pass that has no mark. */
static void test_closure_of_the_optimizer(void **state) {
  static const struct range ranges[] = {
      {TSCOPE_PHASE_DATA, 0, 50},       {TSCOPE_PHASE_OPTIMIZER, 100, 1000},
      {TSCOPE_PHASE_FORWARD, 150, 350}, {TSCOPE_PHASE_BACKWARD, 400, 800},
      {TSCOPE_PHASE_FORWARD, 500, 600}, {TSCOPE_PHASE_ZERO_GRAD, 360, 380}};
  struct model *model = steps_of_ranges(*state, ranges, LENGTH_OF(ranges));
  for (u32 s = 0; s < 4; s++) {
    assert_int_equal(model->phases[s].forward, 200000);
    assert_int_equal(model->phases[s].backward, 400000);
    assert_int_equal(model->phases[s].optimizer, 200000);
    assert_int_equal(model->phases[s].other, 150000);
  }
  model_free(model);
}

/* An optimizer that runs in hooks of backward still counts as the optimizer. */
static void test_optimizer_in_backward(void **state) {
  static const struct range ranges[] = {{TSCOPE_PHASE_FORWARD, 0, 300},
                                        {TSCOPE_PHASE_BACKWARD, 300, 900},
                                        {TSCOPE_PHASE_OPTIMIZER, 700, 800}};
  struct model *model = steps_of_ranges(*state, ranges, LENGTH_OF(ranges));
  assert_int_equal(model->phases[1].backward, 500000);
  assert_int_equal(model->phases[1].optimizer, 100000);
  model_free(model);
}

enum { WORKER_STEPS = 12, WORKER_STEP_NS = 1000000 };

static void write_message(struct trace_writer *writer, u64 at, bool sends, u32 peer, u32 *seq) {
  struct tscope_collective_record *call =
      write_call(writer, at, sends ? TSCOPE_OP_SEND : TSCOPE_OP_RECV, 1, (*seq)++);
  call->peer = (i32)peer;
  call->stream = TSCOPE_NO_STREAM;
}

/* Two workers, and a server that has no optimizer. In every `every`-th step they send it something
 * and it answers: the second worker 700 us after the step began. */
static struct model *model_of_workers(struct fixture *fixture, u32 every) {
  for (u32 r = 0; r < 3; r++) {
    struct trace_writer *writer = new_rank(r, 3);
    u32 seq = 0;
    write_comm(writer, 1, 42, r, 3, TSCOPE_BACKEND_GLOO);
    for (u32 step = 0; step < WORKER_STEPS; step++) {
      u64 begin = (u64)step * WORKER_STEP_NS;
      for (u32 worker = 1; worker < 3 && step % every == 0; worker++)
        if (r == 0 || r == worker)
          write_message(writer, begin + worker * 100000, r != 0, r ? 0 : worker, &seq);
      for (u32 worker = 1; worker < 3 && step % every == 0; worker++)
        if (r == 0 || r == worker)
          write_message(writer, begin + 500000 + worker * 100000, r == 0, r ? 0 : worker, &seq);
      if (r == 0)
        continue;
      struct tscope_phase_record *phase = trace_add(writer, retained, AT(begin), TSCOPE_REC_PHASE,
                                                    TSCOPE_PHASE_BACKWARD, sizeof(*phase));
      phase->dur = 50000;
      phase = trace_add(writer, retained, AT(begin + 900000), TSCOPE_REC_PHASE,
                        TSCOPE_PHASE_OPTIMIZER, sizeof(*phase));
      phase->dur = 100000;
    }
    save_rank(fixture, writer);
  }
  return load(fixture->directory, NULL);
}

/* Its step ends with the last message of that step: 1 us is what a call takes. */
static void test_a_server_has_the_steps_of_its_workers(void **state) {
  struct model *model = model_of_workers(*state, 1);
  const struct steps *steps = &model->steps;
  assert_int_equal(steps->n, WORKER_STEPS);
  assert_int_equal(steps->begin[0] - steps->begin[1], 100000);
  for (u32 s = 0; s < WORKER_STEPS; s++)
    assert_int_equal(steps->end[s * 3] - steps->begin[1], s * WORKER_STEP_NS + 701000);
  for (u32 s = 1; s < WORKER_STEPS; s++)
    assert_int_equal(steps->begin[s * 3], steps->end[(s - 1) * 3]);
  for (u32 i = 0; i < model->n_arrivals; i++)
    if (model->arrivals[i].rank == 0)
      assert_int_equal(model->arrivals[i].step,
                       model->collectives[model->arrivals[i].collective].step);
  model_free(model);
}

/* What lies between two messages is divided evenly. Who meets the others only seldom has no steps.
 */
static void test_a_rank_that_meets_others_in_some_steps(void **state) {
  struct model *model = model_of_workers(*state, 2);
  const struct steps *steps = &model->steps;
  for (u32 s = 0; s + 1 < WORKER_STEPS; s++)
    assert_int_equal(steps->end[s * 3] - steps->begin[1], s * WORKER_STEP_NS + 701000);
  assert_true(steps->end[(WORKER_STEPS - 1) * 3] == NS_UNKNOWN);
  model_free(model);
  model = model_of_workers(*state, 3);
  assert_int_equal(model->steps.n, WORKER_STEPS);
  for (u32 s = 0; s < WORKER_STEPS; s++)
    assert_true(model->steps.begin[s * 3] == NS_UNKNOWN);
  model_free(model);
}

/* Three ranks that meet in each step 500 us after its begin. Of rank 1 only the phases from the
 * step `from` on were recorded, and it steps `optimizers`: the first before they meet. */
static struct model *model_of_steppers(struct fixture *fixture, u32 from, u32 optimizers) {
  for (u32 r = 0; r < 3; r++) {
    struct trace_writer *writer = new_rank(r, 3);
    write_comm(writer, 1, 42, r, 3, TSCOPE_BACKEND_GLOO);
    for (u32 step = 0; step < WORKER_STEPS; step++) {
      u64 begin = (u64)step * WORKER_STEP_NS;
      write_call(writer, begin + 500000, TSCOPE_OP_ALLREDUCE, 1, step)->stream = TSCOPE_NO_STREAM;
      for (u32 i = r == 1 ? optimizers : 1; i > 0 && (r != 1 || step >= from); i--) {
        struct tscope_phase_record *phase =
            trace_add(writer, retained, AT(begin + (i == 2 ? 300000 : 900000)), TSCOPE_REC_PHASE,
                      TSCOPE_PHASE_OPTIMIZER, sizeof(*phase));
        phase->dur = 100000;
      }
    }
    save_rank(fixture, writer);
  }
  return load(fixture->directory, NULL);
}

/* A rank that was recorded later than its peers, or earlier: what they do together is one step. */
static void test_steps_have_the_numbers_of_the_peers(void **state) {
  static const u32 late[] = {0, 1, 4};
  for (u32 i = 0; i < LENGTH_OF(late); i++) {
    struct model *model = model_of_steppers(*state, late[i], 1);
    assert_int_equal(model->steps.n, WORKER_STEPS);
    for (u32 s = late[i] + 1; s < WORKER_STEPS; s++) {
      assert_int_equal(model->steps.end[s * 3 + 1], model->steps.end[s * 3]);
      assert_int_equal(model->steps.begin[s * 3 + 1], model->steps.begin[s * 3]);
    }
    for (u32 k = 0; k < model->n_collectives; k++)
      for (u32 j = 0; j < model->collectives[k].n_arrivals; j++) {
        const struct arrival *arrival = &model->arrivals[model->collectives[k].first_arrival + j];
        assert_true(arrival->step < 0 || arrival->step == (i32)k);
      }
    model_free(model);
  }
}

/* It has twice as many optimizer phases as its peers: its steps are theirs, and end where they
 * meet. */
static void test_another_optimizer_makes_no_steps(void **state) {
  struct model *model = model_of_steppers(*state, 0, 2);
  assert_int_equal(model->steps.n, WORKER_STEPS);
  assert_true(fabs(model->steps.confidence - 2 / 3.0) < 1e-9);
  for (u32 s = 2; s < WORKER_STEPS;
       s++) /* the first begins with the optimizer, behind the meeting */
    assert_int_equal(model->steps.end[s * 3 + 1] - model->steps.begin[s * 3 + 1], WORKER_STEP_NS);
  model_free(model);
}

static void test_input_pause_of_a_gpu_job_is_inferred(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.data_ns = 700000;
  struct model *model = generate(*state, &options, &truth);
  assert_non_null(strstr(model->phase_method, "inferred"));
  for (u32 s = 1; s < model->steps.n; s++)
    for (u32 r = 0; r < model->n_ranks; r++) {
      const struct phase_times *times = &model->phases[(size_t)s * model->n_ranks + r];
      assert_in_range(times->data, 699990, 700010);
      assert_true(times->forward == NS_UNKNOWN); /* unknown, not zero */
    }
  model_free(model);
  tracegen_truth_free(&truth);
}

/* A collective of no elements puts nothing on the GPU, so that a step's end there is that of the
 * collective before it. */
static void test_a_collective_of_nothing_hides_no_end(void **state) {
  enum { STEPS = 6, STEP_NS = 1000000 };
  struct fixture *fixture = *state;
  for (u32 r = 0; r < 2; r++) {
    struct trace_writer *writer = new_rank(r, 2);
    write_comm(writer, 1, 42, r, 2, TSCOPE_BACKEND_NCCL);
    for (u32 step = 0; step < STEPS; step++) {
      u64 begin = 5000000 + (u64)step * STEP_NS;
      struct tscope_step_record *mark =
          trace_add(writer, retained, AT(begin), TSCOPE_REC_STEP, 0, sizeof(*mark));
      mark->step = step;
      write_call(writer, begin + 1000, TSCOPE_OP_ALLREDUCE, 1, 2 * step);
      write_call(writer, begin + 3000, TSCOPE_OP_BROADCAST, 1, 2 * step + 1)->count = 0;
      write_run(writer, begin + 500000, 600000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    }
    save_rank(fixture, writer);
  }
  struct model *model = load(fixture->directory, NULL);
  assert_string_equal(model->steps.method, "step marks");
  for (u32 cell = 2; cell < 2 * (model->steps.n - 1); cell++)
    assert_int_equal(model->steps.ends_known[cell], STEP_BEGIN_KNOWN | STEP_END_KNOWN);
  assert_int_equal(model->steps.end[2 * 2] - model->steps.host_end[2 * 2], 100000);
  model_free(model);
}

static void test_no_evidence_is_no_steps(void **state) {
  struct fixture *fixture = *state;
  struct trace_writer *writer = new_rank(0, 1);
  write_comm(writer, 1, 5, 0, 1, TSCOPE_BACKEND_NCCL);
  write_call(writer, 10, TSCOPE_OP_ALLREDUCE, 1, 0);
  save_rank(fixture, writer);
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->steps.n, 0);
  assert_string_equal(model->steps.method, "none");
  assert_true(isnan(model->steps.confidence));
  assert_int_equal(model_step_at(model, 0, 10), -1);
  assert_null(model->phases);
  model_free(model);
}

static u32 number_timed(u32 n, u32 most, u8 *times) {
  choose_timed_steps(n, most, times);
  return NUMBER_OF(times, n, one, *one == TIMES_KEPT);
}

/* Nodes that know of different numbers of steps keep the same, all over the run. */
static void test_steps_with_times(void **state) {
  (void)state;
  enum { N = 5000, MOST = 50, LAST = 8 };
  u8 longer[N], shorter[N];
  assert_int_equal(number_timed(MOST, MOST, longer), MOST);
  for (u32 n = MOST + 1; n < N; n++) {
    u32 longest = 0, gap = 0;
    assert_in_range(number_timed(n, MOST, longer), MOST / 4, MOST);
    assert_int_equal(longer[n - 1], TIMES_KEPT);
    number_timed(n - 1, MOST, shorter);
    for (u32 step = 0; step < n; step++) {
      gap = longer[step] == TIMES_KEPT ? 0 : gap + 1;
      longest = MAX(gap, longest);
      assert_true(step + LAST + 1 >= n || longer[step] == TIMES_LEFT_OUT ||
                  shorter[step] == TIMES_KEPT);
    }
    assert_in_range(longest, 0, 2 * n / 3 + LAST); /* two of three parts, at most */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps_with_times),
      WITH_FOLDER(test_steps_of_a_gpu_job_without_annotation),
      WITH_FOLDER(test_optimizers_inside_the_backward_pass_are_one_step),
      WITH_FOLDER(test_steps_from_optimizer_ranges),
      WITH_FOLDER(test_a_collective_of_nothing_hides_no_end),
      WITH_FOLDER(test_ranges_that_the_program_calls_steps),
      WITH_FOLDER(test_ranges_of_micro_batches_are_no_steps),
      WITH_FOLDER(test_ranges_without_an_optimizer_are_believed),
      WITH_FOLDER(test_marks_win_over_ranges),
      WITH_FOLDER(test_the_users_marks_win),
      WITH_FOLDER(test_several_optimizers_are_one_step),
      WITH_FOLDER(test_recomputed_forward_is_backward),
      WITH_FOLDER(test_closure_of_the_optimizer),
      WITH_FOLDER(test_optimizer_in_backward),
      WITH_FOLDER(test_a_server_has_the_steps_of_its_workers),
      WITH_FOLDER(test_steps_have_the_numbers_of_the_peers),
      WITH_FOLDER(test_another_optimizer_makes_no_steps),
      WITH_FOLDER(test_a_rank_that_meets_others_in_some_steps),
      WITH_FOLDER(test_input_pause_of_a_gpu_job_is_inferred),
      WITH_FOLDER(test_no_evidence_is_no_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
