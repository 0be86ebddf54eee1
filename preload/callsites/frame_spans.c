/* SPDX-License-Identifier: MIT */
#include "callsites/frame_spans.h"

enum {
  GAP_BYTES = 2048, /* between two frames that are read as one piece; less than a page */
  PAGE_BYTES = 4096,
};

/* The last piece goes on to the end of its page: there the frames lie that the innermost one will
 * have called by then. */
static void plan(struct frame_spans *spans, const struct frame_head *heads, u32 n) {
  bool in_chunks = python_here.layout.code_start != PYTHON_NONE;
  struct frame_span *calls = NULL;
  spans->n = 0;
  for (u32 i = n; i-- > 0;) {
    u64 at = heads[i].at;
    bool is_call = in_chunks && heads[i].owner == 0;
    if (is_call && calls && at >= calls->begin && at < calls->end + GAP_BYTES) {
      calls->end = at + FRAME_HEAD_BYTES;
      continue;
    }
    struct frame_span *span = &spans->at[spans->n++];
    *span = (struct frame_span){.begin = at, .end = at + FRAME_HEAD_BYTES};
    calls = is_call ? span : calls;
  }
  if (calls)
    calls->end = (calls->end - 1) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
}

bool frame_spans_add(struct frame_spans *spans, struct memory_gather *gather,
                     const struct frame_head *heads, u32 n) {
  plan(spans, heads, n);
  for (u32 i = 0; i < spans->n; i++) {
    struct frame_span *span = &spans->at[i];
    span->bytes = memory_gather_add(gather, span->begin, span->end - span->begin);
    if (!span->bytes)
      return false;
  }
  return true;
}

const u8 *frame_spans_head(const struct frame_spans *spans, u64 at, u32 *from) {
  for (u32 i = 0; i < spans->n; i++) {
    u32 k = *from + i < spans->n ? *from + i : *from + i - spans->n;
    const struct frame_span *span = &spans->at[spans->n - 1 - k];
    if (at < span->begin || at - span->begin > span->end - span->begin - FRAME_HEAD_BYTES)
      continue;
    *from = k;
    return span->bytes + (at - span->begin);
  }
  return NULL;
}
