/* SPDX-License-Identifier: MIT
 *
 * Which source of GPU time is open; writes every change into the trace.
 */
#include "gpu/gpu_clock.h"

#include <stdio.h>
#include <string.h>

#include "format/gpu_reasons.h"
#include "format/text_parts.h"
#include "gpu/cuda_events.h"
#include "gpu/cupti_clients.h"
#include "gpu/gpu_spans.h"
#include "gpu/gpu_steps.h"
#include "record/lock.h"
#include "record/process_trace.h"
#include "resolve/linker_work.h"
#include "resolve/loaded_objects.h"
#include "settings/env.h"
#include "settings/process_environment.h"
#include "streams/stream_numbers.h"

/* In the order in which they are tried. */
static const struct gpu_clock_source *const sources[] = {&gpu_clock_cupti, &gpu_clock_events};
enum { SOURCES = LENGTH_OF(sources) };

u32 gpu_clock_tried;
bool gpu_clock_kernels_launched;
static const struct gpu_clock_source *source; /* the one that is open */
static bool paused;                           /* it is open, but measures nothing for now */
static bool polling;                          /* the poller is inside the source */
static bool process_ends;
static struct gpu_clock_counts recorded_counts; /* what the trace knows of the counts */
static char open_reason[512];                   /* why this source and no earlier one */
static const char *cupti_disabled_why;          /* why CUPTI is not to be used again */
static struct tscope_lock changing = {.for_records = true};

bool gpu_clock_lock(void) {
  return tscope_lock_within(&changing, 2000000000); /* a flush can take long, but not for ever */
}

void gpu_clock_unlock(bool locked) {
  if (locked)
    tscope_unlock(&changing);
}

static bool try_lock(void) {
  return tscope_lock_within(&changing, 0);
}

static struct gpu_clock_counts sum_counts(void) {
  struct gpu_clock_counts sum = {0};
  for (int i = 0; i < SOURCES; i++) {
    const struct gpu_clock_counts *totals = sources[i]->totals;
    sum.seen += __atomic_load_n(&totals->seen, __ATOMIC_RELAXED);
    sum.dropped += __atomic_load_n(&totals->dropped, __ATOMIC_RELAXED);
    sum.invalid += __atomic_load_n(&totals->invalid, __ATOMIC_RELAXED);
  }
  return sum;
}

static u32 at_most_u32(u64 value) {
  return (u32)MIN(value, UINT32_MAX);
}

static void record_clock(struct tscope_thread *thread, enum tscope_gpu_clock id,
                         const char *reason) {
  recorded_counts = sum_counts();
  struct tscope_gpu_clock_record record = {.reason = tscope_string(thread, reason),
                                           .dropped = at_most_u32(recorded_counts.dropped),
                                           .invalid = at_most_u32(recorded_counts.invalid),
                                           .seen = at_most_u32(recorded_counts.seen)};
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_GPU_CLOCK, (u16)id, &record, sizeof(record));
}

/* A poll must not run while the driver ends, so its end is awaited, but not for ever. */
static void wait_for_poll(void) {
  const struct timespec millisecond = {.tv_nsec = 1000000};
  for (int i = 0; i < 200 && __atomic_load_n(&polling, __ATOMIC_SEQ_CST); i++)
    nanosleep(&millisecond, NULL);
}

/* Closes the source; from here on, the trace says `id`. */
static void close_source(struct tscope_thread *thread, enum tscope_gpu_clock id, const char *why) {
  const struct gpu_clock_source *closing = __atomic_exchange_n(&source, NULL, __ATOMIC_SEQ_CST);
  if (!closing)
    return;
  wait_for_poll();
  closing->close(process_ends);
  __atomic_store_n(&paused, false, __ATOMIC_RELAXED);
  if (thread)
    record_clock(thread, id, why);
}

static void end(struct tscope_thread *thread) {
  const struct gpu_clock_source *open = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
  bool locked = gpu_clock_lock();
  process_ends = true;
  if (open)
    close_source(thread, paused ? TSCOPE_GPU_CLOCK_HOST : open->id, open_reason);
  gpu_clock_unlock(locked);
}

static void close_at_exit(void) {
  struct tscope_thread *thread = tscope_trace_is_ours() ? tscope_enter(TSCOPE_QUIET) : NULL;
  if (!thread)
    return;
  end(thread);
  tscope_leave(thread);
}

static bool setting_is(const char *setting) {
  return !strcmp(tscope_env.gpu, setting);
}

void gpu_clock_release_cupti(const char *why, bool for_good) {
  if (for_good && !cupti_disabled_why)
    __atomic_store_n(&cupti_disabled_why, why, __ATOMIC_RELEASE);
  if (!__atomic_load_n(&source, __ATOMIC_ACQUIRE) || setting_is("events"))
    return;
  TSCOPE_KEEP_ERRNO;
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  close_source(thread, TSCOPE_GPU_CLOCK_HOST, why);
  if (thread)
    tscope_leave(thread);
}

bool gpu_clock_is_open(const struct gpu_clock_source *which) {
  return __atomic_load_n(&source, __ATOMIC_ACQUIRE) == which;
}

static bool is_requested(const struct gpu_clock_source *which) {
  return setting_is("auto") || setting_is(which == &gpu_clock_events ? "events" : "cupti");
}

/* What the job requested from CUDA, read on the first thread of the job that uses CUDA; the poller
 * uses it later.
 */
static struct { bool one_connection, injected; } requested;

static void read_environment(void) {
  const char *injected = tscope_environment_now("CUDA_INJECTION64_PATH");
  requested.one_connection = tscope_environment_now_is("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  requested.injected = injected && strcmp(injected, "none");
}

/* Why this source may not be used now; NULL if it may. If the user requests events, they are used
 * even beside another tool, although they will appear in what that tool records. */
static const char *unusable_reason(const struct gpu_clock_source *which) {
  bool events = which == &gpu_clock_events;
  if (events && requested.one_connection)
    return "timing events would undo the overlap that " TSCOPE_REASON_ONE_CONNECTION
           "=1 is set for";
  if (setting_is("events"))
    return NULL;
  if (requested.injected)
    return "another tool is injected into CUDA (" TSCOPE_REASON_INJECTED ")";
  const char *client = cupti_client_active();
  return client || events ? client : __atomic_load_n(&cupti_disabled_why, __ATOMIC_ACQUIRE);
}

/* Opens the first source that works; NULL if none does. `why` says why the earlier ones did not. */
static const struct gpu_clock_source *open_first(char *why, size_t why_bytes) {
  char own[256];
  snprintf(why, why_bytes, TSCOPE_REASON_SETTING "%.16s", tscope_env.gpu);
  for (int i = 0, refused = 0; i < SOURCES; i++) {
    if (!is_requested(sources[i]))
      continue;
    const char *not_now = unusable_reason(sources[i]);
    if (!not_now && sources[i]->open(own, sizeof(own))) {
      if (!refused && setting_is("auto"))
        snprintf(why, why_bytes, "opened");
      return sources[i];
    }
    not_now = not_now ? not_now : own;
    if (!refused++)
      *why = '\0';
    if (!strstr(why, not_now))
      tscope_append(why, why_bytes, "%s%s", *why ? "; " : "", not_now);
  }
  return NULL;
}

/* Opens the first source that works, and records it; `again` is the reason for trying again. */
static void open_and_record(struct tscope_thread *thread, const char *again) {
  char *why = open_reason;
  const struct gpu_clock_source *opened = open_first(why, sizeof(open_reason));
  if (opened)
    __atomic_store_n(&source, opened, __ATOMIC_RELEASE);
  else
    tscope_log(2, "no GPU times: %s", why);
  if (opened && again)
    snprintf(why, sizeof(open_reason), "%s", again);
  record_clock(thread, opened ? opened->id : TSCOPE_GPU_CLOCK_HOST, why);
}

/* Loads CUPTI, if it is not there. */
static void open_at_start(struct tscope_thread *thread) {
  bool locked = gpu_clock_lock();
  open_and_record(thread, NULL);
  gpu_clock_unlock(locked);
}

void gpu_clock_start(struct tscope_thread *thread) {
  static struct tscope_linker_work open_work = {.run = open_at_start};
  if (__atomic_exchange_n(&gpu_clock_tried, 1, __ATOMIC_ACQ_REL))
    return;
  __atomic_store_n(&stream_id_of_clock, gpu_clock_stream_id, __ATOMIC_RELEASE);
  read_environment();
  tscope_linker_work(thread, &open_work);
}

/* Another client has finished, or CUPTI has left the process. */
void gpu_clock_reopen(struct tscope_thread *thread) {
  static bool tried_without;
  if (!__atomic_load_n(&gpu_clock_tried, __ATOMIC_ACQUIRE) ||
      __atomic_load_n(&source, __ATOMIC_ACQUIRE) || !cupti_client_has_finished() ||
      __atomic_load_n(&captures_open, __ATOMIC_RELAXED))
    return;
  if (cupti_disabled_why && tried_without)
    return;
  bool locked = gpu_clock_lock();
  if (!source && cupti_client_has_finished()) {
    tried_without = cupti_disabled_why != NULL;
    cupti_client_clear_finished();
    open_and_record(
        thread, cupti_disabled_why ? NULL : "opened again: the job's CUPTI client has finished");
  }
  gpu_clock_unlock(locked);
}

/* Exit handlers run in reverse order: one that is registered after the driver's runs before the
 * driver ends. */
void gpu_clock_register_close(void) {
  tscope_objects_enter(); /* as tscope_register_end() */
  atexit(close_at_exit);
  tscope_objects_leave();
}

u32 gpu_clock_stream_id(void *stream, bool per_thread) {
  const struct gpu_clock_source *open = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
  return open && open->stream_id ? open->stream_id(stream, per_thread) : TSCOPE_UNKNOWN;
}

u32 gpu_clock_graph_id(void *executable) {
  const struct gpu_clock_source *open = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
  return open && open->graph_id ? open->graph_id(executable) : TSCOPE_UNKNOWN;
}

/* On the job's thread. If another thread is working here, or a graph is being captured, which CUPTI
 * might disturb, the session is postponed to the next step. */
void gpu_clock_pause(struct tscope_thread *thread, bool pause) {
  if (pause == __atomic_load_n(&paused, __ATOMIC_RELAXED) ||
      __atomic_load_n(&captures_open, __ATOMIC_RELAXED) || !try_lock())
    return;
  TSCOPE_KEEP_ERRNO;
  const struct gpu_clock_source *open = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
  if (open && open->pause) {
    __atomic_store_n(&paused, pause, __ATOMIC_RELAXED);
    /* Work launched while it is off is not seen. So the record "off" is written before it is
     * switched off, and the record "on" after it is switched on. */
    if (pause)
      record_clock(thread, TSCOPE_GPU_CLOCK_HOST,
                   "resting until its next session (" TSCOPE_REASON_STEPS ")");
    open->pause(pause);
    if (!pause)
      record_clock(thread, open->id, "its session (" TSCOPE_REASON_STEPS ")");
  }
  gpu_clock_unlock(true);
}

enum { TICKS_PER_COUNT = 5 };

/* What CUPTI does when it is flushed or opened must not break another thread's capture. */
static void relax_capture_mode(void) {
  static bool relaxed; /* of the poller alone */
  int (*exchange)(int *) = relaxed ? NULL : DRIVER_FUNCTION("cuThreadExchangeStreamCaptureMode");
  int mode = CAPTURE_RELAXED;
  relaxed = relaxed || (exchange && !exchange(&mode));
}

/* The open source turned out not to work: the next one is tried. */
static void replace_failed_source(struct tscope_thread *thread,
                                  const struct gpu_clock_source *failing) {
  const char *why = failing && failing->failed ? failing->failed() : NULL;
  if (!why || !try_lock())
    return;
  if (source == failing) {
    __atomic_store_n(&cupti_disabled_why, why, __ATOMIC_RELEASE);
    close_source(thread, TSCOPE_GPU_CLOCK_HOST, why);
    open_and_record(thread, NULL);
  }
  gpu_clock_unlock(true);
}

static void tick(struct tscope_thread *thread) {
  static u32 ticks;
  if (__atomic_load_n(&gpu_clock_tried, __ATOMIC_RELAXED))
    relax_capture_mode();
  gpu_clock_reopen(thread);
  __atomic_store_n(&polling, true, __ATOMIC_SEQ_CST);
  const struct gpu_clock_source *open = __atomic_load_n(&source, __ATOMIC_SEQ_CST);
  bool due = open && ++ticks % open->ticks_per_poll == 0;
  if (due)
    open->poll(thread);
  __atomic_store_n(&polling, false, __ATOMIC_SEQ_CST);
  if (due && thread)
    replace_failed_source(thread, open);
  struct gpu_clock_counts now = sum_counts();
  if (due && ticks % TICKS_PER_COUNT == 0 && memcmp(&now, &recorded_counts, sizeof(now)) &&
      try_lock()) {
    if (source == open && !paused)
      record_clock(thread, open->id, open_reason);
    gpu_clock_unlock(true);
  }
}

const struct tscope_family tscope_gpu_family = {.thread_bytes = sizeof(struct gpu_thread),
                                                .tick = tick,
                                                .step_ended = gpu_step_ended,
                                                .end = end};
