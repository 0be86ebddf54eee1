/* SPDX-License-Identifier: MIT
 *
 * Which launch put which span on the device, by order on each stream; what ran in graphs is linked
 * by timeline_replays.c.
 */

#include "base/checked_memory.h"
#include "import/file_budget.h"
#include "import/tscope/gpu_runs/pairing.h"
#include "import/tscope/timeline/timeline_build.h"

#define WORK_SHIFT 28 /* work of one kind, in `what` of struct ordered, beside its name */

/* A stream's launches and device spans in one go of the GPU clock source, by start. */
struct stream_links {
  VECTOR(u32) causes;
  VECTOR(u32) effects;
};

struct linking {
  struct timeline_build *build;
  u32 streams, sessions;
  struct stream_links *slices; /* [sessions * streams] */
};

static bool is_cause(const struct timeline_build *build, u32 i) {
  return build->spans.at[i].kind == SPAN_LAUNCH && build->facts.at[i].work != WORK_GRAPH;
}

/* Collectives that were called have been paired with their calls already. */
static bool is_effect(const struct timeline_build *build, u32 i) {
  u8 kind = build->spans.at[i].kind;
  bool paired = kind == SPAN_COLLECTIVE && build->facts.at[i].work != WORK_KERNEL;
  return SPAN_ON_DEVICE(kind) && !paired && !build->facts.at[i].graph;
}

/* The slice of a launch or a device span; INDEX_NONE for a launch whose effect was not watched. */
static u32 slice_of(const struct linking *linking, u32 i) {
  const struct span *span = &linking->build->spans.at[i];
  u16 stream = linking->build->facts.at[i].stream;
  if (linking->sessions == 1)
    return stream;
  u32 session =
      rank_cupti_session(linking->build->events, span->start, is_effect(linking->build, i));
  return session == INDEX_NONE ? INDEX_NONE : session * linking->streams + stream;
}

static void slice_spans(struct linking *linking) {
  const struct timeline_build *build = linking->build;
  for (u32 i = 0; i < build->spans.n; i++) {
    bool cause = is_cause(build, i);
    u32 slice = cause || is_effect(build, i) ? slice_of(linking, i) : INDEX_NONE;
    if (slice == INDEX_NONE)
      continue;
    if (cause)
      VECTOR_PUSH(&linking->slices[slice].causes, i);
    else
      VECTOR_PUSH(&linking->slices[slice].effects, i);
  }
}

static void link(void *user, u32 cause, u32 effect) {
  struct span *spans = ((struct timeline_build *)user)->spans.at;
  spans[cause].link = effect;
  spans[effect].launch = cause;
  if (spans[effect].kind != SPAN_COLLECTIVE) /* its link is the arrival */
    spans[effect].link = cause;
}

/* What identifies a launch or a device span for pairing. */
static struct ordered ordered_of(const struct timeline_build *build, u32 span) {
  const struct span_facts *facts = &build->facts.at[span];
  u32 what = (u32)facts->work << WORK_SHIFT | (facts->what & ((1u << WORK_SHIFT) - 1));
  return (struct ordered){build->spans.at[span].start, what, 0, span};
}

/* A kernel without a name cannot be distinguished from its neighbours and is left out. */
static bool has_name(const struct timeline_build *build, u32 span) {
  return build->facts.at[span].work != WORK_KERNEL || build->facts.at[span].what != 0;
}

static void link_by_names(struct timeline_build *build, const struct stream_links *slice) {
  struct pairable all = {0};
  FOR_EACH(slice->causes.at, slice->causes.n, cause)
    if (has_name(build, *cause))
      VECTOR_PUSH(&all.causes, ordered_of(build, *cause));
  FOR_EACH(slice->effects.at, slice->effects.n, effect)
    if (has_name(build, *effect))
      VECTOR_PUSH(&all.effects, ordered_of(build, *effect));
  pair_sessions(&all, timeline_end_is_lost(build), link, build);
  pairable_free(&all);
}

/* Equal counts of equal kinds of work: order is enough. Otherwise some launches (static CUDA
 * runtimes in libraries) or spans (dropped by the source) were not seen, and names must help. */
static void link_stream(struct timeline_build *build, const struct stream_links *slice) {
  const struct span_facts *facts = build->facts.at;
  const u32 *causes = slice->causes.at, *effects = slice->effects.at;
  u32 n = slice->causes.n;
  bool same = n == slice->effects.n;
  for (u32 i = 0; i < n && same; i++)
    same = facts[causes[i]].work == facts[effects[i]].work;
  for (u32 i = 0; i < n && same; i++)
    link(build, causes[i], effects[i]);
  if (!same)
    link_by_names(build, slice);
}

bool timeline_end_is_lost(const struct timeline_build *build) {
  bool overwritten = build->ring_begin > build->model->ranks[build->rank].begin;
  return build->events->cut_short && !overwritten;
}

void timeline_link_launches(struct timeline_build *build) {
  u32 streams = MOST_OF(u32, build->facts.at, build->spans.n, one, one->stream + 1u);
  u32 states = build->events->gpu_states.n;
  u32 sessions = states ? build->events->gpu_states.at[states - 1].sessions : 1;
  sessions += sessions == 0;
  if (!budget_take(BUDGET_STREAMS, size_product(sessions, streams)))
    return;
  struct linking linking = {
      .build = build,
      .streams = streams,
      .sessions = sessions,
      .slices = memory_zeroed(size_product(sessions, streams), sizeof(struct stream_links))};
  slice_spans(&linking);
  FOR_EACH_CHANGED(linking.slices, sessions * streams, slice) {
    if (slice->causes.n && slice->effects.n)
      link_stream(build, slice);
    FREE_EACH(slice, causes.at, effects.at);
  }
  free(linking.slices);
}
