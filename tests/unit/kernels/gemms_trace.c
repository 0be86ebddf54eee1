/* SPDX-License-Identifier: MIT
 *
 * GEMMs from a trace to the report: the precision of each, the times of a sample, and the GEMMs
 * that replays of CUDA graphs repeat. The records are written by hand, the results are closed
 * forms.
 */
#include "model_support.h"

#include "analyses/results/results.h"
#include "kernels/precision.h"

enum { STEPS = 10, STEP_NS = 1000000 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_FAST_16F = 74, COMPUTE_FAST_TF32 = 77 };
enum { COMPUTE_32F_EMULATED = 78, COMPUTE_64F_EMULATED = 79, COMPUTE_32I = 72 };

static const char *const gemm_kernel = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT";
static const char *const other_kernel = "_Z10elementwisev";

static void the_slower_factor_and_what_is_allowed_decide(void **state) {
  (void)state;
  static const struct {
    u8 a, b, compute;
    enum precision precision;
  } cases[] = {
      {TSCOPE_DTYPE_BF16, TSCOPE_DTYPE_BF16, COMPUTE_32F, PRECISION_FP16},
      {TSCOPE_DTYPE_F16, TSCOPE_DTYPE_F16, 0, PRECISION_FP16},
      {TSCOPE_DTYPE_F8E4M3, TSCOPE_DTYPE_F8E5M2, COMPUTE_32F, PRECISION_FP8},
      {TSCOPE_DTYPE_F4E2M1X2, TSCOPE_DTYPE_F4E2M1X2, COMPUTE_32F, PRECISION_FP4},
      {TSCOPE_DTYPE_F4E2M1X2, TSCOPE_DTYPE_F8E4M3, COMPUTE_32F, PRECISION_FP8},
      {TSCOPE_DTYPE_F8E4M3, TSCOPE_DTYPE_BF16, COMPUTE_32F, PRECISION_FP16},
      {TSCOPE_DTYPE_F32, TSCOPE_DTYPE_F32, COMPUTE_32F, PRECISION_FP32},
      {TSCOPE_DTYPE_F32, TSCOPE_DTYPE_F32, COMPUTE_FAST_TF32, PRECISION_TF32},
      {TSCOPE_DTYPE_C64, TSCOPE_DTYPE_C64, COMPUTE_FAST_TF32, PRECISION_TF32},
      {TSCOPE_DTYPE_F32, TSCOPE_DTYPE_F32, COMPUTE_FAST_16F, PRECISION_FP16},
      {TSCOPE_DTYPE_F64, TSCOPE_DTYPE_F64, COMPUTE_64F, PRECISION_FP64},
      /* an unknown math mode, emulation with several GEMMs, and integers */
      {TSCOPE_DTYPE_F32, TSCOPE_DTYPE_F32, 0, PRECISION_UNKNOWN},
      {TSCOPE_DTYPE_F32, TSCOPE_DTYPE_F32, COMPUTE_32F_EMULATED, PRECISION_UNKNOWN},
      {TSCOPE_DTYPE_F64, TSCOPE_DTYPE_F64, COMPUTE_64F_EMULATED, PRECISION_UNKNOWN},
      {TSCOPE_DTYPE_I8, TSCOPE_DTYPE_I8, COMPUTE_32I, PRECISION_UNKNOWN},
      {TSCOPE_DTYPE_BF16, TSCOPE_DTYPE_UNKNOWN, COMPUTE_32F, PRECISION_UNKNOWN},
  };
  for (size_t i = 0; i < LENGTH_OF(cases); i++)
    assert_int_equal(gemm_precision(cases[i].a, cases[i].b, cases[i].compute), cases[i].precision);
}

struct gemm {
  u32 m, n, k;
  u8 type, compute;
};

static const struct gemm half = {256, 512, 1024, TSCOPE_DTYPE_BF16, COMPUTE_32F};
static const struct gemm single = {128, 512, 1024, TSCOPE_DTYPE_F32, COMPUTE_32F};
static const struct gemm allowed = {128, 512, 1024, TSCOPE_DTYPE_F32, COMPUTE_FAST_TF32};
static const struct gemm eighth = {512, 512, 1024, TSCOPE_DTYPE_F8E4M3, COMPUTE_32F};
static const struct gemm integers = {512, 512, 512, TSCOPE_DTYPE_I8, COMPUTE_32I};

static double operations(const struct gemm *of) {
  return 2.0 * of->m * of->n * of->k;
}

/* One rank on the GPU with this name, with marks around ten steps. */
static struct trace_writer *begin_run(const char *gpu) {
  struct trace_writer *writer = new_rank(0, 1);
  trace_info(writer, TSCOPE_INFO_TSCOPE, "test", NULL);
  trace_info(writer, TSCOPE_INFO_GPU_NAME, gpu, NULL);
  struct tscope_stream_record *stream =
      trace_add(writer, retained, AT(0), TSCOPE_REC_STREAM, 1, sizeof(*stream));
  stream->handle = 0x1000;
  for (u32 step = 0; step <= STEPS; step++) {
    struct tscope_step_record *mark =
        trace_add(writer, retained, AT((u64)step * STEP_NS), TSCOPE_REC_STEP, 0, sizeof(*mark));
    mark->step = step;
  }
  return writer;
}

static void call(struct trace_writer *writer, u64 at, const struct gemm *of, u32 timed) {
  struct tscope_gemm_record *gemm =
      trace_add(writer, in_ring, AT(at), TSCOPE_REC_GEMM, 1, sizeof(*gemm));
  gemm->dur = 500;
  gemm->flops = (u64)operations(of);
  gemm->m = of->m;
  gemm->n = of->n;
  gemm->k = of->k;
  gemm->batch = 1;
  gemm->a = gemm->b = gemm->c = of->type;
  gemm->compute = of->compute;
  gemm->timed = timed;
}

static void time_by_events(struct trace_writer *writer, u64 at, u32 dur, u32 number) {
  u32 name = trace_string(writer, "cublasGemmEx");
  struct tscope_gpu_work_record *work =
      trace_add(writer, on_gpu, AT(at), TSCOPE_REC_GPU_WORK, 1, sizeof(*work));
  work->dur = dur;
  work->name = name;
  work->one_in = 4;
  work->number = number;
}

static void kernel(struct trace_writer *writer, u64 at, u32 dur, const char *name, u32 replay) {
  u32 string = trace_string(writer, name);
  struct tscope_gpu_kernel_record *ran =
      trace_add(writer, on_gpu, AT(at), TSCOPE_REC_GPU_KERNEL, 1, sizeof(*ran));
  ran->dur = dur;
  ran->name = string;
  ran->correlation = replay;
  ran->graph = replay ? 7 : 0;
}

static struct results *end_run(struct fixture *fixture, struct trace_writer *writer,
                               struct model **model, double flops_per_step) {
  struct analyse_options options = no_options();
  options.flops_per_step = flops_per_step;
  struct results *results = NULL;
  save_rank(fixture, writer);
  *model = load(fixture->directory, &(struct model_options){.include_warmup = true});
  results = analyse(*model, &options);
  assert_int_equal(results->step_count, STEPS);
  return results;
}

static void drop(struct results *results, struct model *model) {
  results_free(results);
  model_free(model);
}

static void assert_close(double got, double wanted) {
  if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
    fail_msg("%.12g, not %.12g", got, wanted);
}

static const struct precision_row *in_precision(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->gemms.n_precisions; i++)
    if (!strcmp(r->gemms.precisions[i].precision, name))
      return &r->gemms.precisions[i];
  return NULL;
}

static const struct gemm_row *of_shape(const struct results *r, const char *shape) {
  for (u32 i = 0; i < r->gemms.n_rows; i++)
    if (!strcmp(r->gemms.rows[i].shape, shape))
      return &r->gemms.rows[i];
  return NULL;
}

/* H100: 1979, 989, 494.5 and 67 TFLOP/s. */
static void each_gemm_is_compared_with_its_own_peak(void **state) {
  struct trace_writer *writer = begin_run("NVIDIA H100 80GB HBM3");
  for (u32 step = 0; step < STEPS; step++) {
    call(writer, step * STEP_NS + 1000, &half, 0);
    call(writer, step * STEP_NS + 2000, &single, 0);
    call(writer, step * STEP_NS + 3000, &allowed, 0);
    call(writer, step * STEP_NS + 4000, &eighth, 0);
  }
  struct model *model;
  struct results *r = end_run(*state, writer, &model, 1e9);
  double step_s = STEP_NS / 1e9;
  const struct {
    const char *name;
    double peak, flops;
  } wanted[] = {{"fp8", 1979, operations(&eighth)},
                {"bf16/fp16", 989, operations(&half)},
                {"tf32", 494.5, operations(&allowed)},
                {"fp32", 67, operations(&single)}};
  double hfu = 0;
  for (size_t i = 0; i < LENGTH_OF(wanted); i++) {
    const struct precision_row *row = in_precision(r, wanted[i].name);
    assert_non_null(row);
    assert_close(row->flops, wanted[i].flops);
    assert_close(row->peak_tflops, wanted[i].peak);
    assert_close(row->hfu, wanted[i].flops / (wanted[i].peak * 1e12) / step_s);
    assert_true(isnan(row->ms) && isnan(row->tflops));
    hfu += row->hfu;
  }
  assert_close(r->hfu, hfu);
  assert_null(r->hfu_note);
  /* a job of several precisions: MFU is relative to the peak of bf16 */
  assert_string_equal(r->peak_precision, "bf16/fp16");
  assert_close(r->mfu, 1e9 / (step_s * 989e12));
  assert_null(r->gemms.how);
  assert_non_null(strstr(r->gemms.reason, "WHEN GEMMS RAN IS NOT KNOWN"));
  drop(r, model);
}

static void operations_without_a_peak_are_counted_apart(void **state) {
  struct trace_writer *writer = begin_run("NVIDIA A100-SXM4-80GB"); /* without fp8 */
  for (u32 step = 0; step < STEPS; step++) {
    call(writer, step * STEP_NS + 1000, &half, 0);
    call(writer, step * STEP_NS + 2000, &eighth, 0);
    call(writer, step * STEP_NS + 3000, &integers, 0);
  }
  struct model *model;
  struct results *r = end_run(*state, writer, &model, NAN);
  double all = operations(&half) + operations(&eighth) + operations(&integers);
  char missing[64];
  snprintf(missing, sizeof(missing), "%.3g %% of the operations",
           100 * (1 - operations(&half) / all));
  assert_close(r->hfu, operations(&half) / 312e12 / (STEP_NS / 1e9));
  assert_close(r->gemm_flops, all);
  assert_non_null(strstr(r->hfu_note, missing));
  assert_true(isnan(in_precision(r, "fp8")->hfu) && isnan(in_precision(r, "fp8")->peak_tflops));
  assert_close(in_precision(r, "not known")->flops, operations(&integers));
  drop(r, model);
}

static void a_job_of_one_precision_has_its_peak(void **state) {
  struct trace_writer *writer = begin_run("NVIDIA A100-SXM4-80GB");
  for (u32 step = 0; step < STEPS; step++)
    call(writer, step * STEP_NS + 1000, &allowed, 0);
  struct model *model;
  struct results *r = end_run(*state, writer, &model, 1e9);
  assert_string_equal(r->peak_precision, "tf32");
  assert_non_null(strstr(r->peak_note, "tf32"));
  assert_close(r->mfu, 1e9 / (STEP_NS / 1e9 * 156e12));
  drop(r, model);
}

/* Ten calls of one shape: in five steps they were timed on a busy stream, with 10 to 14 us, and in
 * one step on an idle stream. A second shape was timed once, on an idle stream; a third was never
 * timed. */
static void a_sample_represents_calls_of_its_shape(void **state) {
  struct trace_writer *writer = begin_run("NVIDIA H100 80GB HBM3");
  u32 number = 0;
  for (u32 step = 0; step < STEPS; step++) {
    u64 at = (u64)step * STEP_NS;
    bool busy = step < 5, idle = step == 5;
    call(writer, at + 1000, &half, busy || idle ? ++number : 0);
    if (busy || idle)
      time_by_events(writer, at + (idle ? 1100 : 50000), idle ? 90000 : 10000 + 1000 * step,
                     number);
    call(writer, at + 2000, &single, step == 0 ? ++number : 0);
    if (step == 0)
      time_by_events(writer, at + 2100, 20000, number);
    call(writer, at + 3000, &allowed, 0);
  }
  struct model *model;
  struct results *r = end_run(*state, writer, &model, NAN);
  const struct gemms_result *p = &r->gemms;
  assert_true(p->sampled && p->one_in == 4 && p->calls == 30 && p->timed == 7);
  const struct gemm_row *row = of_shape(r, "256 x 512 x 1024");
  assert_close(row->mean_us, 12);
  /* 10, 11, ... 14 us: a variance of 2.5; 5 of 10 calls */
  assert_close(row->mean_error_us, sqrt((1 - 0.5) * 2.5 / 5));
  assert_close(row->tflops, operations(&half) / 12e-6 / 1e12);
  assert_close(row->utilisation, row->tflops / 989);
  assert_close(row->calls, 1);
  /* the time of the second shape is an upper bound, with the same relative variance as the first */
  double relative = 2.5 / (12 * 12);
  assert_close(p->ms, 0.012 + 0.020);
  assert_close(p->bounded, 20.0 / 32);
  double error_us = sqrt(0.5 * 2.5 / 5 + 400 * relative * (1 - 0.1));
  assert_close(p->ms_error, error_us / 1e3);
  /* the third shape is not covered */
  double all = operations(&half) + operations(&single) + operations(&allowed);
  assert_close(p->covered, (operations(&half) + operations(&single)) / all);
  assert_close(p->tflops, (operations(&half) + operations(&single)) / 32e-6 / 1e12);
  assert_true(isnan(in_precision(r, "tf32")->ms));
  /* a sample of GEMMs does not show everything that the GPU did */
  assert_true(isnan(r->hfu_coverage) && isnan(r->ov_compute_ms) && isnan(r->ov_exposed_ms));
  drop(r, model);
}

/* A capture with two GEMMs of one kernel each. */
static void write_graph(struct trace_writer *writer, u32 captured) {
  u32 name = trace_string(writer, gemm_kernel);
  struct tscope_shape_record *shape =
      trace_add(writer, retained, AT(0), TSCOPE_REC_SHAPE, 0, sizeof(*shape));
  *shape = (struct tscope_shape_record){.header = shape->header, .shape = 1, .kernel = name};
  for (u32 i = 0; i < 2; i++) {
    struct tscope_graph_gemm_record *gemm =
        trace_add(writer, retained, AT(0), TSCOPE_REC_GRAPH_GEMM, 1, sizeof(*gemm) + 8);
    *gemm = (struct tscope_graph_gemm_record){.header = gemm->header,
                                              .flops = (u64)operations(&half),
                                              .m = half.m,
                                              .n = half.n,
                                              .k = half.k,
                                              .batch = 1,
                                              .a = half.type,
                                              .b = half.type,
                                              .c = half.type,
                                              .compute = half.compute,
                                              .captured = 3,
                                              .kernels = 1,
                                              .shapes = 1};
    *(u32 *)(void *)(gemm + 1) = 1;
  }
  struct tscope_graph_record *graph =
      trace_add(writer, retained, AT(0), TSCOPE_REC_GRAPH, 0, sizeof(*graph));
  *graph = (struct tscope_graph_record){
      .header = graph->header, .graph = 9, .captured = captured, .nodes = 3, .kernels = 3};
}

static void launch_graph(struct trace_writer *writer, u64 at) {
  struct tscope_graph_launch_record *launch =
      trace_add(writer, in_ring, AT(at), TSCOPE_REC_GRAPH_LAUNCH, 1, sizeof(*launch));
  launch->dur = 100;
  launch->graph = 9;
}

/* Each step is a replay: GEMMs of 30 and 50 us, and another kernel of 20 us, which has its own name
 * or that of the GEMMs. */
static struct results *replay_run(struct fixture *fixture, u32 captured, const char *other,
                                  struct model **model) {
  struct trace_writer *writer = begin_run("NVIDIA H100 80GB HBM3");
  write_graph(writer, captured);
  for (u32 step = 0; step < STEPS; step++) {
    u64 at = (u64)step * STEP_NS;
    launch_graph(writer, at + 1000);
    kernel(writer, at + 5000, 30000, gemm_kernel, step + 1);
    kernel(writer, at + 40000, 20000, other, step + 1);
    kernel(writer, at + 70000, 50000, gemm_kernel, step + 1);
  }
  return end_run(fixture, writer, model, NAN);
}

static void each_replay_does_the_gemms_that_were_captured(void **state) {
  struct model *model;
  struct results *r = replay_run(*state, 3, other_kernel, &model);
  assert_close(r->gemm_flops, 2 * operations(&half));
  assert_close(r->hfu, 2 * operations(&half) / 989e12 / (STEP_NS / 1e9));
  assert_close(r->hfu_coverage, 0.8); /* 30 + 50 of 100 us */
  assert_null(r->hfu_note);
  assert_true(r->gemms.calls == 20 && r->gemms.timed == 20 && !r->gemms.sampled);
  assert_close(r->gemms.ms, 0.080);
  assert_close(r->gemms.tflops, 2 * operations(&half) / 80e-6 / 1e12);
  assert_close(in_precision(r, "bf16/fp16")->ms, 0.080);
  drop(r, model);
}

/* The graph with the GEMMs is added twice to a graph without any, and the latter is launched. */
static void gemms_of_nested_graphs_count(void **state) {
  struct model *model;
  struct trace_writer *writer = begin_run("NVIDIA H100 80GB HBM3");
  const u32 puts[3][2] = {{3, 4}, {3, 5}, {4, 5}}; /* once through another graph */
  write_graph(writer, 5);
  for (u32 i = 0; i < 3; i++) {
    struct tscope_graph_child_record *child =
        trace_add(writer, retained, AT(0), TSCOPE_REC_GRAPH_CHILD, 0, sizeof(*child));
    child->child = puts[i][0];
    child->captured = puts[i][1];
  }
  for (u32 step = 0; step < STEPS; step++)
    launch_graph(writer, step * STEP_NS + 2000);
  struct results *r = end_run(*state, writer, &model, NAN);
  assert_close(r->gemm_flops, 4 * operations(&half));
  drop(r, model);
}

/* Each replay has three kernels of this name, of which two were captured in GEMMs: which two is
 * unknown. */
static void kernels_of_the_same_name_are_ambiguous(void **state) {
  struct model *model;
  struct results *r = replay_run(*state, 3, gemm_kernel, &model);
  assert_close(r->gemm_flops, 2 * operations(&half));
  assert_true(r->hfu_coverage == 0);
  assert_null(r->gemms.how);
  assert_true(isnan(r->gemms.ms));
  drop(r, model);
}

static void a_capture_that_was_not_seen_is_unknown(void **state) {
  struct model *model;
  struct trace_writer *writer = begin_run("NVIDIA H100 80GB HBM3");
  write_graph(writer, 0);
  for (u32 step = 0; step < STEPS; step++) {
    call(writer, step * STEP_NS + 500, &half, 0);
    launch_graph(writer, step * STEP_NS + 2000);
  }
  struct results *r = end_run(*state, writer, &model, NAN);
  assert_close(r->gemm_flops, operations(&half));
  assert_non_null(strstr(r->hfu_note, "10 replays of CUDA graphs whose capture was not seen"));
  drop(r, model);
}

/* The operations that the model needs, without an option. */

enum { LAYERS = 6, TOKENS = 2048, HIDDEN = 512 };

static void phase(struct trace_writer *writer, u64 from, u64 to, enum tscope_phase kind) {
  struct tscope_phase_record *record =
      trace_add(writer, retained, AT(from), TSCOPE_REC_PHASE, (u16)kind, sizeof(*record));
  record->dur = to - from;
}

/* The GEMMs of one pass through a transformer: in each layer one for query, key and value, one for
 * the output, and two for the feed-forward net. Each is made `times` times: backward has two for
 * each. */
static u64 pass(struct trace_writer *writer, u64 at, u32 times) {
  static const struct gemm layer[] = {
      {TOKENS, 3 * HIDDEN, HIDDEN, TSCOPE_DTYPE_BF16, COMPUTE_32F},
      {TOKENS, HIDDEN, HIDDEN, TSCOPE_DTYPE_BF16, COMPUTE_32F},
      {TOKENS, 4 * HIDDEN, HIDDEN, TSCOPE_DTYPE_BF16, COMPUTE_32F},
      {TOKENS, HIDDEN, 4 * HIDDEN, TSCOPE_DTYPE_BF16, COMPUTE_32F},
  };
  for (u32 i = 0; i < LAYERS * times; i++)
    for (u32 k = 0; k < 4; k++, at += 1000)
      call(writer, at, &layer[k], 0);
  return at;
}

/* 6 N per token (Kaplan et al., 2020), N = 12 L h^2, with and without recomputing the forward pass
 * in backward. */
static void what_a_transformer_needs_is_known_from_its_forward_pass(void **state) {
  for (u32 again = 0; again < 2; again++) {
    struct trace_writer *writer = begin_run("NVIDIA A10G");
    for (u64 step = 0; step < STEPS; step++) {
      u64 begin = step * STEP_NS + 1000, forward = pass(writer, begin, 1), backward = forward;
      if (again)
        backward = pass(writer, backward, 1);
      backward = pass(writer, backward, 2);
      phase(writer, begin, forward, TSCOPE_PHASE_FORWARD);
      phase(writer, forward, backward, TSCOPE_PHASE_BACKWARD);
      if (again) /* its forward range is inside backward */
        phase(writer, forward, forward + (forward - begin), TSCOPE_PHASE_FORWARD);
    }
    struct model *model;
    struct results *r = end_run(*state, writer, &model, NAN);
    double needed = 6.0 * 12 * LAYERS * HIDDEN * HIDDEN * TOKENS;
    assert_true(r->flops_estimated);
    assert_true(fabs(r->flops_per_step / needed - 1) < 0.02);
    assert_close(r->mfu, r->flops_per_step / (r->step_mean_ms / 1e3 * 70e12));
    assert_non_null(strstr(r->mfu_note, "estimated"));
    drop(r, model);
  }
}

static void what_is_given_wins(void **state) {
  struct trace_writer *writer = begin_run("NVIDIA GeForce RTX 4090");
  for (u64 step = 0; step < STEPS; step++) {
    u64 begin = step * STEP_NS + 1000, forward = pass(writer, begin, 1);
    phase(writer, begin, forward, TSCOPE_PHASE_FORWARD);
  }
  struct model *model;
  struct results *r = end_run(*state, writer, &model, 1e9);
  assert_false(r->flops_estimated);
  assert_null(r->mfu_note);
  assert_close(r->flops_per_step, 1e9);
  assert_close(r->peak_flops, 165.2e12);
  drop(r, model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_slower_factor_and_what_is_allowed_decide),
      WITH_FOLDER(each_gemm_is_compared_with_its_own_peak),
      WITH_FOLDER(operations_without_a_peak_are_counted_apart),
      WITH_FOLDER(a_job_of_one_precision_has_its_peak),
      WITH_FOLDER(a_sample_represents_calls_of_its_shape),
      WITH_FOLDER(each_replay_does_the_gemms_that_were_captured),
      WITH_FOLDER(gemms_of_nested_graphs_count),
      WITH_FOLDER(kernels_of_the_same_name_are_ambiguous),
      WITH_FOLDER(a_capture_that_was_not_seen_is_unknown),
      WITH_FOLDER(what_a_transformer_needs_is_known_from_its_forward_pass),
      WITH_FOLDER(what_is_given_wins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
