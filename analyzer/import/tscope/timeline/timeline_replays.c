/* SPDX-License-Identifier: MIT
 *
 * Replays of CUDA graphs. Everything that ran in one carries the number of the call that launched
 * it; the graph itself decides on which streams it ran. A replay begins when the stream that it was
 * launched on reaches it, and that stream continues when all of it is done.
 *
 * The dependencies inside a replay are not recorded, but a node of a graph waits only for other
 * nodes: if one begins after a pause of its stream, it waited for what ended last before it.
 */

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/gpu_runs/pairing.h"
#include "import/tscope/timeline/timeline_build.h"

static bool is_replayed(const struct timeline_build *build, u32 span) {
  return SPAN_ON_DEVICE(build->spans.at[span].kind) && build->facts.at[span].graph;
}

ORDER_INDICES_BY(by_call_and_place, struct span_facts, UP(graph) LESS_FIRST(a, b))

void timeline_find_replayed_fills(struct timeline_build *build) {
  u32 n = 0;
  if (!build->saw_replays)
    return;
  SCOPED u32 *calls = memory_array(size_sum(build->spans.n, 1), sizeof(*calls));
  for (u32 i = 0; i < build->spans.n; i++)
    if (is_replayed(build, i) && (!n || calls[n - 1] != build->facts.at[i].graph))
      calls[n++] = build->facts.at[i].graph;
  SORT(calls, n, by_u32);
  for (u32 i = 0; i < build->spans.n && n; i++) {
    struct span_facts *facts = &build->facts.at[i];
    if (build->spans.at[i].kind == SPAN_MEMSET && facts->correlation &&
        FIND_SORTED(calls, n, &facts->correlation, by_u32))
      facts->graph = facts->correlation;
  }
}

static void list_replays(struct timeline_build *build) {
  build->replayed = arena_array(&build->arena, build->spans.n, sizeof(u32));
  u32 n = LIST_WHERE(build->replayed, 0, build->spans.n, i, is_replayed(build, i), i);
  SORT_INDICES(build->replayed, n, build->facts.at, by_call_and_place);
  for (u32 i = 0; i < n; i++) {
    const struct span_facts *facts = &build->facts.at[build->replayed[i]];
    struct replay_spans *last = build->replays.n ? &build->replays.at[build->replays.n - 1] : NULL;
    if (last && build->facts.at[build->replayed[last->first]].graph == facts->graph) {
      last->n++;
      last->gpu_graph = last->gpu_graph ? last->gpu_graph : facts->gpu_graph;
    } else
      VECTOR_PUSH(&build->replays, (struct replay_spans){i, 1, INDEX_NONE, facts->gpu_graph});
  }
}

/* The GPU clock source's id of the graph that a span launches; 0 if nothing ran under that. */
static u32 launched_graph(const struct timeline_build *build, const u32 *ran_graphs, u32 span) {
  const struct rank_graph *graph = rank_find_graph(build->events, build->facts.at[span].what);
  bool ran = graph && FIND_SORTED(ran_graphs, build->replays.n, &graph->gpu_graph, by_u32);
  return ran ? graph->gpu_graph : 0;
}

static void join_replay(void *user, u32 launch, u32 number) {
  struct timeline_build *build = user;
  struct replay_spans *replay = &build->replays.at[number];
  replay->launch = launch;
  for (u32 i = replay->first; i < replay->first + replay->n; i++) {
    struct span *span = &build->spans.at[build->replayed[i]];
    if (span->kind == SPAN_COLLECTIVE) { /* its link is the arrival */
      span->launch = launch;
      continue;
    }
    span->launch = span->link = launch;
  }
  build->spans.at[launch].link = build->replayed[replay->first];
}

/* Launches and replays, in the order of the calls. */
static void pair_replays_with_launches(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  u32 n = build->replays.n;
  SCOPED u32 *ran_graphs = memory_array(n, sizeof(u32)); /* sorted */
  struct pairable all = {0};
  for (u32 i = 0; i < n; i++) {
    const struct replay_spans *replay = &build->replays.at[i];
    i64 start = build->spans.at[build->replayed[replay->first]].start;
    ran_graphs[i] = replay->gpu_graph;
    VECTOR_PUSH(&all.effects, (struct ordered){start, replay->gpu_graph,
                                               rank_cupti_session(events, start, true), i});
  }
  SORT(ran_graphs, n, by_u32);
  for (u32 i = 0; i < build->spans.n; i++) {
    i64 start = build->spans.at[i].start;
    if (build->spans.at[i].kind == SPAN_LAUNCH && build->facts.at[i].work == WORK_GRAPH)
      VECTOR_PUSH(&all.causes, (struct ordered){start, launched_graph(build, ran_graphs, i),
                                                rank_cupti_session(events, start, false), i});
  }
  pair_sessions(&all, timeline_end_is_lost(build), join_replay, build);
  pairable_free(&all);
}

ORDER_INDICES_BY(by_end, struct span, UP(end))

/* `ended` are the replay's spans, to be sorted by end. */
static void link_inside(struct timeline_build *build, const struct replay_spans *replay,
                        u32 *ended) {
  const struct span_facts *facts = build->facts.at;
  u32 next = 0, last = INDEX_NONE;
  memcpy(ended, &build->replayed[replay->first], replay->n * sizeof(*ended));
  SORT_INDICES(ended, replay->n, build->spans.at, by_end);
  for (u32 i = 0; i < replay->n; i++) {
    u32 span = build->replayed[replay->first + i];
    for (; next < replay->n && build->spans.at[ended[next]].end <= build->spans.at[span].start;
         next++)
      last = ended[next];
    if (last != INDEX_NONE && facts[last].stream != facts[span].stream) {
      VECTOR_PUSH(&build->edges, (struct edge){last, span, EDGE_EVENT});
    }
  }
}

static void link_all_inside(struct timeline_build *build) {
  u32 most = MOST_OF(u32, build->replays.at, build->replays.n, one, one->n);
  SCOPED u32 *ended = memory_array(size_sum(most, 1), sizeof(*ended));
  FOR_EACH(build->replays.at, build->replays.n, replay)
    link_inside(build, replay, ended);
}

void timeline_link_replays(struct timeline_build *build) {
  if (!build->saw_replays)
    return;
  list_replays(build);
  if (build->replays.n == 0)
    return;
  pair_replays_with_launches(build);
  link_all_inside(build);
}
