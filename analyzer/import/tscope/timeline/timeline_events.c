/* SPDX-License-Identifier: MIT
 *
 * Edges that a stream's own order does not imply. The walk follows what the host did, in order of
 * time, and keeps for each stream the last device span that was put on it.
 */

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/timeline/timeline_build.h"

/* What an event stands for: the device span it was recorded after. */
struct captured {
  u32 event;
  u32 span; /* INDEX_NONE: not known */
};

/* A dependency that waits for the next span to be put on the stream. */
struct pending_edge {
  u32 from;
  u32 next; /* in walk.pending, INDEX_NONE at the end */
};

struct timeline_walk {
  struct timeline_build *build;
  u32 *last;          /* [streams] last device span put there, INDEX_NONE if not known */
  u32 *first_pending; /* [streams] */
  u32 *branch;        /* [streams] one more than the first span of the replay that is looked at */
  u32 *launched;      /* replays whose launch is known, by that */
  u32 n_launched;
  VECTOR(struct pending_edge) pending;
  HASHED(struct captured) captured; /* of each event the last */
  u16 most_stream;
};

static u64 hash_of(u32 event) {
  return event * 2654435761ull;
}

/* NULL if it was not recorded. */
static const struct captured *find_event(const struct timeline_walk *walk, u32 event) {
  u32 i = HASHED_INDEX(&walk->captured, hash_of(event), one, one->event == event);
  return i == INDEX_NONE ? NULL : &walk->captured.at[i];
}

static void record_event(struct timeline_walk *walk, u32 event, u32 span) {
  u32 i = HASHED_OR_ADD(&walk->captured, hash_of(event), one, one->event == event,
                        (struct captured){.event = event});
  walk->captured.at[i].span = span;
}

static void add_edge(struct timeline_walk *walk, u32 from, u32 to, u8 kind) {
  if (from != INDEX_NONE && from != to)
    VECTOR_PUSH(&walk->build->edges, (struct edge){from, to, kind});
}

/* What the stream gets next waits for the span. */
static void add_pending(struct timeline_walk *walk, u16 stream, u32 from) {
  VECTOR_PUSH(&walk->pending, (struct pending_edge){from, walk->first_pending[stream]});
  walk->first_pending[stream] = walk->pending.n - 1;
}

static void use_event(struct timeline_walk *walk, const struct event_use *use) {
  const struct captured *captured = use->wait ? find_event(walk, use->event) : NULL;
  if (!use->wait)
    record_event(walk, use->event, walk->last[use->stream]);
  else if (captured && captured->span != INDEX_NONE)
    add_pending(walk, use->stream, captured->span);
}

/* A span was put on a stream: it starts after everything that the stream had to wait for. */
static void put_on_stream(struct timeline_walk *walk, u16 stream, u32 device) {
  walk->last[stream] = device;
  if (device == INDEX_NONE)
    return;
  u32 pending = walk->first_pending[stream];
  walk->first_pending[stream] = INDEX_NONE;
  for (; pending != INDEX_NONE; pending = walk->pending.at[pending].next)
    add_edge(walk, walk->pending.at[pending].from, device, EDGE_EVENT);
}

static void sync_with(struct timeline_walk *walk, u32 span, const struct span_facts *facts) {
  switch (facts->sync) {
  case TSCOPE_SYNC_STREAM:
    if (facts->what <= walk->most_stream)
      add_edge(walk, walk->last[facts->what], span, EDGE_SYNC);
    return;
  case TSCOPE_SYNC_EVENT: {
    const struct captured *captured = find_event(walk, facts->what);
    if (captured)
      add_edge(walk, captured->span, span, EDGE_SYNC);
    return;
  }
  case TSCOPE_SYNC_DEVICE:
    for (u32 s = 0; s <= walk->most_stream; s++)
      add_edge(walk, walk->last[s], span, EDGE_SYNC);
    return;
  default:
    return;
  }
}

static const struct replay_spans *replay_of(const struct timeline_walk *walk, u32 launch) {
  const struct timeline_build *build = walk->build;
  u32 found =
      SORTED_INDEX(walk->n_launched, i, build->replays.at[walk->launched[i]].launch, launch);
  return found == INDEX_NONE ? NULL : &build->replays.at[walk->launched[found]];
}

/* A replay's first work on each of its streams comes after what its launching stream got before;
 * what that stream gets next comes after the last work on each. */
static void put_replay(struct timeline_walk *walk, u16 stream, const struct replay_spans *replay) {
  struct timeline_build *build = walk->build;
  const u32 *spans = &build->replayed[replay->first];
  u32 before = walk->last[stream], last = spans[0], waits = walk->first_pending[stream];
  walk->first_pending[stream] = INDEX_NONE;
  FOR_EACH(spans, replay->n, one)
    if (build->spans.at[*one].end > build->spans.at[last].end)
      last = *one;
  FOR_EACH(spans, replay->n, span) {
    u16 own = build->facts.at[*span].stream;
    if (walk->branch[own] == spans[0] + 1) /* not its first in this replay */
      continue;
    walk->branch[own] = spans[0] + 1;
    if (own != stream)
      add_edge(walk, before, *span, EDGE_EVENT);
    for (u32 p = waits; p != INDEX_NONE; p = walk->pending.at[p].next)
      add_edge(walk, walk->pending.at[p].from, *span, EDGE_EVENT);
  }
  for (u32 i = replay->n; i-- > 0;) {
    u16 own = build->facts.at[spans[i]].stream;
    if (walk->branch[own] != spans[0] + 1)
      continue;
    walk->branch[own] = 0;
    if (spans[i] != last)
      add_pending(walk, stream, spans[i]);
  }
  walk->last[stream] = last;
  if (build->facts.at[last].stream != stream)
    add_pending(walk, stream, last);
}

static void visit_span(struct timeline_walk *walk, u32 i) {
  const struct span *span = &walk->build->spans.at[i];
  const struct span_facts *facts = &walk->build->facts.at[i];
  switch (span->kind) {
  case SPAN_LAUNCH: {
    const struct replay_spans *replay = facts->work == WORK_GRAPH ? replay_of(walk, i) : NULL;
    if (facts->stream == TSCOPE_NO_STREAM)
      return;
    if (replay)
      put_replay(walk, facts->stream, replay);
    else
      put_on_stream(walk, facts->stream, span->link);
    return;
  }
  case SPAN_COLL_CALL: {
    u32 device = span->link; /* that it launched */
    u16 stream = device == INDEX_NONE ? facts->stream : walk->build->facts.at[device].stream;
    if (stream != TSCOPE_NO_STREAM)
      put_on_stream(walk, stream, device);
    return;
  }
  case SPAN_SYNC:
    if (span->launch == INDEX_NONE)
      sync_with(walk, i, facts);
    else
      add_edge(walk, span->launch, i, EDGE_SYNC); /* a spin */
    walk->build->spans.at[i].launch = INDEX_NONE;
    return;
  case SPAN_COMM_WAIT:
    add_edge(walk, span->link, i, EDGE_SYNC);
    return;
  default:
    return;
  }
}

ORDER_BY(by_time, struct event_use, UP(time))

ORDER_BY(by_target, struct edge, UP(to) UP(from))

static void sort_edges(struct timeline_build *build) {
  SORT(build->edges.at, build->edges.n, by_target);
  build->edges.n =
      KEEP_FIRST(build->edges.at, build->edges.n, last, edge, by_target(last, edge) == 0);
}

ORDER_INDICES_BY(by_launch, struct replay_spans, UP(launch))

static void list_launched(struct timeline_walk *walk) {
  const struct timeline_build *build = walk->build;
  walk->launched = memory_array(size_sum(build->replays.n, 1), sizeof(u32));
  walk->n_launched = LIST_WHERE(walk->launched, 0, build->replays.n, i,
                                build->replays.at[i].launch != INDEX_NONE, i);
  SORT_INDICES(walk->launched, walk->n_launched, build->replays.at, by_launch);
}

static void allocate_walk(struct timeline_walk *walk) {
  const struct timeline_build *build = walk->build;
  FOR_EACH(build->facts.at, build->spans.n, fact)
    if (fact->stream != TSCOPE_NO_STREAM && fact->stream > walk->most_stream)
      walk->most_stream = fact->stream;
  FOR_EACH(build->event_uses.at, build->event_uses.n, use)
    if (use->stream != TSCOPE_NO_STREAM && use->stream > walk->most_stream)
      walk->most_stream = use->stream;
  u32 streams = walk->most_stream + 1u;
  walk->last = memory_array(streams, sizeof(u32));
  walk->first_pending = memory_array(streams, sizeof(u32));
  walk->branch = build->replays.n ? memory_zeroed(UINT16_MAX + 1u, sizeof(u32)) : NULL;
  list_launched(walk);
  for (u32 s = 0; s < streams; s++)
    walk->last[s] = walk->first_pending[s] = INDEX_NONE;
}

void timeline_link_events(struct timeline_build *build) {
  struct timeline_walk walk = {.build = build};
  allocate_walk(&walk);
  SORT(build->event_uses.at, build->event_uses.n, by_time);
  u32 next = 0;
  for (u32 i = 0; i < build->spans.n; i++) {
    if (SPAN_ON_DEVICE(build->spans.at[i].kind))
      continue;
    for (;
         next < build->event_uses.n && build->event_uses.at[next].time <= build->spans.at[i].start;
         next++)
      if (build->event_uses.at[next].stream != TSCOPE_NO_STREAM)
        use_event(&walk, &build->event_uses.at[next]);
    visit_span(&walk, i);
  }
  sort_edges(build);
  FREE_EACH(&walk, last, first_pending, branch, launched, captured.at, captured.index.slots,
            pending.at);
}
