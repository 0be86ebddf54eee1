/* SPDX-License-Identifier: MIT
 *
 * A timeline while it is being decoded: spans with what is needed to link them, then sorted and
 * linked.
 */
#pragma once

#include "import/tscope/gpu_runs/graph_replays.h"
#include "import/tscope/timeline/timeline_gemms.h"
#include "model/building.h"
#include "model/span_call_sites.h"

/* What kind of work a span is, to pair launches with what ran. */
enum work { WORK_NONE, WORK_KERNEL, WORK_MEMCPY, WORK_MEMSET, WORK_GRAPH };

/* Beside each span. */
struct span_facts {
  u32 what;  /* name of the kernel (string), bytes of the copy, number of the graph: distinguishes
                work  of one kind */
  u32 graph; /* graph launches: never 0; spans of a replay: correlation id, else 0 */
  u32 gpu_graph;   /* spans of a replay: the GPU clock source's id of the graph, 0 if not known */
  float bytes;     /* of copies and fills */
  u32 correlation; /* device spans: the GPU clock source's id of the call that launched it; or 0 */
  u16 stream;
  u8 work; /* enum work */
  u8 sync; /* SPAN_SYNC: enum tscope_sync, and `what` is its object */
};

/* An event recorded on a stream, or a stream made to wait for one. */
struct event_use {
  i64 time;
  u32 event;
  u16 stream;
  bool wait;
};

/* What ran in one replay of a graph, and which span launched it. */
struct replay_spans {
  u32 first, n; /* in timeline_build.replayed */
  u32 launch;   /* INDEX_NONE if not known */
  u32 gpu_graph;
};

struct timeline_build {
  const struct model *model;
  struct rank_events whole; /* without what was left out of the joined ones */
  const struct rank_events *events;
  const struct rank_clock *clock;
  struct arena arena; /* becomes the timeline's */
  struct definitions definitions;
  VECTOR(struct span) spans;
  VECTOR(struct span_facts) facts;
  VECTOR(struct event_use) event_uses;
  VECTOR(struct edge) edges;
  VECTOR(struct lane) lanes;
  VECTOR(struct arithmetic) arithmetic;
  VECTOR(struct call_site) sites;
  struct gemms_build gemms_build;
  struct gemms *gemms;                 /* the timeline's, once decoded */
  VECTOR(u32) lane_of_stream;          /* one more than the lane, 0 for none yet */
  u32 *span_of_run;                    /* [events.runs.n] */
  VECTOR(u32) copied_runs;             /* of copy engines, by stream and start */
  VECTOR(struct replay_spans) replays; /* in the order of the calls that launched them */
  u32 *replayed;                       /* spans of replays, by replay and start */
  u32 n_of_kind[SPAN_KINDS];           /* of the spans, once they are all there */
  i64 ring_begin;
  u32 rank;
  bool saw_replays; /* some span ran in a graph */
};

/* Spans of the retained records, then of the ring chunks, unsorted. 0, or negative errno. */
int timeline_decode(struct timeline_build *build);

/* timeline_kept.c: spans of what joining ranks has read of this one already. */
void timeline_add_kept(struct timeline_build *build);

/* Joins replayed collectives to the launches of their graphs, once these are there. */
void timeline_join_replays(struct timeline_build *build);

/* Lane of a thread: as a host thread, or as a worker that runs collectives (`device`). */
u16 timeline_thread_lane(struct timeline_build *build, u32 thread, bool device);
u16 timeline_stream_lane(struct timeline_build *build, u16 stream);

/* Whether a copy is part of a collective, whose run is a span already. Runs are in order of time.
 */
bool timeline_is_in_run(const struct timeline_build *build, u16 stream, i64 start, i64 end);

/* Sorts spans by (start, longer first), keeping links between spans. */
void timeline_sort(struct timeline_build *build);

/* Whether the last work is not in the trace, while the first is: see pair_in_order(). */
bool timeline_end_is_lost(const struct timeline_build *build);

/* Fills that ran in graphs. They do not say which graph they were in, but which call they belong
 * to. Before launches are linked: no launch made these fills. */
void timeline_find_replayed_fills(struct timeline_build *build);

/* Device spans to the calls that launched them, by order per stream; not those of graphs. */
void timeline_link_launches(struct timeline_build *build);

/* Where the host waits for the device without a call that says so (host_spin.h): spans of a wait,
 * whose `launch` is what it waits for. Spans may move. */
void timeline_add_spins(struct timeline_build *build);

/* What ran in graphs to the launches of the graphs. */
void timeline_link_replays(struct timeline_build *build);

/* Edges from event records, stream waits and synchronisation. */
void timeline_link_events(struct timeline_build *build);

/* A call site as recorded; left out if its stack is not in the trace. */
void timeline_site(struct timeline_build *build, u64 stack, u16 tag, i64 time, u16 lane);

/* Call sites to the spans of the calls; `*out` is NULL where there are none. */
void timeline_link_sites(struct timeline_build *build, struct arena *arena,
                         const struct call_sites **out);

/* cpu_times.c: compute of a CPU job outside all phases. `training`: phases that compute, without
 * blocked time; `named`: these and the loading of input; `blocked`: waits and calls. Sets *busy, in
 * the arena, empty if no CPU clock was read. */
void cpu_times_unite(const struct rank_events *events, const struct intervals *training,
                     const struct intervals *named, const struct intervals *blocked,
                     struct arena *arena, struct intervals *busy);

/* Names beyond the file's own strings: operations, phases, kinds of sync. */
enum timeline_vocabulary {
  NAMES_OF_OPS = 0,
  NAMES_OF_PHASES = 32,
  NAMES_OF_SYNCS = 48,
  NAMES_OF_CALLS = 56,
  VOCABULARY = 64
};

/* A span that is linked to nothing yet. */
static inline struct span timeline_span(u8 kind, struct interval when, u32 name, u16 lane) {
  return (struct span){.start = when.start,
                       .end = when.end,
                       .name = name,
                       .link = INDEX_NONE,
                       .launch = INDEX_NONE,
                       .lane = lane,
                       .kind = kind};
}

static inline u32 vocabulary_name(const struct timeline_build *build, u32 word) {
  return build->definitions.n_strings + word;
}

static inline void timeline_add_span(struct timeline_build *build, const struct span *span,
                                     const struct span_facts *facts) {
  VECTOR_ROOM(&build->spans);
  VECTOR_ROOM(&build->facts);
  struct span *placed = &build->spans.at[build->spans.n++];
  *placed = *span;
  placed->end = MAX(placed->start, placed->end);
  build->facts.at[build->facts.n++] = *facts;
}
