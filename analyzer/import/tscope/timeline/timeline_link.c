/* SPDX-License-Identifier: MIT
 *
 * Which launch put which span on the device, by order on each stream; what ran in graphs is linked
 * by timeline_replays.c.
 */
#include <errno.h>

#include "base/checked_memory.h"
#include "import/file_budget.h"
#include "import/tscope/gpu_runs/pairing.h"
#include "import/tscope/timeline/timeline_build.h"

#define WORK_SHIFT 28 /* work of one kind, in `what` of struct ordered, beside its name */

/* One stream's launches or device spans, as slices of shared arrays. */
struct slice {
  u32 first, n;
};

struct linking {
  struct timeline_build *build;
  u32 streams, sessions;
  struct slice *causes,
      *effects; /* [sessions * streams]: what the GPU clock source saw in one go */
  u32 *cause_spans, *effect_spans;
  struct ordered *ordered_causes, *ordered_effects; /* scratch for one stream */
  u32 *chosen_causes, *chosen_effects, *effect_of;
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
  u32 causes = 0, effects = 0;
  for (u32 i = 0; i < build->spans.n; i++) {
    bool cause = is_cause(build, i), effect = is_effect(build, i);
    u32 slice = cause || effect ? slice_of(linking, i) : INDEX_NONE;
    if (slice == INDEX_NONE)
      continue;
    linking->causes[slice].n += cause;
    linking->effects[slice].n += effect;
  }
  for (u32 s = 0; s < linking->sessions * linking->streams; s++) {
    linking->causes[s].first = causes;
    linking->effects[s].first = effects;
    causes += linking->causes[s].n;
    effects += linking->effects[s].n;
    linking->causes[s].n = linking->effects[s].n = 0;
  }
  for (u32 i = 0; i < build->spans.n; i++) {
    bool is_a_cause = is_cause(build, i), is_an_effect = is_effect(build, i);
    u32 slice = is_a_cause || is_an_effect ? slice_of(linking, i) : INDEX_NONE;
    if (slice == INDEX_NONE)
      continue;
    struct slice *cause = &linking->causes[slice], *effect = &linking->effects[slice];
    if (is_a_cause)
      linking->cause_spans[cause->first + cause->n++] = i;
    if (is_an_effect)
      linking->effect_spans[effect->first + effect->n++] = i;
  }
}

/* What identifies a launch or a device span for pairing. A kernel without a name cannot be
 * distinguished from its neighbours and is left out. */
static bool describe(const struct linking *linking, u32 span, struct ordered *out) {
  const struct span_facts *facts = &linking->build->facts.at[span];
  *out = (struct ordered){.at = linking->build->spans.at[span].start,
                          .what = (u32)facts->work << WORK_SHIFT |
                                  (facts->what & ((1u << WORK_SHIFT) - 1))};
  return facts->work != WORK_KERNEL || facts->what != 0;
}

static void link(struct linking *linking, u32 cause, u32 effect) {
  struct span *spans = linking->build->spans.at;
  spans[cause].link = effect;
  spans[effect].launch = cause;
  if (spans[effect].kind != SPAN_COLLECTIVE) /* its link is the arrival */
    spans[effect].link = cause;
}

/* Lists what can be paired on a stream. */
static void list_stream(struct linking *linking, u32 stream, u32 *n_causes, u32 *n_effects) {
  const struct slice *causes = &linking->causes[stream], *effects = &linking->effects[stream];
  *n_causes = *n_effects = 0;
  for (u32 i = 0; i < causes->n; i++) {
    u32 span = linking->cause_spans[causes->first + i];
    linking->chosen_causes[*n_causes] = span;
    *n_causes += describe(linking, span, &linking->ordered_causes[*n_causes]);
  }
  for (u32 i = 0; i < effects->n; i++) {
    u32 span = linking->effect_spans[effects->first + i];
    linking->chosen_effects[*n_effects] = span;
    *n_effects += describe(linking, span, &linking->ordered_effects[*n_effects]);
  }
}

/* Equal counts of equal kinds of work: order is enough. Otherwise some launches (static CUDA
 * runtimes in libraries) or spans (dropped by the source) were not seen, and names must help. */
static void link_stream(struct linking *linking, u32 stream) {
  const struct span_facts *facts = linking->build->facts.at;
  const u32 *cause_spans = &linking->cause_spans[linking->causes[stream].first];
  const u32 *effect_spans = &linking->effect_spans[linking->effects[stream].first];
  u32 causes, effects, n = linking->causes[stream].n;
  bool same = n == linking->effects[stream].n;
  for (u32 i = 0; i < n && same; i++)
    same = facts[cause_spans[i]].work == facts[effect_spans[i]].work;
  for (u32 i = 0; i < n && same; i++)
    link(linking, cause_spans[i], effect_spans[i]);
  if (same)
    return;
  list_stream(linking, stream, &causes, &effects);
  pair_in_order(linking->ordered_causes, causes, linking->ordered_effects, effects,
                timeline_end_is_lost(linking->build), linking->effect_of);
  for (u32 i = 0; i < causes; i++)
    if (linking->effect_of[i] != INDEX_NONE)
      link(linking, linking->chosen_causes[i], linking->chosen_effects[linking->effect_of[i]]);
}

bool timeline_end_is_lost(const struct timeline_build *build) {
  bool overwritten = build->ring_begin > build->model->ranks[build->rank].begin;
  return build->events->cut_short && !overwritten;
}

void timeline_link_launches(struct timeline_build *build) {
  size_t n = build->spans.n + 1, streams = 1;
  for (u32 i = 0; i < build->spans.n; i++)
    if (build->facts.at[i].stream >= streams)
      streams = build->facts.at[i].stream + 1u;
  u32 states = build->events->gpu_states.n;
  u32 sessions = states ? build->events->gpu_states.at[states - 1].sessions : 1;
  sessions += sessions == 0;
  if (!budget_take(BUDGET_STREAMS, size_product(sessions, streams)))
    return;
  struct linking linking = {
      .build = build,
      .streams = (u32)streams,
      .sessions = sessions,
      .causes = memory_zeroed(size_product(sessions, streams), sizeof(struct slice)),
      .effects = memory_zeroed(size_product(sessions, streams), sizeof(struct slice)),
      .cause_spans = memory_array(n, sizeof(u32)),
      .effect_spans = memory_array(n, sizeof(u32)),
      .ordered_causes = memory_array(n, sizeof(struct ordered)),
      .ordered_effects = memory_array(n, sizeof(struct ordered)),
      .chosen_causes = memory_array(n, sizeof(u32)),
      .chosen_effects = memory_array(n, sizeof(u32)),
      .effect_of = memory_array(n, sizeof(u32))};
  slice_spans(&linking);
  for (u32 s = 0; s < sessions * streams; s++)
    if (linking.causes[s].n && linking.effects[s].n)
      link_stream(&linking, s);

  free(linking.causes);
  free(linking.effects);
  free(linking.cause_spans);
  free(linking.effect_spans);
  free(linking.ordered_causes);
  free(linking.ordered_effects);
  free(linking.chosen_causes);
  free(linking.chosen_effects);
  free(linking.effect_of);
}
