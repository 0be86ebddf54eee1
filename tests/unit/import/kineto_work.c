/* SPDX-License-Identifier: MIT
 *
 * What PyTorch's profiler recorded, and what is made of it: the critical path, waits, launches,
 * kernels, lines. Each recording is written here together with the expected result.
 */
#include "kineto_texts.h"

#include "analyses/analysis.h"
#include "model/span_call_sites.h"

/* Three kernels of 100 us, 20 us apart, were launched before the recording begins. One more is
 * launched in it, and ends after the host's last call. No part of the path is unknown. */
static void the_path_of_a_recording_that_begins_amid_work(void **state) {
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" KERNEL("a", "100", "100", "1") "," KERNEL(
          "b", "220", "100",
          "2") "," KERNEL("c", "340", "100",
                          "3") "," LAUNCH("300", "9") "," KERNEL("d", "440", "160", "9") "]}");
  struct results *results = analyse_all(model);
  assert_true(fabs(results->path_length_ms - 0.5) < 1e-9);
  assert_true(fabs(path_ms(results, "compute") - 0.46) < 1e-9);
  assert_true(fabs(path_ms(results, "launch") - 0.04) < 1e-9);
  assert_true(path_ms(results, "unknown") == 0);
  results_free(results);
  model_free(model);
}

/* A stream waits for an event of another stream, and the host waits for an event, as cuda_sync
 * events show. */
static void waits_are_edges(void **state) {
#define CALL(name, at, correlation)                                                                \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" at    \
  ",\"dur\":1,\"args\":{\"correlation\":" correlation "}}"
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" LAUNCH("10", "1") "," CALL("cudaEventRecord", "16", "2") "," CALL(
          "cudaStreamWaitEvent", "18",
          "3") "," LAUNCH("20",
                          "4") "," CALL("cudaEventRecord", "26",
                                        "5") ","
                                             "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                                             "\"cudaEventSynchronize\",\"pid\":1,\"tid\":1,"
                                             "\"ts\":30,\"dur\":90,\"args\":{\"correlation\":6}}"
                                             "," KERNEL(
                                                 "first", "15", "40",
                                                 "1") ","
                                                      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
                                                      "\"second\",\"pid\":0,\"tid\":8,\"ts\":56,"
                                                      "\"dur\":60,"
                                                      "\"args\":{\"device\":0,\"stream\":8,"
                                                      "\"correlation\":4}},"
                                                      "{\"ph\":\"X\",\"cat\":\"cuda_sync\","
                                                      "\"name\":\"Stream Wait "
                                                      "Event\",\"pid\":0,\"tid\":8,"
                                                      "\"ts\":18,\"dur\":1,\"args\":{\"stream\":8,"
                                                      "\"correlation\":3,\"wait_on_stream\":7,"
                                                      "\"wait_on_cuda_event_record_corr_id\":2}},"
                                                      "{\"ph\":\"X\",\"cat\":\"cuda_sync\","
                                                      "\"name\":\"Event "
                                                      "Sync\",\"pid\":0,\"tid\":-1,\"ts\":30,"
                                                      "\"dur\":89,\"args\":{\"stream\":-1,"
                                                      "\"correlation\":6,\"wait_on_stream\":8,"
                                                      "\"wait_on_cuda_event_record_corr_id\":5}}]"
                                                      "}");
  struct timeline timeline = timeline_of(model, 0);
  assert_int_equal(timeline.n_edges, 2);
  for (u32 i = 0; i < 2; i++) {
    const struct edge *edge = &timeline.edges[i];
    const char *from = timeline_name(&timeline, timeline.spans[edge->from].name);
    const char *to = timeline_name(&timeline, timeline.spans[edge->to].name);
    assert_string_equal(from, edge->kind == EDGE_EVENT ? "first" : "second");
    assert_string_equal(to, edge->kind == EDGE_EVENT ? "second" : "cudaEventSynchronize");
  }
  timeline_release(&timeline);
  model_free(model);
}

#define COPY(call_at, call_dur, at, correlation)                                                   \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":1,\"tid\":1,"       \
  "\"ts\":" call_at ",\"dur\":" call_dur ",\"args\":{\"correlation\":" correlation "}},"           \
  "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH (Device -> Pageable)\",\"pid\":0,"  \
  "\"tid\":7,\"ts\":" at ",\"dur\":2,\"args\":{\"device\":0,\"stream\":7,\"bytes\":4,"             \
  "\"correlation\":" correlation "}}"

/* loss.item(): the call of the copy returns when the copy has ended, and so the kernel before it.
 * The second copy runs after its call. */
static void a_copy_to_pageable_memory_is_a_wait(void **state) {
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" LAUNCH("10", "1") "," KERNEL("a", "20", "400", "1") "," COPY(
          "16", "410", "422",
          "2") "," LAUNCH("430", "3") "," KERNEL("b", "440", "100", "3") "," COPY("436", "60",
                                                                                  "541", "4") "]}");
  struct timeline timeline = timeline_of(model, 0);
  assert_int_equal(timeline.n_edges, 1);
  const struct span *wait = &timeline.spans[timeline.edges[0].to];
  assert_int_equal(wait->kind, SPAN_SYNC);
  assert_string_equal(timeline_name(&timeline, wait->name), "cudaMemcpyAsync");
  assert_in_range(wait->end - wait->start, 409999, 410000);
  assert_int_equal(timeline.spans[timeline.edges[0].from].kind, SPAN_MEMCPY);
  timeline_release(&timeline);
  struct results *results = analyse_all(model);
  assert_true(fabs(path_ms(results, "compute") - 0.5) < 1e-9);
  results_free(results);
  model_free(model);
}

/* The host puts work on stream 7 that begins 5 ms later, and in that time nothing runs; a little
 * kernel ran on stream 8 before. What the device did meanwhile was launched earlier. If it computes
 * meanwhile, the work waited for that. */
static void what_a_stream_did_before_is_not_known(void **state) {
#define ON_8(at, dur)                                                                              \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"other\",\"pid\":0,\"tid\":8,\"ts\":" at             \
  ",\"dur\":" dur ",\"args\":{\"device\":0,\"stream\":8,\"correlation\":1}}"
  struct model *model =
      read_text(*state, "{\"traceEvents\":[" LAUNCH("10", "1") "," ON_8("16", "2") "," LAUNCH(
                            "20", "2") "," KERNEL("a", "5020", "400", "2") "]}");
  const struct rank *rank = &model->ranks[0];
  assert_false(model_gpu_seen(rank, rank->begin, rank->begin + 4000000));
  assert_true(model_gpu_seen(rank, rank->begin + 5010000, rank->begin + 5400000));
  model_free(model);
  model =
      read_text(*state, "{\"traceEvents\":[" LAUNCH("10", "1") "," ON_8("16", "5000") "," LAUNCH(
                            "20", "2") "," KERNEL("a", "5020", "400", "2") "]}");
  assert_true(
      model_gpu_seen(&model->ranks[0], model->ranks[0].begin, model->ranks[0].begin + 4000000));
  model_free(model);
}

static bool is(double value, double wanted) {
  return fabs(value - wanted) < 1e-9;
}

/* Computed by hand: work at [10,30) [60,80) [85,95) [110,111) us, launched by calls that return at
 * 5, 55, 83 and 107. */
static void gpu_time_and_launches_add_up(void **state) {
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" LAUNCH("0", "1") "," KERNEL("a", "10", "20", "1") "," LAUNCH(
          "50", "2") "," KERNEL("b", "60", "20",
                                "2") ","
                                     "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                                     "\"cudaMemcpyAsync\",\"pid\":1,\"tid\":1,"
                                     "\"ts\":81,\"dur\":2,\"args\":{\"correlation\":3}},"
                                     "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD "
                                     "(Pinned -> Device)\",\"tid\":7,"
                                     "\"ts\":85,\"dur\":10,\"args\":{\"device\":0,\"stream\":7,"
                                     "\"correlation\":3,\"bytes\":4096}},"
                                     "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::zero_\","
                                     "\"pid\":1,\"tid\":1,\"ts\":100,"
                                     "\"dur\":20,\"args\":{\"Input Dims\":[[4, 4]]}}," LAUNCH(
                                         "102", "4") "," KERNEL("fill", "110", "1", "4") "]}");
  struct results *results = analyse_all(model);
  const struct gpu_timeline_result *gpu = &results->gpu_timeline;
  assert_true(is(gpu->compute_ms, 0.041) && is(gpu->exposed_memcpy_ms, 0.010));
  assert_true(gpu->exposed_comm_ms == 0);
  assert_true(is(gpu->idle_ms, 0.050) && is(gpu->total_ms, 0.101));
  assert_true(is(gpu->host_bound_ms, 0.040) && is(gpu->kernel_gap_ms, 0.010));
  assert_true(gpu->other_ms == 0);
  assert_true(results->launch.kernels == 3 && results->launch.short_kernels == 1);
  assert_true(is(results->launch.delay_max_us, 5) && results->launch.queue_max == 1);
  assert_int_equal(results->launch.n_memcpys, 1);
  assert_string_equal(results->launch.memcpys[0].direction, "host to device");
  assert_true(results->launch.memcpys[0].bytes == 4096 &&
              is(results->launch.memcpys[0].gbps, 0.4096));
  assert_int_equal(results->launch.n_fills, 1);
  assert_string_equal(results->launch.fills[0].name, "aten::zero_ [[4, 4]]");
  assert_true(results->launch.fills[0].count == 1 && is(results->launch.fills[0].sum_ms, 0.001));
  assert_true(isnan(results->launch.recompute_ms));
  results_free(results);
  model_free(model);
}

/* The backward pass of a checkpoint runs the forward pass again before its own work. */
static void recomputation_is_separated_from_backward(void **state) {
  struct model *model =
      read_text(*state, "{\"traceEvents\":["
                        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"CheckpointFunctionBackward\","
                        "\"pid\":1,\"tid\":1,"
                        "\"ts\":0,\"dur\":100}," LAUNCH("10", "1") "," KERNEL(
                            "forward", "20", "7",
                            "1") ","
                                 "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"autograd::engine::"
                                 "evaluate_function: Mm\","
                                 "\"pid\":1,\"tid\":1,\"ts\":40,\"dur\":50}," LAUNCH(
                                     "50", "2") "," KERNEL("backward", "60", "20", "2") "]}");
  struct results *results = analyse_all(model);
  assert_true(is(results->launch.recompute_ms, 0.007));
  results_free(results);
  model_free(model);
}

#define ON_HOST(category, name, tid, at, dur, arguments)                                           \
  "{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid            \
  ",\"ts\":" at ",\"dur\":" dur ",\"args\":{" arguments "}},"
#define NUMBERED(number, thread) "\"Sequence number\":" number ",\"Fwd thread id\":" thread
#define ON_GPU(at, correlation)                                                                    \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":" at                 \
  ",\"dur\":4,\"args\":{\"device\":0,\"stream\":7,\"correlation\":" correlation "}},"

/* Two functions call one operator each on thread 1, the hundredth for PyTorch. On thread 2 autograd
 * runs their backward and that of an operator that is not in the trace. An operator without a
 * backward used the sequence number before. */
static void lines_are_of_functions_and_backward_is_of_its_forward(void **state) {
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" ON_HOST("python_function", "train.py(10): main", "1", "0", "400",
                                   "\"Python id\":1")
          ON_HOST("python_function", "model.py(20): first", "1", "10", "40", "") ON_HOST(
              "python_function", "torch/nn/functional.py(5): relu", "1", "12", "36",
              "") ON_HOST("python_function", "<built-in method relu>", "1", "13", "34",
                          "") ON_HOST("cpu_op", "aten::relu", "1", "15", "20", NUMBERED("7", "0"))
              ON_HOST("cuda_runtime", "cudaLaunchKernel", "1", "20", "5", "\"correlation\":1")
                  ON_HOST("cpu_op", "aten::empty", "1", "40", "2", NUMBERED("8", "0")) ON_HOST(
                      "python_function", "model.py(30): second", "1", "60", "40",
                      "") ON_HOST("cpu_op", "aten::mul", "1", "65", "20", NUMBERED("8", "0"))
                      ON_HOST("cuda_runtime", "cudaLaunchKernel", "1", "70", "5",
                              "\"correlation\":2")
                          ON_HOST("cpu_op", "autograd::engine::evaluate_function: MulBackward0",
                                  "2", "200", "30",
                                  NUMBERED("8", "100")) ON_HOST("cpu_op", "MulBackward0", "2",
                                                                "205", "20", NUMBERED("8", "100"))
                              ON_HOST("cuda_runtime", "cudaLaunchKernel", "2", "210", "5",
                                      "\"correlation\":3") ON_HOST("cpu_op", "ReluBackward0", "2",
                                                                   "240",
                                                                   "20", NUMBERED("7", "100"))
                                  ON_HOST("cuda_runtime", "cudaLaunchKernel", "2", "245", "5",
                                          "\"correlation\":4") ON_HOST("cpu_op", "SinBackward0",
                                                                       "2", "270",
                                                                       "20", NUMBERED("3", "100"))
                                      ON_HOST("cuda_runtime", "cudaLaunchKernel", "2", "275", "5",
                                              "\"correlation\":5") ON_GPU("22", "1")
                                          ON_GPU("72", "2") ON_GPU("212", "3") ON_GPU("247", "4")
                                              ON_GPU("277", "5") "{\"ph\":\"M\"}]}");
  struct timeline t = timeline_of(model, 0);
  const struct call_sites *sites = t.call_sites;
  assert_non_null(sites);
  assert_true(sites->of_functions);
  static const u32 lines[] = {20, 30, 30, 20, 0};
  u32 launches = 0;
  for (u32 i = 0; i < t.n_spans; i++) {
    if (t.spans[i].kind != SPAN_LAUNCH)
      continue;
    u32 site = sites->of_span[i], wanted = lines[launches];
    assert_int_equal(site == INDEX_NONE, wanted == 0);
    if (wanted) {
      u32 frame = call_stack_line(sites, &sites->stacks[sites->sites[site].stack]);
      assert_int_equal(sites->frames[frame].line, wanted);
      assert_string_equal(sites->frames[frame].file, "model.py");
      assert_string_equal(sites->frames[frame].function, wanted == 20 ? "first" : "second");
      assert_int_equal(sites->sites[site].of_forward, launches >= 2);
    }
    launches++;
  }
  assert_int_equal(launches, 5);
  timeline_release(&t);
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(the_path_of_a_recording_that_begins_amid_work),
      WITH_FOLDER(waits_are_edges),
      WITH_FOLDER(a_copy_to_pageable_memory_is_a_wait),
      WITH_FOLDER(what_a_stream_did_before_is_not_known),
      WITH_FOLDER(gpu_time_and_launches_add_up),
      WITH_FOLDER(recomputation_is_separated_from_backward),
      WITH_FOLDER(lines_are_of_functions_and_backward_is_of_its_forward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
