/* SPDX-License-Identifier: MIT
 *
 * The job's own CUPTI client gets exactly what it would get without tscope. While tscope's source
 * is open, a client's settings that would disturb the source are kept for later and not passed on.
 * The call that begins the client's session first closes the source, which restores everything.
 * tscope's own calls go to the library directly and do not pass through here.
 */
#include "gpu/cupti_clients.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "format/gpu_reasons.h"
#include "gpu/gpu_clock.h"
#include "hooks/wrapper.h"
#include "record/tick_clock.h"
#include "settings/process_environment.h"

enum { KINDS = 64 };

static struct {
  void *requested, *completed; /* its buffer callbacks, NULL before it has any */
  uint8_t zeroed;
  u64 kinds;          /* that it has enabled */
  u64 last_ns;        /* when it called last, CLOCK_MONOTONIC */
  bool began;         /* it has come and not left */
  bool detaches;      /* it will call cuptiFinalize() when it has collected */
  bool flush_pending; /* it has disabled all kinds, but not flushed yet */
} client;

static bool has_kinds(void) {
  return __atomic_load_n(&client.kinds, __ATOMIC_ACQUIRE) != 0;
}

static bool has_callbacks(void) {
  return __atomic_load_n(&client.requested, __ATOMIC_ACQUIRE) != NULL;
}

/* PyTorch's profiler detaches CUPTI soon after its session, if it is configured to. */
static bool will_detach(void) {
  return has_callbacks() && __atomic_load_n(&client.detaches, __ATOMIC_ACQUIRE);
}

static bool is_done(void) {
  const u64 timeout_ns = 2000000000;
  return !has_kinds() && !will_detach() &&
         (!__atomic_load_n(&client.flush_pending, __ATOMIC_ACQUIRE) ||
          tscope_clock_ns(CLOCK_MONOTONIC) - __atomic_load_n(&client.last_ns, __ATOMIC_ACQUIRE) >
              timeout_ns);
}

const char *cupti_client_active(void) {
  return has_callbacks() && !is_done() ? TSCOPE_REASON_CLIENT " is at work" : NULL;
}

bool cupti_client_has_finished(void) {
  return __atomic_load_n(&client.began, __ATOMIC_ACQUIRE) && is_done();
}

void cupti_client_clear_finished(void) {
  __atomic_store_n(&client.began, false, __ATOMIC_RELEASE);
}

bool cupti_client_wants(int kind) {
  return (unsigned)kind < KINDS && __atomic_load_n(&client.kinds, __ATOMIC_ACQUIRE) >> kind & 1;
}

void cupti_client_restore(const struct cupti *cupti) {
  size_t bytes = sizeof(client.zeroed);
  if (cupti->cuptiActivitySetAttribute)
    cupti->cuptiActivitySetAttribute(CUPTI_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &client.zeroed);
  if (has_callbacks())
    cupti->cuptiActivityRegisterCallbacks(
        (void (*)(uint8_t **, size_t *, size_t *))client.requested,
        (void (*)(void *, uint32_t, uint8_t *, size_t, size_t))client.completed);
}

void cupti_client_return_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t size) {
  void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t) =
      (void (*)(void *, uint32_t, uint8_t *, size_t, size_t))__atomic_load_n(&client.completed,
                                                                             __ATOMIC_ACQUIRE);
  if (completed)
    completed(context, stream, buffer, size, 0);
}

void cupti_client_flush(const struct cupti *cupti) {
  if (has_callbacks())
    cupti->cuptiActivityFlushAll(CUPTI_FLUSH_ALL);
}

/* A session begins or continues: tscope's source is closed before the call is made. */
static void client_begins(const char *call) {
  static char why[128];
  if (!why[0])
    snprintf(why, sizeof(why), TSCOPE_REASON_CLIENT " is at work (%s)", call);
  __atomic_store_n(&client.detaches, tscope_environment_now_is("TEARDOWN_CUPTI", "1"),
                   __ATOMIC_RELEASE);
  __atomic_store_n(&client.last_ns, tscope_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
  __atomic_store_n(&client.began, true, __ATOMIC_RELEASE);
  gpu_clock_release_cupti(why, false);
}

/* What each kind of call means. Called under the lock before the real call. */
enum client_call {
  PASSED_ON,
  KEPT,    /* the real call is not made: for now tscope's source has its own setting */
  FLUSHING /* passed on; after it, the client has what was delivered */
};

static enum client_call keep_if(bool kept) {
  return kept ? KEPT : PASSED_ON;
}

static enum client_call on_callbacks(const char *call, void *requested, void *completed) {
  if (!requested || !completed)
    return PASSED_ON;
  client_begins(call);
  __atomic_store_n(&client.completed, completed, __ATOMIC_RELEASE);
  __atomic_store_n(&client.requested, requested, __ATOMIC_RELEASE);
  __atomic_store_n(&client.flush_pending, true, __ATOMIC_RELEASE);
  return PASSED_ON;
}

/* The clock is the same for the whole process: records that tscope has not read yet have times on
 * the previous clock. */
static enum client_call on_clock(const char *call, void *now) {
  if (!now)
    return PASSED_ON;
  client_begins(call);
  __atomic_store_n(&client.flush_pending, true, __ATOMIC_RELEASE);
  return PASSED_ON;
}

static enum client_call on_attribute(const char *call, int attribute, const size_t *bytes,
                                     const void *value) {
  (void)call;
  if (attribute != CUPTI_ZEROED_OUT_ACTIVITY_BUFFER || !bytes || !value ||
      *bytes < sizeof(client.zeroed))
    return PASSED_ON;
  client.zeroed = *(const uint8_t *)value;
  return keep_if(gpu_clock_is_open(&gpu_clock_cupti));
}

/* Kinds may be enabled before there are callbacks; nothing is delivered then. */
static enum client_call on_enable(const char *call, int kind) {
  if ((unsigned)kind >= KINDS)
    return PASSED_ON;
  if (has_callbacks())
    client_begins(call);
  __atomic_fetch_or(&client.kinds, 1ull << kind, __ATOMIC_ACQ_REL);
  __atomic_store_n(&client.flush_pending, true, __ATOMIC_RELEASE);
  return PASSED_ON;
}

static enum client_call on_disable(const char *call, int kind) {
  (void)call;
  if ((unsigned)kind >= KINDS)
    return PASSED_ON;
  __atomic_fetch_and(&client.kinds, ~(1ull << kind), __ATOMIC_ACQ_REL);
  __atomic_store_n(&client.last_ns, tscope_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
  return keep_if(gpu_clock_is_open(&gpu_clock_cupti) && cupti_source_wants(kind));
}

static enum client_call on_profile(const char *call) {
  static char why[128];
  if (!why[0])
    snprintf(why, sizeof(why), TSCOPE_REASON_PROFILES " (%s)", call);
  gpu_clock_release_cupti(why, true);
  return PASSED_ON;
}

static enum client_call on_finalize(const char *call) {
  (void)call;
  gpu_clock_release_cupti("the job has detached CUPTI (cuptiFinalize)", true);
  client.requested = client.completed = NULL;
  __atomic_store_n(&client.kinds, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&client.flush_pending, false, __ATOMIC_RELEASE);
  __atomic_store_n(&client.began, true, __ATOMIC_RELEASE);
  return PASSED_ON;
}

static enum client_call on_flush(const char *call) {
  (void)call;
  return FLUSHING;
}

static void client_flushed(void) {
  if (!has_kinds())
    __atomic_store_n(&client.flush_pending, false, __ATOMIC_RELEASE);
}

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  [CUPTI_##name_] = {.name = #name_, .sonames = cupti_sonames},
struct tscope_symbol cupti_symbols[] = {TSCOPE_CUPTI_HOOKS(HOOK)};
#undef HOOK

#define CLIENT_CALL(name_, type, args, recorder, what)                                             \
  int saved = errno;                                                                               \
  bool locked = gpu_clock_lock();                                                                  \
  enum client_call answer = on_##recorder(#name_ TSCOPE_MORE what);                                \
  gpu_clock_unlock(locked);                                                                        \
  errno = saved;                                                                                   \
  type result = answer == KEPT ? 0 : real args;                                                    \
  if (answer == FLUSHING)                                                                          \
    client_flushed();                                                                              \
  return result;

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params TSCOPE_FORWARD(                                    \
      tscope_resolve(&cupti_symbols[CUPTI_##name_], __builtin_return_address(0)), type, params,    \
      failure, CLIENT_CALL(name_, type, args, recorder, what))
TSCOPE_CUPTI_HOOKS(HOOK)
