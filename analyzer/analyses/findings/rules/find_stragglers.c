/* SPDX-License-Identifier: MIT
 *
 * Ranks that keep others waiting.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/findings/rules/gpu_excess.h"
#include "analyses/findings/rules/own_part.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_replay.h"
#include "analyses/queries.h"
#include "analyses/steps/other_work.h"
#include "base/host_list.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/statistics.h"
#include "base/texts.h"

/* Which step figures of a straggler are about. */
static const char *in_late_step(const struct rank_result *rank) {
  return rank->late_at_times ? "in such a step" : "a step";
}

/* What explains that the rank is late: a line, a function or a phase; NULL if it is not known. */
static const struct sampled_line *straggler_line(const struct rank_result *rank) {
  if (rank->reason == STRAGGLER_SLOW_INPUT && rank->slow_in_workers)
    return rank->slow_in_workers;
  const struct sampled_line *line = rank->slow_line;
  return line && (line->more_ms >= REASON_SHARE * rank->late_a_step_ms ||
                  line->peers_ms < LINE_OF_ONE * line->ms)
             ? line
             : NULL;
}

/* Whether the rank does something of its own every so many steps, and is else no straggler. */
static bool is_periodic(const struct rank_result *rank) {
  return rank->late_every >= OTHER_WORK_PERIOD;
}

static const char *unseen_action(struct findings *f, const struct rank_result *rank,
                                 const char *host) {
  if (rank->steps_to_tell > 0)
    return say(f,
               "Record about %.2g more steps: the samples are too few yet to tell which line of "
               "rank %u takes longer than on its peers.",
               rank->steps_to_tell, rank->rank);
  return say(
      f,
      "Compare rank %u on %s with a peer: what it runs before the collective is not in the record.",
      rank->rank, host);
}

/* Of a rank for which nobody waits, if it is another than the one of `rank`; NULL. */
static const char *other_gpu(const struct findings *f, u32 rank) {
  const struct model *model = f->a->model;
  const char *own = model->ranks[rank].info[TSCOPE_INFO_GPU_NAME];
  const char *other = NULL;
  for (u32 i = 0; i < model->n_ranks && !other; i++)
    other = f->r->ranks[i].straggler ? NULL : model->ranks[i].info[TSCOPE_INFO_GPU_NAME];
  return own && other && !same_text(own, other) ? other : NULL;
}

static const char *slow_compute_action(struct findings *f, const struct rank_result *rank,
                                       const char *host, const struct sampled_line *line,
                                       const struct gpu_excess *gpu) {
  u32 index = (u32)(rank - f->r->ranks);
  if (gpu->known && gpu->more_work)
    return say(f,
               "Compare what rank %u is given to compute%s%s with its peers: samples, their "
               "lengths, experts, layers, a branch that only it takes.",
               rank->rank, gpu->place ? " at " : "", text_or_empty(gpu->place));
  const char *other = gpu->known ? other_gpu(f, index) : NULL;
  if (other)
    return say(
        f,
        "Give each rank as much work as its GPU does in the same time, or run on GPUs of one "
        "kind: on rank %u that is %.80s, on its peers %.80s.",
        rank->rank, f->a->model->ranks[index].info[TSCOPE_INFO_GPU_NAME], other);
  if (gpu->known)
    return say(f,
               "Compare clocks, temperature, power limits and other processes on %s with its "
               "peers: its GPU does the same work more slowly.",
               host);
  if (f->a->ranks[index].on_gpu)
    return say(f,
               "Compare clocks, temperature and other processes on %s with its peers; if they are "
               "alike, rank %u has more work than its peers.",
               host, rank->rank);
  return say(f,
             "Compare what rank %u is given to compute%s with its peers: samples, their lengths, "
             "experts, layers. If that is equal, compare clocks and other processes on %s.",
             rank->rank, at_line(f, "", line), host);
}

static const char *straggler_action(struct findings *f, const struct rank_result *rank,
                                    const struct gpu_excess *gpu) {
  const char *host = rank->host ? rank->host : "its host";
  const struct sampled_line *line = straggler_line(rank);
  if (find_own_part(f, (u32)(rank - f->r->ranks)).bytes > 0)
    return say(f,
               "Divide what the ranks share by size: rank %u holds more of it than its peers "
               "(parameters, optimizer state). Where whole tensors are given to ranks, as by "
               "ZeroRedundancyOptimizer, a large one makes one rank slow; FSDP divides each.",
               rank->rank);
  if (line && line->beside)
    return say(f, "Look at what another thread does at %s: rank %u waits for it at %s, %s %s.%s",
               line->beside, rank->rank, line->place, duration_ms(line->ms).text,
               in_late_step(rank), about_gil(line));
  bool input = rank->reason == STRAGGLER_SLOW_INPUT;
  bool alone = line && line->peers_ms < LINE_OF_ONE * line->ms;
  if (line && line->function &&
      (input ? alone && !line->waits : alone || rank->reason == STRAGGLER_OWN_CODE))
    return say(
        f, "Look at %s first: %s%u spends %s %s there, its peers %s.%s%s", words_of_line(f, line),
        line->in_workers ? "a loader worker of rank " : "rank ", rank->rank,
        duration_ms(line->ms).text, in_late_step(rank), duration_ms(line->peers_ms).text,
        is_periodic(rank) ? " Do it less often, in the background, or let every rank do its part."
        : input ? say(f, " If it is to do the same as they, compare storage and cores of %s.", host)
                : "",
        about_compiling(f, line));
  if (input)
    return say(f,
               "Speed up the input of rank %u: its storage and data loader workers on %s; shard "
               "the input evenly.",
               rank->rank, host);
  if (rank->reason == STRAGGLER_NO_CORE)
    return say(f,
               "See what else runs on the cores of rank %u on %s (top, pidstat -u), and pin each "
               "rank to cores of its own.",
               rank->rank, host);
  if (rank->reason == STRAGGLER_SLOW_COMPUTE)
    return slow_compute_action(f, rank, host, line, gpu);
  if (rank->reason == STRAGGLER_SLOW_COPIES)
    return say(
        f,
        "Compare how the GPU of rank %u is connected to %s with its peers (nvidia-smi -q: PCIe "
        "generation and link width; nvidia-smi topo -m: which cores are near), what it copies "
        "a step, and whether from pinned memory.",
        rank->rank, host);
  if (rank->reason == STRAGGLER_LATE_LAUNCH)
    return say(f,
               "The device of rank %u idles while its peers' do not: look for a busy or slow CPU "
               "on %s, CPU pinning, and host code that only this rank runs.",
               rank->rank, host);
  return unseen_action(f, rank, host);
}

/* Some steps may be so much longer, as without a core, that the mean is not what is usual. */
static const char *describe_usual(struct findings *f, const struct rank_result *rank,
                                  const struct sampled_line *line) {
  double errors = 2 * hypot(line->more_error_ms, rank->late_a_step_error_ms);
  return line->more_ms > rank->late_a_step_ms + errors
             ? say(f,
                   " That is the mean over steps: in half of them the rank comes less than %s "
                   "late.",
                   duration_ms(rank->late_a_step_ms).text)
             : "";
}

static const char *describe_straggler_line(struct findings *f, const struct rank_result *rank) {
  const struct sampled_line *line = straggler_line(rank);
  if (!line)
    return "";
  if (!line->function)
    return say(f, " It takes %s %s longer than its peers %s.", duration_ms(line->more_ms).text,
               in_late_step(rank), line->where);
  const char *activity = line->activity ? say(f, " There it is %s for %s of the time%s%s.",
                                              line->activity, percent(line->activity_share).text,
                                              line->beside ? ", while another thread is at " : "",
                                              text_or_empty(line->beside))
                                        : "";
  const char *next =
      line->next ? say(f, " Another %s are %s%s.", duration_ms(line->next_ms).text,
                       line_where(f, line->next),
                       line->next->no_core_share >= REASON_SHARE ? ", mostly without a core" : "")
                 : "";
  return say(f,
             " %s %s (error %s) %s longer than its peers %s%s: in samples %s, they %s, error "
             "%s.%s%s%s",
             line->in_workers ? "Its data loader workers take" : "It takes",
             duration_ms(line->more_ms).text, duration_ms(line->more_error_ms).text,
             in_late_step(rank), line_where(f, line), called_at(f, line),
             duration_ms(line->ms).text, duration_ms(line->peers_ms).text,
             duration_ms(line->error_ms).text, describe_usual(f, rank, line), activity, next);
}

/* " in steps 1 to 20 and 41 to 60", " in every 4th step", " in 17 of 60 steps", or nothing. */
static const char *describe_late_steps(struct findings *f, const struct rank_result *rank) {
  const char *text = "";
  if (!isnan(rank->late_every))
    return say(f, " in %s", describe_period(f->a->arena, (u32)rank->late_every));
  if (rank->late_at_times)
    return say(f, " in %.0f of %u steps", rank->slowest_count, rank->met_steps);
  for (u32 i = 0; i < rank->n_late; i++)
    text = say(f, "%s%s %.0f to %.0f", text,
               i == 0                 ? " in steps"
               : i + 1 < rank->n_late ? ","
                                      : " and",
               rank->late_from[i], rank->late_to[i]);
  return text;
}

/* Where the others wait in the steps in which the rank is late, if it is so in some only. */
static const char *describe_waits(struct findings *f, const struct rank_result *rank) {
  struct analysis *a = f->a;
  struct step_line at;
  if (!rank->late_at_times)
    return "";
  bool *is_late = arena_array(a->arena, a->model->steps.n, sizeof(*is_late));
  for (u32 step = a->first_step; step < a->first_step + a->n_steps; step++)
    is_late[step] = straggler_is_late_in(rank, a->model->steps.first + step);
  step_line_of_long_steps(a, is_late, rank->late_a_step_ms, &at);
  return at.waits ? say(a, " Its peers then wait at %s.", line_in_function(f, at.waits)) : "";
}

/* " Of what ranks broadcast in a step 15.4 MB are its own, of a peer 16 kB: ...". */
static const char *describe_own_part(struct findings *f, const struct rank_result *rank) {
  struct own_part part = find_own_part(f, (u32)(rank - f->r->ranks));
  return part.bytes > 0 ? say(f,
                              " Its part of what the ranks share is larger: it broadcasts %s a "
                              "step, a peer %s (median).",
                              byte_size(part.bytes).text, byte_size(part.of_peers).text)
                        : "";
}

/* " 3000 ranks on 375 hosts are like that: node[002-376]." */
static const char *describe_alike(struct findings *f, const struct straggler_group *group) {
  u32 hosts;
  const char **names = arena_array(f->a->arena, group->n, sizeof(*names));
  u32 n = LIST_WHERE(names, 0, f->r->n_ranks, i, group->ranks[i], f->r->ranks[i].host);
  const char *list = host_list_in(f->a->arena, names, n, &hosts);
  return hosts > 1 ? say(f, " %u ranks on %u hosts are like that: %s.", n, hosts, list)
                   : say(f, " %u ranks are like that.", n);
}

/* Of a rank that no collective shows. */
static const char *describe_path_of(struct findings *f, const struct rank_result *rank,
                                    const char *more) {
  const char *where = rank->last_collectives > rank->judged_collectives / 2
                          ? say(f, "It arrives last at %.0f of %.0f collectives, by little at each",
                                rank->last_collectives, rank->judged_collectives)
                          : "They wait for it in messages, or for a rank that waits for it: no "
                            "collective shows who comes last";
  return say(f,
             "%s of the critical path is on rank %u. If it were as fast as its peers, a step "
             "would take %s less (replay; by chance: %s). %s. Reason: %s.%s",
             percent(share_of_path(f->r, (u32)(rank - f->r->ranks))).text, rank->rank,
             duration_ms(rank->lateness_ms).text, p_value(rank->p_value).text, where,
             straggler_reason_words[rank->reason], more);
}

/* " Copies that nothing hides take 8.1 ms a step there, on its peers 2.2 ms (median)." */
static const char *describe_slow_copies(struct findings *f, const struct rank_result *rank) {
  u32 index = (u32)(rank - f->r->ranks);
  if (rank->reason != STRAGGLER_SLOW_COPIES)
    return "";
  double *peers = arena_array(f->a->arena, f->r->n_ranks, sizeof(double));
  u32 n =
      LIST_KNOWN(peers, 0, f->r->n_ranks, i, i == index ? (double)NAN : exposed_copies_ms(f->a, i));
  return say(f, " Copies that nothing hides take %s a step there, on its peers %s (median).",
             duration_ms(exposed_copies_ms(f->a, index)).text,
             duration_ms(median_of(peers, n)).text);
}

/* The line of a rank of a group, where it is named and no rank of the group before has the same. */
static const struct sampled_line *next_line(const struct findings *f,
                                            const struct straggler_group *group, u32 index) {
  const struct rank_result *ranks = f->r->ranks;
  const struct sampled_line *line = group->ranks[index] && ranks[index].reason != STRAGGLER_NO_CORE
                                        ? straggler_line(&ranks[index])
                                        : NULL;
  for (u32 i = 0; i < index && line; i++) {
    const struct sampled_line *other = group->ranks[i] ? straggler_line(&ranks[i]) : NULL;
    line = other && same_text(other->where, line->where) ? NULL : line;
  }
  return line;
}

enum { LINES_TOLD = 2 };

/* ", at a.py:10 and at b.py:20"; nothing if there are more. */
static const char *name_lines(struct findings *f, const struct straggler_group *group) {
  const char *text = "";
  u32 n = 0;
  for (u32 i = 0; i < f->r->n_ranks; i++) {
    const struct sampled_line *line = next_line(f, group, i);
    text = line ? say(f, "%s%s %s", text, n++ ? " and" : ",", line->where) : text;
  }
  return n <= LINES_TOLD ? text : "";
}

/* " Rank 2 takes 11.0 ms longer at b.py:20 (load)." of the ranks of a group that are late for
 * another line than the worst. */
static const char *describe_other_lines(struct findings *f, const struct straggler_group *group) {
  const struct sampled_line *of_worst = straggler_line(&f->r->ranks[group->worst]);
  const char *text = "";
  for (u32 i = 0, n = 0; i < f->r->n_ranks && n < LINES_TOLD; i++) {
    const struct sampled_line *line = next_line(f, group, i);
    if (!line || (of_worst && same_text(of_worst->where, line->where)))
      continue;
    n++;
    text = say(f, "%s Rank %u takes %s longer %s.", text, f->r->ranks[i].rank,
               duration_ms(line->more_ms).text, line_where(f, line));
  }
  return text;
}

static const char *straggler_evidence(struct findings *f, const struct straggler_group *group,
                                      const struct gpu_excess *gpu) {
  const struct rank_result *rank = &f->r->ranks[group->worst];
  const char *more = "";
  if (!isnan(rank->rel_slowdown) && fabs(rank->rel_slowdown) >= 0.01)
    more = say(f, " Its compute takes %s %s than its peers' (%s a step).",
               percent(fabs(rank->rel_slowdown)).text, rank->rel_slowdown > 0 ? "longer" : "less",
               duration_ms(rank->median_compute_ms).text);
  if (group->n > 1)
    more = say(f, "%s%s%s", describe_other_lines(f, group), more, describe_alike(f, group));
  const char *at = describe_straggler_line(f, rank);
  more = say(f, "%s%s%s%s%s%s", at, describe_waits(f, rank), more, describe_own_part(f, rank),
             describe_slow_copies(f, rank), describe_gpu_excess(f, gpu));
  if (rank->of_path)
    return describe_path_of(f, rank, more);
  /* Below the smallest double there is only 0, but no probability is exactly 0. */
  const char *late = !rank->late_at_times ? describe_late_steps(f, rank)
                     : isnan(rank->late_every)
                         ? " in which anybody came so late"
                         : say(f, " in which anybody came so late, %s",
                               describe_period(f->a->arena, (u32)rank->late_every));

  if (rank->longer_compute_steps > 0)
    late =
        say(f, ", and in %.0f its device computed longer than its peers' by 5 %% of a step or more",
            rank->longer_compute_steps);
  return say(f,
             "Rank %u%s%s came last in %.0f of %.0f steps%s (by chance: %s), typically %s "
             "(error %s) behind the median of its peers, at %s. Reason: %s.%s",
             rank->rank, rank->last_together ? " or " : "", text_or_empty(rank->last_together),
             rank->slowest_count, rank->slowest_count / rank->slowest_fraction, late,
             p_value(rank->p_value).text, duration_ms(rank->lateness_ms).text,
             duration_ms(rank->lateness_error_ms).text, rank->collective,
             straggler_reason_words[rank->reason], more);
}

/* By the replay that judged them, else the wait that was measured. */
static double saving_of_group(struct findings *f, const struct straggler_group *group) {
  const struct results *r = f->r;
  double saving = saving_of(f, NULL, r->ranks[group->worst].imposed_wait_ms);
  if (!group->cure.n)
    return saving;
  f->cure = group->cure;
  f->saving = group->saving;
  if (group->with_others) {
    u32 *all = arena_array(f->a->arena, r->n_ranks, sizeof(u32));
    u32 n = LIST_WHERE(all, 0, r->n_ranks, i, group->cure.changes->ranks[i], r->ranks[i].rank);
    f->together = ranks_in(f->a->arena, all, n);
  }
  return run_seconds(f, group->saving.ms);
}

static bool is_reason_of_all(const struct results *r, const struct straggler_group *group) {
  enum straggler_reason reason = r->ranks[group->worst].reason;
  return reason != STRAGGLER_NOT_SEEN &&
         !ANY_NUMBER(0, r->n_ranks, i, group->ranks[i] && r->ranks[i].reason != reason);
}

/* Where a rank for which no line is found spends the longer steps, if these are most of what it
 * costs: a test of lines over all steps may not see what some of them do. The rank has that line
 * then, wherever it is told. */
static bool is_in_long_steps(struct findings *f, const struct straggler_group *group, double saving,
                             struct step_line *at) {
  struct rank_result *rank = &f->r->ranks[group->worst];
  bool of_host = rank->reason == STRAGGLER_NOT_SEEN ||
                 (rank->reason == STRAGGLER_SLOW_COMPUTE && !f->a->ranks[group->worst].on_gpu);
  double lost_s;
  if (group->n > 1 || !of_host || straggler_line(rank) ||
      !long_steps_are_of(f, group->worst, at, &lost_s) || lost_s < REASON_SHARE * saving)
    return false;
  rank->reason = STRAGGLER_OWN_CODE;
  rank->late_at = at->line->place;
  rank->late_path = at->line->path;
  return true;
}

static void add_straggler_finding(struct findings *f, const struct straggler_group *group) {
  const struct results *r = f->r;
  const struct rank_result *rank = &r->ranks[group->first], *worst = &r->ranks[group->worst];
  u32 *ranks = arena_array(f->a->arena, group->n, sizeof(u32));
  u32 n = LIST_WHERE(ranks, 0, r->n_ranks, i, group->ranks[i], r->ranks[i].rank);
  const char *host = model_host_of(r->model, group->ranks);
  double saving = saving_of_group(f, group);
  const struct sampled_line *line = rank->reason == STRAGGLER_NO_CORE ? NULL : straggler_line(rank);
  const char *late = describe_late_steps(f, worst);
  const struct gpu_excess gpu = find_gpu_excess(f, worst);
  const char *where = line            ? say(f, ", %s", line->where)
                      : gpu.place     ? say(f, ", more work at %s", gpu.place)
                      : gpu.more_work ? ", more work"
                                      : "";
  const char *why = is_reason_of_all(r, group) ? straggler_reason_words[worst->reason] : NULL;
  struct step_line at;
  bool in_long_steps = is_in_long_steps(f, group, saving, &at);
  const char *reason = straggler_reason_words[rank->reason];
  if (in_long_steps)
    reason = say(f, "%s, most of it in %u longer steps, at %s", reason, at.steps, at.line->place);
  const char *longer = in_long_steps ? say(f,
                                           " Most of what it costs is in the %u longer steps of "
                                           "TIMING.JITTER, in which it is at %s.",
                                           at.steps, line_in_function(f, at.line))
                                     : "";
  const char *title =
      n > 1 ? say(f, "%s keep their peers waiting%s%s%s%s",
                  host ? say(f, "%u ranks on %s", n, host) : ranks_first_in(f->a->arena, ranks, n),
                  late, why ? ": " : "", text_or_empty(why), name_lines(f, group))
            : say(f, "Rank %u%s%s %s%s: %s%s", rank->rank, rank->host ? " on " : "",
                  text_or_empty(rank->host),
                  is_periodic(rank) ? "does something for which its peers wait"
                                    : "keeps its peers waiting",
                  late, reason, where);
  finding_add(f, severity_of(f, per_step_of(f, saving)), saving, title,
              say(f, "%s%s", straggler_evidence(f, group, &gpu), longer),
              in_long_steps
                  ? say(f, "Look at %s first.%s", at.line->place, about_compiling(f, at.line))
                  : straggler_action(f, worst, &gpu),
              ranks, n);
}

void rule_straggler(struct findings *f) {
  FOR_EACH(f->r->straggler_groups, f->r->n_straggler_groups, straggler_group)
    if (!is_slow_stage(f, straggler_group))
      add_straggler_finding(f, straggler_group);
}
