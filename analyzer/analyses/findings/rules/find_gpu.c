/* SPDX-License-Identifier: MIT
 *
 * A GPU that does nothing of this job though it could. CUDA graphs that are captured again and
 * again: nothing is launched meanwhile.
 *
 * Launched work that begins late: all that it is known to wait for is over, and its GPU does
 * nothing of its rank. So what it waits for is outside the rank: the GPU's time slices go to
 * another process, or a function of the host holds up the stream.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_graph.h"
#include "analyses/queries.h"
#include "base/quantity.h"

void rule_late_start(struct findings *f) {
  const struct results *r = f->r;
  const struct cure *cure = what_if_cure(f, WHAT_IF_GPU_AWAY, -1);
  double saving = cure ? saving_of(f, cure, NAN) : NAN, gain = per_step_of(f, saving);
  /* Where no replay tells what that costs, the path still has it. */
  bool replayed = !isnan(saving);
  if (!replayed && r->n_path_by_category)
    gain = r->path_by_category[PATH_GPU_AWAY].ms;
  if (!is_notable(f, gain))
    return;
  const struct gpu_timeline_result *gpu = &r->gpu_timeline;
  const char *whole =
      isnan(gpu->kernel_gap_ms)
          ? ""
          : say(f,
                " In all, work that was launched had not begun for %s of %s in which the GPU did "
                "nothing.",
                duration_ms(gpu->kernel_gap_ms).text, duration_ms(gpu->idle_ms).text);
  finding_add(
      f, replayed ? severity_of(f, gain) : SEVERITY_WARNING, saving,
      say(f, "Launched work waits %s %s for a GPU that does nothing of this job",
          duration_ms(gain).text, per_step(f)),
      say(f,
          "The work was launched, all that it is known to wait for was over, and no other work of "
          "its rank ran on the GPU, but it began more than 0.1 ms later.%s",
          whole),
      "Look for other processes on that GPU (nvidia-smi): a job that was not ended, a notebook, "
      "another rank of this job, a GPU that is shared in time slices. If there are none: functions "
      "of the host in the stream (cudaLaunchHostFunc), waits for other processes' events.",
      NULL, 0);
}

void rule_recapture(struct findings *f) {
  const struct rank_summary *sum =
      f->a->whole_run ? NULL
                      : LARGEST(f->a->ranks, f->r->n_ranks, one,
                                one->capture_steps >= RECAPTURE_STEPS, one->capture_steps);
  if (!sum)
    return;
  /* Measured: calls in a capture have no records that a replay could do without. */
  const struct budget_line *captures = budget_line_of(f->r, BUDGET_CAPTURING);
  double idle_ms = ns_to_ms(sum->capturing) / sum->steps, saving = captures ? captures->seconds : 0;
  double gain = per_step_of(f, saving);
  if (!is_notable(f, gain))
    return;
  const struct rank_result *rank = &f->r->ranks[sum - f->a->ranks];
  const struct sampled_line *line = rank->capturing_line;
  finding_add(f, severity_of(f, gain), saving,
              say(f, "CUDA graphs are captured again and again, in %u of %u steps%s",
                  sum->capture_steps, sum->steps, at_line(f, ",", line)),
              say(f,
                  "Rank %u captures graphs in so many steps. Calls in a capture launch nothing: "
                  "its GPU does nothing for %s of a %s step meanwhile (mean).%s",
                  rank->rank, duration_ms(idle_ms).text, duration_ms(f->step_ms).text,
                  describe_where(f, "It is then", line)),
              say(f,
                  "%sCapture once and replay: pad shapes, or keep a graph for each of a few sizes; "
                  "copy inputs into the same buffers. With torch.compile, TORCH_LOGS=recompiles "
                  "says why it captures again.",
                  line ? say(f, "Look at %s first. ", line->place) : ""),
              NULL, 0);
}
