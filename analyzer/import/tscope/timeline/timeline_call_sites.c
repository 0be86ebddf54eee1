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
  if (index != INDEX_NONE) {
    VECTOR_PUSH(&build->sites, site);
  }
}

ORDER_BY(by_place, struct call_site, UP(lane) UP(time))

static u32 find_site(const struct call_sites *sites, u16 lane, i64 time) {
  const struct call_site wanted = {.time = time, .lane = lane};
  const struct call_site *found =
      bsearch(&wanted, sites->sites, sites->n_sites, sizeof(wanted), by_place);
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
  sites->samples = arena_array(arena, size_sum(events->line_samples.n, 1), sizeof(*sites->samples));
  sites->sample_ns = events->line_sampling.interval_us ? events->line_sampling.interval_us * 1000ll
                                                       : OLD_SAMPLE_NS;
  sites->fewer = (struct fewer_looks){.wanted = events->line_sampling.looks,
                                      .missed = events->line_sampling.missed,
                                      .slowest_us = events->line_sampling.slowest_us};
  for (u32 i = 0; i < events->line_samples.n; i++) {
    const struct rank_line_sample *sample = &events->line_samples.at[i];
    u32 stack = stack_number(&build->definitions, sample->stack);
    if (stack != INDEX_NONE)
      sites->samples[sites->n_samples++] =
          (struct line_sample){.time = sample->start,
                               .represented_ns = (i64)sample->represented_us * 1000,
                               .stack = stack,
                               .child = sample->tag & TSCOPE_SAMPLE_OF_THREAD ? 0 : sample->tid,
                               .tid = sample->tid,
                               .activity = sample->tag & TSCOPE_SAMPLE_ACTIVITY,
                               .beside = sample->tag & TSCOPE_SAMPLE_BESIDE,
                               .holds_gil = sample->tag & TSCOPE_SAMPLE_HOLDS_GIL,
                               .after_call = sample->tag & TSCOPE_SAMPLE_AFTER_CALL};
  }
}

void timeline_link_sites(struct timeline_build *build, struct arena *arena,
                         const struct call_sites **out) {
  *out = NULL;
  if (!build->sites.n && !build->events->line_samples.n)
    return;
  struct call_sites *sites = arena_alloc(arena, sizeof(*sites));
  *sites = (struct call_sites){.n_sites = build->sites.n};
  sites->sites = arena_array(arena, size_sum(build->sites.n, 1), sizeof(*sites->sites));
  sites->of_span = arena_array(arena, size_sum(build->spans.n, 1), sizeof(*sites->of_span));
  stacks_copy(&build->definitions, arena, sites);
  copy_samples(build, arena, sites);
  if (sites->n_sites) {
    memcpy(sites->sites, build->sites.at, build->sites.n * sizeof(*sites->sites));
    SORT(sites->sites, sites->n_sites, by_place);
  }
  for (u32 i = 0; i < build->spans.n; i++)
    sites->of_span[i] = site_of(sites, &build->spans.at[i]);
  *out = sites;
}
