/* SPDX-License-Identifier: MIT
 *
 * Pairs of events and the contexts that they belong to: the job's own are left alone, and no event
 * is used after its context.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <cuda.h>

#include "gpu/cuda_events.h"
#include "hooks_gpu_events.h"

static u32 n_streams_made;
static int (*make_stream)(void **made, unsigned flags);
static int count_streams(void **made, unsigned flags) {
  n_streams_made++;
  return make_stream(made, flags);
}

static int refuse_event(void **event, unsigned flags) {
  (void)event, (void)flags;
  return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
}

/* Asked at every tick, it would take more of the device's memory each time. */
static void a_driver_that_makes_no_events_is_asked_once(void **state) {
  (void)state;
  static char context;
  int (*make_event)(void **, unsigned) = cuda_events.cuEventCreate;
  make_stream = cuda_events.cuStreamCreate;
  cuda_events.cuStreamCreate = count_streams;
  cuda_events.cuEventCreate = refuse_event;
  for (int tick = 0; tick < 5; tick++)
    assert_null(event_clock_of(&context));
  assert_int_equal(n_streams_made, 1);
  cuda_events.cuStreamCreate = make_stream;
  cuda_events.cuEventCreate = make_event;
}

#define FUNCTION(name) ((void *)dlsym(RTLD_DEFAULT, #name))

/* A green context may be current in one thread at a time, and is the job's: the stand-in ends the
 * program otherwise. What runs on its streams has no time. */
static void green_contexts_are_left_alone(void **state) {
  (void)state;
  const struct timespec ticks = {.tv_nsec = 350000000};
  /* Older cuda.h do not declare them. */
  int (*create)(CUcontext *, void *, int, unsigned) = FUNCTION(cuGreenCtxCreate);
  int (*create_stream)(cudaStream_t *, CUcontext, unsigned, int) = FUNCTION(cuGreenCtxStreamCreate);
  int (*destroy)(CUcontext) = FUNCTION(cuGreenCtxDestroy);
  CUcontext green;
  cudaStream_t on;
  u64 dropped = gpu_clock_events.totals->dropped;
  u32 before = runs(), calls = count(TSCOPE_REC_COLLECTIVE);
  assert_int_equal(create(&green, NULL, 0, 1), 0);
  assert_int_equal(create_stream(&on, green, 1, 0), 0);
  assert_int_equal(cuCtxPushCurrent_v2(green), 0);
  assert_int_equal(ncclAllReduce(memory, memory, 256, ncclInt32, ncclSum, comm, on), ncclSuccess);
  assert_int_equal(ncclAllReduce(memory, memory, 256, ncclInt32, ncclSum, comm, NULL), ncclSuccess);
  nanosleep(&ticks, NULL);
  assert_int_equal(cuCtxPopCurrent_v2(&green), 0);
  assert_int_equal(destroy(green), 0);
  nanosleep(&ticks, NULL);
  assert_int_equal(runs(), before);
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE), calls + 2);
  assert_true(gpu_clock_events.totals->dropped == dropped + 2);
}

/* Also after that the stand-in ends the program when an event is used after its context. */
static void events_end_with_the_last_release(void **state) {
  (void)state;
  const struct timespec ticks = {.tv_nsec = 350000000};
  CUcontext context;
  u32 before = runs();
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
  assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0); /* not the last */
  assert_int_equal(ncclAllReduce(memory, memory, 256, ncclInt32, ncclSum, comm, stream),
                   ncclSuccess);
  assert_int_equal(runs(), before + 1);
  while (cuDevicePrimaryCtxRelease_v2(0) == 0)
    ;
  nanosleep(&ticks, NULL); /* the poller runs, and queries nothing */
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
  assert_int_equal(ncclAllReduce(memory, memory, 256, ncclInt32, ncclSum, comm, stream),
                   ncclSuccess);
  deliver();
  assert_int_equal(runs(), before + 1);
}

/* Last: the stand-in ends the program when an event is used after its context. */
static void events_end_with_their_device(void **state) {
  (void)state;
  const struct timespec ticks = {.tv_nsec = 350000000};
  assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  u64 dropped = gpu_clock_events.totals->dropped;
  assert_int_equal(ncclAllReduce(memory, memory, 256, ncclInt32, ncclSum, comm, stream),
                   ncclSuccess);
  assert_int_equal(cudaDeviceReset(), cudaSuccess);
  assert_true(gpu_clock_events.totals->dropped > dropped);
  nanosleep(&ticks, NULL); /* the poller runs, and queries nothing */
  deliver();
  assert_int_equal(ncclAllReduce(memory, memory, 256, ncclInt32, ncclSum, comm, stream),
                   ncclSuccess);
  deliver();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_driver_that_makes_no_events_is_asked_once),
      cmocka_unit_test(green_contexts_are_left_alone),
      cmocka_unit_test(events_end_with_the_last_release),
      cmocka_unit_test(events_end_with_their_device),
  };
  return cmocka_run_group_tests(tests, events_set_up, events_tear_down);
}
