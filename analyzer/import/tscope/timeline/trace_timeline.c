/* SPDX-License-Identifier: MIT */

#include "base/checked_memory.h"
#include "base/intervals.h"
#include "import/file_budget.h"
#include "import/tscope/timeline/timeline_build.h"
#include "import/tscope/trace_source.h"
#include "model/host_spin.h"
#include "model/phase_times.h"

/* What a timeline owns. */
struct timeline_internal {
  struct arena arena;
  struct definitions definitions; /* its text is kept: names */
};

static const char *const vocabulary[VOCABULARY] = {
#define X(n, v, t) [NAMES_OF_OPS + v] = t,
    TSCOPE_OPS(X)
#undef X
#define X(n, v, t) [NAMES_OF_PHASES + v] = t,
        TSCOPE_PHASES(X)
#undef X
#define X(n, v, t) [NAMES_OF_SYNCS + v] = t " synchronize",
            TSCOPE_SYNCS(X)
#undef X
                [NAMES_OF_CALLS] = "group end",
    [NAMES_OF_CALLS + 1] = "wait for a collective",
    [NAMES_OF_CALLS + 2] = "graph launch",
    [NAMES_OF_CALLS + 3] = "copy",
    [NAMES_OF_CALLS + 4] = "fill",
    [NAMES_OF_CALLS + 5] = HOST_SPIN_NAME,
};

static const char *trace_name(const struct timeline *timeline, u32 name) {
  const struct timeline_internal *internal = timeline->internal;
  const struct definitions *definitions = &internal->definitions;
  const char *text = NULL;
  if (name < definitions->n_strings)
    text = definitions->strings[name];
  else if (name - definitions->n_strings < VOCABULARY)
    text = vocabulary[name - definitions->n_strings];
  return text ? text : "unknown";
}

/* Sets of spans, each of some kinds, that are empty so far. */
typedef struct intervals *sets_of_kinds[SPAN_KINDS];

/* How many spans there are of each kind is known. They are sorted by start. */
static void intervals_of_spans(const struct timeline_build *build, struct arena *arena,
                               const sets_of_kinds sets) {
  u32 all = 0, room[SPAN_KINDS] = {0};
  for (u32 kind = 0; kind < SPAN_KINDS; kind++)
    for (u32 other = 0; sets[kind] && other < SPAN_KINDS; other++)
      room[kind] += sets[other] == sets[kind] ? build->n_of_kind[other] : 0;
  for (u32 kind = 0; kind < SPAN_KINDS; kind++) {
    all += sets[kind] ? build->n_of_kind[kind] : 0;
    if (sets[kind] && !sets[kind]->at)
      sets[kind]->at = arena_array(arena, room[kind], sizeof(*sets[kind]->at));
  }
  for (u32 i = 0; all && i < build->spans.n; i++) {
    const struct span *span = &build->spans.at[i];
    if (sets[span->kind])
      intervals_append(sets[span->kind], span->start, span->end);
  }
}

/* What the thread computed in no phase. */
static void add_unmarked_compute(const struct timeline_build *build, struct arena *arena,
                                 struct timeline *timeline) {
  struct intervals input, named, blocked = {0}, busy, all;
  const sets_of_kinds waits = {
      [SPAN_COMM_WAIT] = &blocked, [SPAN_SYNC] = &blocked, [SPAN_COLL_CALL] = &blocked};
  unite_phases(build->events, TSCOPE_PHASE_DATA, arena, &input);
  intervals_of_spans(build, arena, waits);
  intervals_union(arena, &timeline->compute, &input, &named);
  cpu_times_unite(build->events, &timeline->compute, &named, &blocked, arena, &busy);
  intervals_union(arena, &timeline->compute, &busy, &all);
  timeline->has_cpu_times = build->events->cpu_times.n > 1;
  timeline->has_compute |= timeline->has_cpu_times;
  timeline->compute = all;
}

/* On a CPU job: what is known to be training, less the time the host was blocked in it. */
static void collect_cpu_compute(const struct timeline_build *build, struct arena *arena,
                                struct timeline *timeline) {
  struct intervals training = {0}, phase, both, blocked = {0};
  const sets_of_kinds waits = {[SPAN_COMM_WAIT] = &blocked, [SPAN_SYNC] = &blocked};
  for (u8 kind = 0; kind <= TSCOPE_PHASE_USER; kind++) {
    if (!phase_computes(kind))
      continue;
    unite_phases(build->events, kind, arena, &phase);
    intervals_union(arena, &training, &phase, &both);
    training = both;
  }
  intervals_of_spans(build, arena, waits);
  intervals_subtract(arena, &training, &blocked, &timeline->compute);
  timeline->has_compute = training.n > 0;
  add_unmarked_compute(build, arena, timeline);
}

static void collect_intervals(const struct timeline_build *build, struct arena *arena,
                              struct timeline *timeline) {
  const struct rank_events *events = build->events;
  const u32 *n = build->n_of_kind;
  model_captures(build->model, build->rank, arena, &timeline->capturing);
  bool gpu_spans = n[SPAN_KERNEL] || n[SPAN_MEMCPY] || n[SPAN_MEMSET];
  timeline->on_gpu = gpu_spans || events->launches > 0 || events->definitions->n_streams > 0;
  timeline->has_comm = events->calls.n == events->idle_calls || events->runs.n > 0;
  timeline->has_memcpy = !timeline->on_gpu || gpu_spans;
  const sets_of_kinds of_device = {[SPAN_COLLECTIVE] = &timeline->comm,
                                   [SPAN_MEMCPY] = &timeline->memcpy,
                                   [SPAN_MEMSET] = &timeline->memcpy,
                                   [SPAN_KERNEL] = &timeline->compute};
  intervals_of_spans(build, arena, of_device);
  if (!timeline->on_gpu) {
    collect_cpu_compute(build, arena, timeline);
    return;
  }
  timeline->has_compute = gpu_spans;
}

static void free_build(struct timeline_build *build) {
  FREE_EACH(build, spans.at, copied_runs.at, facts.at, event_uses.at, replays.at, lane_of_stream.at,
            edges.at, lanes.at, sites.at, arithmetic.at);
  gemms_build_release(&build->gemms_build);
  definitions_free_text(&build->definitions);
  arena_release(&build->arena);
  free(build);
}

/* Moves what was built into the timeline. */
static void move_to_timeline(struct timeline_build *build, struct timeline *timeline) {
  struct timeline_internal *internal = arena_alloc(&build->arena, sizeof(*internal));
  struct timeline made = {.spans = build->spans.at,
                          .n_spans = build->spans.n,
                          .edges = build->edges.at,
                          .n_edges = build->edges.n,
                          .lanes = build->lanes.at,
                          .n_lanes = build->lanes.n,
                          .arithmetic = build->arithmetic.at,
                          .n_arithmetic = build->arithmetic.n,
                          .internal = internal,
                          SAME(build, rank, gemms, ring_begin)};
  made.bytes = memory_array(size_sum(build->spans.n, 1), sizeof(*made.bytes));
  for (u32 i = 0; i < build->spans.n; i++) {
    const struct span *span = &build->spans.at[i];
    const struct span_facts *facts = &build->facts.at[i];
    build->n_of_kind[span->kind]++;
    made.bytes[i] = facts->bytes;
    if (span->kind == SPAN_LAUNCH && facts->work == WORK_GRAPH) {
      made.graph_launches++;
      made.graph_launches_run += span->link != INDEX_NONE;
      made.graph_launches_open += rank_graph_is_conditional(build->events, facts->what);
    }
  }
  collect_intervals(build, &build->arena, &made);
  timeline_link_sites(build, &build->arena, &made.call_sites);
  internal->definitions = build->definitions;
  internal->arena = build->arena;
  build->spans.at = NULL; /* they are the timeline's now */
  build->edges.at = NULL;
  build->lanes.at = NULL;
  build->arithmetic.at = NULL;
  build->definitions = (struct definitions){0};
  build->arena = (struct arena){0};
  *timeline = made;
}

static int load_in_budget(const struct model *model, u32 rank, struct timeline *timeline) {
  struct timeline_build *build = memory_zeroed(1, sizeof(*build));
  build->model = model;
  build->rank = rank;
  build->whole = rank_events_whole(model_events(model, rank));
  build->events = &build->whole;
  build->clock = model_clock(model, rank);
  build->ring_begin = model->ranks[rank].begin;
  build->span_of_run = arena_array(&build->arena, build->events->runs.n, sizeof(u32));
  int result = timeline_decode(build);
  if (result == 0) {
    timeline_sort(build);
    timeline_find_replayed_fills(build);
    timeline_link_launches(build);
    timeline_add_spins(build);
    timeline_link_replays(build);
    timeline_link_events(build);
    move_to_timeline(build, timeline);
  }
  free_build(build);
  return result;
}

static void trace_release(struct timeline *timeline) {
  struct timeline_internal *internal = timeline->internal;
  FREE_EACH(timeline, spans, bytes, edges, lanes, arithmetic);
  if (internal) {
    struct arena arena = internal->arena;
    definitions_free_text(&internal->definitions);
    arena_release(&arena);
  }
  *timeline = (struct timeline){0};
}

static int trace_load(const struct model *model, u32 rank, struct timeline *timeline) {
  struct budget budget;
  char why[256];
  budget_begin(&budget, BUDGET_MEMORY, model->ranks[rank].file_bytes);
  int result = load_in_budget(model, rank, timeline);
  int over = budget_end(&budget, result, why, sizeof(why));
  if (over && !result)
    trace_release(timeline);
  return over;
}

const struct timeline_source trace_timelines = {.load = trace_load,
                                                .release = trace_release,
                                                .name = trace_name,
                                                .infer_input = trace_infer_input,
                                                .named_ranges = trace_named_ranges,
                                                .flight = trace_flight_record};
