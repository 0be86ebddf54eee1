/* SPDX-License-Identifier: MIT
 *
 * Edges from the GPU clock source's own records. It numbers the calls of the process in the order
 * in which they were made, whoever made them; work, event records and waits carry the numbers of
 * their calls. So an event stands for the last work that was put on its stream with a smaller
 * number, and a wait of a stream delays the first work that is put on it with a larger number.
 */

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/timeline/timeline_build.h"

/* A device span under its stream and call. */
struct called {
  u64 key; /* the source's stream, then the call */
  u32 span;
};

struct waiting {
  struct timeline_build *build;
  struct called *work;            /* sorted */
  const struct gpu_wait **events; /* event records, sorted by number of their call */
  u32 n_work, n_events;
};

static u64 key_of(u32 stream, u32 correlation) {
  return (u64)stream << 32 | correlation;
}

ORDER_BY(by_key, struct called, UP(key) UP(span))

ORDER_POINTERS_BY(by_call, struct gpu_wait, UP(correlation))

/* The first work whose key is not below this one. */
static u32 first_from(const struct waiting *w, u64 key) {
  return FIRST_NOT(0, w->n_work, i, w->work[i].key < key);
}

/* The last work put on a stream before a call; INDEX_NONE if none was seen. */
static u32 last_before(const struct waiting *w, u32 stream, u32 correlation) {
  u32 at = first_from(w, key_of(stream, correlation));
  return at && w->work[at - 1].key >> 32 == stream ? w->work[at - 1].span : INDEX_NONE;
}

static u32 first_after(const struct waiting *w, u32 stream, u32 correlation) {
  u32 at = first_from(w, key_of(stream, correlation) + 1);
  return at < w->n_work && w->work[at].key >> 32 == stream ? w->work[at].span : INDEX_NONE;
}

/* The record of the event that a call waits for: as recorded, else the last one before the call. */
static const struct gpu_wait *find_event_record(const struct waiting *w,
                                                const struct gpu_wait *wait) {
  u32 first = FIRST_NOT(0, w->n_events, i, w->events[i]->correlation < wait->correlation);
  const u32 look_back = 4096; /* an event that was recorded long ago, or before the trace began */
  for (u32 seen = 0; first-- > 0 && seen < look_back; seen++)
    if (wait->record_id ? w->events[first]->record_id == wait->record_id
                        : w->events[first]->event == wait->event)
      return w->events[first];
  return NULL;
}

/* An edge, unless the times show that the wait was for something that was not seen. */
static void add_edge(struct timeline_build *build, u32 from, u32 to, u8 kind) {
  const i64 slack_ns = 5000;
  if (from == INDEX_NONE || to == INDEX_NONE || from == to)
    return;
  const struct span *first = &build->spans.at[from], *then = &build->spans.at[to];
  i64 held_until = kind == EDGE_EVENT ? then->start : then->end;
  if (!(first->end > held_until + slack_ns)) {
    VECTOR_PUSH(&build->edges, (struct edge){from, to, kind});
  }
}

/* The host's own span of a wait: it encloses what the source saw. */
static u32 host_span(const struct timeline_build *build, const struct gpu_wait *wait) {
  const u32 look_back = 64;
  u32 first = FIRST_NOT(0, build->spans.n, i, build->spans.at[i].start <= wait->start);
  for (u32 i = first, seen = 0; i-- > 0 && seen < look_back; seen++)
    if (build->spans.at[i].kind == SPAN_SYNC && build->spans.at[i].end >= wait->end)
      return i;
  return INDEX_NONE;
}

static void link_device_wait(struct waiting *w, u32 host, u32 correlation) {
  for (u32 at = 0; at < w->n_work;) {
    u32 stream = (u32)(w->work[at].key >> 32);
    add_edge(w->build, last_before(w, stream, correlation), host, EDGE_SYNC);
    at = first_from(w, key_of(stream, UINT32_MAX) + 1);
  }
}

static void link_wait(struct waiting *w, const struct gpu_wait *wait) {
  bool for_event =
      wait->type == TSCOPE_GPU_WAIT_EVENT || wait->type == TSCOPE_GPU_WAIT_STREAM_EVENT;
  const struct gpu_wait *event = for_event ? find_event_record(w, wait) : NULL;
  u32 from = event ? last_before(w, event->stream, event->correlation) : INDEX_NONE;
  switch (wait->type) {
  case TSCOPE_GPU_WAIT_STREAM_EVENT:
    add_edge(w->build, from, first_after(w, wait->stream, wait->correlation), EDGE_EVENT);
    return;
  case TSCOPE_GPU_WAIT_EVENT:
    if (from != INDEX_NONE)
      add_edge(w->build, from, host_span(w->build, wait), EDGE_SYNC);
    return;
  case TSCOPE_GPU_WAIT_STREAM:
    from = last_before(w, wait->stream, wait->correlation);
    if (from != INDEX_NONE)
      add_edge(w->build, from, host_span(w->build, wait), EDGE_SYNC);
    return;
  case TSCOPE_GPU_WAIT_CONTEXT: {
    u32 host = host_span(w->build, wait);
    if (host != INDEX_NONE)
      link_device_wait(w, host, wait->correlation);
    return;
  }
  default:
    return;
  }
}

/* Device spans that carry their call's number, on streams whose own id the source reported. */
static void list_work(struct waiting *w) {
  const struct timeline_build *build = w->build;
  const struct definitions *definitions = &build->definitions;
  for (u32 i = 0; i < build->spans.n; i++) {
    const struct span_facts *facts = &build->facts.at[i];
    if (!SPAN_ON_DEVICE(build->spans.at[i].kind) || !facts->correlation ||
        facts->stream >= definitions->n_streams || !definitions->streams[facts->stream].known ||
        definitions->streams[facts->stream].gpu_stream == TSCOPE_UNKNOWN)
      continue;
    w->work[w->n_work++] = (struct called){
        key_of(definitions->streams[facts->stream].gpu_stream, facts->correlation), i};
  }
  SORT(w->work, w->n_work, by_key);
}

void timeline_link_gpu_waits(struct timeline_build *build) {
  if (build->gpu_waits.n == 0)
    return;
  struct waiting w = {.build = build,
                      .work = memory_array(size_sum(build->spans.n, 1), sizeof(*w.work)),
                      .events = memory_array(size_sum(build->gpu_waits.n, 1), sizeof(*w.events))};
  list_work(&w);
  for (u32 i = 0; i < build->gpu_waits.n; i++)
    if (build->gpu_waits.at[i].type == 0)
      w.events[w.n_events++] = &build->gpu_waits.at[i];
  SORT(w.events, w.n_events, by_call);
  for (u32 i = 0; i < build->gpu_waits.n; i++)
    link_wait(&w, &build->gpu_waits.at[i]);

  free(w.work);
  free(w.events);
}
