/* SPDX-License-Identifier: MIT
 *
 * When collectives ran, from NCCL's own records: start and stop by the GPU's global timer, whose
 * offset to the host's clock is not known and drifts. But NCCL's host side saw each stop after it
 * happened, and put each collective on its stream before its start:
 *
 *   put on stream - gpu start  <=  host - GPU  <=  seen done - gpu stop
 *
 * The proxy thread polls, so the right-hand side comes close to the truth again and again: the
 * least of each window of a second is used, with straight lines between them. The least distance
 * of the two sides bounds the error.
 */

#include "base/sorting.h"
#include "import/tscope/events/read_events.h"

#define WINDOW_NS 1000000000ll
#define LATEST_NS (1ll << 60) /* 36 years; beyond it a file is damaged, and sums might overflow */

struct offset {
  i64 gpu; /* instant on the GPU's timer */
  i64 upper;
};

struct offsets {
  VECTOR(struct offset) at;
  i64 error; /* largest over the windows */
};

static bool is_usable(const struct rank_inside *inside) {
  return inside->gpu_start && inside->gpu_stop > inside->gpu_start && inside->end != NS_UNKNOWN &&
         inside->gpu_stop < LATEST_NS && inside->end < LATEST_NS && inside->start > -LATEST_NS;
}

ORDER_BY(by_gpu, struct offset, UP(gpu))

/* Insides are in the order of the host's time. */
static void find_offsets(const struct rank_events *events, struct offsets *offsets) {
  for (u32 i = 0, next; i < events->insides.n; i = next) {
    i64 begin = events->insides.at[i].start, lower = INT64_MIN;
    struct offset best = {.upper = INT64_MAX};
    for (next = i; next < events->insides.n && events->insides.at[next].start - begin < WINDOW_NS;
         next++) {
      const struct rank_inside *inside = &events->insides.at[next];
      if (!is_usable(inside))
        continue;
      i64 upper = inside->end - (i64)inside->gpu_stop;
      i64 least = inside->start - (i64)inside->gpu_start;
      lower = MAX(least, lower);
      if (upper < best.upper)
        best = (struct offset){(i64)inside->gpu_stop, upper};
    }
    if (best.upper == INT64_MAX)
      continue;
    VECTOR_PUSH(&offsets->at, best);
    i64 error = best.upper - lower;
    offsets->error = MAX(error, offsets->error);
  }
  SORT(offsets->at.at, offsets->at.n, by_gpu);
}

static i64 gpu_to_host(const struct offsets *offsets, u64 gpu) {
  const struct offset *at = offsets->at.at;
  u32 n = offsets->at.n;
  i64 instant = (i64)gpu;
  /* the first that is later */
  u32 low = FIRST_NOT(0, n, i, at[i].gpu <= instant);
  if (low == 0 || low == n)
    return instant + at[low ? n - 1 : 0].upper;
  const struct offset *a = &at[low - 1], *b = &at[low];
  double share = (double)(instant - a->gpu) / (double)(b->gpu - a->gpu);
  return instant + a->upper + (i64)(share * (double)(b->upper - a->upper));
}

/* It ran between being put on its stream and being seen done. */
static i64 clamp_to_call(const struct rank_inside *inside, i64 instant) {
  return CLAMP(instant, inside->start, inside->end);
}

void runs_from_inside(struct rank_events *events) {
  struct offsets offsets = {0};
  if (events->runs.n == 0)
    find_offsets(events, &offsets);
  for (u32 i = 0; i < events->insides.n && offsets.at.n; i++) {
    const struct rank_inside *inside = &events->insides.at[i];
    if (!is_usable(inside))
      continue;
    struct rank_run run = {.start = clamp_to_call(inside, gpu_to_host(&offsets, inside->gpu_start)),
                           .end = clamp_to_call(inside, gpu_to_host(&offsets, inside->gpu_stop)),
                           .comm = inside->comm,
                           .seq = inside->seq,
                           .first_call = INDEX_NONE,
                           .stream = TSCOPE_NO_STREAM,
                           .op = inside->op == TSCOPE_OP_RECV ? TSCOPE_OP_SEND : inside->op};
    VECTOR_PUSH(&events->runs, run);
    events->inside_error_ns = offsets.error > 0 ? offsets.error : 1;
  }
  free(offsets.at.at);
}
