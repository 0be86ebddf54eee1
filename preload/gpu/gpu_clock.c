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
static const char *wanted_elsewhere;          /* why no source may be open */
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

/* Closes the source; from here on, `id` is what the trace has. */
static void close_source(struct tscope_thread *thread, enum tscope_gpu_clock id, const char *why) {
  const struct gpu_clock_source *closing = __atomic_exchange_n(&source, NULL, __ATOMIC_SEQ_CST);
  if (!closing)
    return;
  wait_for_poll();
  closing->close();
  said = closing->counts();
  if (thread)
    tell(thread, id, why);
}

static void end(struct tscope_thread *thread) {
  close_source(thread, TSCOPE_GPU_CLOCK_CUPTI, "closed at the end of the process");
}

static void close_at_exit(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  end(thread);
  tscope_leave(thread);
}

void gpu_clock_stand_aside(const char *why) {
  __atomic_store_n(&wanted_elsewhere, why, __ATOMIC_RELEASE);
  if (!__atomic_load_n(&source, __ATOMIC_ACQUIRE))
    return;
  int saved = errno;
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  close_source(thread, TSCOPE_GPU_CLOCK_HOST, why);
  if (thread)
    tscope_leave(thread);
  errno = saved;
}

/* Opens the first source that can be had; NULL, and why there is none. */
static const struct gpu_clock_source *open_first(char *why, size_t why_bytes) {
  const char *taken = __atomic_load_n(&wanted_elsewhere, __ATOMIC_ACQUIRE);
  const char *injected = getenv("CUDA_INJECTION64_PATH");
  if (!strcmp(tscope_env.gpu, "off"))
    snprintf(why, why_bytes, "TSCOPE_GPU=off");
  else if (taken)
    snprintf(why, why_bytes, "%s", taken);
  else if (injected && *injected)
    snprintf(why, why_bytes, "another tool is injected into CUDA (CUDA_INJECTION64_PATH)");
  else
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
      if (sources[i]->open(why, why_bytes))
        return sources[i];
  return NULL;
}

void gpu_clock_start(struct tscope_thread *thread) {
  if (__atomic_exchange_n(&gpu_clock_tried, 1, __ATOMIC_ACQ_REL))
    return;
  int saved = errno;
  char why[256] = "opened";
  const struct gpu_clock_source *opened = open_first(why, sizeof why);
  if (opened)
    __atomic_store_n(&source, opened, __ATOMIC_RELEASE);
  else
    tscope_say(2, "GPU times are not to be had: %s", why);
  tell(thread, opened ? opened->id : TSCOPE_GPU_CLOCK_HOST, why);
  errno = saved;
}

/* Exit handlers run last come, first served: one that is registered after the driver's runs before
 * the driver is gone. */
void gpu_clock_context_exists(void) {
  if (__atomic_load_n(&source, __ATOMIC_ACQUIRE))
    atexit(close_at_exit);
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
    open->poll();
  __atomic_store_n(&polling, false, __ATOMIC_SEQ_CST);
  if (!open)
    return;
  struct gpu_clock_counts now = open->counts();
  if (memcmp(&now, &said, sizeof now))
    tell(thread, open->id, "open");
}

const struct tscope_family tscope_gpu_family = {
    .name = "gpu", .thread_bytes = sizeof(struct gpu_thread), .tick = tick, .end = end};
