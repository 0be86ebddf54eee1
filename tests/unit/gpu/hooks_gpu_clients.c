/* SPDX-License-Identifier: MIT
 *
 * A job with its own CUPTI client, such as torch.profiler: the client gets all its records and no
 * others, on its own clock and in its own buffers, and tscope continues when it has finished. Like
 * the real CUPTI, the stand-in has one set of callbacks and of enabled kinds for all clients.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "hooks_gpu.h"

static const int64_t us = 1000, ms = 1000000;

static struct {
  u64 buffers[2][65536];
  int next;
  /* tscope's poller may deliver records while the test reads these */
  _Atomic size_t kernels, others, unfinished;
  _Atomic u64 earliest, latest;
} client;

static void CUPTIAPI requested(uint8_t **buffer, size_t *bytes, size_t *max_records) {
  *buffer = (uint8_t *)client.buffers[client.next ^= 1];
  *bytes = sizeof(client.buffers[0]);
  *max_records = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream_id, uint8_t *buffer, size_t size,
                               size_t valid) {
  (void)context, (void)stream_id, (void)size;
  assert_true(buffer == (uint8_t *)client.buffers[0] || buffer == (uint8_t *)client.buffers[1]);
  CUpti_Activity *record = NULL;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    const CUpti_ActivityKernel9 *work = (const void *)record;
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      client.others++;
      continue;
    }
    client.kernels++;
    client.unfinished += work->start == 0;
    client.earliest = MIN(work->start, client.earliest);
    client.latest = MAX(work->end, client.latest);
  }
}

/* A clock that only the client has. */
enum { CLIENT_EPOCH = 1000000 };
static uint64_t CUPTIAPI client_now(void) {
  return (uint64_t)standin_now_ns() + CLIENT_EPOCH * (uint64_t)1000000000;
}

static void begin_session(bool registers) {
  client.kernels = client.others = client.unfinished = client.latest = 0;
  client.earliest = UINT64_MAX;
  if (registers)
    assert_int_equal(cuptiActivityRegisterCallbacks(requested, completed), CUPTI_SUCCESS);
  assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
}

static void end_session(void) {
  assert_int_equal(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  assert_int_equal(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
}

static void assert_source(enum tscope_gpu_clock id, const char *reason) {
  struct tscope_gpu_clock_record clock = LAST(GPU_CLOCK, gpu_clock);
  assert_int_equal(clock.header.tag, id);
  assert_string(clock.reason, reason);
}

static void assert_resumes(void) {
  poller_part(gpu_clock_reopen);
  assert_source(TSCOPE_GPU_CLOCK_CUPTI, "opened again: the job's CUPTI client has finished");
}

/* The client's session is over, and tscope's source is open again. */
static int alone(void **state) {
  (void)state;
  launch(&kernel, us);
  cudaDeviceSynchronize();
  poller_part(gpu_clock_reopen);
  return LAST(GPU_CLOCK, gpu_clock).header.tag == TSCOPE_GPU_CLOCK_CUPTI ? 0 : -1;
}

static void a_client_gets_its_records_and_no_others(void **state) {
  (void)state;
  launch(&kernel, us);
  u32 before = kernels_seen();
  launch(&kernel, 30 * ms); /* still runs when the session begins */
  begin_session(true);
  assert_source(TSCOPE_GPU_CLOCK_HOST,
                "the job's own CUPTI client is at work (cuptiActivityRegisterCallbacks)");
  for (int i = 0; i < 3; i++)
    launch(&kernel, us);
  cudaDeviceSynchronize();
  end_session();
  assert_int_equal(client.kernels, 3);
  assert_int_equal(client.unfinished, 0);
  assert_int_equal(client.others, 0); /* kinds that tscope had enabled */
  /* tscope lost the one that was running, and says so. */
  assert_int_equal(count(TSCOPE_REC_GPU_KERNEL), before);
  assert_true(LAST(GPU_CLOCK, gpu_clock).dropped > 0);
  assert_resumes();
  launch(&kernel, us);
  assert_int_equal(kernels_seen(), before + 1);
  assert_int_equal(client.kernels, 3);
}

/* Work that is not done when the client collects its records gets a record without times, as
 * without tscope. */
static void work_a_client_abandons_is_not_recorded(void **state) {
  (void)state;
  begin_session(true);
  launch(&kernel, 30 * ms);
  end_session();
  assert_int_equal(client.kernels, 1);
  assert_int_equal(client.unfinished, 1);
  assert_resumes();
  u32 before = count(TSCOPE_REC_GPU_KERNEL);
  assert_int_equal(kernels_seen(), before);
}

/* The start of the latest kernel, on CLOCK_MONOTONIC. */
static u64 last_kernel_ns(void) {
  struct trace trace = trace_read();
  struct trace_record at = {0};
  u64 latest = 0;
  while (trace_next_of(&trace, &at, TSCOPE_REC_GPU_KERNEL))
    latest = MAX(latest, at.time);
  trace_close(&trace);
  return latest;
}

/* With each registration of a clock this CUPTI gives one more kernel a time of the wrong clock. The
 * client registers first: another registration would make it miss kernels. */
static void a_clients_clock_is_its_own(void **state) {
  (void)state;
  setenv("STANDIN_CUPTI_CLOCK_MISSES", "1", 1);
  u64 begin = client_now();
  assert_int_equal(cuptiActivityRegisterTimestampCallback(client_now), CUPTI_SUCCESS);
  assert_source(TSCOPE_GPU_CLOCK_HOST,
                "the job's own CUPTI client is at work (cuptiActivityRegisterCallbacks)");
  begin_session(true);
  launch(&kernel, us);
  cudaDeviceSynchronize();
  end_session();
  assert_int_equal(client.kernels, 1);
  assert_in_range(client.earliest, begin, client_now());
  assert_in_range(client.latest, begin, client_now());
  assert_resumes();
}

/* CUPTI keeps the client's clock when tscope continues, and tscope reads it. This one counts faster
 * than nanoseconds, from another origin. */
static uint64_t CUPTIAPI counter(void) {
  return (uint64_t)standin_now_ns() * 3 + CLIENT_EPOCH;
}

static void times_are_right_whatever_clock_a_client_left(void **state) {
  (void)state;
  assert_int_equal(cuptiActivityRegisterTimestampCallback(counter), CUPTI_SUCCESS);
  begin_session(true);
  launch(&kernel, us);
  cudaDeviceSynchronize();
  end_session();
  assert_resumes();
  for (int i = 0; i < 3; i++) { /* the first record is on CUPTI's own clock */
    u32 before = kernels_seen();
    u64 from = (u64)standin_now_ns();
    launch(&kernel, 5 * ms);
    assert_int_equal(kernels_seen(), before + 1);
    assert_in_range(last_kernel_ns(), from - 100 * us, (u64)standin_now_ns() - 5 * ms + 100 * us);
    assert_in_range(LAST(GPU_KERNEL, gpu_kernel).dur, 5 * ms - 100 * us, 5 * ms + 100 * us);
  }
}

static void a_second_session_needs_no_second_registration(void **state) {
  (void)state;
  begin_session(false);
  assert_int_equal(LAST(GPU_CLOCK, gpu_clock).header.tag, TSCOPE_GPU_CLOCK_HOST);
  launch(&kernel, us);
  launch(&kernel, us);
  cudaDeviceSynchronize();
  end_session();
  assert_int_equal(client.kernels, 2);
  assert_resumes();
}

static void tscope_waits_until_the_client_has_collected(void **state) {
  (void)state;
  begin_session(true);
  launch(&kernel, us);
  cudaDeviceSynchronize();
  assert_int_equal(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  poller_part(gpu_clock_reopen);
  assert_int_equal(LAST(GPU_CLOCK, gpu_clock).header.tag, TSCOPE_GPU_CLOCK_HOST);
  assert_int_equal(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  assert_int_equal(client.kernels, 1);
  assert_resumes();
}

/* A client that never collects its last records still gets them before tscope continues. */
static void a_client_gets_records_it_did_not_collect(void **state) {
  (void)state;
  const struct timespec pause = {.tv_nsec = 10000000};
  begin_session(true);
  launch(&kernel, us);
  cudaDeviceSynchronize();
  assert_int_equal(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  u32 before = count(TSCOPE_REC_GPU_KERNEL);
  for (int64_t until = standin_now_ns() + 20000 * ms;
       LAST(GPU_CLOCK, gpu_clock).header.tag != TSCOPE_GPU_CLOCK_CUPTI &&
       standin_now_ns() < until;) {
    poller_part(gpu_clock_reopen);
    nanosleep(&pause, NULL);
  }
  assert_source(TSCOPE_GPU_CLOCK_CUPTI, "opened again: the job's CUPTI client has finished");
  assert_int_equal(client.kernels, 1);
  assert_int_equal(kernels_seen(), before);
}

/* While tscope's source is open, a client that cleans up again must not switch it off. */
static void disabling_again_does_not_affect_tscope(void **state) {
  (void)state;
  u32 before = kernels_seen();
  assert_int_equal(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  launch(&kernel, us);
  assert_int_equal(kernels_seen(), before + 1);
}

/* libtorch may enable kernels when it is loaded, long before it provides buffers. */
static void a_kind_enabled_early_stays_enabled(void **state) {
  (void)state;
  u32 before = kernels_seen();
  assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
  assert_int_equal(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
  assert_int_equal(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  poller_part(gpu_clock_reopen);
  launch(&kernel, us);
  assert_int_equal(kernels_seen(), before + 1);
}

static void a_subscriber_is_no_rival(void **state) {
  (void)state;
  CUpti_SubscriberHandle subscriber;
  u32 before = kernels_seen();
  assert_int_equal(cuptiSubscribe(&subscriber, NULL, NULL), CUPTI_SUCCESS); /* the only one */
  launch(&kernel, us);
  assert_int_equal(kernels_seen(), before + 1);
  assert_int_equal(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
}

static bool enough;

static void *launch_all_the_time(void *launched) {
  cudaStream_t own;
  assert_int_equal(cudaStreamCreate(&own), cudaSuccess);
  while (!__atomic_load_n(&enough, __ATOMIC_ACQUIRE)) {
    launch_on(own, &kernel, us);
    ++*(size_t *)launched;
    cudaStreamSynchronize(own);
  }
  cudaStreamDestroy(own);
  return NULL;
}

static void sessions_come_and_go_while_work_is_launched(void **state) {
  (void)state;
  pthread_t thread;
  size_t launched = 0, known = 0;
  cudaDeviceSynchronize();
  u32 before = kernels_seen();
  assert_int_equal(pthread_create(&thread, NULL, launch_all_the_time, &launched), 0);
  for (int i = 0; i < 20; i++) {
    begin_session(i % 2);
    launch(&kernel, us);
    cudaStreamSynchronize(stream);
    end_session();
    assert_true(client.kernels >= 1);
    known += client.kernels;
    assert_resumes();
  }
  __atomic_store_n(&enough, true, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  assert_true(known + kernels_seen() - before <= launched + 20);
}

/* Last: CUPTI does not come back to a process that detached it. */
static void after_finalize_collectives_are_timed_by_events(void **state) {
  (void)state;
  assert_int_equal(cuptiFinalize(), CUPTI_SUCCESS);
  if (LAST(GPU_CLOCK, gpu_clock).header.tag != TSCOPE_GPU_CLOCK_EVENTS) /* by a tick */
    assert_source(TSCOPE_GPU_CLOCK_HOST, "the job has detached CUPTI (cuptiFinalize)");
  poller_part(gpu_clock_reopen);
  gpu_clock_unlock(gpu_clock_lock()); /* a tick may be at it, and then nobody else does it */
  assert_source(TSCOPE_GPU_CLOCK_EVENTS, "the job has detached CUPTI (cuptiFinalize)");
  begin_session(true);
  assert_int_equal(LAST(GPU_CLOCK, gpu_clock).header.tag, TSCOPE_GPU_CLOCK_HOST);
  launch(&kernel, us);
  cudaDeviceSynchronize();
  end_session();
  assert_int_equal(client.kernels, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, alone)
  const struct CMUnitTest tests[] = {
      TEST(a_client_gets_its_records_and_no_others),
      TEST(work_a_client_abandons_is_not_recorded),
      TEST(a_second_session_needs_no_second_registration),
      TEST(tscope_waits_until_the_client_has_collected),
      TEST(a_client_gets_records_it_did_not_collect),
      TEST(disabling_again_does_not_affect_tscope),
      TEST(a_kind_enabled_early_stays_enabled),
      TEST(a_subscriber_is_no_rival),
      TEST(sessions_come_and_go_while_work_is_launched),
      TEST(a_clients_clock_is_its_own),
      TEST(times_are_right_whatever_clock_a_client_left),
      TEST(after_finalize_collectives_are_timed_by_events),
  };
  return cmocka_run_group_tests(tests, gpu_set_up, trace_tear_down);
}
