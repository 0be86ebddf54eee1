/* SPDX-License-Identifier: MIT
 *
 * Where ranks had too few cores, almost every other time of the run is longer too: waits at
 * collectives, launches, input. So the other findings say whether that explains them.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/findings/core_sharing.h"
#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "model/core_times.h"

/* Whether something else took this rank's cores. */
static bool others_took_cores(const struct model *model, struct core_sharing *groups, u32 n,
                              u32 r) {
  const struct core_sharing *group = core_sharing_of(model, groups, n, &model->ranks[r]);
  return group && cores_are_short(group) && !cores_short_by_themselves(group);
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
  if (finding->id == FINDING_DIST_PIPELINE_BUBBLE)
    return finding->saving_s * 1e3 / analysis_windows(a);
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
    share = MAX(share, line->no_core_share);
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
  lost->workers_s += share * ns_to_s(steps.end - steps.start);
}

static struct core_loss lost_to_others(const struct analysis *a, const struct finding *finding,
                                       struct core_sharing *groups, u32 n) {
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
  double ranks = MAX(n_named, 1);
  lost.named_s = named.wait_s / ranks;
  lost.peers_s = peers.wait_s / MAX(n_peers, 1);
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
  const char *peers = is_always_late(a, finding)
                          ? say(a, " (of its peers: %s)", duration_s(lost->peers_s).text)
                          : "";
  const char *workers =
      lost->workers_share > 0
          ? say(a, ", its data loader workers probably for %s of their time at work",
                percent(lost->workers_share).text)
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
               "for %s of the time.",
               finding->evidence, cause, percent(1 - lost->at_line).text);
  if (lost->named_s > 0)
    return say(a, "%s %s does not explain all of it: threads of a rank waited %s for a core%s%s.",
               finding->evidence, cause, duration_s(lost->named_s).text, peers, workers);
  return say(a, "%s This may follow from %s: the ranks had too few cores.", finding->evidence,
             cause);
}

void findings_note_core_shortage(struct analysis *a) {
  struct results *r = a->results;
  struct core_sharing *groups = arena_array(a->arena, a->model->n_ranks, sizeof(*groups));
  u32 n = core_sharing_list(a->model, groups);
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
