/* SPDX-License-Identifier: MIT
 *
 * Cuts the samples out of a rank's timeline and flattens its host lanes.
 */
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_labels.h"
#include "analyses/path/path_slice.h"
#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/sorting.h"

static u32 label_of(struct slice_builder *c, const struct span *span) {
  u32 name = span->name;
  if (!c->name_keys[name]) {
    const char *text = name ? c->a->source.name(c->t, name) : NULL;
    u32 hash = text ? (u32)hash_text(HASH_SEED, text) : 0;
    hash = hash < HOST_KEYS || hash >= LABEL_LAUNCH_LATENCY ? HOST_KEYS : hash;
    c->name_keys[name] = text ? hash : LABEL_NOT_KNOWN;
    bool is_kernel = span->kind == SPAN_KERNEL || span->kind == SPAN_COLLECTIVE ||
                     span->kind == SPAN_LAUNCH; /* launches have the names of their kernels */
    if (text)
      path_labels_add(c->a->graph->labels, hash, text, is_kernel);
  }
  return c->name_keys[name];
}

static u32 key_of(struct slice_builder *c, const struct span *span) {
  u32 key = label_of(c, span) ^ (span->kind * 0x9e3779b9u) ^ (span->category * 0x85ebca6bu);
  return key < HOST_KEYS ? key + HOST_KEYS : key;
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
  case SPAN_OP:
    return NODE_HOST;
  case SPAN_MEMCPY:
    return NODE_MEMCPY;
  case SPAN_MEMSET:
    return NODE_MEMSET;
  case SPAN_COLLECTIVE:
    return NODE_COLLECTIVE;
  default:
    return NODE_KERNEL;
  }
}

/* After the begin of a capture: what lies before the call that begins it is not in it. */
static bool is_captured(const struct slice_builder *c, i64 time) {
  const struct intervals *set = &c->t->capturing;
  u32 first = FIRST_NOT(0, set->n, i, set->at[i].end <= time);
  return first < set->n && set->at[first].start < time;
}

static u32 add_node(struct slice_builder *c, struct lane_state *lane, struct node node) {
  node.alone = lane->next == lane->base;
  node.rank = c->t->rank;
  if (!NODE_ON_DEVICE(node.kind) && is_captured(c, node.start))
    node.phase = PHASE_CAPTURING;
  c->slice->nodes[lane->next] = node;
  return lane->next++;
}

static u8 phase_at(const struct lane_state *lane, i64 time) {
  return lane->depth && time >= lane->open[lane->depth - 1].begin
             ? lane->open[lane->depth - 1].phase
             : 0;
}

/* The program waits for a batch in the longest piece of the phase's own time. */
static void mark_batch(struct slice_builder *c, struct lane_state *lane, u32 node) {
  struct node *nodes = c->slice->nodes;
  u32 *piece = &lane->open[lane->depth - 1].piece;
  if (*piece != INDEX_NONE &&
      nodes[node].end - nodes[node].start <= nodes[*piece].end - nodes[*piece].start)
    return;
  if (*piece != INDEX_NONE)
    nodes[*piece].is_batch = false;
  nodes[node].is_batch = true;
  *piece = node;
}

static void add_own_time(struct slice_builder *c, struct lane_state *lane, i64 until) {
  u8 phase = phase_at(lane, until);
  if (phase && lane->covered < lane->open[lane->depth - 1].begin)
    lane->covered = lane->open[lane->depth - 1].begin;
  if (until <= lane->covered || !phase)
    return;
  u32 node = add_node(c, lane,
                      (struct node){.start = lane->covered,
                                    .end = until,
                                    .kind = NODE_HOST,
                                    .key = lane->open[lane->depth - 1].key,
                                    .label = lane->open[lane->depth - 1].label,
                                    .phase = phase,
                                    .launch = INDEX_NONE});
  if (lane->open[lane->depth - 1].batch)
    mark_batch(c, lane, node);
  lane->covered = until;
}

static void close_phases(struct slice_builder *c, struct lane_state *lane, i64 now) {
  while (lane->depth && lane->open[lane->depth - 1].end <= now) {
    add_own_time(c, lane, lane->open[lane->depth - 1].end);
    lane->depth--;
  }
}

static bool ends_input_pause(struct slice_builder *c, const struct span *span) {
  u32 index = (u32)(span - c->t->spans);
  c->pause = FIRST_NOT_NEAR(c->pause, 0, c->n_pauses, i, c->pauses[i].span < index);
  return c->pause < c->n_pauses && c->pauses[c->pause].span == index;
}

/* PyTorch's DataLoader says in its name whether worker processes make the batches. */
static bool is_batch(const struct slice_builder *c, const struct span *span) {
  const char *name = span->category == TSCOPE_PHASE_DATA && span->name
                         ? c->a->source.name(c->t, span->name)
                         : NULL;
  return name && strstr(name, "MultiProcessing");
}

/* A phase or an operator: what is inside it takes time from its own time. An operator belongs to
 * the phase that it is in, or is (autograd's); one outside all phases to the user's code. */
static void open_host_span(struct slice_builder *c, struct lane_state *lane,
                           const struct span *span, i64 start, i64 end) {
  bool op = span->kind == SPAN_OP;
  u8 phase = span->category && span->category < HOST_KEYS ? span->category : TSCOPE_PHASE_USER;
  add_own_time(c, lane, start);
  if (lane->covered < start && !op &&
      !phase_at(lane, start)) /* the gap before it is between the phases */
    add_node(c, lane,
             (struct node){.start = start, .end = start, .kind = NODE_HOST, .launch = INDEX_NONE});
  lane->covered =
      MAX(start, lane->covered); /* time before it belongs to no phase and no operator */
  if (lane->depth == MAX_DEPTH)
    return;
  /* A user's range inside a phase says nothing about the phase. */
  if (phase == TSCOPE_PHASE_USER && phase_at(lane, start))
    phase = phase_at(lane, start);
  i64 begin = phase_begin(c->t, (u32)(span - c->t->spans));
  lane->open[lane->depth].begin = MAX(start, begin);
  lane->open[lane->depth].end = end;
  lane->open[lane->depth].key = op ? key_of(c, span) : phase;
  lane->open[lane->depth].label = label_of(c, span);
  lane->open[lane->depth].op = op;
  lane->open[lane->depth].batch = is_batch(c, span);
  lane->open[lane->depth].piece = INDEX_NONE;
  lane->open[lane->depth++].phase = phase;
}

static u32 add_host_span(struct slice_builder *c, struct lane_state *lane, const struct span *span,
                         i64 start, i64 end) {
  close_phases(c, lane, start);
  if (span->kind == SPAN_PHASE || span->kind == SPAN_OP) {
    open_host_span(c, lane, span, start, end);
    return INDEX_NONE;
  }
  /* A call made inside another is part of it. One that begins in its last moment, by how recordings
   * round, comes after it. */
  if (start + (end - start) / 2 < lane->covered && lane->leaf != INDEX_NONE)
    return lane->leaf;
  /* An operator's own time before a call has its name; a phase's is the gap before the call. */
  if (lane->depth && lane->open[lane->depth - 1].op)
    add_own_time(c, lane, start);
  lane->leaf = add_node(
      c, lane,
      (struct node){.start = start,
                    .end = end,
                    .kind = node_kind(span->kind),
                    .key = key_of(c, span),
                    .label = label_of(c, span),
                    .phase = ends_input_pause(c, span) ? TSCOPE_PHASE_DATA : phase_at(lane, start),
                    .line = line_of_span(c->t, span),
                    .launch = INDEX_NONE});
  lane->covered = end;
  return lane->leaf;
}

/* A message that no worker runs: it goes when both sides have called it, and those that were called
 * before it may be waiting for their other side. */
static bool is_message_of_host(const struct slice_builder *c, const struct span *span) {
  const struct model *model = c->a->model;
  if (span->kind != SPAN_COLLECTIVE || span->link == INDEX_NONE)
    return false;
  u32 collective = model->arrivals[span->link].collective;
  return collective != INDEX_NONE &&
         collective_is_message_of_host(model, &model->collectives[collective]);
}

static u32 add_device_span(struct slice_builder *c, struct lane_state *lane,
                           const struct span *span, i64 start, i64 end) {
  bool met = span->kind == SPAN_COLLECTIVE;
  u32 node = add_node(c, lane,
                      (struct node){.start = start,
                                    .end = end,
                                    .cut = span->end > c->slice->end,
                                    .kind = node_kind(span->kind),
                                    .key = key_of(c, span),
                                    .label = label_of(c, span),
                                    .launch = INDEX_NONE,
                                    .call = INDEX_NONE,
                                    .arrival = met ? span->link : INDEX_NONE});
  c->slice->nodes[node].alone |= is_message_of_host(c, span);
  return node;
}

/* Room per lane: a call is one node, and one for an operator's time before it; a phase or operator
 * two (before it, and its end). */
static u32 lay_out_lanes(struct slice_builder *c, u32 n_spans) {
  FOR_EACH_CHANGED(c->lanes, c->t->n_lanes, item)
    *item = (struct lane_state){.covered = c->slice->begin, .leaf = INDEX_NONE};
  for (u32 i = 0; i < n_spans; i++) {
    const struct span *span = &c->t->spans[span_at(c, i)];
    c->lanes[span->lane].next += SPAN_ON_DEVICE(span->kind) ? 1 : 2;
  }
  u32 total = 0;
  FOR_EACH_CHANGED(c->lanes, c->t->n_lanes, each) {
    u32 room = each->next;
    each->base = each->next = total;
    total += room;
  }
  return total;
}

/* Closes the gaps of unused room between lanes; node_of[] and lanes are moved too. */
static void close_gaps(struct slice_builder *c, u32 n_spans) {
  u32 total = 0;
  FOR_EACH_CHANGED(c->lanes, c->t->n_lanes, lane) {
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
  c->slice->nodes[total] = (struct node){0};
  c->slice->nodes = memory_less(c->slice->nodes, total + 1, sizeof(*c->slice->nodes));
}

/* What the host does after the steps' end on the host, and what runs on the device after their end
 * on the device, belongs to later steps or to none. */
static void find_last(struct slice_builder *c) {
  struct slice *slice = c->slice;
  slice->last_host = slice->last_device = INDEX_NONE;
  for (u32 i = 0; i < slice->n_nodes; i++) {
    const struct node *node = &slice->nodes[i];
    bool device = NODE_ON_DEVICE(node->kind);
    u32 *last = device ? &slice->last_device : &slice->last_host;
    if (device ? node->cut : node->start >= slice->host_end)
      continue;
    if (*last == INDEX_NONE || node->end >= slice->nodes[*last].end)
      *last = i;
  }
  if (c->a->whole_run && slice->last_host != INDEX_NONE && slice->last_device != INDEX_NONE)
    slice->ends_on_gpu = slice->nodes[slice->last_device].end > slice->nodes[slice->last_host].end;
  if (c->a->whole_run && slice->ends_on_gpu)
    slice->host_end = slice->nodes[slice->last_host].end;
}

/* A step ends when its host and its device have ended it: the later one decides, and in a replay
 * the other may; what ends it may end as much later as recordings round. `host_ends` are those on
 * the host. `*near` is the step in which the last node ended, and becomes that of this one. */
static void note_last_node(struct slice_builder *c, u32 at, const i64 *ends, const i64 *host_ends,
                           u32 n, u32 *near) {
  struct slice *slice = c->slice;
  const struct node *node = &slice->nodes[at];
  bool device = NODE_ON_DEVICE(node->kind);
  const i64 *own_ends = device ? ends : host_ends;
  u32 step = FIRST_NOT_NEAR(*near, 0, n, i, own_ends[i] < node->end - ROUNDED);
  *near = step;
  if (node->cut || step == n)
    return;
  struct step_end *last = &slice->last_of_step[step];
  bool decides = device == (ends[step] > host_ends[step]);
  u32 *kept = decides ? &last->node : &last->other;
  if (*kept != INDEX_NONE && node->end < slice->nodes[*kept].end)
    return;
  *kept = at;
  if (decides)
    last->rest = ends[step] - node->end;
}

static void find_step_ends(struct slice_builder *c, const struct sample *sample) {
  struct slice *slice = c->slice;
  u32 rank = c->t->rank;
  i64 *ends = arena_array(&c->scratch, sample->n, sizeof(*ends));
  i64 *host_ends = arena_array(&c->scratch, sample->n, sizeof(*host_ends));
  slice->last_of_step = memory_array(size_sum(sample->n, 1), sizeof(*slice->last_of_step));
  for (u32 i = 0; i < sample->n; i++) {
    struct window step;
    bool known = analysis_window(c->a, rank, sample->first + i, &step);
    slice->last_of_step[i] = (struct step_end){.node = INDEX_NONE, .other = INDEX_NONE};
    ends[i] = known ? step.end : i ? ends[i - 1] : slice->begin;
    host_ends[i] = ends[i];
    if (known && analysis_ends_on_gpu(c->a, rank, step.step))
      host_ends[i] -= analysis_host_ahead(c->a, rank, step.step, step.step);
  }
  for (u32 i = 0, step = 0; i < slice->n_nodes; i++)
    note_last_node(c, i, ends, host_ends, sample->n, &step);
}

static void cut_spans(struct slice_builder *c, const struct sample *sample) {
  struct slice *slice = c->slice;
  u32 n_spans = c->n_carried + c->high - c->low;
  u32 room = lay_out_lanes(c, n_spans);
  slice->nodes = memory_array(size_sum(room, 1), sizeof(*slice->nodes));
  c->node_of = memory_array(size_sum(n_spans, 1), sizeof(u32));
  for (u32 i = 0; i < n_spans; i++) {
    const struct span *span = &c->t->spans[span_at(c, i)];
    struct lane_state *lane = &c->lanes[span->lane];
    i64 start = MAX(slice->begin, span->start);
    i64 end = MIN(slice->end, span->end);
    end = MAX(start, end);
    c->node_of[i] = SPAN_ON_DEVICE(span->kind) ? add_device_span(c, lane, span, start, end)
                                               : add_host_span(c, lane, span, start, end);
  }
  FOR_EACH_CHANGED(c->lanes, c->t->n_lanes, one)
    close_phases(c, one, INT64_MAX);
  close_gaps(c, n_spans);
  slice_link(c, n_spans);
  find_step_ends(c, sample);
  find_last(c);
  slice->present = true;
  slice->on_gpu = c->t->on_gpu;
  free(c->node_of);
}

static u32 first_span_from(const struct timeline *t, i64 time) {
  return FIRST_NOT(0, t->n_spans, i, t->spans[i].start < time);
}

/* From the begin of the first step to the end of the last step of a sample that this rank has. A
 * job that was killed while its host was ahead has steps that end on the host before those on the
 * GPU. */
static bool sample_window(const struct analysis *a, u32 rank, const struct sample *sample,
                          struct window *all) {
  bool found = false;
  if (!path_has_rank(a->model, rank))
    return false;
  for (u32 i = 0; i < sample->n; i++) {
    struct window window;
    if (!analysis_window(a, rank, sample->first + i, &window))
      continue;
    all->begin = found ? all->begin : window.begin;
    all->end = window.end;
    all->step = window.step;
    found = true;
  }
  return found && all->end > all->begin;
}

static void cut_sample(struct slice_builder *c, u32 sample) {
  struct graph *graph = c->a->graph;
  const struct timeline *t = c->t;
  struct window window;
  c->slice = &graph->slices[(size_t)sample * c->a->model->n_ranks + t->rank];
  if (!sample_window(c->a, t->rank, &graph->samples[sample], &window))
    return;
  if (analysis_gpu_step(c->a, t->rank, t, &window) >= GPU_STEP_UNSEEN)
    return;
  c->slice->ends_on_gpu = analysis_ends_on_gpu(c->a, t->rank, window.step);
  c->slice->begin = window.begin;
  c->slice->end = c->slice->host_end = window.end;
  if (c->slice->ends_on_gpu)
    c->slice->host_end -= analysis_host_ahead(c->a, t->rank, window.step, window.step);
  c->low = first_span_from(t, window.begin);
  c->high = first_span_from(t, window.end);
  cut_spans(c, &graph->samples[sample]);
}

/* Spans already running when a sample began, in order of start. */
struct carry {
  u32 sample, span;
};

typedef VECTOR(struct carry) carry_list;

static void find_carries(struct slice_builder *c, const i64 *begins, carry_list *carries) {
  u32 next = 0, samples = c->a->graph->n_samples, most = 0;
  i64 begin = begins[0]; /* of the next sample */
  for (u32 i = 0; i < c->t->n_spans; i++) {
    const struct span *span = &c->t->spans[i];
    most = MAX(span->name, most);
    if (span->end <= begin) /* and so its start */
      continue;
    while (next < samples && begins[next] <= span->start)
      next++;
    for (u32 s = next; s < samples && begins[s] < span->end; s++)
      VECTOR_PUSH(carries, ((struct carry){s, i}));
    begin = next < samples ? begins[next] : INT64_MAX;
  }
  c->n_names = most + 1;
  c->name_keys = arena_array(&c->scratch, c->n_names, sizeof(u32));
}

static void prepare(struct slice_builder *c, i64 **begins) {
  u32 samples = c->a->graph->n_samples;
  *begins = arena_array(&c->scratch, samples, sizeof(i64));
  c->lanes = arena_array(&c->scratch, c->t->n_lanes, sizeof(*c->lanes));
  i64 latest = INT64_MIN;
  for (u32 i = 0; i < samples; i++) {
    struct window window;
    if (sample_window(c->a, c->t->rank, &c->a->graph->samples[i], &window))
      latest = window.begin;
    (*begins)[i] = latest; /* if this rank lacks a sample, nothing that matters is lost */
  }
}

void slice_cut(struct analysis *a, const struct timeline *timeline) {
  if (!a->graph || a->graph->n_samples == 0 || timeline->n_spans == 0)
    return;
  struct slice_builder c = {.a = a, .t = timeline};
  SCOPED carry_list carries = {0};
  i64 *begins;
  prepare(&c, &begins);
  input_pauses(a, timeline, &c.scratch, &c.pauses, &c.n_pauses);
  find_carries(&c, begins, &carries);
  c.carried = arena_array(&c.scratch, carries.n, sizeof(u32));
  for (u32 sample = 0; sample < a->graph->n_samples; sample++) {
    c.n_carried =
        LIST_WHERE(c.carried, 0, carries.n, i, carries.at[i].sample == sample, carries.at[i].span);
    cut_sample(&c, sample);
  }
  arena_release(&c.scratch);
}

void slice_free(struct slice *slice) {
  FREE_EACH(slice, nodes, deps);
  slice->nodes = NULL;
  slice->deps = NULL;
  slice->n_nodes = slice->n_deps = 0;
}

void slice_free_all(struct slice *slice) {
  slice_free(slice);
  free(slice->last_of_step);
  slice->last_of_step = NULL;
}
