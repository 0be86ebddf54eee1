/* SPDX-License-Identifier: MIT
 *
 * The ranks' overlap sums as means: per step on each rank, then over the ranks whose overlap is
 * known.
 */
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/quantity.h"
#include "kernels/communication.h"

bool rank_overlap_known(const struct rank_summary *rank) {
  return rank->loaded && rank->steps && rank->has_compute && rank->has_comm;
}

static double per_step(const struct rank_summary *rank, i64 ns) {
  return ns_to_ms(ns) / rank->steps;
}

bool wait_is_known(i64 exposed, i64 wait, i64 transfer) {
  return (double)(exposed - wait - transfer) <= (1 - COVERAGE_ENOUGH) * (double)exposed;
}

static bool split_is_known(const struct op_times *times) {
  return wait_is_known(times->exposed, times->wait, times->transfer);
}

static void summarise_ranks(struct analysis *a) {
  struct results *r = a->results;
  const struct model *model = a->model;
  r->n_ranks = model->n_ranks;
  r->ranks = arena_array(a->arena, model->n_ranks, sizeof(*r->ranks));
  for (u32 i = 0; i < model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    struct rank_result *out = &r->ranks[i];
    *out = unknown_rank_result;
    out->rank = model->ranks[i].rank;
    out->host = model->ranks[i].host;
    out->comm_ms = out->exposed_ms = out->exposed_wait_ms = out->exposed_transfer_ms =
        out->data_ms = out->idle_ms = out->lateness_ms = NAN;
    if (!rank->loaded || !rank->steps)
      continue;
    if (rank->has_comm)
      out->comm_ms = per_step(rank, rank->all.comm);
    if (rank->has_input)
      out->data_ms = per_step(rank, rank->data);
    if (!rank_overlap_known(rank))
      continue;
    out->exposed_ms = per_step(rank, rank->exposed_comm);
    out->idle_ms = per_step(rank, rank->idle);
    if (!split_is_known(&rank->all))
      continue;
    out->exposed_wait_ms = per_step(rank, rank->all.wait);
    out->exposed_transfer_ms = per_step(rank, rank->all.transfer);
  }
}

/* Sums over the ranks that know their overlap, of per-step means in ms. */
struct overlap_means {
  u32 ranks;
  u64 steps;
  double step, compute, comm, exposed, memcpy, idle;
  struct {
    double comm, exposed, wait, transfer;
    bool known;
  } op[OPS + 1]; /* [OPS]: all together */
};

static void add_op(struct overlap_means *m, u32 op, const struct rank_summary *rank,
                   const struct op_times *times) {
  m->op[op].comm += per_step(rank, times->comm);
  m->op[op].exposed += per_step(rank, times->exposed);
  m->op[op].wait += per_step(rank, times->wait);
  m->op[op].transfer += per_step(rank, times->transfer);
  m->op[op].known &= split_is_known(times);
}

static struct overlap_means sum_over_ranks(const struct analysis *a) {
  struct overlap_means m;
  memset(&m, 0, sizeof(m));
  for (u32 op = 0; op <= OPS; op++)
    m.op[op].known = true;
  FOR_EACH(a->ranks, a->model->n_ranks, rank) {
    if (!rank_overlap_known(rank))
      continue;
    m.ranks++;
    m.steps += rank->steps;
    m.step += per_step(rank, rank->total);
    m.compute += per_step(rank, rank->compute);
    m.exposed += per_step(rank, rank->exposed_comm);
    m.memcpy += per_step(rank, rank->exposed_memcpy);
    m.idle += per_step(rank, rank->idle);
    add_op(&m, OPS, rank, &rank->all);
    FOR_EACH(rank->by_op.at, rank->by_op.n, one)
      add_op(&m, one->op, rank, one);
  }
  return m;
}

static void list_ops(struct analysis *a, const struct overlap_means *m) {
  struct results *r = a->results;
  r->by_op = arena_array(a->arena, OPS, sizeof(*r->by_op));
  for (u32 op = 0; op < OPS; op++) {
    if (m->op[op].comm <= 0)
      continue;
    bool known = m->op[op].known;
    if (comm_op_part((u8)op) == COMM_PART_FUSED)
      r->ov_fused_ms += m->op[op].comm / m->ranks;
    r->by_op[r->n_by_op++] =
        (struct overlap_by_op){.op = op_name((u8)op),
                               .op_id = (u8)op,
                               .comm_ms = m->op[op].comm / m->ranks,
                               .exposed_ms = m->op[op].exposed / m->ranks,
                               .exposed_wait_ms = known ? m->op[op].wait / m->ranks : NAN,
                               .exposed_transfer_ms = known ? m->op[op].transfer / m->ranks : NAN};
  }
}

bool communication_unseen(const struct analysis *a) {
  const struct model *model = a->model;
  return model->world_size >= 2 && gpu_timing_any_work(a) &&
         ALL(model->ranks, model->n_ranks, one, !one->collective_calls && !one->collective_runs) &&
         ALL(a->ranks, model->n_ranks, one, !one->collective_kernels);
}

const char *overlap_why_no_steps(struct analysis *a) {
  struct rank_summary sum = analysis_sums(a);
  if (sum.steps_untimed > sum.steps_overwritten && sum.steps_untimed > sum.steps_unseen)
    return "COLLECTIVES WERE CALLED IN EVERY STEP, BUT WHEN THEY RAN IS NOT KNOWN: they ran in "
           "CUDA graphs that CUPTI reported as a whole (TSCOPE_GPU_GRAPHS), or their records were "
           "dropped";
  if (sum.steps_unseen > sum.steps_overwritten)
    return say(a, "NO STEP WAS WATCHED FROM BEGIN TO END%s",
               say_why(a, gpu_timing_why_not_watched(a)));
  return "the trace no longer has the events of any analysed step";
}

static const char *why_unknown(struct analysis *a) {
  u32 no_spans = 0, no_compute = 0, no_steps = 0;
  u64 calls = 0;
  const char *why = NULL;
  if (communication_unseen(a))
    return say(a,
               "NO COLLECTIVE WAS RECORDED in a job of %u ranks, neither call nor kernel: whether "
               "and when they communicate is NOT KNOWN",
               a->model->world_size);
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    if (rank->loaded && !rank->steps)
      no_steps++;
    if (rank->loaded && !rank->has_comm) {
      no_spans++;
      calls += a->model->ranks[i].collective_calls;
      why = gpu_timing_reason(a->model, &a->model->ranks[i]);
    }
    if (rank->loaded && !rank->has_compute) {
      no_compute++;
      why = why ? why : gpu_timing_reason(a->model, &a->model->ranks[i]);
    }
  }
  if (no_spans)
    return say(a, "%llu collective calls were recorded on %s, but not when they ran%s",
               (unsigned long long)calls, plural(no_spans, "rank").text, say_why(a, why));
  if (no_compute)
    return say(a, "when compute ran is not known on %s%s", plural(no_compute, "rank").text,
               say_why(a, why));
  return no_steps ? overlap_why_no_steps(a) : "no rank could be read";
}

void overlap_summarise(struct analysis *a) {
  struct results *r = a->results;
  bool unseen = communication_unseen(a);
  FOR_EACH_CHANGED(a->ranks, a->model->n_ranks, rank)
    rank->has_comm &= !unseen;
  struct overlap_means m = sum_over_ranks(a);
  summarise_ranks(a);
  r->ov_step_ms = r->ov_compute_ms = r->ov_exposed_memcpy_ms = r->ov_idle_ms = NAN;
  r->ov_ranks = a->model->n_ranks ? m.ranks : NAN;
  r->ov_steps = m.ranks && !a->whole_run ? (double)m.steps / m.ranks : NAN;
  if (m.ranks == 0) {
    r->overlap_reason = why_unknown(a);
    return;
  }
  double n = m.ranks;
  r->ov_step_ms = m.step / n;
  r->ov_compute_ms = m.compute / n;
  r->ov_comm_ms = m.op[OPS].comm / n;
  r->ov_exposed_ms = m.exposed / n;
  r->ov_overlapped_ms = r->ov_comm_ms - r->ov_exposed_ms;
  r->ov_exposed_memcpy_ms = m.memcpy / n;
  r->ov_idle_ms = m.idle / n;
  if (r->ov_comm_ms > 0)
    r->ov_exposed_fraction = r->ov_exposed_ms / r->ov_comm_ms;
  r->comm_fraction = r->ov_comm_ms / r->ov_step_ms;
  if (m.op[OPS].known) {
    r->ov_exposed_wait_ms = m.op[OPS].wait / n;
    r->ov_exposed_transfer_ms = m.op[OPS].transfer / n;
    r->wait_method = a->model->clock_aligned ? "aligned starts" : "shortest member";
  }
  r->ov_fused_ms = 0;
  list_ops(a, &m);
}
