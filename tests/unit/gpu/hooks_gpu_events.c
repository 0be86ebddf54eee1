/* SPDX-License-Identifier: MIT
 *
 * GPU times from pairs of events on the stand-in GPU: collectives with their sequence number and
 * duration, bounded pools, and captures that are the same as without tscope.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <cuda.h>
#include <nccl.h>

#include "gpu/cuda_events.h"
#include "gpu/event_clock.h"
#include "gpu/event_pairs.h"
#include "hooks_gpu_events.h"
#include "nccl/nccl_record.h"
#include "record/process_trace.h"

static const int64_t us = 1000, ms = 1000000;

/* What everything in this program takes for the time, the helper's thread too. */
static int64_t later_s;
int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  time->tv_sec += clock == CLOCK_MONOTONIC ? __atomic_load_n(&later_s, __ATOMIC_RELAXED) : 0;
  return result;
}

static const struct event_subject subject = {.name = "all_reduce", .comm = 7, .seq = 11};

static event_pair_ticket begin_on(cudaStream_t on, u16 index) {
  return event_pair_begin(on, TSCOPE_STREAM_LEGACY, index);
}

/* The events of the stand-in are exact. CUDA gives the time between two as a float of milliseconds,
 * and the clocks agree within the error that the trace states. */
static void a_pair_gives_start_and_duration(void **state) {
  (void)state;
  assert_int_equal(LAST(GPU_CLOCK, gpu_clock).header.tag, TSCOPE_GPU_CLOCK_EVENTS);
  deliver();
  int64_t from = standin_now_ns();
  event_pair_ticket pair = begin_on(stream, 100);
  assert_true(pair);
  launch(&kernel, 5 * ms);
  event_pair_end(pair, &subject);
  deliver();
  int64_t to = standin_now_ns();
  struct trace trace = trace_read();
  struct trace_record at = {0}, last = {0};
  while (trace_next_of(&trace, &at, TSCOPE_REC_COLLECTIVE_RUN))
    last = at;
  assert_non_null(last.record);
  const struct tscope_collective_run_record *run = (const void *)last.record;
  u64 error = LAST(GPU_ANCHOR, gpu_anchor).error_ns;
  assert_in_range(error, 1, 10 * ms);
  assert_int_equal(last.chunk->clock, TSCOPE_CLOCK_MONOTONIC);
  assert_in_range(last.base + run->header.time, from - (int64_t)error,
                  to - 5 * ms + (int64_t)error);
  assert_in_range(run->dur, 5 * ms, to - from); /* plus the host's time to launch it */
  assert_int_equal(run->header.tag, 100);
  assert_int_equal(run->comm, 7);
  assert_int_equal(run->seq, 11);
  trace_close(&trace);
  assert_string(LAST(COLLECTIVE_RUN, collective_run).name, "all_reduce");
}

static void work_that_was_not_launched_is_not_recorded(void **state) {
  (void)state;
  u32 before = runs();
  event_pair_end(begin_on(stream, 100), NULL);
  assert_int_equal(runs(), before);
}

static void a_sampled_function_says_how_many_calls_it_represents(void **state) {
  (void)state;
  int64_t from = standin_now_ns();
  event_pair_ticket pair = begin_on(stream, 100);
  launch(&kernel, 2 * ms);
  event_pair_end(pair, &(struct event_subject){.name = "cublasGemmEx", .one_in = 16});
  deliver();
  struct tscope_gpu_work_record work = LAST(GPU_WORK, gpu_work);
  assert_int_equal(work.one_in, 16);
  assert_in_range(work.dur, 2 * ms, standin_now_ns() - from);
  assert_string(work.name, "cublasGemmEx");
}

int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetStream_v2(void *handle, cudaStream_t on);
int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                   int ldc);

static void one_gemm_in_sixteen_is_timed(void **state) {
  (void)state;
  void *handle;
  assert_int_equal(cublasCreate_v2(&handle), 0);
  assert_int_equal(cublasSetStream_v2(handle, stream), 0);
  deliver();
  u32 works = count(TSCOPE_REC_GPU_WORK), gemms = count(TSCOPE_REC_GEMM);
  for (int i = 0; i < 48; i++) {
    standin_next_kernel_ns(3 * ms);
    assert_int_equal(cublasSgemm_v2(handle, 0, 0, 8, 8, 8, NULL, NULL, 8, NULL, 8, NULL, NULL, 8),
                     0);
  }
  deliver();
  assert_int_equal(count(TSCOPE_REC_GPU_WORK), works + 3);
  assert_int_equal(count(TSCOPE_REC_GEMM), gemms + 48);
  struct tscope_gpu_work_record work = LAST(GPU_WORK, gpu_work);
  assert_int_equal(work.one_in, 16);
  assert_in_range(work.dur, 3 * ms, 3 * ms + 100 * us);
  assert_string(work.name, "cublasSgemm_v2");
  assert_int_equal(work.header.tag, LAST(GEMM, gemm).header.tag);
  cublasDestroy_v2(handle);
}

static void gemm(void *handle, int m) {
  assert_int_equal(cublasSgemm_v2(handle, 0, 0, m, 8, 8, NULL, NULL, m, NULL, 8, NULL, NULL, m), 0);
}

/* A model with 16 GEMMs in each step, of which one in 16 is timed: a fixed stride would time the
 * same GEMM in every step. In 40 steps 16 x (15/16)^40 = 1.2 of them are never picked on average:
 * at least half must be picked. The records of calls and of times have the same numbers. */
static void all_gemms_of_a_model_are_picked_in_turn(void **state) {
  (void)state;
  void *handle;
  bool picked[17] = {false};
  u32 different = 0, joined = 0, numbers[64], n = 0;
  assert_int_equal(cublasCreate_v2(&handle), 0);
  assert_int_equal(cublasSetStream_v2(handle, stream), 0);
  u32 works = count(TSCOPE_REC_GPU_WORK);
  for (int step = 0; step < 40; step++) {
    for (int m = 1; m <= 16; m++)
      gemm(handle, m);
    cudaStreamSynchronize(stream);
  }
  deliver();
  struct trace trace = trace_read();
  for (struct trace_record at = {0}; trace_next_of(&trace, &at, TSCOPE_REC_GEMM);) {
    const struct tscope_gemm_record *gemm = (const void *)at.record;
    if (!gemm->timed || gemm->n != 8 || gemm->m > 16)
      continue;
    different += !picked[gemm->m];
    picked[gemm->m] = true;
    if (n < 64)
      numbers[n++] = gemm->timed;
  }
  for (struct trace_record at = {0}; trace_next_of(&trace, &at, TSCOPE_REC_GPU_WORK);)
    for (u32 i = 0; i < n; i++)
      joined +=
          ((const struct tscope_gpu_work_record *)(const void *)at.record)->number == numbers[i];
  trace_close(&trace);
  assert_in_range(different, 8, 16);
  assert_in_range(count(TSCOPE_REC_GPU_WORK) - works, 39, 41);
  assert_int_equal(joined, n);
  cublasDestroy_v2(handle);
}

/* Its time belongs to the replays of the graph. Their kernels are seen only if the driver is looked
 * up through the shim: scenario GEMMs-graph tests that. */
static void a_captured_gemm_belongs_to_the_graph(void **state) {
  (void)state;
  void *handle;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  assert_int_equal(cublasCreate_v2(&handle), 0);
  assert_int_equal(cublasSetStream_v2(handle, stream), 0);
  deliver();
  u32 works = count(TSCOPE_REC_GPU_WORK), launches = count(TSCOPE_REC_LAUNCH);
  assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  for (int i = 0; i < 20; i++) /* one of them would be timed */
    gemm(handle, 24);
  launch(&kernel, us);
  assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  assert_int_equal(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
  deliver();
  assert_int_equal(count(TSCOPE_REC_GPU_WORK), works);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches);
  assert_int_equal(count(TSCOPE_REC_GRAPH_GEMM), 20);
  assert_int_equal(LAST(GEMM, gemm).captured, 1);
  assert_int_equal(LAST(GEMM, gemm).timed, 0);
  struct tscope_graph_gemm_record last = LAST(GRAPH_GEMM, graph_gemm);
  assert_int_equal(last.captured, LAST(GRAPH, graph).captured);
  assert_int_not_equal(last.captured, 0);
  assert_true(last.flops == 2 * 24 * 8 * 8 && last.m == 24 && last.a == TSCOPE_DTYPE_F32);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cublasDestroy_v2(handle);
}

/* A stream that waits uses up its own pool and blocks no other stream. */
static void a_pool_is_bounded_and_a_streams_own(void **state) {
  (void)state;
  cudaStream_t other;
  assert_int_equal(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  u32 before = runs(), had = 0, got = 0;
  u64 dropped = gpu_clock_events.totals->dropped;
  launch(&kernel, 200 * ms);
  for (; had < 1000; had++) {
    event_pair_ticket pair = begin_on(stream, 100);
    got += pair != 0;
    event_pair_end(pair, &subject);
  }
  assert_in_range(got, 1, 999);
  assert_true(gpu_clock_events.totals->dropped == dropped + had - got);
  event_pair_ticket pair = begin_on(other, 101);
  assert_true(pair);
  event_pair_end(pair, &subject);
  cudaStreamSynchronize(other);
  poller_part(gpu_clock_events.poll);
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE_RUN), before + 1); /* only the other stream's */
  assert_int_equal(runs(), before + 1 + got);
  cudaStreamDestroy(other);
}

static int query_fails(void *event) {
  (void)event;
  return 700; /* CUDA_ERROR_ILLEGAL_ADDRESS */
}

static void an_error_is_not_an_end(void **state) {
  (void)state;
  int (*real)(void *) = cuda_events.cuEventQuery;
  u32 before = runs();
  u64 invalid = gpu_clock_events.totals->invalid;
  event_pair_ticket pair = begin_on(stream, 100);
  event_pair_end(pair, &subject);
  cuda_events.cuEventQuery = query_fails;
  deliver();
  cuda_events.cuEventQuery = real;
  assert_int_equal(runs(), before);
  assert_true(gpu_clock_events.totals->invalid == invalid + 1);
}

static void a_stream_that_is_gone_leaves_its_pool_to_the_next(void **state) {
  (void)state;
  for (u16 i = 0; i < 300; i++) { /* more streams than there can be pools */
    cudaStream_t brief;
    u32 before = runs();
    assert_int_equal(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking), cudaSuccess);
    event_pair_ticket pair = begin_on(brief, 1000 + i);
    assert_true(pair);
    launch_on(brief, &kernel, us);
    event_pair_end(pair, &subject);
    event_pairs_release(1000 + i);
    cudaStreamDestroy(brief);
    assert_int_equal(runs(), before + 1);
  }
}

static int (*real_record)(void *, void *);
static u32 recorded;
static int count_record(void *event, void *on) {
  recorded++;
  return real_record(event, on);
}

static void end_uselessly(event_pair_ticket pair) {
  real_record = cuda_events.cuEventRecord;
  cuda_events.cuEventRecord = count_record;
  recorded = 0;
  event_pair_end(pair, &subject);
  cuda_events.cuEventRecord = real_record;
  assert_int_equal(recorded, 0);
}

/* The first collective of a communicator connects, and may take minutes. */
static void a_call_that_takes_long_keeps_its_pair(void **state) {
  (void)state;
  u32 before = runs();
  u64 lost = tscope_trace.header->lost[TSCOPE_LOSS_GPU];
  event_pair_ticket slow = begin_on(stream, 100);
  __atomic_store_n(&later_s, 3600, __ATOMIC_RELAXED);
  poller_part(gpu_clock_events.poll);
  __atomic_store_n(&later_s, 0, __ATOMIC_RELAXED);
  launch(&kernel, us);
  event_pair_end(slow, &subject);
  assert_int_equal(runs(), before + 1);
  assert_true(tscope_trace.header->lost[TSCOPE_LOSS_GPU] == lost);
}

static void a_call_that_never_ends_holds_up_no_other(void **state) {
  (void)state;
  u32 before = runs();
  event_pair_ticket left = begin_on(stream, 100);
  u64 lost = tscope_trace.header->lost[TSCOPE_LOSS_GPU];
  for (u32 i = 0; i < 100; i++)
    event_pair_end(begin_on(stream, 100), &subject);
  assert_int_equal(runs(), before + 100);
  for (u32 i = 0; i < 1000; i++) {
    event_pair_end(begin_on(stream, 100), &subject);
    if (i % 50 == 49)
      deliver();
  }
  u64 dropped = tscope_trace.header->lost[TSCOPE_LOSS_GPU] - lost;
  assert_in_range(dropped, 1, 51); /* the one that was left, and others until the next tick */
  assert_int_equal(runs(), before + 1101 - dropped);
  end_uselessly(left);
  event_pair_end(begin_on(stream, 100), &subject);
  assert_int_equal(runs(), before + 1102 - dropped);
}

/* Its memory may have come to another call since. */
static void a_pair_that_was_taken_away_ends_nothing(void **state) {
  (void)state;
  event_pair_ticket left = begin_on(stream, 100);
  for (u32 i = 0; i < 300; i++) {
    event_pair_end(begin_on(stream, 100), &subject);
    deliver();
  }
  u32 before = runs();
  event_pair_ticket all[200];
  for (u32 i = 0; i < 200; i++)
    all[i] = begin_on(stream, 100);
  end_uselessly(left);
  for (u32 i = 0; i < 200; i++)
    event_pair_end(all[i], &subject);
  assert_int_equal(runs(), before + 200);
}

static void pairs_left_on_streams_that_are_gone_leave_the_pools(void **state) {
  (void)state;
  for (u16 i = 0; i < 300; i++) {
    cudaStream_t brief;
    assert_int_equal(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking), cudaSuccess);
    event_pair_ticket pair = begin_on(brief, 2000 + i);
    assert_true(pair);
    event_pairs_release(2000 + i);
    cudaStreamDestroy(brief);
    deliver();
    end_uselessly(pair);
  }
}

static void nothing_is_recorded_on_a_captured_stream(void **state) {
  (void)state;
  cudaGraph_t graph;
  u32 before = runs();
  assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  assert_false(begin_on(stream, 100));
  launch(&kernel, us);
  assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
  assert_int_equal(runs(), before);
  cudaGraphDestroy(graph);
}

static void the_default_stream_is_left_alone_while_others_are_captured(void **state) {
  (void)state;
  cudaStream_t blocking;
  cudaGraph_t graph;
  assert_int_equal(cudaStreamCreate(&blocking), cudaSuccess);
  assert_int_equal(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal), cudaSuccess);
  assert_false(begin_on(NULL, 102));
  launch_on(blocking, &kernel, us);
  assert_int_equal(cudaStreamEndCapture(blocking, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  event_pair_ticket pair = begin_on(NULL, 102);
  assert_true(pair);
  event_pair_end(pair, &subject);
  cudaStreamDestroy(blocking);
}

/* Makes pools and anchors and queries events while another stream is captured: without
 * cudaThreadExchangeStreamCaptureMode() each of these calls would invalidate the capture. */
static void queries_end_no_capture(void **state) {
  (void)state;
  cudaStream_t captured, fresh;
  cudaGraph_t graph;
  u32 before = runs();
  assert_int_equal(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
  assert_int_equal(cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking), cudaSuccess);
  assert_int_equal(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
  event_pair_ticket pair = begin_on(stream, 100), first = begin_on(fresh, 103);
  assert_true(pair);
  assert_true(first);
  launch(&kernel, us);
  event_pair_end(pair, &subject);
  event_pair_end(first, &subject);
  for (int64_t until = standin_now_ns() + 2000 * ms;
       count(TSCOPE_REC_COLLECTIVE_RUN) < before + 2 && standin_now_ns() < until;)
    poller_part(gpu_clock_events.poll);
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE_RUN), before + 2);
  assert_int_equal(cudaStreamEndCapture(captured, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(captured);
  cudaStreamDestroy(fresh);
}

static void a_collective_has_its_own_number(void **state) {
  (void)state;
  u32 before = runs();
  assert_int_equal(ncclAllReduce(memory, memory, 16, ncclInt32, ncclSum, comm, stream),
                   ncclSuccess);
  assert_int_equal(runs(), before + 1);
  struct tscope_collective_record call = LAST(COLLECTIVE, collective);
  struct tscope_collective_run_record run = LAST(COLLECTIVE_RUN, collective_run);
  assert_int_equal(run.comm, call.comm);
  assert_int_equal(run.seq, call.seq);
  assert_int_equal(run.header.tag, call.stream);
  assert_string(run.name, "all_reduce");
}

static void a_group_is_timed_where_it_is_launched(void **state) {
  (void)state;
  u32 before = runs();
  assert_int_equal(ncclGroupStart(), ncclSuccess);
  assert_int_equal(ncclGroupStart(), ncclSuccess);
  assert_int_equal(ncclSend(memory, 16, ncclInt32, 0, comm, stream), ncclSuccess);
  struct tscope_collective_record first = LAST(COLLECTIVE, collective);
  assert_int_equal(ncclRecv((char *)memory + 4096, 16, ncclInt32, 0, comm, stream), ncclSuccess);
  assert_int_equal(ncclGroupEnd(), ncclSuccess);
  assert_int_equal(ncclGroupEnd(), ncclSuccess);
  assert_int_equal(runs(), before + 1);
  struct tscope_collective_run_record run = LAST(COLLECTIVE_RUN, collective_run);
  assert_int_equal(run.seq, first.seq);
  assert_string(run.name, "send");
}

static void a_call_that_failed_did_not_run(void **state) {
  (void)state;
  u32 before = runs();
  assert_int_not_equal(ncclAllReduce(memory, memory, 16, (ncclDataType_t)99, ncclSum, comm, stream),
                       ncclSuccess);
  assert_int_equal(runs(), before);
}

/* A non-blocking communicator: NCCL's own thread launches the work later. */
static u32 accepted_all_reduce(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  assert_non_null(thread);
  struct collective_call call = collective_begin(thread, TSCOPE_OP_ALLREDUCE, memory, 16, ncclInt32,
                                                 ncclSum, -1, comm, stream);
  collective_end(thread, &call, ncclInProgress);
  tscope_leave(thread);
  launch(&kernel, 3 * ms);
  return LAST(COLLECTIVE, collective).seq;
}

/* Its time on the GPU begins at the host's call, and may end when the job asks: it includes the
 * host's own time. */
static void what_is_in_progress_ends_when_the_job_knows_that_it_is_launched(void **state) {
  (void)state;
  u32 before = runs();
  int64_t called = standin_now_ns();
  u32 seq = accepted_all_reduce();
  ncclResult_t now;
  assert_int_equal(ncclCommGetAsyncError(comm, &now), ncclSuccess);
  int64_t known_after = standin_now_ns() - called;
  assert_int_equal(now, ncclSuccess);
  assert_int_equal(runs(), before + 1);
  struct tscope_collective_run_record run = LAST(COLLECTIVE_RUN, collective_run);
  assert_int_equal(run.seq, seq);
  assert_in_range(run.dur, 3 * ms - 10 * us, 3 * ms + known_after + 10 * us);
}

static void what_is_in_progress_when_the_next_call_comes_has_no_time(void **state) {
  (void)state;
  u32 before = runs(), seq = accepted_all_reduce();
  u64 lost = tscope_trace.header->lost[TSCOPE_LOSS_GPU];
  assert_int_equal(ncclAllReduce(memory, memory, 16, ncclInt32, ncclSum, comm, stream),
                   ncclSuccess);
  assert_int_equal(runs(), before + 1);
  assert_int_equal(LAST(COLLECTIVE_RUN, collective_run).seq, seq + 1);
  assert_int_equal(tscope_trace.header->lost[TSCOPE_LOSS_GPU], lost + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_pair_gives_start_and_duration),
      cmocka_unit_test(work_that_was_not_launched_is_not_recorded),
      cmocka_unit_test(a_sampled_function_says_how_many_calls_it_represents),
      cmocka_unit_test(one_gemm_in_sixteen_is_timed),
      cmocka_unit_test(all_gemms_of_a_model_are_picked_in_turn),
      cmocka_unit_test(a_captured_gemm_belongs_to_the_graph),
      cmocka_unit_test(a_pool_is_bounded_and_a_streams_own),
      cmocka_unit_test(an_error_is_not_an_end),
      cmocka_unit_test(a_stream_that_is_gone_leaves_its_pool_to_the_next),
      cmocka_unit_test(a_call_that_never_ends_holds_up_no_other),
      cmocka_unit_test(a_pair_that_was_taken_away_ends_nothing),
      cmocka_unit_test(pairs_left_on_streams_that_are_gone_leave_the_pools),
      cmocka_unit_test(nothing_is_recorded_on_a_captured_stream),
      cmocka_unit_test(the_default_stream_is_left_alone_while_others_are_captured),
      cmocka_unit_test(queries_end_no_capture),
      cmocka_unit_test(a_collective_has_its_own_number),
      cmocka_unit_test(a_group_is_timed_where_it_is_launched),
      cmocka_unit_test(a_call_that_failed_did_not_run),
      cmocka_unit_test(what_is_in_progress_ends_when_the_job_knows_that_it_is_launched),
      cmocka_unit_test(what_is_in_progress_when_the_next_call_comes_has_no_time),
      cmocka_unit_test(a_call_that_takes_long_keeps_its_pair),
  };
  return cmocka_run_group_tests(tests, events_set_up, events_tear_down);
}
