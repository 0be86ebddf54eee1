/* SPDX-License-Identifier: MIT */
#include "model/stalls.h"

#include <math.h>

#include "model/building.h"
#include "model/nccl_errors.def"

struct rank_stall rank_stall_empty(void) {
  return (struct rank_stall){.what = TSCOPE_STALL_NOTHING_MOVED,
                             .begin = NS_UNKNOWN,
                             .looked = NS_UNKNOWN,
                             .end = NS_UNKNOWN,
                             .limit_s = (double)NAN,
                             .step_s = (double)NAN};
}

struct stalled_thread *rank_stall_thread(const struct rank_stall *stall, u32 tid) {
  return tid ? FIND(stall->threads, stall->n_threads, one, one->tid == tid) : NULL;
}

const char *nccl_error_text(i32 result) {
  static const char *const words[] = {
#define X(value, name, text) [value] = text,
      TSCOPE_NCCL_ERRORS(X)
#undef X
  };
  u32 n = LENGTH_OF(words);
  return result > 0 && (u32)result < n && words[result] ? words[result]
                                                        : "an error that tscope does not know";
}

void rank_stalls_place(struct rank_stall *stalls, u32 n, const struct rank_clock *clock) {
  FOR_EACH_CHANGED(stalls, n, stall) {
    stall->begin = clock_to_axis(clock, stall->begin);
    stall->looked = clock_to_axis(clock, stall->looked);
    stall->end = clock_to_axis(clock, stall->end);
  }
}

const struct rank_stall *rank_last_pause(const struct rank *rank, i64 alive) {
  const i64 moment_ns = 300 * 1000 * 1000ll; /* three looks of the shim */
  const struct rank_stall *last = rank->n_stalls ? &rank->stalls[rank->n_stalls - 1] : NULL;
  if (!last || last->what != TSCOPE_STALL_NOT_RUNNING || last->begin == NS_UNKNOWN ||
      last->end == NS_UNKNOWN || alive == NS_UNKNOWN)
    return NULL;
  const i64 ends[] = {rank->ending.end, rank->ending.exception_at};
  FOR_EACH(ends, LENGTH_OF(ends), end)
    if (*end >= last->end && *end < alive)
      alive = *end;
  return alive - last->end <= moment_ns ? last : NULL;
}
