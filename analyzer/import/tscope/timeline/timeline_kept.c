/* SPDX-License-Identifier: MIT
 *
 * Spans of what joining ranks needed of this one, and so has read already (rank_events.h): where
 * collectives ran, their kernels, calls, waits and phases.
 */
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/timeline/timeline_build.h"

static u16 add_lane(struct timeline_build *build, bool device, u32 id, const char *name) {
  if (build->lanes.n >= UINT16_MAX)
    return UINT16_MAX;
  VECTOR_PUSH(&build->lanes, (struct lane){.device = device, .id = id, .name = name});
  return (u16)(build->lanes.n - 1);
}

u16 timeline_thread_lane(struct timeline_build *build, u32 thread, bool device) {
  const struct definitions *definitions = &build->definitions;
  u32 lane =
      INDEX_OF(build->lanes.at, build->lanes.n, one, one->device == device && one->id == thread);
  if (lane != INDEX_NONE)
    return (u16)lane;
  const struct thread_definition *named =
      FIND(definitions->threads, definitions->n_threads, one, one->thread == thread && one->name);
  return add_lane(build, device, thread,
                  named ? named->name : arena_printf(&build->arena, "thread %u", thread));
}

#define OVERLAPPING_RUNS 256u

u16 timeline_stream_lane(struct timeline_build *build, u16 stream) {
  VECTOR_REACH(&build->lane_of_stream, stream);
  u32 *lane = &build->lane_of_stream.at[stream];
  if (*lane == 0)
    *lane = add_lane(build, true, stream, arena_printf(&build->arena, "stream %u", stream)) + 1u;
  return (u16)(*lane - 1);
}

/* What has not ended lasts as long as the rank. */
static struct interval until_end(const struct timeline_build *build, i64 start, i64 end) {
  return (struct interval){start, end == NS_UNKNOWN ? build->model->ranks[build->rank].end : end};
}

/* Where collectives ran. Runs on a stream lie on its lane, others on their worker's. */
static void decode_runs(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  for (u32 i = 0; i < events->runs.n; i++) {
    const struct rank_run *run = &events->runs.at[i];
    u16 lane = run->stream == TSCOPE_NO_STREAM ? timeline_thread_lane(build, run->thread, true)
                                               : timeline_stream_lane(build, run->stream);
    struct span span = timeline_span(SPAN_COLLECTIVE, until_end(build, run->start, run->end),
                                     run->name ? run->name : vocabulary_name(build, run->op), lane);
    if (run->first_call != INDEX_NONE)
      span.link = events->calls.at[run->first_call].arrival;
    span.category = run->op;
    build->span_of_run[i] = build->spans.n;
    if (run->copies)
      VECTOR_PUSH(&build->copied_runs, i);
    build->saw_replays |= run->graph != 0;
    timeline_add_span(build, &span,
                      &(struct span_facts){.stream = run->stream,
                                           .graph = run->graph ? run->correlation : 0,
                                           .gpu_graph = run->graph,
                                           .correlation = run->correlation});
  }
}

bool timeline_is_in_run(const struct timeline_build *build, u16 stream, i64 start, i64 end) {
  const struct rank_run *runs = build->events->runs.at;
  /* the first that begins later */
  u32 low = FIRST_NOT(0, build->copied_runs.n, i, runs[build->copied_runs.at[i]].start <= start);
  /* Those of several streams may overlap. */
  for (u32 back = 1; back <= low && back <= OVERLAPPING_RUNS; back++) {
    const struct rank_run *run = &runs[build->copied_runs.at[low - back]];
    if (run->stream == stream)
      return end <= run->end;
  }
  return false;
}

/* Kernels that communicate without a call; their launches are linked as those of other kernels. */
static void decode_kernels(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  FOR_EACH(events->kernels.at, events->kernels.n, kernel) {
    struct span span = timeline_span(SPAN_COLLECTIVE, (struct interval){kernel->start, kernel->end},
                                     kernel->name, timeline_stream_lane(build, kernel->stream));
    span.link = kernel->arrival;
    span.category = kernel->op;
    build->saw_replays |= kernel->graph != 0;
    timeline_add_span(build, &span,
                      &(struct span_facts){.stream = kernel->stream,
                                           .work = WORK_KERNEL,
                                           .what = kernel->name,
                                           .graph = kernel->graph ? kernel->correlation : 0,
                                           .gpu_graph = kernel->graph,
                                           .correlation = kernel->correlation});
  }
}

/* The host span launched what ran: the first run is the host span's link. */
static void join(struct timeline_build *build, const struct rank_call *call, u32 host) {
  if (call->run == INDEX_NONE)
    return;
  u32 device = build->span_of_run[call->run];
  build->spans.at[device].launch = host;
  if (build->spans.at[host].link == INDEX_NONE)
    build->spans.at[host].link = device;
}

static void decode_call(struct timeline_build *build, i64 start, i64 end, u32 thread, u32 word,
                        u16 stream) {
  struct span span =
      timeline_span(SPAN_COLL_CALL, until_end(build, start, end), vocabulary_name(build, word),
                    timeline_thread_lane(build, thread, false));
  span.category = (u8)(word < NAMES_OF_PHASES ? word : 0);
  timeline_add_span(build, &span, &(struct span_facts){.stream = stream});
}

struct numbered_group {
  u32 group, span;
};

ORDER_BY(by_number, struct numbered_group, UP(group))

/* Calls outside groups, and group ends for the calls inside. */
static void decode_calls(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  u32 n = events->groups.n;
  struct numbered_group *groups = arena_array(&build->arena, n, sizeof(*groups));
  for (u32 i = 0; i < n; i++) {
    const struct rank_group *group = &events->groups.at[i];
    groups[i] = (struct numbered_group){group->group, build->spans.n};
    decode_call(build, group->start, group->end, group->thread, NAMES_OF_CALLS, TSCOPE_NO_STREAM);
  }
  SORT(groups, n, by_number);
  FOR_EACH(events->calls.at, events->calls.n, call) {
    if (call->replayed)
      continue;
    struct numbered_group wanted = {.group = call->group};
    struct numbered_group *group = call->group ? FIND_SORTED(groups, n, &wanted, by_number) : NULL;
    u32 host = group ? group->span : build->spans.n;
    if (!group)
      decode_call(build, call->start, call->end, call->thread,
                  call->op < NAMES_OF_PHASES ? call->op : 0, call->stream);
    join(build, call, host);
  }
}

/* A launch of a graph, of which the replayed collectives are the work. */
struct graph_launch {
  i64 start;
  u32 span;
};

ORDER_BY(by_launch, struct graph_launch, UP(start))

/* To the last launch that had begun by then. */
void timeline_join_replays(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  SCOPED VECTOR(struct graph_launch) launches = {0};
  for (u32 i = 0; i < build->spans.n; i++)
    if (build->spans.at[i].kind == SPAN_LAUNCH && build->facts.at[i].work == WORK_GRAPH)
      VECTOR_PUSH(&launches, ((struct graph_launch){build->spans.at[i].start, i}));
  SORT(launches.at, launches.n, by_launch);
  u32 next = 0;
  FOR_EACH(events->calls.at, events->calls.n, call) {
    if (!call->replayed)
      continue;
    while (next < launches.n && launches.at[next].start <= call->start)
      next++;
    if (next)
      join(build, call, launches.at[next - 1].span);
  }
}

static void decode_waits_and_phases(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  FOR_EACH(events->waits.at, events->waits.n, wait) {
    u32 run = wait->call == INDEX_NONE ? INDEX_NONE : events->calls.at[wait->call].run;
    struct span span = timeline_span(SPAN_COMM_WAIT, until_end(build, wait->start, wait->end),
                                     vocabulary_name(build, NAMES_OF_CALLS + 1),
                                     timeline_thread_lane(build, wait->thread, false));
    if (run != INDEX_NONE)
      span.link = build->span_of_run[run];
    timeline_add_span(build, &span, &(struct span_facts){0});
  }
  FOR_EACH(events->phases.at, events->phases.n, phase) {
    u32 name =
        phase->name ? phase->name : vocabulary_name(build, NAMES_OF_PHASES + phase->kind % 16);
    struct span span = timeline_span(SPAN_PHASE, until_end(build, phase->start, phase->end), name,
                                     timeline_thread_lane(build, phase->thread, false));
    span.category = phase->kind;
    timeline_add_span(build, &span, &(struct span_facts){0});
  }
}

static void decode_sites(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  FOR_EACH(events->sites.at, events->sites.n, site)
    timeline_site(build, site->stack, site->tag, site->start,
                  timeline_thread_lane(build, site->thread, false));
}

void timeline_add_kept(struct timeline_build *build) {
  decode_runs(build);
  decode_kernels(build);
  decode_calls(build);
  decode_waits_and_phases(build);
  decode_sites(build);
}
