/* SPDX-License-Identifier: MIT */
#include "gpu/event_clock.h"

#include "gpu/cuda_events.h"
#include "record/tick_clock.h"

enum {
  CLOCKS = 16,
  TRIES = 3,
  GOOD_BRACKET_NS = 30000,
  TIMEOUT_NS = 1000000,
  RESOLUTION_NS = 500, /* of events (CUDA runtime API, event management) */
};
static const u64 second_ns = 1000000000;

static struct event_clock clocks[CLOCKS];
static u32 n_clocks;

static bool make_clock(struct event_clock *clock) {
  bool made = !cuda_events.cuCtxGetDevice(&clock->device) &&
              !cuda_events.cuStreamCreate(&clock->stream, STREAM_NON_BLOCKING);
  for (int i = 0; i < EVENT_ANCHORS && made; i++)
    made = !cuda_events.cuEventCreate(&clock->anchors[i].event, 0);
  return made;
}

struct event_clock *event_clock_of(void *context) {
  for (u32 i = 0; i < n_clocks; i++)
    if (clocks[i].context == context)
      return clocks[i].refused ? NULL : &clocks[i];
  if (n_clocks == CLOCKS)
    return NULL;
  struct event_clock *clock = &clocks[n_clocks++];
  *clock = (struct event_clock){.context = context, .rate = 1, .rate_error = 1e-4};
  clock->refused = !make_clock(clock);
  return clock->refused ? NULL : clock;
}

void event_clock_remove(void *context) {
  static char nobody; /* no context is this */
  for (u32 i = 0; i < n_clocks; i++)
    if (!context || clocks[i].context == context)
      clocks[i].context = &nobody;
}

/* Records the event and waits for it, but not for long: the stream is idle, but the GPU's queues
 * may be shared. The event happened between the host's two clock readings. */
static bool measure_anchor(const struct event_clock *clock, struct event_anchor *anchor) {
  u64 before = tscope_clock_ns(CLOCK_MONOTONIC), after;
  if (cuda_events.cuEventRecord(anchor->event, clock->stream))
    return false;
  int state;
  do {
    state = cuda_events.cuEventQuery(anchor->event);
    after = tscope_clock_ns(CLOCK_MONOTONIC);
  } while (state == CUDA_NOT_READY && after - before < TIMEOUT_NS);
  anchor->host_ns = before + (after - before) / 2;
  anchor->bracket_ns = after - before;
  return state == 0;
}

static const struct event_anchor *newest_anchor(const struct event_clock *clock) {
  return &clock->anchors[(clock->n_anchors - 1) % EVENT_ANCHORS];
}

/* The rate from the oldest anchor that is kept to the newest. They are seconds apart, so brackets
 * of microseconds give an accuracy of parts in a million. */
static void find_rate(struct event_clock *clock) {
  u32 kept = MIN(clock->n_anchors, EVENT_ANCHORS);
  const struct event_anchor *last = newest_anchor(clock);
  const struct event_anchor *first = &clock->anchors[(clock->n_anchors - kept) % EVENT_ANCHORS];
  float ms;
  if (kept < 2 || cuda_events.cuEventElapsedTime(&ms, first->event, last->event) || ms < 50)
    return;
  double host = (double)(last->host_ns - first->host_ns);
  clock->rate = host / ((double)ms * 1e6);
  clock->rate_error = (double)(first->bracket_ns + last->bracket_ns) / 2 / host;
}

/* Often while the rate is not known well, so that a short run has times; then every second; after a
 * minute every ten seconds. */
static u64 interval_ns(const struct event_clock *clock, u64 now) {
  u64 age = now - clock->first_ns, least = second_ns / 10;
  if (age < second_ns)
    return MAX(age, least);
  return age < 60 * second_ns ? second_ns : 10 * second_ns;
}

static void write_anchor(const struct event_clock *clock, struct tscope_thread *thread, u64 now) {
  double reach = (double)interval_ns(clock, now);
  double error =
      (double)newest_anchor(clock)->bracket_ns / 2 + RESOLUTION_NS + reach * clock->rate_error;
  double drift = (clock->rate - 1) * 1e9;
  struct tscope_gpu_anchor_record record = {.monotonic_ns = newest_anchor(clock)->host_ns,
                                            .error_ns = (u32)MIN(error, UINT32_MAX),
                                            .drift_ppb = (i32)CLAMP(drift, INT32_MIN, INT32_MAX)};
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_GPU_ANCHOR, (u16)clock->device, &record,
                sizeof(record));
}

void event_clock_update(struct event_clock *clock, struct tscope_thread *thread) {
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC);
  if (now < clock->next_ns)
    return;
  /* The tries go into one slot of the ring; the one with the narrowest bracket stays. */
  struct event_anchor *slot = &clock->anchors[clock->n_anchors % EVENT_ANCHORS];
  bool measured = false;
  for (int i = 0; i < TRIES && !(measured && slot->bracket_ns < GOOD_BRACKET_NS); i++)
    measured =
        measure_anchor(clock, slot); /* the event keeps its latest record: so must the bracket */
  if (!clock->first_ns)
    clock->first_ns = now;
  clock->next_ns = now + (measured ? interval_ns(clock, now) : second_ns);
  if (!measured)
    return;
  clock->n_anchors++;
  find_rate(clock);
  write_anchor(clock, thread, now);
}

u64 event_clock_ns(const struct event_clock *clock, void *event) {
  float ms;
  if (!clock->n_anchors || cuda_events.cuEventElapsedTime(&ms, newest_anchor(clock)->event, event))
    return 0;
  i64 ns = (i64)newest_anchor(clock)->host_ns + (i64)((double)ms * 1e6 * clock->rate);
  return ns > 0 ? (u64)ns : 0;
}
