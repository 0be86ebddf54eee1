/* SPDX-License-Identifier: MIT
 *
 * Jobs that run no optimizer still have steps where something comes again and again; where that is
 * not so, there are none.
 */
#include "model_support.h"
#include "seeded.h"

static void write_phase(struct trace_writer *writer, u64 at, u64 dur, enum tscope_phase kind) {
  struct tscope_phase_record *phase =
      trace_add(writer, retained, AT(at), TSCOPE_REC_PHASE, (u16)kind, sizeof(*phase));
  phase->dur = dur;
}

static void assert_steps(const struct model *model, const char *method, u32 n, i64 length) {
  assert_string_equal(model->steps.method, method);
  assert_int_equal(model->steps.n, n);
  assert_true(model->steps.confidence > 0.9);
  for (u32 s = 1; s + 1 < n; s++)
    for (u32 r = 0; r < model->n_ranks; r++) {
      size_t cell = (size_t)s * model->n_ranks + r;
      assert_in_range(model->steps.end[cell] - model->steps.begin[cell], length - 10, length + 10);
    }
}

/* Each step of 1 ms loads, runs `micro` backward passes, then updates by hand. */
static struct model *model_of_hand_written_updates(struct fixture *fixture, u32 ranks, u32 micro,
                                                   bool data) {
  for (u32 r = 0; r < ranks; r++) {
    struct trace_writer *writer = new_rank(r, ranks);
    for (u32 step = 0; step < 16; step++) {
      u64 at = 1000000ull * step;
      if (data)
        write_phase(writer, at, 50000, TSCOPE_PHASE_DATA);
      for (u32 k = 0; k < micro; k++)
        write_phase(writer, at + 60000 + k * 600000 / micro, 400000 / micro, TSCOPE_PHASE_BACKWARD);
    }
    save_rank(fixture, writer);
  }
  return load(fixture->directory, NULL);
}

static void test_a_backward_pass_without_an_optimizer_is_a_step(void **state) {
  struct model *model = model_of_hand_written_updates(*state, 1, 1, false);
  assert_steps(model, "backward passes", 16, 1000000);
  model_free(model);
}

/* The update behind the pass belongs to its step, which lasts until the next batch is loaded. */
static void test_an_update_by_hand_belongs_to_the_step_of_its_pass(void **state) {
  struct model *model = model_of_hand_written_updates(*state, 2, 1, true);
  assert_steps(model, "backward passes", 16, 1000000);
  assert_int_equal(model->steps.end[2 * 3], model->steps.begin[2 * 0] + 4000000);
  model_free(model);
}

static void test_accumulated_passes_are_one_step(void **state) {
  struct model *model = model_of_hand_written_updates(*state, 1, 3, true);
  assert_steps(model, "backward passes", 16, 1000000);
  model_free(model);
}

/* Three passes load, go backward at once, and only behind the last one something is done: that is
 * an update, and the next batch takes as long to load as those before. If all do something behind
 * the pass, each is a step, also where some do more, such as to log. */
static void test_passes_up_to_an_update_are_one_step(void **state) {
  for (u64 each = 0; each < 2; each++) {
    struct fixture *fixture = *state;
    struct trace_writer *writer = new_rank(0, 1);
    u64 at = 0;
    for (u32 pass = 0; pass < 60; pass++) {
      write_phase(writer, at, 200000, TSCOPE_PHASE_DATA);
      write_phase(writer, at + 200000, 600000 + 1000 * (pass % 7), TSCOPE_PHASE_BACKWARD);
      at += 800000 + 1000 * (pass % 7) + (pass % 3 == 2 ? 150000 : each ? 30000 : 2000);
    }
    struct fixture own;
    snprintf(own.directory, sizeof(own.directory), "%.50s/%u", fixture->directory, (u32)each);
    assert_int_equal(mkdir(own.directory, 0700), 0);
    save_rank(&own, writer);
    struct model *model = load(own.directory, NULL);
    assert_string_equal(model->steps.method, "backward passes");
    assert_int_equal(model->steps.n, each ? 60 : 20);
    model_free(model);
  }
}

/* Where a busy machine makes no two steps alike, the report says how little agrees. */
static void test_backward_passes_of_any_length_are_steps(void **state) {
  struct trace_writer *writer = new_rank(0, 1);
  u64 at = 0;
  for (u32 i = 0; i < 30; i++) {
    write_phase(writer, at, 20000ull << i % 7, TSCOPE_PHASE_BACKWARD);
    at += (20000ull << i % 7) + 1000;
  }
  save_rank(*state, writer);
  struct model *model = load(((struct fixture *)*state)->directory, NULL);
  assert_string_equal(model->steps.method, "backward passes");
  assert_int_equal(model->steps.n, 30);
  assert_true(model->steps.confidence < 0.7);
  model_free(model);
}

static void test_forward_passes_alone_are_steps(void **state) {
  struct trace_writer *writer = new_rank(0, 1);
  for (u32 step = 0; step < 12; step++)
    write_phase(writer, 500000 * step, 300000, TSCOPE_PHASE_FORWARD);
  save_rank(*state, writer);
  struct model *model = load(((struct fixture *)*state)->directory, NULL);
  assert_steps(model, "forward passes", 12, 500000);
  model_free(model);
}

/* Prompts are read and answered in as many passes as it takes: no two are alike. */
static void test_passes_that_are_not_alike_are_no_steps(void **state) {
  struct trace_writer *writer = new_rank(0, 1);
  u64 at = 0;
  u32 seed = 7;
  for (u32 i = 0; i < 60; i++) {
    u64 dur = 20000 << random_below(&seed, 8);
    write_phase(writer, at, dur, TSCOPE_PHASE_FORWARD);
    at += dur + 1000;
  }
  save_rank(*state, writer);
  struct model *model = load(((struct fixture *)*state)->directory, NULL);
  assert_string_equal(model->steps.method, "none");
  model_free(model);
}

enum { KERNELS = 6 };

struct job {
  struct trace_writer *writer;
  u64 at;
  u32 kernels[KERNELS];
};

static struct job new_job(u32 rank, u32 ranks) {
  static const char *const names[KERNELS] = {"embed", "gemm", "relu", "head", "prefill", "argmax"};
  struct job job = {.writer = new_rank(rank, ranks)};
  for (u32 i = 0; i < KERNELS; i++)
    job.kernels[i] = trace_string(job.writer, names[i]);
  return job;
}

/* A kernel of a size: the SHAPE is announced each time, which is as good. */
static void launch(struct job *job, u32 kernel, u32 size) {
  u32 number = 1 + kernel * 100 + size % 100;
  struct tscope_shape_record *shape =
      trace_add(job->writer, retained, AT(0), TSCOPE_REC_SHAPE, 0, sizeof(*shape));
  shape->shape = number;
  shape->kernel = job->kernels[kernel];
  shape->grid_x = size;
  struct tscope_launch_record *call =
      trace_add(job->writer, in_ring, AT(job->at), TSCOPE_REC_LAUNCH, 0, sizeof(*call));
  call->dur = 2000;
  call->shape = number;
  job->at += 5000;
}

static void copy(struct job *job, enum tscope_memcpy kind, u64 bytes) {
  struct tscope_memcpy_record *call =
      trace_add(job->writer, in_ring, AT(job->at), TSCOPE_REC_MEMCPY, 0, sizeof(*call));
  call->dur = 2000;
  call->kind = kind;
  call->bytes = bytes;
  job->at += 5000;
}

static void run_layers(struct job *job, u32 size, u32 layers) {
  launch(job, 0, size);
  for (u32 layer = 0; layer < layers; layer++) {
    launch(job, 1, size);
    launch(job, 2, size);
  }
  launch(job, 3, size);
}

/* One pass of eight layers: 18 launches in 90 us. */
static void run_model(struct job *job, u32 size) {
  run_layers(job, size, 8);
}

/* A batch of inference: 300 us of the host's own, then 100 us of calls. */
static void run_batch(struct job *job, u32 size) {
  job->at += 300000;
  copy(job, TSCOPE_MEMCPY_H2D, 4096);
  run_model(job, size);
  copy(job, TSCOPE_MEMCPY_D2H, 64);
}

static struct model *load_job(struct fixture *fixture, const struct job *job) {
  save_rank(fixture, job->writer);
  return load(fixture->directory, NULL);
}

static void test_inference_that_launches_the_same_again_and_again(void **state) {
  struct job job = new_job(0, 1);
  for (u32 i = 0; i < 7; i++)
    launch(&job, i % KERNELS, i); /* parameters are made */
  for (u32 i = 0; i < 20; i++)
    run_batch(&job, 8);
  struct model *model = load_job(*state, &job);
  assert_steps(model, "repeated launches", 20, 400000);
  assert_true(model->steps.by_pattern);
  model_free(model);
}

/* The last layer's size depends on the batch: then the kernels' names repeat. */
static void test_inference_of_batches_of_any_size(void **state) {
  struct job job = new_job(0, 1);
  for (u32 i = 0; i < 20; i++)
    run_batch(&job, 8 + i * 7 % 31);
  struct model *model = load_job(*state, &job);
  assert_steps(model, "repeated launches", 20, 400000);
  model_free(model);
}

/* What comes between two batches, here a check of the answers, makes one step longer. */
static void test_other_work_between_rounds(void **state) {
  struct job job = new_job(0, 1);
  for (u32 i = 0; i < 40; i++) {
    run_batch(&job, 8);
    if (i % 20 == 10)
      for (u32 k = 0; k < 9; k++)
        launch(&job, 5, k);
  }
  struct model *model = load_job(*state, &job);
  assert_string_equal(model->steps.method, "repeated launches");
  assert_int_equal(model->steps.n, 40);
  assert_in_range(model->steps.end[10] - model->steps.begin[10], 444990, 445010);
  assert_in_range(model->steps.end[11] - model->steps.begin[11], 399990, 400010);
  model_free(model);
}

/* Every fifth answer is also read: that does not make five batches one step. */
static void test_what_every_fifth_batch_has_too(void **state) {
  struct job job = new_job(0, 1);
  for (u32 i = 0; i < 60; i++) {
    run_batch(&job, 8);
    if (i % 5 == 4)
      copy(&job, TSCOPE_MEMCPY_D2H, 4);
  }
  struct model *model = load_job(*state, &job);
  assert_string_equal(model->steps.method, "repeated launches");
  assert_int_equal(model->steps.n, 60);
  model_free(model);
}

/* The host pauses once in a pass, not before each of its layers. */
static void test_layers_are_no_rounds(void **state) {
  struct job job = new_job(0, 1);
  for (u32 i = 0; i < 30; i++) {
    job.at += 100000;
    launch(&job, 0, 8);
    for (u32 layer = 0; layer < 60; layer++) {
      launch(&job, 1, 8);
      launch(&job, 2, 8);
    }
  }
  struct model *model = load_job(*state, &job);
  assert_steps(model, "repeated launches", 30, 705000);
  model_free(model);
}

/* Ranks that only meet before and after are no job of one step. */
static void test_barriers_at_both_ends_are_no_steps(void **state) {
  for (u32 r = 0; r < 2; r++) {
    struct job job = new_job(r, 2);
    write_comm(job.writer, 1, 5, r, 2, TSCOPE_BACKEND_NCCL);
    write_call(job.writer, 10, TSCOPE_OP_ALLREDUCE, 1, 0);
    job.at = 100000;
    for (u32 i = 0; i < 20; i++)
      run_batch(&job, 8);
    write_call(job.writer, job.at + 100, TSCOPE_OP_ALLREDUCE, 1, 1);
    save_rank(*state, job.writer);
  }
  struct model *model = load(((struct fixture *)*state)->directory, NULL);
  assert_steps(model, "repeated launches", 20, 400000);
  model_free(model);
}

/* A run whose last rounds are shorter than the usual one: no round lies beyond its end. */
static void test_rounds_that_get_short_at_the_end(void **state) {
  struct job job = new_job(0, 1);
  for (u32 i = 0; i < 8; i++) {
    job.at += 3000000;
    run_layers(&job, 8, i < 4 ? 2000 : 20);
  }
  struct model *model = load_job(*state, &job);
  assert_string_equal(model->steps.method, "none");
  model_free(model);
}

/* Answers of any length: neither their tokens nor whole answers are steps. */
static void test_answers_of_any_length_are_no_steps(void **state) {
  struct job job = new_job(0, 1);
  u32 seed = 7;
  for (u32 i = 0; i < 30; i++) {
    job.at += 300000;
    copy(&job, TSCOPE_MEMCPY_H2D, 4096);
    for (u32 k = 0; k < 24; k++)
      launch(&job, 4, 8 + i);
    for (u32 tokens = 1 + random_below(&seed, 12), token = 0; token < tokens; token++) {
      run_model(&job, 9 + i + token);
      launch(&job, 5, 1);
      copy(&job, TSCOPE_MEMCPY_D2H, 8);
    }
  }
  struct model *model = load_job(*state, &job);
  assert_string_equal(model->steps.method, "none");
  model_free(model);
}

/* Nothing separates one launch of the same kernel from the next. */
static void test_one_kernel_after_the_other_is_no_step(void **state) {
  struct job job = new_job(0, 1);
  for (u32 i = 0; i < 100; i++)
    launch(&job, 1, 1);
  struct model *model = load_job(*state, &job);
  assert_string_equal(model->steps.method, "none");
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(test_a_backward_pass_without_an_optimizer_is_a_step),
      WITH_FOLDER(test_an_update_by_hand_belongs_to_the_step_of_its_pass),
      WITH_FOLDER(test_accumulated_passes_are_one_step),
      WITH_FOLDER(test_passes_up_to_an_update_are_one_step),
      WITH_FOLDER(test_backward_passes_of_any_length_are_steps),
      WITH_FOLDER(test_forward_passes_alone_are_steps),
      WITH_FOLDER(test_passes_that_are_not_alike_are_no_steps),
      WITH_FOLDER(test_inference_that_launches_the_same_again_and_again),
      WITH_FOLDER(test_inference_of_batches_of_any_size),
      WITH_FOLDER(test_other_work_between_rounds),
      WITH_FOLDER(test_what_every_fifth_batch_has_too),
      WITH_FOLDER(test_layers_are_no_rounds),
      WITH_FOLDER(test_rounds_that_get_short_at_the_end),
      WITH_FOLDER(test_barriers_at_both_ends_are_no_steps),
      WITH_FOLDER(test_answers_of_any_length_are_no_steps),
      WITH_FOLDER(test_one_kernel_after_the_other_is_no_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
