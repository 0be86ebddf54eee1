/* SPDX-License-Identifier: MIT
 *
 * Ranks that wait for one another without one that keeps the others waiting.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_replay.h"
#include "base/persistence.h"
#include "base/quantity.h"
#include "base/rank_list.h"

/* Exposed wait per step in collectives in which every member waits for every other. Waiting for a
 * message can be caused by a pipeline's order and need not be an imbalance. NAN if it is not
 * known. */
static double collective_wait_ms(const struct findings *f) {
  return TOTAL(double, f->r->by_op, f->r->n_by_op, one,
               op_is_barrier_like(one->op_id) ? one->exposed_wait_ms : 0);
}

/* Stragglers, and the exposed waits for them a step. */
struct late_ranks {
  u32 *rank, n;
  double wait_ms;
};

/* A rank that was last in most of the steps and explains most of the wait, if there are too few
 * steps to call it a straggler; NULL if there is none. */
static const struct rank_result *likely_straggler(const struct findings *f, double wait) {
  return FIND(f->r->ranks, f->r->n_ranks, one,
              !one->straggler && !one->refuted && one->slowest_fraction > STRAGGLER_MAJORITY &&
                  one->imposed_wait_ms >= REASON_SHARE * wait);
}

/* How many more steps, in as large a share of which the rank came last, would show that this is no
 * chance, if as many tests are made again. */
static u32 steps_to_judge(const struct findings *f, const struct rank_result *rank) {
  u32 n = rank->met_steps + 1;
  while (n < 1000 &&
         f->r->dist_tests * chance_of_count((u32)(rank->slowest_fraction * n), n,
                                            1.0 / rank->met_members, rank->met_correlation) >=
             STRAGGLER_SIGNIFICANCE)
    n++;
  return n - rank->met_steps;
}

/* The rank that would save most of what all ranks as fast as the median would; NULL if none. */
static const struct what_if *rank_that_saves_most(const struct findings *f) {
  const struct what_if *best =
      LARGEST(f->r->what_if, f->r->n_what_if, one, one->kind == WHAT_IF_RANK, one->saving.ms);
  const struct what_if *all =
      FIND(f->r->what_if, f->r->n_what_if, one, one->kind == WHAT_IF_EVERY_RANK);
  return best && all && best->saving.ms >= REASON_SHARE * all->saving.ms &&
                 saving_pays(&best->saving, f->step_ms)
             ? best
             : NULL;
}

/* "44.1 ms of it for rank 2 (DIST.STRAGGLER); no single rank explains the rest". */
static const char *describe_late_rank(struct findings *f, const struct rank_result *late,
                                      const struct late_ranks *named) {
  if (named->n)
    return say(f, "%s of it for %s (%s); no single rank explains the rest",
               duration_ms(named->wait_ms).text, ranks_in(f->a->arena, named->rank, named->n),
               finding_id_words[FINDING_DIST_STRAGGLER]);
  const struct what_if *most = rank_that_saves_most(f);
  if (!late && most)
    return say(f,
               "with %s a step would take %s less (replay), but that it comes last more often than "
               "by chance is not shown",
               most->change, duration_ms(most->saving.ms).text);
  const struct rank_result *refuted =
      LARGEST(f->r->ranks, f->r->n_ranks, one,
              one->refuted && one->slowest_fraction > STRAGGLER_MAJORITY, one->slowest_fraction);
  if (!late && refuted)
    return say(f,
               "rank %u comes last in %.0f of %u steps, but if it were as fast as its peers, steps "
               "would hardly be shorter (replay): what the peers do meanwhile takes as long, or is "
               "a wait that the record does not show",
               refuted->rank, refuted->slowest_count, refuted->met_steps);
  if (!late)
    return "no single rank explains it";
  return say(
      f,
      "rank %u came last in %.0f of %u steps and makes its peers wait %s a step, but with so "
      "few steps this may be chance (%s); about %u more such steps would tell",
      late->rank, late->slowest_count, late->met_steps, duration_ms(late->imposed_wait_ms).text,
      p_value(late->p_value).text, steps_to_judge(f, late));
}

/* "Last to arrive: rank 7 at 5 of 8 collectives, rank 5 at 2"; adds those whose waits are worth
 * mentioning to `ranks`. */
static const char *describe_last_arrivals(struct findings *f, u32 *ranks, u32 *n) {
  const struct results *r = f->r;
  const char *text = "";
  u32 named[4], n_named = 0;
  while (n_named < 4) {
    const struct rank_result *rank =
        LARGEST(r->ranks, r->n_ranks, one,
                !one->straggler && one->last_wait_ms >= WORTH_MENTIONING / 2 * f->step_ms &&
                    !ranks_have(named, n_named, one->rank),
                one->last_wait_ms);
    if (!rank)
      break;
    text = arena_list(f->arena, text, ", ", "rank %u at %.0f of %.0f", rank->rank,
                      rank->last_collectives, rank->judged_collectives);
    bool listed = rank->refuted || rank->last_wait_ms < WORTH_MENTIONING * f->step_ms;
    if (!listed && !ranks_have(ranks, *n, rank->rank))
      ranks[(*n)++] = rank->rank;
    named[n_named++] = rank->rank;
  }
  return n_named ? say(f, " Last to arrive: %s collectives.", text) : "";
}

/* " Compute varies by 12 % between the ranks of a step; ...". */
static const char *describe_uneven_compute(struct findings *f) {
  if (isnan(f->r->imbalance_cv))
    return "";
  return say(f,
             " Compute varies by %s between the ranks of a step; the slowest takes %s of "
             "the wall time more than the mean.",
             percent(f->r->imbalance_cv).text, percent(f->r->wall_frac_lost_to_imbalance).text);
}

/* What the last rank of each step does; "" if `line` is NULL. */
static const char *describe_last_ranks_line(struct findings *f, const struct sampled_line *line) {
  if (!line)
    return "";
  return say(f,
             " The rank that comes last in a step, whichever it is, is at %s for %s, the others in "
             "that step for %s, in samples.",
             words_of_line(f, line), duration_ms(line->ms).text, duration_ms(line->peers_ms).text);
}

static void add_imbalance_finding(struct findings *f, double wait, const struct late_ranks *named,
                                  double saving) {
  const struct results *r = f->r;
  const struct rank_result *late = named->n ? NULL : likely_straggler(f, wait);
  double rest = wait - named->wait_ms;
  u32 ranks[5], n_ranks = 0;
  if (late)
    ranks[n_ranks++] = late->rank;
  const char *last = describe_last_arrivals(f, ranks, &n_ranks);
  const char *who = describe_late_rank(f, late, named);
  const char *apart = isnan(r->sync_skew_ms) ? ""
                                             : say(f, " First and last arrive %s apart (median).",
                                                   duration_ms(r->sync_skew_ms).text);
  const struct sampled_line *line = named->n || late ? NULL : last_ranks_line_find(f->a);
  f->spent_at = line && line->peers_ms < LINE_OF_ONE * line->ms ? line : NULL;
  finding_add(
      f, severity_of(f, per_step_of(f, saving)), saving,
      say(f, "Ranks wait %s%s of %s for one another%s", named->n ? "another " : "",
          percent(rest / f->step_ms).text, of_each_step(f),
          at_line(f, ": the last of each step is", line)),
      say(f, "%s of %s %s%s, mean over ranks, is exposed wait in collectives; %s.%s%s%s%s",
          duration_ms(wait).text, f->a->whole_run ? "the" : "a", duration_ms(f->step_ms).text,
          f->a->whole_run ? "" : " step", who, describe_last_ranks_line(f, line), apart, last,
          describe_uneven_compute(f)),
      say(f,
          "%s%s%sive every rank the same work in every step: bucket or pack samples by "
          "length, balance experts and pipeline stages. If the work is equal, look for CPUs "
          "or devices shared with something else.",
          line ? "Look at " : "", line ? words_of_line(f, line) : "", line ? " first. G" : "G"),
      n_ranks ? ranks : NULL, n_ranks);
}

void rule_load_imbalance(struct findings *f) {
  const struct results *r = f->r;
  struct late_ranks named = {.rank = arena_array(f->a->arena, r->n_ranks, sizeof(u32))};
  double wait = collective_wait_ms(f);
  FOR_EACH(r->ranks, r->n_ranks, rank)
    if (rank->straggler) {
      named.rank[named.n++] = rank->rank;
      named.wait_ms += rank->imposed_wait_ms;
    }
  if (!is_notable(f, wait - named.wait_ms))
    return;
  double saving = saving_beyond_stragglers(f, what_if_cure(f, WHAT_IF_EVERY_RANK, -1), wait);
  /* Their peers may wait for those that are named at several collectives of a step. */
  if (!named.n || !(per_step_of(f, saving) < REPLAY_TOLERANCE * f->step_ms))
    add_imbalance_finding(f, wait, &named, saving);
}
