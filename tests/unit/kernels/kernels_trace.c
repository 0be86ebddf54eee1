/* SPDX-License-Identifier: MIT
 *
 * GEMMs and attention from a trace file to the report: the records are written by hand, with known
 * times and operations.
 */
#include "model_support.h"

#include "analyses/results/results.h"

#define FLOPS 4000000ull

static const char *const attention =
    "_ZN13pytorch_flash16flash_fwd_kernelINS_23Flash_fwd_kernel_"
    "traitsILi64ELi128ELi128ELi4ELb0ELb0E"
    "N7cutlass10bfloat16_tEEELb0ELb1ELb0ELb0ELb1ELb1ELb0ELb0EEEvNS_16Flash_fwd_paramsE";

static void write_launch(struct trace_writer *writer, u64 at, u32 shape) {
  struct tscope_launch_record *launch =
      trace_add(writer, in_ring, AT(at), TSCOPE_REC_LAUNCH, 1, sizeof(*launch));
  launch->dur = 100;
  launch->shape = shape;
}

static void write_kernel(struct trace_writer *writer, u64 at, u32 dur, const char *name) {
  u32 string = trace_string(writer, name);
  struct tscope_gpu_kernel_record *kernel =
      trace_add(writer, on_gpu, AT(at), TSCOPE_REC_GPU_KERNEL, 1, sizeof(*kernel));
  kernel->dur = dur;
  kernel->name = string;
}

static void write_shape(struct trace_writer *writer, u32 number, const char *name, u32 grid_x) {
  u32 string = trace_string(writer, name);
  struct tscope_shape_record *shape =
      trace_add(writer, retained, AT(0), TSCOPE_REC_SHAPE, 0, sizeof(*shape));
  shape->shape = number;
  shape->kernel = string;
  shape->grid_x = grid_x;
  shape->grid_y = 2;
  shape->grid_z = 8;
  shape->block_x = 128;
}

/* A GEMM of two kernels (the product and its split-k sum), an attention, an elementwise kernel. */
static void write_step(struct trace_writer *writer, u64 at, bool captured) {
  struct tscope_gemm_record *gemm =
      trace_add(writer, in_ring, AT(at), TSCOPE_REC_GEMM, 1, sizeof(*gemm));
  gemm->dur = 500;
  gemm->flops = FLOPS;
  gemm->captured = captured;
  write_launch(writer, at + 100, 1);
  write_launch(writer, at + 300, 2);
  write_launch(writer, at + 600, 3);
  write_launch(writer, at + 800, 4);
  write_kernel(writer, at + 1000, 3000, "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT");
  write_kernel(writer, at + 4000, 1000, "_ZN8cublasLt18splitKreduce_kernelEv");
  write_kernel(writer, at + 5000, 2000, attention);
  write_kernel(writer, at + 7000, 2000, "_Z10elementwisev");
}

static struct model *write_run_by_hand(struct fixture *fixture, bool captured) {
  struct trace_writer *writer = new_rank(0, 1);
  trace_info(writer, TSCOPE_INFO_TSCOPE, "test", NULL);
  struct tscope_stream_record *stream =
      trace_add(writer, retained, AT(0), TSCOPE_REC_STREAM, 1, sizeof(*stream));
  stream->handle = 0x1000;
  write_shape(writer, 1, "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", 4);
  write_shape(writer, 2, "_ZN8cublasLt18splitKreduce_kernelEv", 4);
  write_shape(writer, 3, attention, 16);
  write_shape(writer, 4, "_Z10elementwisev", 4);
  for (u32 step = 0; step <= 10; step++) {
    struct tscope_step_record *mark =
        trace_add(writer, retained, AT(step * 10000), TSCOPE_REC_STEP, 0, sizeof(*mark));
    mark->step = step;
    if (step < 10)
      write_step(writer, step * 10000, captured);
  }
  save_rank(fixture, writer);
  return load(fixture->directory, &(struct model_options){.include_warmup = true});
}

static struct results *report_of(const struct model *model) {
  struct analyse_options options = no_options();
  options.peak_tflops = 1;
  return analyse(model, &options);
}

static void test_operations_are_led_back_to_kernels(void **state) {
  struct model *model = write_run_by_hand(*state, false);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  assert_int_equal(timeline.n_arithmetic, 20); /* ten GEMMs, ten attentions */
  for (u32 i = 0; i < timeline.n_arithmetic; i += 2) {
    const struct arithmetic *gemm = &timeline.arithmetic[i];
    assert_true(gemm->flops == FLOPS && !gemm->estimate && !gemm->captured);
    assert_int_equal(gemm->end - gemm->start, 500);
    /* causal: half of 4 x batch 2 x heads 8 x (16 x 128)^2 x head size 64 */
    assert_true(gemm[1].estimate && gemm[1].flops == 2ull * 2 * 8 * 2048 * 2048 * 64);
  }
  timeline_release(&timeline);
  struct results *results = report_of(model);
  assert_int_equal(results->step_count, 10);
  /* FLOPS in 10 us, with a peak of 1e12 per second */
  assert_true(fabs(results->hfu - (double)FLOPS / (10e-6 * 1e12)) < 1e-9);
  assert_true(fabs(results->hfu_coverage - 0.5) < 1e-12); /* 3 + 1 of 8 us */
  assert_true(fabs(results->hfu_attention_coverage - 0.25) < 1e-12);
  assert_true(results->gemm_flops == FLOPS);
  assert_int_equal(results->n_kernels, 4);
  assert_string_equal(results->kernels[0].category, "GEMM");
  results_free(results);
  model_free(model);
}

static void test_captured_gemms_did_nothing_yet(void **state) {
  struct model *model = write_run_by_hand(*state, true);
  struct results *results = report_of(model);
  assert_true(isnan(results->hfu));
  assert_non_null(strstr(results->hfu_reason, "CUDA graphs"));
  results_free(results);
  model_free(model);
}

/* Ten replays; only the first four have kernels in the trace. */
static void test_replays_are_counted(void **state) {
  struct trace_writer *writer = new_rank(0, 1);
  struct tscope_stream_record *stream =
      trace_add(writer, retained, AT(0), TSCOPE_REC_STREAM, 1, sizeof(*stream));
  stream->handle = 0x1000;
  u32 name = trace_string(writer, "_Z6kernelv");
  for (u32 i = 0; i < 10; i++) {
    struct tscope_graph_launch_record *launch =
        trace_add(writer, in_ring, AT(i * 10000), TSCOPE_REC_GRAPH_LAUNCH, 1, sizeof(*launch));
    launch->dur = 100;
    for (u32 k = 0; k < 3 && i < 4; k++) {
      struct tscope_gpu_kernel_record *kernel =
          trace_add(writer, on_gpu, AT(i * 10000 + 1000 + k * 100), TSCOPE_REC_GPU_KERNEL, 1,
                    sizeof(*kernel));
      kernel->dur = 50;
      kernel->name = name;
      kernel->correlation = i + 1;
      kernel->graph = 7;
    }
  }
  save_rank(*state, writer);
  struct model *model = load(((struct fixture *)*state)->directory, NULL);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  assert_int_equal(timeline.graph_launches, 10);
  assert_int_equal(timeline.graph_launches_run, 4);
  timeline_release(&timeline);
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_operations_are_led_back_to_kernels, make_fixture,
                                      drop_fixture),
      cmocka_unit_test_setup_teardown(test_captured_gemms_did_nothing_yet, make_fixture,
                                      drop_fixture),
      cmocka_unit_test_setup_teardown(test_replays_are_counted, make_fixture, drop_fixture),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
