/* SPDX-License-Identifier: MIT
 *
 * Ranks whose threads were runnable but did not run, because no core was free for them.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/core_sharing.h"
#include "analyses/findings/findings.h"
#include "base/quantity.h"

static const char *sharing_title(struct findings *f, const struct core_sharing *s) {
  struct quantity share = percent(core_waiting_share(s));
  if (cores_short_by_themselves(s))
    return say(f, "%s %s %.3g %s: threads that could run waited %s of the time",
               plural(s->n, "rank").text, s->n == 1 ? "has only" : "share", s->cores,
               s->cores == 1 ? "core" : "cores", share.text);
  return say(f, "Threads on %s that could run had no core for %s of that time",
             s->host ? s->host : "the host", share.text);
}

/* "4 cores (0-3)"; of a quota, the cores of the first rank. */
static const char *describe_cores(struct findings *f, const struct core_sharing *s) {
  if (s->quota)
    return say(f, "cores %s", s->cores_list ? s->cores_list : "of any number");
  return say(f, "%s (%s)", plural(s->cores, "core").text, s->cores_list ? s->cores_list : "any");
}

static const char *sharing_evidence(struct findings *f, const struct core_sharing *s, u32 groups) {
  double wall = s->seconds / s->n;
  const char *limit =
      s->quota ? say(f, ", but the control group%s allows %.3g (cpu.max or cpu.cfs_quota_us)",
                     strstr(s->quota, " of ") ? strstr(s->quota, " of ") + 3 : "", s->cores)
               : "";
  const char *elsewhere = cores_shared_with_others(s)
                              ? "; something else used the rest, or threads that became runnable "
                                "at the same moments waited for each other"
                              : "";
  const char *stolen =
      s->stolen_s > 0.01 * wall * s->cores
          ? say(f, " Other virtual machines had %.2g of the host's cores (steal time).",
                s->stolen_s / wall)
          : "";
  const char *others = groups > 1 ? say(f, " So do ranks on %s of cores, but less.",
                                        plural(groups - 1, "more set").text)
                                  : "";
  return say(f,
             "%s with %s on %s may run on %s%s. In %s they ran for %s, and for %s "
             "more they could run but had no core (the kernel's schedstat); %s of that is threads "
             "that train. Together they used %.2g cores%s.%s%s",
             plural(s->n, "rank").text, plural(s->threads, "thread").text,
             s->host ? s->host : "one host", describe_cores(f, s), limit, duration_s(wall).text,
             duration_s(s->cpu_s).text, duration_s(s->wait_s).text,
             duration_s(s->training_wait_s).text, s->cpu_s / wall, elsewhere, stolen, others);
}

static const char *sharing_action(const struct core_sharing *s) {
  return cores_short_by_themselves(s)
             ? "Give the job at least one core for each rank (affinity, cpuset, CPU limit of the "
               "container or --cpus-per-task), start fewer ranks, or use fewer threads in each "
               "(OMP_NUM_THREADS, torch.set_num_threads, data loader workers). Then measure again: "
               "other findings of this run may be its consequences."
             : "See what else runs on this host (top, pidstat -u), or what limits the container's "
               "CPU time; pin each rank to its own cores. Then measure again: other findings of "
               "this run may be its consequences.";
}

void rule_oversubscribed(struct findings *f) {
  const struct model *model = f->a->model;
  struct core_sharing *groups = arena_array(f->a->arena, model->n_ranks, sizeof(*groups));
  u32 n = core_sharing_list(model, groups),
      n_short = NUMBER_OF(groups, n, one, cores_are_short(one));
  const struct core_sharing *worst =
      LARGEST(groups, n, one, cores_are_short(one), core_waiting_share(one));
  u32 *ranks = arena_array(f->a->arena, model->n_ranks, sizeof(u32)), n_ranks = 0;
  if (!worst)
    return;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    const struct core_sharing *group = core_sharing_of(model, groups, n, rank);
    if (group && cores_are_short(group))
      ranks[n_ranks++] = rank->rank;
  }
  /* Waiting of threads that do not train may not affect the step. Threads of autograd and of gloo
   * train too. */
  bool much = cores_short_by_themselves(worst) &&
              core_waiting_share(worst) >= OVERSUBSCRIBED_ALARM &&
              worst->training_wait_s >= OVERSUBSCRIBED_ALARM * worst->seconds;
  finding_add(f, much ? SEVERITY_CRITICAL : SEVERITY_WARNING, NAN, sharing_title(f, worst),
              sharing_evidence(f, worst, n_short), sharing_action(worst),
              n_ranks == model->n_ranks ? NULL : ranks, n_ranks == model->n_ranks ? 0 : n_ranks);
}
