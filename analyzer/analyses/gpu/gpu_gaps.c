/* SPDX-License-Identifier: MIT */
#include "analyses/gpu/gpu_gaps.h"
#include "base/checked_memory.h"

static struct gpu_gap gap_before(const struct timeline *t, const struct span *span, i64 begin) {
  struct gpu_gap gap = {begin, NS_UNKNOWN, NS_UNKNOWN, span->start};
  if (span->launch == INDEX_NONE)
    return gap;
  const struct span *call = &t->spans[span->launch];
  /* times on the device are not exactly on the host's clock */
  gap.call = CLAMP(call->start, begin, gap.end);
  gap.launched = CLAMP(call->end, begin, gap.end);
  return gap;
}

void gpu_gaps_find(const struct timeline *t, struct gpu_gaps *out) {
  i64 done = NS_UNKNOWN;
  *out = (struct gpu_gaps){0};
  if (!t->on_gpu || !t->has_compute)
    return;
  u32 n = TOTAL(u32, t->spans, t->n_spans, one, SPAN_ON_DEVICE(one->kind));
  out->at = memory_array(n, sizeof(*out->at));
  FOR_EACH(t->spans, t->n_spans, span) {
    if (!SPAN_ON_DEVICE(span->kind) || span->end <= span->start)
      continue;
    if (span->start > done)
      out->at[out->n++] = gap_before(t, span, done);
    done = MAX(span->end, done);
  }
}
