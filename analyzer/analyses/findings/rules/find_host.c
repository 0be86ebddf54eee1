/* SPDX-License-Identifier: MIT
 *
 * Lines of the program at which the host waits and the GPU then has nothing to do.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "base/quantity.h"
#include "model/span_call_sites.h"

enum { LINES_NAMED = 3 };

void rule_host_sync(struct findings *f) {
  const struct lines_result *lines = &f->r->lines;
  u32 found = 0;
  for (u32 i = 0; i < lines->n_at && found < LINES_NAMED; i++) {
    const struct line_result *line = &lines->at[i];
    double saving = saving_of(f, what_if_cure(f, WHAT_IF_LINE, i), line->idle_ms);
    double gain = per_step_of(f, saving);
    if (!is_notable(f, gain))
      continue;
    found++;
    bool replayed = !isnan(line->without_ms);
    struct quantity idle = duration_ms(line->idle_ms);
    finding_add(
        f, severity_of(f, gain), saving,
        say(f, "%s%s makes the host wait %s %s; %s",
            lines->of_functions == ANSWER_YES ? "The function at " : "", line->place,
            duration_ms(line->wait_ms).text, per_step(f),
            replayed ? say(f, "without that, %s is %s shorter", a_step(f), duration_ms(gain).text)
                     : say(f, "the GPU then idles %s", idle.text)),
        say(f,
            "In %s the host waited for the GPU %s %s, mean over ranks. The next "
            "work was launched only after that, when the GPU had nothing left to do for %s%s.",
            place_with_function(f->arena, line->place, line->function),
            line->waits == 1 ? "once" : say(f, "%.3g times", line->waits), per_step(f), idle.text,
            replayed ? ". The saving comes from a replay without the wait: the host then launches "
                       "ahead of the GPU"
                     : ""),
        "Take .item(), .cpu(), .tolist(), prints and comparisons of tensors out of the step. Or do "
        "them only every N steps, on values that were copied some steps earlier with "
        "non_blocking=True.",
        NULL, 0);
  }
}
