/* SPDX-License-Identifier: MIT
 *
 * What each GPU did from its first work to its last, over the whole input:
 *
 *   total = compute + (comm \ compute) + (copy \ compute \ comm) + idle
 *
 * Fills are compute here: the GPU's own work, as other tools count them. In the steps' overlap they
 * go with the copies.
 *
 * And why it was idle, gap by gap, from the call that launched what ended the gap. Until that call
 * had returned the GPU waited for the host; from then on for the launch to arrive, or for its turn.
 * The reason of a gap that ends with work whose launch is not known is not known.
 */
#include <errno.h>
#include <math.h>

#include "analysis.h"
#include "intervals.h"

static void nothing_known(struct gpu_timeline_result *out) {
  out->compute_ms = out->exposed_comm_ms = out->exposed_memcpy_ms = out->idle_ms = out->total_ms =
      out->busy_fraction = out->host_bound_ms = out->kernel_gap_ms = out->other_ms = NAN;
}

struct idle_causes {
  i64 host, gap, other;
};

/* The device span that ends a gap; `*cursor` only goes forward. */
static const struct span *span_at(const struct timeline *t, u32 *cursor, i64 start) {
  while (*cursor < t->n_spans && t->spans[*cursor].start < start)
    ++*cursor;
  for (u32 i = *cursor; i < t->n_spans && t->spans[i].start == start; i++)
    if (SPAN_ON_DEVICE(t->spans[i].kind) && t->spans[i].end > start)
      return &t->spans[i];
  return NULL;
}

static struct idle_causes explain(const struct timeline *t, const struct intervals *busy) {
  struct idle_causes causes = {0};
  u32 cursor = 0;
  for (u32 i = 1; i < busy->n; i++) {
    i64 begin = busy->at[i - 1].end, end = busy->at[i].start;
    const struct span *next = span_at(t, &cursor, end);
    if (!next || next->launch == INDEX_NONE) {
      causes.other += end - begin;
      continue;
    }
    i64 called = t->spans[next->launch].end;
    called = called < begin ? begin : called > end ? end : called;
    causes.host += called - begin;
    causes.gap += end - called;
  }
  return causes;
}

static i64 total_of(const struct intervals *set) {
  i64 sum = 0;
  for (u32 i = 0; i < set->n; i++)
    sum += set->at[i].end - set->at[i].start;
  return sum;
}

static int unite(struct arena *scratch, const struct timeline *t, u8 kind, struct intervals *out) {
  u32 n = 0;
  for (u32 i = 0; i < t->n_spans; i++)
    n += t->spans[i].kind == kind;
  *out = (struct intervals){arena_array(scratch, n + 1u, sizeof(*out->at)), 0};
  for (u32 i = 0; out->at && i < t->n_spans; i++)
    if (t->spans[i].kind == kind)
      intervals_append(out, t->spans[i].start, t->spans[i].end);
  return out->at ? 0 : -ENOMEM;
}

int gpu_timeline_rank(struct analysis *a, const struct timeline *t) {
  struct gpu_timeline_result *out = &a->results->gpu_timelines[t->rank];
  const struct rank *rank = &a->model->ranks[t->rank];
  bool comm_known = t->has_comm || rank->collective_calls == 0;
  if (!t->on_gpu || !t->has_compute || !comm_known)
    return 0;
  struct arena scratch = {0};
  struct intervals fills, copies, own, with_comm, busy;
  int error = unite(&scratch, t, SPAN_FILL, &fills);
  if (!error)
    error = unite(&scratch, t, SPAN_COPY, &copies);
  if (!error)
    error = intervals_union(&scratch, &t->compute, &fills, &own);
  if (!error)
    error = intervals_union(&scratch, &own, &t->comm, &with_comm);
  if (!error)
    error = intervals_union(&scratch, &with_comm, &copies, &busy);
  if (!error && busy.n) {
    i64 total = busy.at[busy.n - 1].end - busy.at[0].start;
    i64 compute = total_of(&own), of_comm = total_of(&with_comm), of_all = total_of(&busy);
    struct idle_causes causes = explain(t, &busy);
    out->compute_ms = ns_to_ms(compute);
    out->exposed_comm_ms = ns_to_ms(of_comm - compute);
    out->exposed_memcpy_ms = ns_to_ms(of_all - of_comm);
    out->idle_ms = ns_to_ms(total - of_all);
    out->total_ms = ns_to_ms(total);
    out->busy_fraction = total > 0 ? (double)of_all / (double)total : NAN;
    out->host_bound_ms = ns_to_ms(causes.host);
    out->kernel_gap_ms = ns_to_ms(causes.gap);
    out->other_ms = ns_to_ms(causes.other);
  }
  arena_release(&scratch);
  return error;
}

int gpu_timeline_prepare(struct analysis *a) {
  struct results *r = a->results;
  r->n_gpu_timelines = a->model->n_ranks;
  r->gpu_timelines = arena_array(a->arena, a->model->n_ranks + 1u, sizeof(*r->gpu_timelines));
  if (!r->gpu_timelines)
    return -ENOMEM;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    nothing_known(&r->gpu_timelines[i]);
    r->gpu_timelines[i].rank = a->model->ranks[i].rank;
  }
  return 0;
}

static const char *why_unknown(const struct analysis *a) {
  bool on_gpu = false, without_runs = false;
  const char *why = NULL;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank *rank = &a->model->ranks[i];
    on_gpu |= a->ranks[i].on_gpu || rank->launches > 0;
    without_runs |= rank->collective_calls && !rank->collective_runs;
    why = why ? why : rank->gpu_clock_reason;
  }
  if (!on_gpu)
    return "no GPU work was seen";
  if (without_runs)
    return "COLLECTIVES WERE CALLED, BUT NOT ONE WAS SEEN TO RUN";
  return why ? arena_printf(a->arena, "WHAT RAN ON THE GPU WAS NOT SEEN: %s", why)
             : "WHAT RAN ON THE GPU WAS NOT SEEN";
}

int gpu_timeline_summarise(struct analysis *a) {
  struct results *r = a->results;
  struct gpu_timeline_result *mean = &r->gpu_timeline;
  u32 n = 0;
  *mean = (struct gpu_timeline_result){.rank = INDEX_NONE};
  for (u32 i = 0; i < r->n_gpu_timelines; i++) {
    const struct gpu_timeline_result *one = &r->gpu_timelines[i];
    if (isnan(one->total_ms))
      continue;
    n++;
    mean->compute_ms += one->compute_ms;
    mean->exposed_comm_ms += one->exposed_comm_ms;
    mean->exposed_memcpy_ms += one->exposed_memcpy_ms;
    mean->idle_ms += one->idle_ms;
    mean->total_ms += one->total_ms;
    mean->host_bound_ms += one->host_bound_ms;
    mean->kernel_gap_ms += one->kernel_gap_ms;
    mean->other_ms += one->other_ms;
  }
  if (n == 0) {
    nothing_known(mean);
    r->gpu_timeline_reason = why_unknown(a);
    return r->gpu_timeline_reason ? 0 : -ENOMEM;
  }
  mean->compute_ms /= n;
  mean->exposed_comm_ms /= n;
  mean->exposed_memcpy_ms /= n;
  mean->idle_ms /= n;
  mean->total_ms /= n;
  mean->host_bound_ms /= n;
  mean->kernel_gap_ms /= n;
  mean->other_ms /= n;
  mean->busy_fraction = mean->total_ms > 0 ? 1 - mean->idle_ms / mean->total_ms : NAN;
  return 0;
}
