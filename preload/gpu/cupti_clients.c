/* SPDX-License-Identifier: MIT
 *
 * The job's own CUPTI client gets exactly what it would get without tscope. While tscope's source
 * is open, what a client sets is kept for later and not passed on where it would undo the source;
 * the call that begins its session closes the source first, which puts everything back. tscope's
 * own calls go to the library directly and do not come by here.
 */
#include "cupti_clients.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "gpu_clock.h"

enum { ZEROED_OUT_ACTIVITY_BUFFER = 5, KINDS = 64 };

static struct {
  void *requested, *completed; /* its buffer callbacks, NULL before it has any */
  void *now;                   /* its clock, NULL for CUPTI's own */
  uint8_t zeroed;
  u64 kinds;     /* that it has enabled */
  u64 last_ns;   /* when it called last, CLOCK_MONOTONIC */
  bool began;    /* it has come and not left */
  bool collects; /* it has disabled all, and not collected yet */
} client;

static u64 now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (u64)time.tv_sec * 1000000000u + (u64)time.tv_nsec;
}

static bool has_kinds(void) {
  return __atomic_load_n(&client.kinds, __ATOMIC_ACQUIRE) != 0;
}

static bool has_callbacks(void) {
  return __atomic_load_n(&client.requested, __ATOMIC_ACQUIRE) != NULL;
}

static bool is_done(void) {
  const u64 patience_ns = 2000000000;
  return !has_kinds() &&
         (!__atomic_load_n(&client.collects, __ATOMIC_ACQUIRE) ||
          now_ns() - __atomic_load_n(&client.last_ns, __ATOMIC_ACQUIRE) > patience_ns);
}

const char *cupti_client_at_work(void) {
  return has_callbacks() && !is_done() ? "the job's own CUPTI client is at work" : NULL;
}

bool cupti_client_has_left(void) {
  return __atomic_load_n(&client.began, __ATOMIC_ACQUIRE) && is_done();
}

void cupti_client_taken_note_of(void) {
  __atomic_store_n(&client.began, false, __ATOMIC_RELEASE);
}

bool cupti_client_wants(int kind) {
  return (unsigned)kind < KINDS && __atomic_load_n(&client.kinds, __ATOMIC_ACQUIRE) >> kind & 1;
}

/* CUPTI's notion of now without any client's say (cupti_activity.h). */
static uint64_t usual_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void cupti_client_restore(const struct cupti *cupti) {
  uint64_t (*now)(void) = (uint64_t(*)(void))__atomic_load_n(&client.now, __ATOMIC_ACQUIRE);
  size_t bytes = sizeof client.zeroed;
  cupti->cuptiActivityRegisterTimestampCallback(now ? now : usual_now);
  if (cupti->cuptiActivitySetAttribute)
    cupti->cuptiActivitySetAttribute(ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &client.zeroed);
  if (has_callbacks())
    cupti->cuptiActivityRegisterCallbacks(
        (void (*)(uint8_t **, size_t *, size_t *))client.requested,
        (void (*)(void *, uint32_t, uint8_t *, size_t, size_t))client.completed);
}

void cupti_client_collect(const struct cupti *cupti) {
  const uint32_t all = 1; /* CUPTI_ACTIVITY_FLAG_FLUSH_FORCED */
  if (has_callbacks())
    cupti->cuptiActivityFlushAll(all);
}

/* A session begins, or goes on: tscope's source is closed before the call is made. */
static void comes(const char *call) {
  static char why[128];
  if (!why[0])
    snprintf(why, sizeof why, "the job's own CUPTI client is at work (%s)", call);
  __atomic_store_n(&client.last_ns, now_ns(), __ATOMIC_RELEASE);
  __atomic_store_n(&client.began, true, __ATOMIC_RELEASE);
  gpu_clock_step_aside(why, false);
}

/* What each kind of call means. Called under the lock before the real call; true: it is not to be
 * made, since tscope's source has its own there for now. */

static bool on_callbacks(const char *call, void *requested, void *completed) {
  if (!requested || !completed)
    return false;
  comes(call);
  __atomic_store_n(&client.completed, completed, __ATOMIC_RELEASE);
  __atomic_store_n(&client.requested, requested, __ATOMIC_RELEASE);
  __atomic_store_n(&client.collects, true, __ATOMIC_RELEASE);
  return false;
}

static bool on_clock(const char *call, void *now) {
  (void)call;
  if (!now)
    return false;
  __atomic_store_n(&client.now, now, __ATOMIC_RELEASE);
  return gpu_clock_is_open(&gpu_clock_cupti);
}

static bool on_attribute(const char *call, int attribute, const size_t *bytes, const void *value) {
  (void)call;
  if (attribute != ZEROED_OUT_ACTIVITY_BUFFER || !bytes || !value || *bytes < sizeof client.zeroed)
    return false;
  client.zeroed = *(const uint8_t *)value;
  return gpu_clock_is_open(&gpu_clock_cupti);
}

/* Kinds may be enabled before there are callbacks; nothing is delivered then. */
static bool on_enable(const char *call, int kind) {
  if ((unsigned)kind >= KINDS)
    return false;
  if (has_callbacks())
    comes(call);
  __atomic_fetch_or(&client.kinds, 1ull << kind, __ATOMIC_ACQ_REL);
  __atomic_store_n(&client.collects, true, __ATOMIC_RELEASE);
  return false;
}

static bool on_disable(const char *call, int kind) {
  (void)call;
  if ((unsigned)kind >= KINDS)
    return false;
  __atomic_fetch_and(&client.kinds, ~(1ull << kind), __ATOMIC_ACQ_REL);
  __atomic_store_n(&client.last_ns, now_ns(), __ATOMIC_RELEASE);
  return gpu_clock_is_open(&gpu_clock_cupti) && cupti_source_wants(kind);
}

static bool on_profile(const char *call) {
  static char why[128];
  if (!why[0])
    snprintf(why, sizeof why, "the job profiles with CUPTI itself (%s)", call);
  gpu_clock_step_aside(why, true);
  return false;
}

static bool on_finalize(const char *call) {
  (void)call;
  gpu_clock_step_aside("the job has detached CUPTI (cuptiFinalize)", true);
  client.requested = client.completed = client.now = NULL;
  __atomic_store_n(&client.kinds, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&client.collects, false, __ATOMIC_RELEASE);
  __atomic_store_n(&client.began, true, __ATOMIC_RELEASE);
  return false;
}

/* After the real call: what it delivered is collected. */
static bool on_flush(const char *call) {
  (void)call;
  return false;
}

static void after_flush(void) {
  if (!has_kinds())
    __atomic_store_n(&client.collects, false, __ATOMIC_RELEASE);
}
#define after_callbacks after_nothing
#define after_clock after_nothing
#define after_attribute after_nothing
#define after_enable after_nothing
#define after_disable after_nothing
#define after_profile after_nothing
#define after_finalize after_nothing
static void after_nothing(void) {}

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  [CUPTI_##name_] = {.name = #name_, .sonames = cupti_sonames},
struct tscope_symbol cupti_symbols[] = {TSCOPE_CUPTI_HOOKS(HOOK)};
#undef HOOK

#define WHAT(...) , ##__VA_ARGS__
#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params {                                                  \
    type(*real) params =                                                                           \
        tscope_resolve(&cupti_symbols[CUPTI_##name_], __builtin_return_address(0));                \
    if (!real)                                                                                     \
      return failure;                                                                              \
    int saved = errno;                                                                             \
    bool locked = gpu_clock_lock();                                                                \
    bool kept = on_##recorder(#name_ WHAT what);                                                   \
    gpu_clock_unlock(locked);                                                                      \
    errno = saved;                                                                                 \
    type result = kept ? 0 : real args;                                                            \
    after_##recorder();                                                                            \
    return result;                                                                                 \
  }
TSCOPE_CUPTI_HOOKS(HOOK)
