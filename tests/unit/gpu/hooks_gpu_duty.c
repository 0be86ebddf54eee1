/* SPDX-License-Identifier: MIT
 *
 * What makes CUPTI cheaper: pausing for some of the job's steps, and recording the replay of a
 * graph as one piece of work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "hooks_gpu.h"
#include "record/job_steps.h"
#include "record/tick_clock.h"

static const int64_t us = 1000;

static int set_up(void **state) {
  return setenv("TSCOPE_GPU_STEPS", "2/5", 1) || setenv("TSCOPE_GPU_GRAPHS", "whole", 1) ||
         gpu_set_up(state);
}

static void optimizer_done(struct tscope_thread *thread) {
  tscope_step_ended(thread, TSCOPE_STEP_OPTIMIZER);
}

static void step_marked(struct tscope_thread *thread) {
  tscope_step_ended(thread, TSCOPE_STEP_MARK);
}

static void a_replay_is_recorded_as_a_whole(void **state) {
  (void)state;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  launch(&kernel, us);
  u32 before = kernels_seen();
  assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  launch(&kernel, 1000 * us);
  launch(&kernel, 1000 * us);
  assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  assert_int_equal(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  u64 launched = tscope_clock_ns(CLOCK_MONOTONIC);
  assert_int_equal(cudaGraphLaunch(executable, stream), cudaSuccess);
  assert_int_equal(kernels_seen(), before + 1);
  u64 seen = tscope_clock_ns(CLOCK_MONOTONIC);
  struct tscope_gpu_kernel_record replay = LAST(GPU_KERNEL, gpu_kernel);
  assert_string(replay.name, "CUDA graph");
  assert_true(replay.graph != 0);
  assert_in_range(replay.dur, 2000 * us, seen - launched);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

/* Checks which of the next steps are watched: each launches one kernel, which is seen or not. */
static void assert_watched(void (*step_ends)(struct tscope_thread *), const char *pattern) {
  for (; *pattern; pattern++) {
    u32 before = kernels_seen();
    launch(&kernel, us);
    assert_int_equal(kernels_seen(), before + (*pattern == 'x'));
    struct tscope_gpu_clock_record clock = LAST(GPU_CLOCK, gpu_clock);
    assert_int_equal(clock.header.tag,
                     *pattern == 'x' ? TSCOPE_GPU_CLOCK_CUPTI : TSCOPE_GPU_CLOCK_HOST);
    poller_part(step_ends);
  }
}

/* Optimizer calls count as steps until the user marks a step; from then on only marks count. */
static void cupti_rests_for_some_steps(void **state) {
  (void)state;
  assert_watched(optimizer_done, "xx...xx...x");
  poller_part(step_marked);
  assert_watched(step_marked, "xx...xx..");
  poller_part(optimizer_done);
  assert_watched(step_marked, ".xx");
}

/* The cost of a delivery is reported with the next one. */
static void cuptis_own_cost_is_recorded(void **state) {
  (void)state;
  launch(&kernel, us);
  kernels_seen();
  launch(&kernel, us);
  kernels_seen();
  kernels_seen();
  struct tscope_gpu_overhead_record cost = LAST(GPU_OVERHEAD, gpu_overhead);
  assert_int_equal(cost.header.tag, TSCOPE_GPU_OVERHEAD_FLUSH);
  assert_true(cost.times > 0);
  assert_true(cost.ns > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_replay_is_recorded_as_a_whole),
      cmocka_unit_test(cuptis_own_cost_is_recorded),
      cmocka_unit_test(cupti_rests_for_some_steps),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
