/* SPDX-License-Identifier: MIT */
#include "gpu_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "gpu_spans.h"

/* In the order in which they are tried. */
static const struct gpu_clock_source *const sources[] = {&gpu_clock_cupti};

u32 gpu_clock_tried;
static const struct gpu_clock_source *source; /* the one that is open */
static bool polling;                          /* the helper is inside the source */
static struct gpu_clock_counts said;          /* what the trace knows of its counts */

static void tell(struct tscope_thread *thread, enum tscope_gpu_clock id, const char *reason) {
  if (source)
    said = source->counts();
  struct tscope_gpu_clock_record record = {
      .reason = tscope_string(thread, reason),
      .dropped = (u32)(said.dropped < UINT32_MAX ? said.dropped : UINT32_MAX),
      .invalid = (u32)(said.invalid < UINT32_MAX ? said.invalid : UINT32_MAX),
      .seen = (u32)(said.seen < UINT32_MAX ? said.seen : UINT32_MAX),
  };
  tscope_spine(thread, tscope_ticks(), TSCOPE_REC_GPU_CLOCK, (u16)id, &record, sizeof record);
}

/* A poll must not run into the end of the driver; it is waited for, but not for ever. */
static void wait_for_poll(void) {
  const struct timespec millisecond = {.tv_nsec = 1000000};
  for (int i = 0; i < 200 && __atomic_load_n(&polling, __ATOMIC_SEQ_CST); i++)
    nanosleep(&millisecond, NULL);
}

static void close_source(struct tscope_thread *thread) {
  const struct gpu_clock_source *closing = __atomic_exchange_n(&source, NULL, __ATOMIC_SEQ_CST);
  if (!closing)
    return;
  wait_for_poll();
  closing->close(thread);
  said = closing->counts();
  tell(thread, closing->id, "closed at the end of the process");
}

/* Registered after the driver has registered its own, and so runs before the driver is gone. */
static void close_at_exit(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  close_source(thread);
  tscope_leave(thread);
}

void gpu_clock_start(struct tscope_thread *thread) {
  if (__atomic_exchange_n(&gpu_clock_tried, 1, __ATOMIC_ACQ_REL))
    return;
  int saved = errno;
  char why[256] = "no source is known";
  if (!strcmp(tscope_env.gpu, "off")) {
    tell(thread, TSCOPE_GPU_CLOCK_HOST, "TSCOPE_GPU=off");
    errno = saved;
    return;
  }
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
    if (sources[i]->open(why, sizeof why)) {
      __atomic_store_n(&source, sources[i], __ATOMIC_RELEASE);
      tell(thread, sources[i]->id, "opened");
      atexit(close_at_exit);
      errno = saved;
      return;
    }
  tell(thread, TSCOPE_GPU_CLOCK_HOST, why);
  tscope_say(2, "GPU times are not to be had: %s", why);
  errno = saved;
}

u32 gpu_clock_stream_id(void *stream, bool per_thread) {
  const struct gpu_clock_source *open = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
  return open ? open->stream_id(stream, per_thread) : TSCOPE_UNKNOWN;
}

/* Delivering half-empty buffers has its price, and a killed process loses at most this much. */
enum { TICKS_PER_POLL = 5 };

static void tick(struct tscope_thread *thread) {
  static u32 ticks;
  if (++ticks % TICKS_PER_POLL)
    return;
  __atomic_store_n(&polling, true, __ATOMIC_SEQ_CST);
  const struct gpu_clock_source *open = __atomic_load_n(&source, __ATOMIC_SEQ_CST);
  if (open)
    open->poll(thread);
  __atomic_store_n(&polling, false, __ATOMIC_SEQ_CST);
  if (!open)
    return;
  struct gpu_clock_counts now = open->counts();
  if (memcmp(&now, &said, sizeof now))
    tell(thread, open->id, "open");
}

static void wake(struct tscope_thread *thread) {
  (void)thread;
  gpu_clock_tried = 0;
  __atomic_store_n(&source, NULL, __ATOMIC_RELEASE); /* the ticker runs by now */
  memset(&said, 0, sizeof said);
}

const struct tscope_family tscope_gpu_family = {.name = "gpu",
                                                .thread_bytes = sizeof(struct gpu_thread),
                                                .wake = wake,
                                                .tick = tick,
                                                .end = close_source};
