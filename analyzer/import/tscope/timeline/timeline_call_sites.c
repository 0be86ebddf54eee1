/* SPDX-License-Identifier: MIT
 *
 * The call sites of a trace to the spans of the calls.
 */
#include "model/span_call_sites.h"

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/events/stacks_of_calls.h"
#include "import/tscope/timeline/timeline_build.h"

void timeline_site(struct timeline_build *build, u64 stack, u16 tag, i64 time, u16 lane) {
  u32 index = stack_number(&build->definitions, stack);
  struct call_site site = {.time = time,
                           .stack = index,
                           .weight = 1u << (tag & TSCOPE_CALL_SITE_WEIGHT),
                           .lane = lane,
                           .of_backward = tag & TSCOPE_CALL_SITE_OF_BACKWARD,
                           .of_forward = tag & TSCOPE_CALL_SITE_OF_FORWARD};
  if (index != INDEX_NONE)
    VECTOR_PUSH(&build->sites, site);
}

ORDER_BY(by_place, struct call_site, UP(lane) UP(time))

static u32 find_site(const struct call_sites *sites, u16 lane, i64 time) {
  const struct call_site wanted = {.time = time, .lane = lane};
  const struct call_site *found = FIND_SORTED(sites->sites, sites->n_sites, &wanted, by_place);
  return found ? (u32)(found - sites->sites) : INDEX_NONE;
}

/* The wait of a blocking copy begins a nanosecond after its launch: see add_launch(). */
static u32 site_of(const struct call_sites *sites, const struct span *span) {
  if (SPAN_ON_DEVICE(span->kind))
    return INDEX_NONE;
  u32 site = find_site(sites, span->lane, span->start);
  return site == INDEX_NONE && span->kind == SPAN_SYNC
             ? find_site(sites, span->lane, span->start - 1)
             : site;
}

/* Traces without LINE_SAMPLING have ten samples a second. */
#define OLD_SAMPLE_NS 100000000ll

/* Those whose stacks are in the trace. */
static void copy_samples(const struct timeline_build *build, struct arena *arena,
                         struct call_sites *sites) {
  const struct rank_events *events = build->events;
  sites->samples = arena_array(arena, events->line_samples.n, sizeof(*sites->samples));
  sites->sample_ns = events->line_sampling.interval_us ? events->line_sampling.interval_us * 1000ll
                                                       : OLD_SAMPLE_NS;
  sites->fewer = (struct fewer_looks){.wanted = events->line_sampling.looks,
                                      .missed = events->line_sampling.missed,
                                      .slowest_us = events->line_sampling.slowest_us};
  FOR_EACH(events->line_samples.at, events->line_samples.n, sample) {
    u32 stack = stack_number(&build->definitions, sample->stack);
    if (stack != INDEX_NONE)
      sites->samples[sites->n_samples++] = (struct line_sample){
          .time = sample->start,
          .represented_ns = (i64)sample->represented_us * 1000,
          .interval_ns = sample->interval_us ? sample->interval_us * 1000ll : sites->sample_ns,
          .stack = stack,
          .child = sample->tag & TSCOPE_SAMPLE_OF_THREAD ? 0 : sample->tid,
          .tid = sample->tid,
          .activity = sample->tag & TSCOPE_SAMPLE_ACTIVITY,
          .beside = sample->tag & TSCOPE_SAMPLE_BESIDE,
          .holds_gil = sample->tag & TSCOPE_SAMPLE_HOLDS_GIL,
          .ends = sample->tag & TSCOPE_SAMPLE_ENDS,
          .after_call = sample->tag & TSCOPE_SAMPLE_AFTER_CALL};
  }
}

/* Whether each lane is of a thread that makes calls of training. */
static bool *lanes_that_train(const struct timeline_build *build) {
  bool *train = memory_zeroed(size_sum(build->lanes.n, 1), sizeof(*train));
  FOR_EACH(build->spans.at, build->spans.n, span)
    if (span->kind == SPAN_LAUNCH || span->kind == SPAN_COLL_CALL || span->kind == SPAN_SYNC ||
        span->kind == SPAN_PHASE)
      train[span->lane] = true;
  return train;
}

/* Kernel numbers of the threads that train; returns how many. */
static u32 list_training(const struct timeline_build *build, u32 *tids) {
  const struct definitions *definitions = &build->definitions;
  SCOPED bool *train = lanes_that_train(build);
  u32 n = 0;
  for (u32 lane = 0; lane < build->lanes.n; lane++)
    for (u32 i = 0; train[lane] && !build->lanes.at[lane].device && i < definitions->n_threads; i++)
      if (definitions->threads[i].thread == build->lanes.at[lane].id) {
        tids[n++] = definitions->threads[i].tid;
        break;
      }
  return n;
}

static bool is_among(const u32 *tids, u32 n, u32 tid) {
  return ANY(tids, n, one, *one == tid);
}

/* The shim samples every thread whose calls have lines, also one that only makes tensors, as those
 * that prepare batches do. Beside a sampled thread that trains it does not. */
static void set_others_beside(const struct timeline_build *build, struct call_sites *sites) {
  SCOPED u32 *tids = memory_array(size_sum(build->lanes.n, 1), sizeof(*tids));
  u32 n = list_training(build, tids);
  bool any = false;
  for (u32 pass = 0; pass < 2; pass++)
    FOR_EACH_CHANGED(sites->samples, sites->n_samples, sample) {
      bool trains = sample->child || sample->ends || !sample->tid || is_among(tids, n, sample->tid);
      any |= trains && !sample->child;
      if (pass && any && !trains)
        sample->beside = true;
    }
}

void timeline_link_sites(struct timeline_build *build, struct arena *arena,
                         const struct call_sites **out) {
  *out = NULL;
  if (!build->sites.n && !build->events->line_samples.n)
    return;
  struct call_sites *sites = arena_alloc(arena, sizeof(*sites));
  *sites = (struct call_sites){.n_sites = build->sites.n};
  sites->sites = VECTOR_KEPT(&build->sites, arena);
  sites->of_span = arena_array(arena, build->spans.n, sizeof(*sites->of_span));
  stacks_copy(&build->definitions, arena, sites);
  copy_samples(build, arena, sites);
  set_others_beside(build, sites);
  SORT(sites->sites, sites->n_sites, by_place);
  for (u32 i = 0; i < build->spans.n; i++)
    sites->of_span[i] = site_of(sites, &build->spans.at[i]);
  *out = sites;
}
