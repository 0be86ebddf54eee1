/* SPDX-License-Identifier: MIT
 *
 * The client's clock: its timestamp callback, or CLOCK_REALTIME. The simulator has another clock.
 * To convert times, both are read at nearly the same instant, again and again. The rate between
 * them is computed over the whole time since the first reading.
 */
#include <pthread.h>

#include "cupti_standin.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_TimestampCallbackFunc callback;
static size_t registrations;
static int64_t first_raw, first_client;

static int64_t client_now(void) {
  struct timespec now;
  if (callback)
    return (int64_t)callback();
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Reads both clocks several times and returns the reading with the least uncertainty: a reading
 * that was interrupted has more. */
static struct clock_map read_both_clocks(void) {
  struct clock_map best = {0};
  int64_t tightest = INT64_MAX;
  for (int i = 0; i < 8; i++) {
    int64_t before = clock_now(), client = client_now(), after = clock_now();
    if (after - before < tightest) {
      tightest = after - before;
      best = (struct clock_map){.raw = before + (after - before) / 2, .client = client};
    }
  }
  return best;
}

/* A rate near 1 that was measured over less than 100 ms is mostly noise, so 1 is used. Any other
 * rate is that of a clock which does not count nanoseconds. */
struct clock_map clock_map_now(void) {
  pthread_mutex_lock(&lock);
  struct clock_map map = read_both_clocks();
  if (!first_raw) {
    first_raw = map.raw;
    first_client = map.client;
  }
  double elapsed = (double)(map.raw - first_raw);
  double rate = elapsed > 1e5 ? (double)(map.client - first_client) / elapsed : 1;
  map.slope = elapsed > 1e8 || rate < 0.99 || rate > 1.01 ? rate : 1;
  pthread_mutex_unlock(&lock);
  return map;
}

CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  pthread_mutex_lock(&lock);
  callback = function;
  registrations++;
  first_raw = 0;
  pthread_mutex_unlock(&lock);
  clock_map_now();
  return CUPTI_SUCCESS;
}

/* As in CUDA 12.6 Update 2 to 13.0 (PyTorch issue 192021): one more with each registration after
 * the first. */
size_t clock_misses(void) {
  return sim_setting("CUPTI_CLOCK_MISSES", 0) && registrations ? registrations - 1 : 0;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp) {
  if (!timestamp)
    return CUPTI_ERROR_INVALID_PARAMETER;
  *timestamp = (uint64_t)client_now();
  return CUPTI_SUCCESS;
}
