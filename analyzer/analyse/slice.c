/* SPDX-License-Identifier: MIT
 *
 * Cuts the samples out of a rank's timeline, host lanes flattened.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define MAX_DEPTH 16

struct lane_state {
  u32 base, next; /* of its nodes */
  i64 covered;    /* host: up to here there are nodes, or a gap that the next node takes */
  u32 leaf;       /* latest call, INDEX_NONE */
  u32 shift;      /* by how much its nodes moved down when unused room was closed */
  u32 depth;
  struct {
    i64 end;
    u8 phase;
  } open[MAX_DEPTH];
};

struct dep {
  u32 node, from;
};

struct cutter {
  struct analysis *a;
  const struct timeline *t;
  struct arena scratch;
  u32 *name_keys; /* by name, 0: not computed yet */
  u32 n_names;
  struct lane_state *lanes;
  /* of the sample being cut */
  struct slice *slice;
  u32 *carried; /* spans already running at its begin */
  u32 n_carried;
  u32 low, high; /* spans that started in it */
  u32 *node_of;  /* by position: carried, then low.. */
  struct input_pause *pauses;
  u32 n_pauses;
  struct dep *thread_deps;
  u32 n_thread_deps;
};

static u32 hash_name(const char *text) {
  u32 hash = 2166136261u; /* FNV-1a */
  for (; text && *text; text++)
    hash = (hash ^ (u8)*text) * 16777619u;
  return hash;
}

static u32 key_of(struct cutter *c, const struct span *span) {
  u32 name = span->name;
  if (!c->name_keys[name]) {
    u32 hash = name ? hash_name(c->a->source.name(c->t, name)) : 0;
    c->name_keys[name] = hash ? hash : 1;
  }
  u32 key = c->name_keys[name] ^ (span->kind * 0x9e3779b9u) ^ (span->category * 0x85ebca6bu);
  return key < HOST_KEYS ? key + HOST_KEYS : key;
}

static u32 span_at(const struct cutter *c, u32 position) {
  return position < c->n_carried ? c->carried[position] : c->low + position - c->n_carried;
}

static u32 position_of(const struct cutter *c, u32 span) {
  if (span >= c->low && span < c->high)
    return c->n_carried + span - c->low;
  for (u32 i = 0; i < c->n_carried; i++)
    if (c->carried[i] == span)
      return i;
  return INDEX_NONE;
}

static u32 node_of_span(const struct cutter *c, u32 span) {
  u32 position = span == INDEX_NONE ? INDEX_NONE : position_of(c, span);
  return position == INDEX_NONE ? INDEX_NONE : c->node_of[position];
}

static u8 node_kind(u8 kind) {
  switch (kind) {
  case SPAN_LAUNCH:
  case SPAN_COLL_CALL:
    return NODE_LAUNCH;
  case SPAN_SYNC:
  case SPAN_COMM_WAIT:
    return NODE_BLOCKED;
  case SPAN_PHASE:
    return NODE_HOST;
  case SPAN_COPY:
  case SPAN_FILL:
    return NODE_COPY;
  case SPAN_COLLECTIVE:
    return NODE_COLLECTIVE;
  default:
    return NODE_KERNEL;
  }
}

static u32 emit(struct cutter *c, struct lane_state *lane, struct node node) {
  node.first = lane->next == lane->base;
  node.rank = c->t->rank;
  c->slice->nodes[lane->next] = node;
  return lane->next++;
}

static u8 top_phase(const struct lane_state *lane) {
  return lane->depth ? lane->open[lane->depth - 1].phase : 0;
}

static void emit_own_time(struct cutter *c, struct lane_state *lane, i64 until) {
  u8 phase = top_phase(lane);
  if (until <= lane->covered || !phase)
    return;
  emit(c, lane,
       (struct node){.start = lane->covered,
                     .end = until,
                     .kind = NODE_HOST,
                     .key = phase,
                     .phase = phase,
                     .launch = INDEX_NONE,
                     .arrival = INDEX_NONE});
  lane->covered = until;
}

static void close_phases(struct cutter *c, struct lane_state *lane, i64 now) {
  while (lane->depth && lane->open[lane->depth - 1].end <= now) {
    emit_own_time(c, lane, lane->open[lane->depth - 1].end);
    lane->depth--;
  }
}

static bool ends_input_pause(const struct cutter *c, const struct span *span) {
  u32 index = (u32)(span - c->t->spans), low = 0, high = c->n_pauses;
  while (low < high) {
    u32 middle = low + (high - low) / 2;
    if (c->pauses[middle].span < index)
      low = middle + 1;
    else
      high = middle;
  }
  return low < c->n_pauses && c->pauses[low].span == index;
}

static u32 take_host_span(struct cutter *c, struct lane_state *lane, const struct span *span,
                          i64 start, i64 end) {
  close_phases(c, lane, start);
  if (span->kind == SPAN_PHASE) {
    emit_own_time(c, lane, start);
    if (lane->depth < MAX_DEPTH) {
      u8 phase = span->category < HOST_KEYS ? span->category : TSCOPE_PHASE_USER;
      /* A user's range inside a phase says nothing about the phase. */
      if (phase == TSCOPE_PHASE_USER && lane->depth)
        phase = top_phase(lane);
      lane->open[lane->depth].end = end;
      lane->open[lane->depth++].phase = phase;
    }
    return INDEX_NONE;
  }
  /* A call made inside another is part of it. */
  if (start < lane->covered && lane->leaf != INDEX_NONE)
    return lane->leaf;
  lane->leaf =
      emit(c, lane,
           (struct node){.start = start,
                         .end = end,
                         .kind = node_kind(span->kind),
                         .cut = span->end > end,
                         .key = key_of(c, span),
                         .phase = ends_input_pause(c, span) ? TSCOPE_PHASE_DATA : top_phase(lane),
                         .launch = INDEX_NONE,
                         .arrival = INDEX_NONE});
  lane->covered = end;
  return lane->leaf;
}

static u32 take_device_span(struct cutter *c, struct lane_state *lane, const struct span *span,
                            i64 start, i64 end) {
  bool met = span->kind == SPAN_COLLECTIVE;
  return emit(c, lane,
              (struct node){.start = start,
                            .end = end,
                            .kind = node_kind(span->kind),
                            .key = key_of(c, span),
                            .launch = INDEX_NONE,
                            .arrival = met ? span->link : INDEX_NONE});
}

/* Room per lane: a call is one node at most, a phase two (before it, and its end). */
static u32 lay_out_lanes(struct cutter *c, u32 n_spans) {
  for (u32 i = 0; i < c->t->n_lanes; i++)
    c->lanes[i] = (struct lane_state){.covered = c->slice->begin, .leaf = INDEX_NONE};
  for (u32 i = 0; i < n_spans; i++) {
    const struct span *span = &c->t->spans[span_at(c, i)];
    c->lanes[span->lane].next += span->kind == SPAN_PHASE ? 2 : 1;
  }
  u32 total = 0;
  for (u32 i = 0; i < c->t->n_lanes; i++) {
    u32 room = c->lanes[i].next;
    c->lanes[i].base = c->lanes[i].next = total;
    total += room;
  }
  return total;
}

/* Closes the room that lanes did not use; node_of[] and lanes follow. */
static void compact(struct cutter *c, u32 n_spans) {
  u32 total = 0;
  for (u32 i = 0; i < c->t->n_lanes; i++) {
    struct lane_state *lane = &c->lanes[i];
    u32 n = lane->next - lane->base;
    lane->shift = lane->base - total;
    memmove(&c->slice->nodes[total], &c->slice->nodes[lane->base], n * sizeof(struct node));
    lane->base = total;
    lane->next = total + n;
    total += n;
  }
  for (u32 i = 0; i < n_spans; i++)
    if (c->node_of[i] != INDEX_NONE)
      c->node_of[i] -= c->lanes[c->t->spans[span_at(c, i)].lane].shift;
  c->slice->n_nodes = total;
}

static void link_launches(struct cutter *c, u32 n_spans) {
  for (u32 i = 0; i < n_spans; i++) {
    const struct span *span = &c->t->spans[span_at(c, i)];
    if (!SPAN_ON_DEVICE(span->kind) || span->start < c->slice->begin)
      continue;
    c->slice->nodes[c->node_of[i]].launch = node_of_span(c, span->launch);
  }
}

static u32 first_edge_to(const struct timeline *t, u32 span) {
  u32 low = 0, high = t->n_edges;
  while (low < high) {
    u32 middle = low + (high - low) / 2;
    if (t->edges[middle].to < span)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* --- threads that wait for each other: nothing records it, but backward on the GPU runs in a
 * thread of its own while the one that called it waits --- */

static bool has_host_nodes(const struct cutter *c, u32 lane) {
  return !c->t->lanes[lane].device && c->lanes[lane].next > c->lanes[lane].base;
}

/* The first node of a lane that starts at `time` or later. */
static u32 first_node_from(const struct cutter *c, u32 lane, i64 time) {
  u32 low = c->lanes[lane].base, high = c->lanes[lane].next;
  while (low < high) {
    u32 middle = low + (high - low) / 2;
    if (c->slice->nodes[middle].start < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Own time of a backward pass during which another thread made calls was spent waiting for it. */
static void wait_for_thread(struct cutter *c, u32 lane, u32 waiting) {
  struct node *node = &c->slice->nodes[waiting];
  u32 first = INDEX_NONE, last = INDEX_NONE;
  for (u32 other = 0; other < c->t->n_lanes; other++) {
    if (other == lane || !has_host_nodes(c, other))
      continue;
    u32 from = first_node_from(c, other, node->start), to = first_node_from(c, other, node->end);
    while (to > from && c->slice->nodes[to - 1].end > node->end)
      to--;
    if (to == from ||
        (last != INDEX_NONE && c->slice->nodes[last].end >= c->slice->nodes[to - 1].end))
      continue;
    first = from;
    last = to - 1;
  }
  if (last == INDEX_NONE)
    return;
  node->kind = NODE_BLOCKED;
  c->thread_deps[c->n_thread_deps++] = (struct dep){waiting, last};
  if (!node->first)
    c->thread_deps[c->n_thread_deps++] = (struct dep){first, waiting - 1};
}

static int join_threads(struct cutter *c) {
  u32 host_lanes = 0, room = 0;
  c->n_thread_deps = 0;
  for (u32 i = 0; i < c->t->n_lanes; i++)
    host_lanes += has_host_nodes(c, i);
  if (host_lanes < 2)
    return 0;
  for (u32 i = 0; i < c->slice->n_nodes; i++)
    room += 2 * (c->slice->nodes[i].kind == NODE_HOST);
  c->thread_deps = arena_array(&c->scratch, room + 1u, sizeof(*c->thread_deps));
  if (!c->thread_deps)
    return -ENOMEM;
  for (u32 lane = 0; lane < c->t->n_lanes; lane++)
    for (u32 i = c->lanes[lane].base; has_host_nodes(c, lane) && i < c->lanes[lane].next; i++)
      if (c->slice->nodes[i].kind == NODE_HOST && c->slice->nodes[i].phase == TSCOPE_PHASE_BACKWARD)
        wait_for_thread(c, lane, i);
  return 0;
}

/* Calls visit(node, from) for every dependency inside the slice. */
static void each_dep(struct cutter *c, void (*visit)(struct slice *, u32, u32)) {
  const struct timeline *t = c->t;
  for (u32 i = 0; i < c->n_carried + 1; i++) {
    bool rest = i == c->n_carried;
    u32 to = rest ? c->low : c->carried[i], end = rest ? c->high : to + 1;
    for (u32 e = first_edge_to(t, to); e < t->n_edges && t->edges[e].to < end; e++) {
      u32 node = node_of_span(c, t->edges[e].to), from = node_of_span(c, t->edges[e].from);
      if (node != INDEX_NONE && from != INDEX_NONE && node != from)
        visit(c->slice, node, from);
    }
  }
  for (u32 i = 0; i < c->n_thread_deps; i++)
    visit(c->slice, c->thread_deps[i].node, c->thread_deps[i].from);
}

static void count_dep(struct slice *slice, u32 node, u32 from) {
  (void)from;
  slice->nodes[node].first_dep++;
  slice->n_deps++;
}

static void store_dep(struct slice *slice, u32 node, u32 from) {
  slice->deps[--slice->nodes[node].first_dep] = from;
}

static int link_deps(struct cutter *c) {
  struct slice *slice = c->slice;
  each_dep(c, count_dep);
  slice->deps = malloc((slice->n_deps + 1u) * sizeof(u32));
  if (!slice->deps)
    return -ENOMEM;
  u32 sum = 0;
  for (u32 i = 0; i < slice->n_nodes; i++)
    sum = slice->nodes[i].first_dep += sum;
  slice->nodes[slice->n_nodes].first_dep = sum;
  each_dep(c, store_dep);
  for (u32 i = 0; i < slice->n_nodes; i++)
    for (u32 k = slice->nodes[i].first_dep; k < slice->nodes[i + 1].first_dep; k++)
      slice->synced |=
          slice->nodes[i].kind == NODE_BLOCKED && NODE_ON_DEVICE(slice->nodes[slice->deps[k]].kind);
  return 0;
}

/* Who was waited for had ended when the wait did: a gloo worker can be late to say so, when it
 * loses its CPU to the thread it has just woken. */
static void end_by_release(struct slice *slice) {
  for (u32 i = 0; i < slice->n_nodes; i++)
    for (u32 k = slice->nodes[i].first_dep; k < slice->nodes[i + 1].first_dep; k++) {
      struct node *from = &slice->nodes[slice->deps[k]];
      if (slice->nodes[i].kind == NODE_BLOCKED && from->kind == NODE_COLLECTIVE &&
          from->end > slice->nodes[i].end && from->start <= slice->nodes[i].end)
        from->end = slice->nodes[i].end;
    }
}

static void find_last(struct slice *slice) {
  slice->last_host = slice->last_device = INDEX_NONE;
  for (u32 i = 0; i < slice->n_nodes; i++) {
    u32 *last = NODE_ON_DEVICE(slice->nodes[i].kind) ? &slice->last_device : &slice->last_host;
    if (*last == INDEX_NONE || slice->nodes[i].end >= slice->nodes[*last].end)
      *last = i;
  }
  slice->held = slice->last_host != INDEX_NONE && slice->nodes[slice->last_host].cut &&
                slice->nodes[slice->last_host].kind == NODE_BLOCKED;
}

static int cut_spans(struct cutter *c) {
  struct slice *slice = c->slice;
  u32 n_spans = c->n_carried + c->high - c->low;
  u32 room = lay_out_lanes(c, n_spans);
  slice->nodes = calloc(room + 1u, sizeof(*slice->nodes));
  c->node_of = malloc((n_spans + 1u) * sizeof(u32));
  int error = -ENOMEM;
  if (slice->nodes && c->node_of) {
    for (u32 i = 0; i < n_spans; i++) {
      const struct span *span = &c->t->spans[span_at(c, i)];
      struct lane_state *lane = &c->lanes[span->lane];
      i64 start = span->start < slice->begin ? slice->begin : span->start;
      i64 end = span->end > slice->end ? slice->end : span->end;
      end = end < start ? start : end;
      c->node_of[i] = SPAN_ON_DEVICE(span->kind) ? take_device_span(c, lane, span, start, end)
                                                 : take_host_span(c, lane, span, start, end);
    }
    for (u32 i = 0; i < c->t->n_lanes; i++)
      close_phases(c, &c->lanes[i], INT64_MAX);
    compact(c, n_spans);
    link_launches(c, n_spans);
    error = join_threads(c);
    if (!error)
      error = link_deps(c);
    if (!error)
      end_by_release(slice);
    find_last(slice);
    slice->present = true;
    slice->on_gpu = c->t->on_gpu;
  }
  free(c->node_of);
  return error;
}

static u32 first_span_from(const struct timeline *t, i64 time) {
  u32 low = 0, high = t->n_spans;
  while (low < high) {
    u32 middle = low + (high - low) / 2;
    if (t->spans[middle].start < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* From the begin of the first step to the end of the last that this rank has of a sample. */
static bool sample_window(const struct analysis *a, u32 rank, const struct sample *sample,
                          struct window *all) {
  bool found = false;
  for (u32 i = 0; i < sample->n; i++) {
    struct window window;
    if (!analysis_window(a, rank, sample->first + i, &window))
      continue;
    all->begin = found ? all->begin : window.begin;
    all->end = window.end;
    found = true;
  }
  return found;
}

static int cut_sample(struct cutter *c, u32 sample) {
  struct graph *graph = c->a->graph;
  const struct timeline *t = c->t;
  struct window window;
  c->slice = &graph->slices[(size_t)sample * c->a->model->n_ranks + t->rank];
  if (!sample_window(c->a, t->rank, &graph->samples[sample], &window))
    return 0;
  if (t->on_gpu && t->detail_begin != NS_UNKNOWN && window.begin < t->detail_begin)
    return 0;
  c->slice->begin = window.begin;
  c->slice->end = window.end;
  c->low = first_span_from(t, window.begin);
  c->high = first_span_from(t, window.end);
  return cut_spans(c);
}

/* Spans already running when a sample began, in order of start. */
struct carry {
  u32 sample, span;
};

static int add_carry(struct carry **list, u32 *n, u32 *room, struct carry carry) {
  if (*n == *room) {
    u32 more = *room ? *room * 2 : 64;
    struct carry *grown = realloc(*list, more * sizeof(*grown));
    if (!grown)
      return -ENOMEM;
    *list = grown;
    *room = more;
  }
  (*list)[(*n)++] = carry;
  return 0;
}

static int find_carries(struct cutter *c, const i64 *begins, struct carry **list, u32 *n) {
  u32 next = 0, room = 0, samples = c->a->graph->n_samples;
  for (u32 i = 0; i < c->t->n_spans; i++) {
    const struct span *span = &c->t->spans[i];
    c->n_names = span->name >= c->n_names ? span->name + 1 : c->n_names;
    while (next < samples && begins[next] <= span->start)
      next++;
    for (u32 s = next; s < samples && begins[s] < span->end; s++) {
      int error = add_carry(list, n, &room, (struct carry){s, i});
      if (error)
        return error;
    }
  }
  c->name_keys = arena_array(&c->scratch, c->n_names + 1u, sizeof(u32));
  return c->name_keys ? 0 : -ENOMEM;
}

static int prepare(struct cutter *c, i64 **begins) {
  u32 samples = c->a->graph->n_samples;
  *begins = arena_array(&c->scratch, samples, sizeof(i64));
  c->lanes = arena_array(&c->scratch, c->t->n_lanes + 1u, sizeof(*c->lanes));
  if (!*begins || !c->lanes)
    return -ENOMEM;
  i64 latest = INT64_MIN;
  for (u32 i = 0; i < samples; i++) {
    struct window window;
    if (sample_window(c->a, c->t->rank, &c->a->graph->samples[i], &window))
      latest = window.begin;
    (*begins)[i] = latest; /* a sample this rank lacks takes nothing that matters */
  }
  return 0;
}

int slice_cut(struct analysis *a, const struct timeline *timeline) {
  if (!a->graph || a->graph->n_samples == 0 || timeline->n_spans == 0)
    return 0;
  struct cutter c = {.a = a, .t = timeline};
  struct carry *carries = NULL;
  u32 n_carries = 0;
  i64 *begins;
  int error = prepare(&c, &begins);
  if (!error)
    error = input_pauses(a, timeline, &c.scratch, &c.pauses, &c.n_pauses);
  if (!error)
    error = find_carries(&c, begins, &carries, &n_carries);
  if (!error && !(c.carried = arena_array(&c.scratch, n_carries + 1u, sizeof(u32))))
    error = -ENOMEM;
  for (u32 sample = 0; sample < a->graph->n_samples && !error; sample++) {
    c.n_carried = 0;
    for (u32 i = 0; i < n_carries; i++)
      if (carries[i].sample == sample)
        c.carried[c.n_carried++] = carries[i].span;
    error = cut_sample(&c, sample);
  }
  free(carries);
  arena_release(&c.scratch);
  return error;
}

void slice_free(struct slice *slice) {
  free(slice->nodes);
  free(slice->deps);
  slice->nodes = NULL;
  slice->deps = NULL;
  slice->n_nodes = slice->n_deps = 0;
}
