/* SPDX-License-Identifier: MIT
 *
 * Lines of the program at which the host waits and the GPU then has nothing to do.
 */
#include <math.h>

#include "analyses/findings/findings.h"

enum { LINES_ACCUSED = 3 };

int rule_host_sync(struct findings *f) {
  const struct lines_result *lines = &f->r->lines;
  u32 found = 0;
  for (u32 i = 0; i < lines->n_at && found < LINES_ACCUSED; i++) {
    const struct line_result *line = &lines->at[i];
    if (!(line->idle_ms >= WORTH_MENTIONING * f->step_ms))
      continue;
    double saves = f->step_ms - line->without_ms; /* NAN where it was not replayed */
    double worth = run_seconds(f, saves > 0 && saves < line->idle_ms ? saves : line->idle_ms);
    found++;
    int error = finding_add(
        f, severity_of(f, line->idle_ms), worth,
        arena_printf(f->a->arena, "%s makes the host wait %.3g ms %s; the GPU then idles %.3g ms",
                     line->place, line->wait_ms, per_step(f), line->idle_ms),
        arena_printf(
            f->a->arena,
            "In %s (%s, line %.0f) the host waited for the GPU %.3g times %s, mean over "
            "ranks. What comes next was launched only after that, when the GPU had "
            "nothing left to do%s.",
            line->function, line->file, line->line, line->waits, per_step(f),
            isnan(line->without_ms) ? "" : ": a replay without the wait tells what it is worth"),
        arena_text(f->a->arena,
                   "Take .item(), .cpu(), .tolist(), prints and comparisons of tensors out of the "
                   "step, or do them every so many steps, on values that were copied with "
                   "non_blocking=True steps before."),
        NULL, 0);
    if (error)
      return error;
  }
  return 0;
}
