/* SPDX-License-Identifier: MIT
 *
 * What each GPU did from its first work to its last: over the whole input, or over each stretch for
 * which all GPU work is known. (Time before ring records were overwritten, or while CUPTI rested,
 * is not idle but unknown):
 *
 *   total = compute + (comm \ compute) + (memcpy \ compute \ comm) + idle
 *
 * Memsets are compute here: the GPU's own work, as other tools count them. In the steps' overlap
 * they go with the memcpys.
 *
 * Also why it was idle, gap by gap, from the call that launched the work that ended the gap. Until
 * that call had returned, the GPU waited for the host. After that it waited for the launch to
 * arrive, or for its turn. If a gap ends with work whose launch is not known, its reason is not
 * known.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/gpu/gpu_gaps.h"
#include "analyses/queries.h"
#include "base/intervals.h"

/* A smaller share of the run is not representative. */
#define ENOUGH_SEEN 0.01

struct idle_causes {
  i64 host, capturing, gap, other;
  u32 at_capture; /* cursor */
};

/* Adds up the gaps between work of one stretch; `*cursor` only goes forward. */
static void add_idle_causes(const struct timeline *t, const struct gpu_gaps *gaps, u32 *cursor,
                            i64 begin, i64 end, struct idle_causes *causes) {
  for (; *cursor < gaps->n && gaps->at[*cursor].end <= end; ++*cursor) {
    const struct gpu_gap *gap = &gaps->at[*cursor];
    if (gap->begin < begin)
      continue;
    if (gap->launched == NS_UNKNOWN) {
      causes->other += gap->end - gap->begin;
      continue;
    }
    i64 capturing =
        intervals_covered(&t->capturing, &causes->at_capture, gap->begin, gap->launched);
    causes->capturing += capturing;
    causes->host += gap->launched - gap->begin - capturing;
    causes->gap += gap->end - gap->launched;
  }
}

/* `n` are of that kind. */
static void union_of_kind(struct arena *scratch, const struct timeline *t, u8 kind, u32 n,
                          struct intervals *out) {
  *out = (struct intervals){arena_array(scratch, n, sizeof(*out->at)), 0};
  for (u32 i = 0; n && i < t->n_spans; i++)
    if (t->spans[i].kind == kind)
      intervals_append(out, t->spans[i].start, t->spans[i].end);
}

/* Nested unions: the GPU's own work, with communication, with memcpys. */
struct work {
  struct intervals own, with_comm, busy;
};

static void union_of_work(struct arena *scratch, const struct analysis *a, const struct timeline *t,
                          struct work *work) {
  const u32 *spans = a->ranks[t->rank].spans;
  struct intervals memsets, memcpys;
  union_of_kind(scratch, t, SPAN_MEMSET, spans[SPAN_MEMSET], &memsets);
  union_of_kind(scratch, t, SPAN_MEMCPY, spans[SPAN_MEMCPY], &memcpys);
  intervals_union(scratch, &t->compute, &memsets, &work->own);
  intervals_union(scratch, &work->own, &t->comm, &work->with_comm);
  intervals_union(scratch, &work->with_comm, &memcpys, &work->busy);
}

static void sum_known(struct arena *scratch, const struct timeline *t, const struct gpu_gaps *gaps,
                      const struct work *work, const struct intervals *known,
                      struct gpu_timeline_result *out) {
  struct intervals part = {arena_array(scratch, work->busy.n, sizeof(*part.at)), 0};
  struct idle_causes causes = {0};
  i64 total = 0, own = 0, with_comm = 0, busy = 0;
  u32 at[4] = {0}, next = 0;
  FOR_EACH(known->at, known->n, one) {
    intervals_within(&work->busy, &at[0], one->start, one->end, &part);
    if (part.n == 0)
      continue;
    i64 begin = part.at[0].start, end = part.at[part.n - 1].end;
    total += end - begin;
    own += intervals_covered(&work->own, &at[1], begin, end);
    with_comm += intervals_covered(&work->with_comm, &at[2], begin, end);
    busy += intervals_covered(&work->busy, &at[3], begin, end);
    add_idle_causes(t, gaps, &next, begin, end, &causes);
  }
  if (total == 0)
    return;
  out->compute_ms = ns_to_ms(own);
  out->exposed_comm_ms = ns_to_ms(with_comm - own);
  out->exposed_memcpy_ms = ns_to_ms(busy - with_comm);
  out->idle_ms = ns_to_ms(total - busy);
  out->total_ms = ns_to_ms(total);
  out->busy_fraction = (double)busy / (double)total;
  out->host_bound_ms = ns_to_ms(causes.host);
  out->capturing_ms = ns_to_ms(causes.capturing);
  out->kernel_gap_ms = ns_to_ms(causes.gap);
  out->other_ms = ns_to_ms(causes.other);
}

static i64 covered_ns(const struct intervals *set, i64 begin, i64 end) {
  u32 cursor = 0;
  return intervals_covered(set, &cursor, begin, end);
}

void gpu_timeline_rank(struct analysis *a, const struct timeline *t) {
  const struct rank *rank = &a->model->ranks[t->rank];
  struct rank_summary *sum = &a->ranks[t->rank];
  if (!t->on_gpu || !t->has_compute)
    return;
  SCOPED_ARENA struct arena scratch = {0};
  struct work work;
  struct intervals known;
  model_gpu_known(rank, t->ring_begin, &scratch, &known);
  sum->gpu_known = covered_ns(&known, rank->begin, rank->end);
  if (!sum->has_comm || rank_lacks_times(sum))
    return;
  union_of_work(&scratch, a, t, &work);
  sum_known(&scratch, t, sum->gaps, &work, &known, &a->results->gpu_timelines[t->rank]);
}

void gpu_timeline_carry(struct analysis *a, u32 rank, struct carrier *c) {
  CARRY_EACH(c, &a->results->gpu_timelines[rank], compute_ms, exposed_comm_ms, exposed_memcpy_ms,
             idle_ms, total_ms, busy_fraction, host_bound_ms, capturing_ms, kernel_gap_ms,
             other_ms);
}

static void set_unknown(struct analysis *a) {
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    a->results->gpu_timelines[i] = unknown_gpu_timeline_result;
    a->results->gpu_timelines[i].rank = a->model->ranks[i].rank;
  }
}

void gpu_timeline_prepare(struct analysis *a) {
  struct results *r = a->results;
  r->n_gpu_timelines = a->model->n_ranks;
  r->gpu_timelines = arena_array(a->arena, a->model->n_ranks, sizeof(*r->gpu_timelines));
  set_unknown(a);
}

double gpu_share_known(const struct analysis *a, bool timelines) {
  double known = 0, all = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank *rank = &a->model->ranks[i];
    if ((!a->ranks[i].on_gpu && !rank->launches) || rank->begin == NS_UNKNOWN)
      continue;
    if (!timelines || !isnan(a->results->gpu_timelines[i].total_ms))
      known += (double)a->ranks[i].gpu_known;
    all += (double)(rank->end - rank->begin);
  }
  return all > 0 ? known / all : NAN;
}

static const char *why_unknown(const struct analysis *a) {
  const struct model *model = a->model;
  if (!gpu_timing_any_work(a))
    return gpu_timing_why_nothing(a);
  if (ANY(model->ranks, model->n_ranks, one, one->collective_calls && !one->collective_runs))
    return "COLLECTIVES WERE CALLED, BUT NOT ONE WAS SEEN TO RUN";
  if (ANY(a->ranks, model->n_ranks, one, rank_lacks_times(one)))
    return "COLLECTIVES WERE CALLED, BUT WHEN MANY OF THEM RAN IS NOT KNOWN";
  return gpu_timing_why_nothing(a);
}

void gpu_timeline_summarise(struct analysis *a) {
  struct results *r = a->results;
  struct gpu_timeline_result *mean = &r->gpu_timeline;
  bool unseen = communication_unseen(a);
  u32 n = 0;
  *mean = (struct gpu_timeline_result){.rank = INDEX_NONE};
  FOR_EACH_CHANGED(r->gpu_timelines, r->n_gpu_timelines, one) {
    if (isnan(one->total_ms))
      continue;
    n++;
    if (unseen) /* which kernels communicate is not known */
      one->compute_ms = one->exposed_comm_ms = NAN;
    ADD_EACH(mean, one, compute_ms, exposed_comm_ms, exposed_memcpy_ms, idle_ms, total_ms,
             host_bound_ms, capturing_ms, kernel_gap_ms, other_ms);
  }
  r->gpu_timeline_ranks = a->model->n_ranks ? n : NAN;
  r->gpu_timeline_seen = gpu_share_known(a, true);
  if (n && r->gpu_timeline_seen < ENOUGH_SEEN) {
    set_unknown(a);
    r->gpu_timeline_ranks = n = 0;
    r->gpu_timeline_reason = "GPUS WERE WATCHED FOR LESS THAN 1 % OF THE TIME IN ONE PIECE";
  } else if (n == 0) {
    r->gpu_timeline_reason = why_unknown(a);
  }
  if (n == 0) {
    *mean = unknown_gpu_timeline_result;
    mean->rank = INDEX_NONE;
    return;
  }
  DIVIDE_EACH(mean, n, compute_ms, exposed_comm_ms, exposed_memcpy_ms, idle_ms, total_ms,
              host_bound_ms, capturing_ms, kernel_gap_ms, other_ms);
  mean->busy_fraction = mean->total_ms > 0 ? 1 - mean->idle_ms / mean->total_ms : NAN;
}
