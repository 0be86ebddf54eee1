/* SPDX-License-Identifier: MIT
 *
 * Launched work that begins late: all that it is known to wait for is over, and its GPU does
 * nothing of its rank. So what it waits for is outside the rank: the GPU's time slices go to
 * another process, or a function of the host holds up the stream.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/path/path_graph.h"
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
