/* SPDX-License-Identifier: MIT
 *
 * How ranks ended, where they stand, and how they differ.
 */
#include <math.h>

#include "base/rank_list.h"
#include "report/facts/facts.h"

void facts_of_run_end(struct facts *to, const struct results *results) {
  const struct run_end *end = &results->run_end;
  fact_line(to, "in short", TONE_PLAIN, "%s", end->summary);
  if (end->calls)
    fact_line(to, "calls", TONE_PLAIN, "%s", end->calls);
}

void facts_of_hang(struct facts *to, const struct results *results) {
  const struct collective_check *check = &results->check;
  fact_line(to, "calls", TONE_PLAIN, "%.0f in %s", check->checked,
            plural(check->n_groups, "group").text);
  fact_item(to, TONE_PLAIN, "%.0f match on all members", check->matched);
  fact_item(to, TONE_PLAIN, "from %s", check->source);
  if (check->pending_ranks > 0) {
    fact_line(to, "waiting", TONE_PLAIN, "%s in calls that have not finished",
              plural(check->pending_ranks, "rank").text);
    fact_if_known(to, TONE_PLAIN, "the oldest for %s", duration_s(check->pending_s));
    if (check->n_suspects && check->victims > 0)
      fact_item(to, TONE_PLAIN, "%.0f of them victims", check->victims);
  }
  if (check->nccl)
    fact_line(to, "NCCL", TONE_PLAIN, "%s", check->nccl);
  if (check->n_unrecorded) {
    fact_line(to, "no record", TONE_PLAIN, "%s",
              ranks_by_name(to->arena, check->unrecorded, check->n_unrecorded, 48));
  }
  if (check->n_suspects == 0)
    fact_line(to, "verdict", TONE_PLAIN, "%s%s", check->cannot_tell ? "cannot tell: " : "",
              check->cannot_tell ? check->cannot_tell : "no rank differs from the others.");
}

void facts_of_stalls(struct facts *to, const struct results *results) {
  const struct stalls_result *stalls = &results->stalls;
  if (!stalls->n_ranks)
    return;
  fact_line(to, "standing", TONE_PLAIN, "%s without progress for %s",
            plural(stalls->n_ranks, "rank").text, duration_s(stalls->limit_s).text);
  fact_item(to, TONE_PLAIN, "recorded %.1f s into the run", stalls->recorded_s);
}

/* Beside the ranks that were found, one that is missing may be the slow one. */
static void put_no_straggler(struct facts *to, const struct results *results) {
  const struct model *model = results->model;
  if (!(results->dist_steps > 0))
    fact_item(to, TONE_PLAIN, "unknown: no step shows which rank came last");
  else if (model_lacks_ranks(model))
    fact_item(to, TONE_WARNING, "none among the %u OF %u RANKS FOUND", model->n_ranks,
              model->world_size);
  else
    fact_item(to, TONE_PLAIN, "none");
}

static void put_stragglers(struct facts *to, const struct results *results) {
  u32 *stragglers = arena_array(to->arena, results->n_ranks, sizeof(*stragglers));
  u32 n = LIST_WHERE(stragglers, 0, results->n_ranks, i, results->ranks[i].straggler,
                     results->ranks[i].rank);
  fact_label(to, "stragglers");
  if (n)
    fact_item(to, TONE_CRITICAL, "%s", ranks_by_name(to->arena, stragglers, n, 40));
  else
    put_no_straggler(to, results);
  if (results->dist_steps > 0)
    fact_item(to, TONE_PLAIN, "judged on %s", plural(results->dist_steps, "step").text);
  const struct rank_result *odd =
      LARGEST(results->ranks, results->n_ranks, one, one->no_straggler, -one->p_value);
  if (odd && !n)
    fact_line(to, "", TONE_PLAIN, "rank %u is slower than its peers by more than chance, but %s",
              odd->rank, odd->no_straggler);
}

static void put_imbalance(struct facts *to, const struct results *results) {
  fact_label(to, "imbalance");
  if (isnan(results->wall_frac_lost_to_imbalance) && isnan(results->imbalance_cv) &&
      isnan(results->sync_skew_ms)) {
    fact_item(to, TONE_PLAIN, "%s", quantity_unknown);
    return;
  }
  fact_if_known(to, TONE_PLAIN, "%s of the wall time lost",
                percent(results->wall_frac_lost_to_imbalance));
  if (isnan(results->imbalance_cv))
    fact_item(to, TONE_PLAIN, "of compute unknown");
  else
    fact_item(to, TONE_PLAIN, "compute CV over ranks %s", percent(results->imbalance_cv).text);
  fact_if_known(to, TONE_PLAIN, "arrival skew %s", duration_ms(results->sync_skew_ms));
}

void facts_of_distributed(struct facts *to, const struct results *results) {
  put_stragglers(to, results);
  put_imbalance(to, results);
}

void facts_of_pipeline(struct facts *to, const struct results *results) {
  fact_line(to, "pipeline", TONE_PLAIN, "%s", plural(results->pipeline_stages, "stage").text);
  fact_item(to, TONE_PLAIN, "%s micro-batches a step",
            count_of(results->pipeline_micro_batches).text);
  if (results->pipeline_chunks > 1)
    fact_item(to, TONE_PLAIN, "interleaved, %s a stage",
              plural(results->pipeline_chunks, "chunk").text);
  fact_line(to, "bubble", TONE_STRONG, "%s of work and bubble",
            percent(results->pipeline_bubble).text);
  fact_item(to, TONE_PLAIN, "%s cannot be avoided", percent(results->pipeline_inherent).text);
  fact_item(to, TONE_PLAIN, "the rest costs %s a step",
            duration_ms(results->pipeline_excess_ms).text);
}
