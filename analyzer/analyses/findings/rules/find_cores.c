/* SPDX-License-Identifier: MIT
 *
 * Ranks whose threads were runnable but did not run, because no core was free for them. Then almost
 * every other time of the run is longer too: waits at collectives, launches, input. So the other
 * findings say that they depend on this one.
 */
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "analyses/ranks/core_times.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/texts.h"

/* Ranks of one host that may run on the same cores, or that share the limit of one control
 * group. */
struct sharing {
  const struct rank *first;      /* of them, in model.ranks */
  const char *host, *cores_list; /* "0-3,8"; NULL not known */
  const char *quota;             /* "1500 of /slice/job", where that is less than the cores; NULL */
  double cores; /* cores that they may use together; with a quota this may be a fraction */
  u32 n, threads;
  double seconds, cpu_s, wait_s, stolen_s; /* summed over all; stolen: of the host, the mean */
  double training_wait_s;
};

/* Hosts of one name are still several. */
static bool same_host(const struct model *model, const struct rank *a, const struct rank *b) {
  return (!a->host && !b->host) ||
         model_same_host(model, (u32)(a - model->ranks), (u32)(b - model->ranks));
}

static bool same_quota(const struct model *model, const struct rank *a, const struct rank *b) {
  return same_host(model, a, b) &&
         same_text(a->info[TSCOPE_INFO_CPU_QUOTA], b->info[TSCOPE_INFO_CPU_QUOTA]);
}

static bool same_cores(const struct rank *a, const struct rank *b) {
  return same_text(a->info[TSCOPE_INFO_CORES], b->info[TSCOPE_INFO_CORES]);
}

/* A rank's quota where it is less than the cores of all ranks that share it; else NULL. */
static const char *quota_of(const struct model *model, const struct rank *rank) {
  u32 cores = 0;
  if (isnan(rank->scheduling.quota) || !rank->info[TSCOPE_INFO_CPU_QUOTA])
    return NULL;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank *other = &model->ranks[r];
    bool counted = !same_quota(model, rank, other);
    for (u32 i = 0; i < r && !counted; i++)
      counted = same_quota(model, rank, &model->ranks[i]) && same_cores(&model->ranks[i], other);
    cores += counted ? 0 : other->scheduling.cores;
  }
  return rank->scheduling.quota < cores ? rank->info[TSCOPE_INFO_CPU_QUOTA] : NULL;
}

static bool shares_cores(const struct model *model, const struct sharing *s,
                         const struct rank *rank) {
  const char *quota = quota_of(model, rank);
  return same_host(model, s->first, rank) && same_text(s->quota, quota) &&
         (quota || same_text(s->cores_list, rank->info[TSCOPE_INFO_CORES]));
}

static bool is_known(const struct rank *rank) {
  const struct rank_scheduling *sum = &rank->scheduling;
  return sum->seconds >= OVERSUBSCRIBED_LEAST_S && !isnan(sum->wait_s) && !isnan(sum->cpu_s) &&
         sum->cores > 0;
}

static void add_rank(struct sharing *s, const struct rank *rank) {
  const struct rank_scheduling *sum = &rank->scheduling;
  s->n++;
  s->threads += sum->threads;
  s->cores = s->quota ? sum->quota : fmax(s->cores, sum->cores);
  ADD_EACH(s, sum, seconds, cpu_s, wait_s, training_wait_s);
  s->stolen_s = isnan(sum->stolen_s) ? s->stolen_s : fmax(s->stolen_s, sum->stolen_s);
}

static double waiting_share(const struct sharing *s) {
  return s->wait_s / (s->wait_s + s->cpu_s);
}

static bool is_short(const struct sharing *s) {
  return s->n && waiting_share(s) >= OVERSUBSCRIBED_SHARE &&
         s->wait_s >= OVERSUBSCRIBED_OF_WALL * s->seconds;
}

/* Whether these ranks used only part of the cores. The rest was used by something else, or by
 * nobody: threads that become runnable at the same moments wait for each other. */
static bool shared_with_others(const struct sharing *s) {
  double wall = s->seconds / s->n;
  return s->cpu_s / wall < OVERSUBSCRIBED_FULL * s->cores;
}

/* Whether these ranks alone need more than the cores that they may use, and had them: without
 * them, threads that would sleep again at once are runnable for long. */
static bool short_by_themselves(const struct sharing *s) {
  double wall = s->seconds / s->n;
  return (s->cpu_s + s->wait_s) / wall > OVERSUBSCRIBED_DEMAND * s->cores && !shared_with_others(s);
}

/* NULL if none of the groups is the rank's. */
static struct sharing *group_of(const struct model *model, struct sharing *groups, u32 n,
                                const struct rank *rank) {
  return is_known(rank) ? FIND(groups, n, one, shares_cores(model, one, rank)) : NULL;
}

static u32 group_ranks(const struct model *model, struct sharing *groups) {
  u32 n = 0;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    if (!is_known(rank))
      continue;
    struct sharing *group = group_of(model, groups, n, rank);
    if (!group) {
      group = &groups[n++];
      *group = (struct sharing){.first = rank,
                                .host = rank->host,
                                .cores_list = rank->info[TSCOPE_INFO_CORES],
                                .quota = quota_of(model, rank)};
    }
    add_rank(group, rank);
  }
  return n;
}

static const char *sharing_title(struct findings *f, const struct sharing *s) {
  double share = 100 * waiting_share(s);
  if (short_by_themselves(s))
    return say(f, "%u rank%s %s %.3g core%s: threads that could run waited %.0f %% of the time",
               s->n, s->n == 1 ? "" : "s", s->n == 1 ? "has only" : "share", s->cores,
               s->cores == 1 ? "" : "s", share);
  return say(f, "Threads on %s that could run had no core for %.0f %% of that time",
             s->host ? s->host : "the host", share);
}

/* "4 cores (0-3)"; of a quota, the cores of the first rank. */
static const char *describe_cores(struct findings *f, const struct sharing *s) {
  if (s->quota)
    return say(f, "cores %s", s->cores_list ? s->cores_list : "of any number");
  return say(f, "%.0f core%s (%s)", s->cores, s->cores == 1 ? "" : "s",
             s->cores_list ? s->cores_list : "any");
}

static const char *sharing_evidence(struct findings *f, const struct sharing *s, u32 groups) {
  double wall = s->seconds / s->n;
  const char *limit =
      s->quota ? say(f, ", but the control group%s allows %.3g (cpu.max or cpu.cfs_quota_us)",
                     strstr(s->quota, " of ") ? strstr(s->quota, " of ") + 3 : "", s->cores)
               : "";
  const char *elsewhere = shared_with_others(s)
                              ? "; something else used the rest, or threads that became runnable "
                                "at the same moments waited for each other"
                              : "";
  const char *stolen =
      s->stolen_s > 0.01 * wall * s->cores
          ? say(f, " Other virtual machines had %.2g of the host's cores (steal time).",
                s->stolen_s / wall)
          : "";
  const char *others =
      groups > 1 ? say(f, " So do ranks on %u more sets of cores, but less.", groups - 1) : "";
  return say(f,
             "%u rank%s with %u threads on %s may run on %s%s. In %s they ran for %s, and for %s "
             "more they could run but had no core (the kernel's schedstat); %s of that is threads "
             "that train. Together they used %.2g cores%s.%s%s",
             s->n, s->n == 1 ? "" : "s", s->threads, s->host ? s->host : "one host",
             describe_cores(f, s), limit, duration_s(wall).text, duration_s(s->cpu_s).text,
             duration_s(s->wait_s).text, duration_s(s->training_wait_s).text, s->cpu_s / wall,
             elsewhere, stolen, others);
}

static const char *sharing_action(const struct sharing *s) {
  return short_by_themselves(s)
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
  struct sharing *groups = arena_array(f->a->arena, model->n_ranks, sizeof(*groups));
  u32 n = group_ranks(model, groups), n_short = NUMBER_OF(groups, n, one, is_short(one));
  const struct sharing *worst = LARGEST(groups, n, one, is_short(one), waiting_share(one));
  u32 *ranks = arena_array(f->a->arena, model->n_ranks, sizeof(u32)), n_ranks = 0;
  if (!worst)
    return;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    const struct sharing *group = group_of(model, groups, n, rank);
    if (group && is_short(group))
      ranks[n_ranks++] = rank->rank;
  }
  /* Waiting of threads that do not train may not affect the step. Threads of autograd and of gloo
   * train too. */
  bool much = short_by_themselves(worst) && waiting_share(worst) >= OVERSUBSCRIBED_ALARM &&
              worst->training_wait_s >= OVERSUBSCRIBED_ALARM * worst->seconds;
  finding_add(f, much ? SEVERITY_CRITICAL : SEVERITY_WARNING, NAN, sharing_title(f, worst),
              sharing_evidence(f, worst, n_short), sharing_action(worst),
              n_ranks == model->n_ranks ? NULL : ranks, n_ranks == model->n_ranks ? 0 : n_ranks);
}

/* Whether something else took this rank's cores. */
static bool others_took_cores(const struct model *model, struct sharing *groups, u32 n, u32 r) {
  const struct sharing *group = group_of(model, groups, n, &model->ranks[r]);
  return group && is_short(group) && !short_by_themselves(group);
}

static bool is_named(const struct finding *finding, u32 rank) {
  return ranks_have(finding->ranks, finding->n_ranks, rank);
}

/* Whether the time is that of work on a GPU, which runs without a core: a rank's own compute. */
static bool is_of_gpu(const struct analysis *a, const struct finding *finding) {
  bool of_compute = finding->id == FINDING_DIST_FAIL_SLOW || finding->id == FINDING_DIST_STRAGGLER;
  for (u32 r = 0; r < a->model->n_ranks && of_compute; r++)
    if (is_named(finding, a->model->ranks[r].rank))
      of_compute = a->ranks[r].on_gpu && (finding->id == FINDING_DIST_FAIL_SLOW ||
                                          a->results->ranks[r].reason == STRAGGLER_SLOW_COMPUTE);
  return of_compute && finding->n_ranks;
}

/* A rank that is late throughout the run, or at a fixed distance: only what it waited more than its
 * peers, beyond what its own work explains, explains that. */
static bool is_always_late(const struct analysis *a, const struct finding *finding) {
  bool always = finding->id == FINDING_DIST_STRAGGLER;
  for (u32 r = 0; r < a->model->n_ranks; r++)
    if (is_named(finding, a->model->ranks[r].rank))
      always &= a->results->ranks[r].n_late == 0 || !isnan(a->results->ranks[r].late_every);
  return always;
}

/* What a named rank costs a step: what a straggler, also one since which the run is slower, is
 * late; of a stage of a pipeline, what the step takes less without it. NAN for others. */
static double cost_of_rank(const struct analysis *a, const struct finding *finding, u32 r) {
  const struct rank_result *rank = &a->results->ranks[r];
  u32 steps = a->whole_run ? 1 : a->n_training;
  if (finding->id == FINDING_DIST_PIPELINE_BUBBLE)
    return finding->saving_s * 1e3 / steps;
  bool late = finding->id == FINDING_DIST_STRAGGLER || finding->id == FINDING_DIST_FAIL_SLOW;
  return late && rank->straggler ? rank->late_a_step_ms : NAN;
}

/* What samples show at a line at which other ranks, or the same in other steps, hardly are: how
 * much of its time there a rank is without a core, which is all that the lack of cores explains.
 * NAN for others. */
static double share_without_core(const struct analysis *a, const struct finding *finding) {
  double share = NAN;
  if (finding->spent_at)
    return finding->spent_at->no_core_share;
  for (u32 r = 0; r < a->model->n_ranks; r++) {
    const struct sampled_line *line = a->results->ranks[r].slow_line;
    if (!is_named(finding, a->model->ranks[r].rank))
      continue;
    if (!line || !(line->more_ms >= REASON_SHARE * cost_of_rank(a, finding, r)) ||
        !(line->peers_ms < LINE_OF_ONE * line->ms) || isnan(line->no_core_share))
      return NAN;
    share = share > line->no_core_share ? share : line->no_core_share;
  }
  return share;
}

/* Seconds that the lack of cores may have cost, where something else took them. */
struct core_loss {
  double named_s, peers_s; /* a rank's threads waited, on average: those named, or all; the rest */
  double workers_s, workers_share; /* likewise of data loader workers: see lost_by_workers() */
  double explains_s, at_line;      /* at_line: share_without_core() */
};

/* The analysed steps of a rank, as far as their times are known; empty if none is. */
static struct interval analysed_steps(const struct analysis *a, u32 r) {
  const i64 *begin = &a->begin[r], *end = &a->end[r];
  size_t n = a->model->n_ranks, first = a->first_step, last = first + a->n_steps;
  if (a->whole_run)
    return (struct interval){0, 0};
  while (first < last && begin[first * n] == NS_UNKNOWN)
    first++;
  while (last > first && end[(last - 1) * n] == NS_UNKNOWN)
    last--;
  return first < last ? (struct interval){begin[first * n], end[(last - 1) * n]}
                      : (struct interval){0, 0};
}

/* Of a rank in the analysed steps; without looks at that, in the whole run. */
static struct core_times times_in_steps(const struct analysis *a, u32 r) {
  const struct rank_scheduling *whole = &a->model->ranks[r].scheduling;
  struct core_times times = {0};
  if (core_times_add(&times, &a->model->ranks[r], analysed_steps(a, r)))
    return times;
  return (struct core_times){SAME(whole, cpu_s, wait_s, training_wait_s)};
}

/* Findings about the host's own time are about threads that train. Others may be about any thread:
 * those of CUDA, NCCL and gloo make no call that is recorded, and others wait for what they do. */
static double waited_s(struct core_times times, enum finding_id id) {
  bool of_host = id == FINDING_TIMING_DATALOADER_BOUND || id == FINDING_TIMING_OUTSIDE_PHASES;
  return of_host ? times.training_wait_s : times.wait_s;
}

/* Where training waits for its input, a step takes as long as the workers need for a batch. They
 * share the cores of the rank, so that they wait as often as its threads while they are ready: with
 * a core at all times they would need so much less. */
static void lost_by_workers(const struct analysis *a, const struct finding *finding, u32 r,
                            struct core_times times, struct core_loss *lost) {
  struct interval steps = analysed_steps(a, r);
  double ready = times.wait_s + times.cpu_s;
  if (finding->id != FINDING_TIMING_DATALOADER_BOUND || !(ready > 0))
    return;
  double share = workers_ready_share(a, r) * times.wait_s / ready;
  lost->workers_share += share;
  lost->workers_s += share * (double)(steps.end - steps.start) / 1e9;
}

static struct core_loss lost_to_others(const struct analysis *a, const struct finding *finding,
                                       struct sharing *groups, u32 n) {
  struct core_times named = {0}, peers = {0};
  struct core_loss lost = {.at_line = share_without_core(a, finding)};
  u32 n_named = 0, n_peers = 0;
  for (u32 r = 0; r < a->model->n_ranks; r++) {
    bool is_of_finding = finding->n_ranks == 0 || is_named(finding, a->model->ranks[r].rank);
    struct core_times times = times_in_steps(a, r), *to = is_of_finding ? &named : &peers;
    bool short_of_cores = others_took_cores(a->model, groups, n, r);
    to->cpu_s += isnan(times.cpu_s) ? 0 : times.cpu_s;
    to->wait_s += short_of_cores ? waited_s(times, finding->id) : 0;
    if (short_of_cores && is_of_finding)
      lost_by_workers(a, finding, r, times, &lost);
    *(is_of_finding ? &n_named : &n_peers) += 1;
  }
  double ranks = n_named ? n_named : 1;
  lost.named_s = named.wait_s / ranks;
  lost.peers_s = peers.wait_s / (n_peers ? n_peers : 1);
  lost.workers_s /= ranks;
  lost.workers_share /= ranks;
  double lack_s = core_times_lack_s(named, peers) / ranks;
  if (is_of_gpu(a, finding))
    lost.explains_s = 0;
  else if (n_peers && is_always_late(a, finding))
    lost.explains_s = fmax(lack_s, CORES_UNEVEN * lost.named_s);
  else
    lost.explains_s = fmax(lost.named_s, lost.workers_s);
  if (!isnan(lost.at_line))
    lost.explains_s = fmin(lost.explains_s, lost.at_line * finding->saving_s);
  return lost;
}

static const char *explain_by_cores(struct analysis *a, const struct finding *finding,
                                    const struct core_loss *lost, bool explained) {
  const char *cause = finding_id_words[FINDING_HOST_OVERSUBSCRIBED];
  const char *peers =
      is_always_late(a, finding) ? say(a, " (of its peers: %.3g s)", lost->peers_s) : "";
  const char *workers =
      lost->workers_share > 0
          ? say(a, ", its data loader workers probably for %.0f %% of their time at work",
                100 * lost->workers_share)
          : "";
  if (explained)
    return say(a,
               "%s Only a note: threads that could run had no core (%s). Those of a rank waited %s "
               "for one%s%s, which may explain it.",
               finding->evidence, cause, duration_s(lost->named_s).text, peers, workers);
  if (is_of_gpu(a, finding))
    return say(a, "%s %s does not explain it: the time is that of work on the GPU.",
               finding->evidence, cause);
  if (lost->at_line < CORES_EXPLAIN)
    return say(a,
               "%s %s does not explain all of it: at that line a rank had a core, or needed none, "
               "for %.0f %% of the time.",
               finding->evidence, cause, 100 * (1 - lost->at_line));
  if (lost->named_s > 0)
    return say(a, "%s %s does not explain all of it: threads of a rank waited %s for a core%s%s.",
               finding->evidence, cause, duration_s(lost->named_s).text, peers, workers);
  return say(a, "%s This may follow from %s: the ranks had too few cores.", finding->evidence,
             cause);
}

void findings_note_core_shortage(struct analysis *a) {
  struct results *r = a->results;
  struct sharing *groups = arena_array(a->arena, a->model->n_ranks, sizeof(*groups));
  u32 n = group_ranks(a->model, groups);
  bool found = ANY(r->findings, r->n_findings, one, one->id == FINDING_HOST_OVERSUBSCRIBED);
  for (u32 i = 0; found && i < r->n_findings; i++) {
    struct finding *finding = &r->findings[i];
    if (!(finding_traits(finding->id) & NEEDS_CORES))
      continue;
    struct core_loss lost = lost_to_others(a, finding, groups, n);
    bool explained = lost.explains_s > 0 && !(CORES_EXPLAIN * finding->saving_s > lost.explains_s);
    finding->explained = explained;
    finding->severity = explained ? SEVERITY_INFO : finding->severity;
    finding->evidence = explain_by_cores(a, finding, &lost, explained);
  }
}
