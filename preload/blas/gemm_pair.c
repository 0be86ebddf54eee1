/* SPDX-License-Identifier: MIT
 *
 * Which GEMMs are timed by a pair of events.
 */

#include "blas/blas_record.h"
#include "record/random.h"
#include "settings/env.h"
#include "streams/stream_numbers.h"

static u32 one_in(void) {
  return (u32)MIN(tscope_env.gpu_gemms, UINT32_MAX);
}

/* Picks one call in so many, at a random position among them. */
static bool is_picked(void) {
  static __thread struct {
    u64 random;
    u32 call, picked;
  } sampling __attribute__((tls_model("initial-exec")));
  const u32 calls = one_in();
  if (calls == 0)
    return false;
  if (sampling.call == 0)
    sampling.picked = tscope_random_below(&sampling.random, calls);
  bool picked = sampling.call == sampling.picked;
  sampling.call = sampling.call + 1 < calls ? sampling.call + 1 : 0;
  return picked;
}

event_pair_ticket gemm_pair_begin(struct tscope_thread *thread, cudaStream_t stream) {
  static u32 last;
  TSCOPE_KEEP_ERRNO;
  event_pair_ticket pair = 0;
  if (is_picked())
    pair = event_pair_begin(stream, TSCOPE_STREAM_LEGACY,
                            stream_index(thread, TSCOPE_STREAM_LEGACY, stream));
  if (pair)
    gemm_now.timed = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return pair;
}

void gemm_pair_end(event_pair_ticket pair, const char *name) {
  const struct event_subject subject = {.name = name, .seq = gemm_now.timed, .one_in = one_in()};
  event_pair_end(pair, name ? &subject : NULL);
}
