/* SPDX-License-Identifier: MIT
 *
 * When the GPU is done with what the host had launched by the end of a step, as far as collectives
 * show it. Collectives are kept for the whole run, kernels are not.
 */
#include "join/find_steps.h"

/* If the end of the last collective launched before a bound was not seen, GPU time was not taken at
 * that moment, and work launched earlier may have ended last. Before the first collective there is
 * nothing to wait for. */
void bounds_on_gpu(const struct rank_events *events, struct rank_bounds *bounds) {
  u32 next = 0, kept = events->step_bounds.n == bounds->at.n ? bounds->at.n : 0;
  i64 end = NS_UNKNOWN;
  for (u32 i = 0; i < kept; i++) {
    i64 behind = events->step_bounds.at[i].behind;
    VECTOR_PUSH(&bounds->gpu, behind == NS_UNKNOWN ? NS_UNKNOWN : bounds->at.at[i] + behind);
  }
  if (kept)
    return;
  bool known = events->runs.n > 0;
  FOR_EACH(bounds->at.at, bounds->at.n, one) {
    i64 host = *one;
    for (; next < events->calls.n && events->calls.at[next].launched < host; next++) {
      const struct rank_call *call = &events->calls.at[next];
      if (!rank_call_is_on_gpu(events, call))
        continue;
      i64 ran = call->run == INDEX_NONE ? NS_UNKNOWN : events->runs.at[call->run].end;
      known = ran != NS_UNKNOWN;
      end = MAX(ran, end);
    }
    VECTOR_PUSH(&bounds->gpu, !known ? NS_UNKNOWN : MAX(end, host));
  }
}
