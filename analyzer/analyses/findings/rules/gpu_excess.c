/* SPDX-License-Identifier: MIT */
#include "analyses/findings/rules/gpu_excess.h"

#include <math.h>

#include "analyses/lines/lines.h"
#include "base/quantity.h"
#include "base/statistics.h"

#define MORE_ARITHMETIC 0.1 /* than its peers', for a rank that has more work */

/* Floating-point operations a step; 0 where unknown. */
static double operations(const struct rank_summary *rank) {
  return rank->flops.steps ? (rank->flops.flops + rank->flops.estimated) / rank->flops.steps : 0;
}

struct gpu_excess find_gpu_excess(struct findings *f, const struct rank_result *rank) {
  struct analysis *a = f->a;
  u32 index = (u32)(rank - f->r->ranks);
  struct gpu_excess found = {0};
  if (rank->reason != STRAGGLER_SLOW_COMPUTE || !a->ranks[index].on_gpu ||
      !kernels_that_take_longer(a, index, &found.kernels))
    return found;
  double *peers = arena_array(a->arena, f->r->n_ranks, sizeof(double));
  u32 n = LIST_WHERE(peers, 0, f->r->n_ranks, i, i != index && a->ranks[i].on_gpu,
                     operations(&a->ranks[i]));
  found.known = true;
  found.arithmetic = n ? operations(&a->ranks[index]) / median_of(peers, n) : NAN;
  found.more_work = found.kernels.oftener_ns > found.kernels.longer_ns ||
                    (isfinite(found.arithmetic) && found.arithmetic >= 1 + MORE_ARITHMETIC);
  if (found.more_work)
    found.place =
        line_of_longer_gpu_work(a, index, REASON_SHARE * rank->late_a_step_ms / 2, &found.place_ms);
  return found;
}

const char *describe_gpu_excess(struct findings *f, const struct gpu_excess *found) {
  const struct longer_kernels *kernels = &found->kernels;
  double all = kernels->oftener_ns + kernels->longer_ns;
  if (!found->known)
    return "";
  const char *place = found->place ? say(f, " %s a step more of its GPU's time is launched at %s.",
                                         duration_ms(found->place_ms).text, found->place)
                                   : "";
  if (kernels->oftener_ns > kernels->longer_ns)
    return say(f,
               " It has more work: %s of what its kernels take longer is in kernels that it "
               "runs oftener, most in %s (%.0f times, its peers %.0f).%s",
               percent(kernels->oftener_ns / all).text, kernels->most, kernels->times,
               kernels->peers_times, place);
  if (found->more_work)
    return say(f,
               " It has more work: its GEMMs and attention are %.3g times as many operations as "
               "its peers'.%s",
               found->arithmetic, place);
  return say(f,
             " It has the same work, and its kernels take longer: %s of that are kernels that "
             "it runs as often as its peers, most in %s.",
             percent(kernels->longer_ns / all).text, kernels->most);
}
