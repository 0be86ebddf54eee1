/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include "analyse_cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/building.h"

#define SPANS_PER_STEP 32
#define EDGES_PER_STEP 8

static const char *const names[] = {
    "?",    "gemm_forward", "gemm_backward", "cudaLaunchKernel", "ncclAllReduce",
    "copy", "all_reduce"};
enum { NAME_NONE, NAME_FORWARD, NAME_BACKWARD, NAME_LAUNCH, NAME_CALL, NAME_MEMCPY, NAME_REDUCE };

/* From -1 to 1. */
static double uniform(u32 *seed) {
  return 2 * uniform_share(seed) - 1;
}

/* One rank while its run is built. */
struct actor {
  struct cluster *c;
  struct timeline *t;
  u32 rank, seed, step;
  i64 now;    /* host */
  u16 thread; /* whose lane launches */
  /* of the current step */
  i64 b1_end, b2_end, b1_call, b2_call, a1_start, a2_start, step_begin;
  u32 b1, b2, call1, call2, a1, a2, wait;
};

static u32 add_span(struct actor *a, u8 kind, u8 category, u16 lane, u32 name, i64 start, i64 end) {
  u32 index = a->t->n_spans++;
  a->t->spans[index] = (struct span){.start = start,
                                     .end = end,
                                     .name = name,
                                     .link = INDEX_NONE,
                                     .launch = INDEX_NONE,
                                     .lane = lane,
                                     .kind = kind,
                                     .category = category};
  return index;
}

static void add_edge(struct actor *a, u32 from, u32 to, u8 kind) {
  a->t->edges[a->t->n_edges++] = (struct edge){from, to, kind};
}

static void append(struct intervals *set, i64 start, i64 end) {
  if (end > start)
    set->at[set->n++] = (struct interval){start, end};
}

static u32 launch(struct actor *a, u32 name) {
  u32 call = add_span(a, name == NAME_CALL ? SPAN_COLL_CALL : SPAN_LAUNCH, 0, a->thread, name,
                      a->now, a->now + LAUNCH);
  a->now += LAUNCH;
  return call;
}

static i64 slow_part(const struct cluster_options *o, u32 step) {
  u32 every = o->slow_every ? o->slow_every : 10;
  return step % every == every - 1 ? o->slow_step : 0;
}

static i64 work(struct actor *a, i64 ns) {
  const struct cluster_options *o = &a->c->options;
  bool is_slow = a->step >= o->slow_from && (!o->slow_until || a->step < o->slow_until);
  double slow = is_slow ? o->slow[a->rank] : 0;
  double factor = 1 + slow + o->noise * uniform(&a->seed);
  return (i64)((double)ns * factor);
}

static i64 input_of(const struct actor *a, u32 step) {
  const struct cluster_options *o = &a->c->options;
  return o->input + o->extra_input[a->rank] +
         (o->late_input ? o->late_input[step * o->ranks + a->rank] : 0);
}

static void begin_input(struct actor *a, u32 step) {
  i64 waits = a->c->options.waits[a->rank], input = input_of(a, step);
  a->step_begin = a->now;
  if (waits)
    add_span(a, SPAN_COMM_WAIT, 0, 0, NAME_NONE, a->now, a->now + waits);
  a->now += waits;
  if (input)
    add_span(a, SPAN_PHASE, TSCOPE_PHASE_DATA, 0, NAME_NONE, a->now, a->now + input);
  a->now += input;
}

/* Everything up to the collectives, which need all ranks. */
static void begin_step_gpu(struct actor *a, u32 step) {
  const struct cluster_options *o = &a->c->options;
  begin_input(a, step);
  i64 device = a->now + LATENCY;
  u32 phase = add_span(a, SPAN_PHASE, TSCOPE_PHASE_FORWARD, 0, NAME_NONE, a->now, 0);
  u32 call = launch(a, NAME_LAUNCH);
  i64 f_end = device + work(a, o->forward + slow_part(o, step));
  u32 f = add_span(a, SPAN_KERNEL, 0, 1, NAME_FORWARD, device, f_end);
  a->t->spans[f].launch = call;
  append(&a->t->compute, device, f_end);
  a->t->spans[phase].end = a->now;
  a->now += o->late_launch[a->rank];
  if (o->exposed_memcpy) {
    u32 copy_call = launch(a, NAME_LAUNCH);
    i64 start = MAX(f_end, a->now);
    f_end = start + o->exposed_memcpy;
    u32 copy = add_span(a, SPAN_MEMCPY, TSCOPE_MEMCPY_H2D, 1, NAME_MEMCPY, start, f_end);
    a->t->spans[copy].launch = copy_call;
    append(&a->t->memcpy, start, f_end);
  }
  add_span(a, SPAN_PHASE, TSCOPE_PHASE_BACKWARD, 0, NAME_NONE, a->now, 0);
  u32 backward = a->t->n_spans - 1;
  a->thread = o->autograd ? 3 : 0;
  u32 call_b1 = launch(a, NAME_LAUNCH);
  i64 start = a->now - LAUNCH + LATENCY;
  start = MAX(start, f_end);
  a->b1_end = start + work(a, o->backward);
  a->b1 = add_span(a, SPAN_KERNEL, 0, 1, NAME_BACKWARD, start, a->b1_end);
  a->t->spans[a->b1].launch = call_b1;
  append(&a->t->compute, start, a->b1_end);
  a->call1 = launch(a, NAME_CALL);
  a->b1_call = a->now - LAUNCH;
  u32 call_b2 = launch(a, NAME_LAUNCH);
  a->b2_end = a->b1_end + work(a, o->backward);
  a->b2 = add_span(a, SPAN_KERNEL, 0, 1, NAME_BACKWARD, a->b1_end, a->b2_end);
  a->t->spans[a->b2].launch = call_b2;
  a->t->compute.at[a->t->compute.n - 1].end = a->b2_end;
  a->call2 = launch(a, NAME_CALL);
  a->b2_call = a->now - LAUNCH;
  a->a1_start = o->no_overlap ? a->b2_end : a->b1_end;
  a->thread = 0;
  if (o->autograd)
    a->t->spans[backward].end = a->now;
  else
    a->t->spans[backward].link = backward; /* closed in end_step */
}

static void second_half_cpu(struct actor *a, u32 step, i64 compute_begin) {
  const struct cluster_options *o = &a->c->options;
  a->now += work(a, o->backward);
  a->now += o->late_backward ? o->late_backward[step * o->ranks + a->rank] : 0;
  a->b2_end = a->b2_call = a->now;
  a->call2 = launch(a, NAME_CALL);
  append(&a->t->compute, compute_begin, a->now);
}

static void begin_step_cpu(struct actor *a, u32 step) {
  const struct cluster_options *o = &a->c->options;
  begin_input(a, step);
  i64 forward = work(a, o->forward + slow_part(o, step)) + o->late_forward[a->rank];
  i64 compute_begin = a->now;
  add_span(a, SPAN_PHASE, TSCOPE_PHASE_FORWARD, 0, NAME_NONE, a->now, a->now + forward);
  a->now += forward;
  u32 backward = add_span(a, SPAN_PHASE, TSCOPE_PHASE_BACKWARD, 0, NAME_NONE, a->now, 0);
  a->t->spans[backward].link = backward;
  a->now += work(a, o->backward);
  a->now += o->late_first ? o->late_first[step * o->ranks + a->rank] : 0;
  a->b1_end = a->b1_call = a->now;
  a->call1 = launch(a, NAME_CALL);
  a->a1_start = a->b1_end + LATENCY;
  if (o->waits_for_first)
    append(&a->t->compute, compute_begin, a->now);
  else
    second_half_cpu(a, step, compute_begin);
}

/* After A1, where the host waits for it. */
static void wait_for_first(struct actor *a, u32 step, i64 a1_end) {
  a->wait = add_span(a, SPAN_COMM_WAIT, 0, 0, NAME_NONE, a->now, a1_end + WAKE_UP);
  a->now = a1_end + WAKE_UP;
  second_half_cpu(a, step, a->now);
}

static void end_step(struct actor *a, u32 step, i64 a1_end, i64 a2_end) {
  struct model *m = &a->c->model;
  const struct cluster_options *o = &a->c->options;
  u32 base = (step * 2) * m->n_ranks + a->rank, lane = o->on_gpu ? 2 : 1;
  u32 spans[2] = {add_span(a, SPAN_COLLECTIVE, 0, (u16)lane, NAME_REDUCE, a->a1_start, a1_end),
                  add_span(a, SPAN_COLLECTIVE, 0, (u16)lane, NAME_REDUCE, a->a2_start, a2_end)};
  u32 sync = add_span(a, o->on_gpu ? SPAN_SYNC : SPAN_COMM_WAIT, 0, 0, NAME_NONE, a->now,
                      a2_end + WAKE_UP);
  for (u32 k = 0; k < 2; k++) {
    struct arrival *arrival = &m->arrivals[base + k * m->n_ranks];
    i64 call = k ? a->b2_call : a->b1_call;
    *arrival = (struct arrival){.call_start = call,
                                .call_end = call + LAUNCH,
                                .start = k ? a->a2_start : a->a1_start,
                                .end = k ? a2_end : a1_end,
                                .rank = a->rank,
                                .collective = step * 2 + k,
                                .step = (i32)step,
                                .op = TSCOPE_OP_ALLREDUCE};
    a->t->spans[spans[k]].link = base + k * m->n_ranks;
    a->t->spans[spans[k]].launch = k ? a->call2 : a->call1;
    append(&a->t->comm, arrival->start, arrival->end);
    if (o->on_gpu)
      add_edge(a, k || o->no_overlap ? a->b2 : a->b1, spans[k], EDGE_EVENT);
  }
  if (a->t->comm.n >= 2) {
    struct interval *last = &a->t->comm.at[a->t->comm.n - 1];
    if (last[-1].end >= last->start) {
      last[-1].end = last->end;
      a->t->comm.n--;
    }
  }
  add_edge(a, spans[1], sync, EDGE_SYNC);
  if (o->waits_for_first)
    add_edge(a, spans[0], a->wait, EDGE_SYNC);
  a->now = a2_end + WAKE_UP;
  for (u32 i = a->t->n_spans; i-- > 0;)
    if (a->t->spans[i].kind == SPAN_PHASE && a->t->spans[i].link == i) {
      a->t->spans[i].end = a->now;
      a->t->spans[i].link = INDEX_NONE;
      break;
    }
  m->steps.begin[step * m->n_ranks + a->rank] = a->step_begin;
  m->steps.end[step * m->n_ranks + a->rank] = a->now;
}

/* A1 and A2 are work of each rank's own. */
static void go_on_alone(struct cluster *c, struct actor *actors, u32 step) {
  struct model *m = &c->model;
  for (u32 k = 0; k < 2; k++)
    m->collectives[step * 2 + k] = (struct collective){.seq = step * 2 + k,
                                                       .first_arrival = (step * 2 + k) * m->n_ranks,
                                                       .last_start = NS_UNKNOWN,
                                                       .step = (i32)step,
                                                       .op = TSCOPE_OP_SEND};
  for (u32 r = 0; r < m->n_ranks; r++) {
    i64 a1_end = actors[r].a1_start + US, ready = actors[r].b2_end + LATENCY;
    actors[r].a2_start = MAX(ready, a1_end);
    end_step(&actors[r], step, a1_end, actors[r].a2_start + US);
    for (u32 k = 0; k < 2; k++)
      m->arrivals[(step * 2 + k) * m->n_ranks + r].collective = INDEX_NONE;
  }
}

static void meet(struct cluster *c, struct actor *actors, u32 step) {
  struct model *m = &c->model;
  if (c->options.meets_every && (step + 1) % c->options.meets_every) {
    go_on_alone(c, actors, step);
    return;
  }
  i64 s1 = INT64_MIN, s2 = INT64_MIN;
  for (u32 r = 0; r < m->n_ranks; r++)
    s1 = MAX(actors[r].a1_start, s1);
  i64 a1_end = s1 + c->options.transfer;
  for (u32 r = 0; r < m->n_ranks; r++) {
    if (c->options.waits_for_first)
      wait_for_first(&actors[r], step, a1_end);
    i64 ready = actors[r].b2_end + (c->options.on_gpu ? 0 : LATENCY);
    actors[r].a2_start = MAX(ready, a1_end);
    s2 = MAX(actors[r].a2_start, s2);
  }
  i64 starts[2] = {s1, s2};
  for (u32 k = 0; k < 2; k++)
    m->collectives[step * 2 + k] = (struct collective){.seq = step * 2 + k,
                                                       .bytes = 4000000 * (k + 1),
                                                       .count = 1000000 * (k + 1),
                                                       .first_arrival = (step * 2 + k) * m->n_ranks,
                                                       .n_arrivals = m->n_ranks,
                                                       .last_start = starts[k],
                                                       .step = (i32)step,
                                                       .op = TSCOPE_OP_ALLREDUCE,
                                                       .dtype = TSCOPE_DTYPE_F32,
                                                       .complete = true};
  for (u32 r = 0; r < m->n_ranks; r++)
    end_step(&actors[r], step, a1_end, s2 + c->options.transfer);
}

/* spans must be sorted by start, longer first; links and edges follow. */
static struct span *sorting;
static int by_start(const void *left, const void *right) {
  const struct span *a = &sorting[*(const u32 *)left], *b = &sorting[*(const u32 *)right];
  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  if (a->end != b->end)
    return a->end > b->end ? -1 : 1;
  return *(const u32 *)left < *(const u32 *)right ? -1 : 1;
}

static int by_target(const void *left, const void *right) {
  const struct edge *a = left, *b = right;
  return a->to != b->to ? (a->to < b->to ? -1 : 1) : (a->from > b->from) - (a->from < b->from);
}

static void sort_timeline(struct timeline *t) {
  u32 *order = malloc((t->n_spans + 1u) * sizeof(u32)), *place = malloc((t->n_spans + 1u) * 4);
  struct span *sorted = malloc((t->n_spans + 1u) * sizeof(*sorted));
  for (u32 i = 0; i < t->n_spans; i++)
    order[i] = i;
  sorting = t->spans;
  qsort(order, t->n_spans, sizeof(u32), by_start);
  for (u32 i = 0; i < t->n_spans; i++) {
    sorted[i] = t->spans[order[i]];
    place[order[i]] = i;
  }
  memcpy(t->spans, sorted, t->n_spans * sizeof(*sorted));
  for (u32 i = 0; i < t->n_spans; i++)
    if (t->spans[i].launch != INDEX_NONE)
      t->spans[i].launch = place[t->spans[i].launch];
  for (u32 i = 0; i < t->n_edges; i++) {
    t->edges[i].from = place[t->edges[i].from];
    t->edges[i].to = place[t->edges[i].to];
  }
  qsort(t->edges, t->n_edges, sizeof(*t->edges), by_target);
  free(order);
  free(place);
  free(sorted);
}

static void lay_out_model(struct cluster *c) {
  const struct cluster_options *o = &c->options;
  struct model *m = &c->model;
  struct arena *arena = &c->arena;
  u32 cells = o->steps * o->ranks;
  m->run = "synthetic";
  m->world_size = m->n_ranks = o->ranks;
  m->n_comms = 1;
  m->n_collectives = 2 * o->steps;
  m->n_arrivals = 2 * cells;
  m->ranks = arena_array(arena, o->ranks, sizeof(*m->ranks));
  m->comms = arena_array(arena, 1, sizeof(*m->comms));
  m->collectives = arena_array(arena, m->n_collectives, sizeof(*m->collectives));
  m->arrivals = arena_array(arena, m->n_arrivals, sizeof(*m->arrivals));
  m->steps = (struct steps){.n = o->steps,
                            .warmup = o->warmup,
                            .method = "optimizer phases",
                            .confidence = 1,
                            .begin = arena_array(arena, cells, sizeof(i64)),
                            .end = arena_array(arena, cells, sizeof(i64))};
  m->comms[0] = (struct comm){.identity = 0xabcd,
                              .size = o->ranks,
                              .name = "world",
                              .backend = o->on_gpu ? TSCOPE_BACKEND_NCCL : TSCOPE_BACKEND_GLOO,
                              .members = arena_array(arena, o->ranks, sizeof(u32))};
  m->clock_aligned = !o->unaligned;
  m->clock_method = o->unaligned ? "refused: synthetic" : "same host clock";
  m->clock_residual_us = o->unaligned ? NAN : 1;
  m->phase_method = "PyTorch ranges";
  for (u32 r = 0; r < o->ranks; r++) {
    m->comms[0].members[r] = r;
    m->ranks[r] = (struct rank){.rank = r,
                                .host = "host0",
                                .clock = {.aligned = !o->unaligned, .reading_us = 1},
                                .closed = true,
                                .records = o->steps * 10,
                                .launches = o->on_gpu ? 3 * o->steps : 0,
                                .gpu_kernels = o->on_gpu && !o->no_gpu_times ? 3 * o->steps : 0,
                                .collective_calls = 2 * o->steps,
                                .collective_runs = o->no_gpu_times ? 0 : 2 * o->steps,
                                .gpu_clock = o->no_gpu_times ? TSCOPE_GPU_CLOCK_HOST
                                             : o->on_gpu     ? TSCOPE_GPU_CLOCK_CUPTI
                                                             : TSCOPE_GPU_CLOCK_NONE,
                                .gpu_clock_reason = o->no_gpu_times ? "no CUPTI here" : NULL,
                                .cost_ns_per_record = 30,
                                .file_bytes = 65536};
  }
}

static void lay_out_timelines(struct cluster *c, struct actor *actors) {
  const struct cluster_options *o = &c->options;
  c->timelines = arena_array(&c->arena, o->ranks, sizeof(*c->timelines));
  static struct lane gpu_lanes[] = {
      {false, 0, "main"}, {true, 0, "0"}, {true, 1, "1"}, {false, 1, "autograd"}};
  static struct lane cpu_lanes[] = {{false, 0, "main"}, {true, 0, "gloo"}};
  for (u32 r = 0; r < o->ranks; r++) {
    struct timeline *t = &c->timelines[r];
    *t = (struct timeline){
        .rank = r,
        .spans = arena_array(&c->arena, o->steps * SPANS_PER_STEP + 1u, sizeof(struct span)),
        .edges = arena_array(&c->arena, o->steps * EDGES_PER_STEP + 1u, sizeof(struct edge)),
        .lanes = o->on_gpu ? gpu_lanes : cpu_lanes,
        .n_lanes = o->autograd ? 4
                   : o->on_gpu ? 3
                               : 2,
        .on_gpu = o->on_gpu,
        .has_compute = true,
        .has_comm = true,
        .has_memcpy = true,
        .ring_begin = NS_UNKNOWN};
    t->compute.at = arena_array(&c->arena, o->steps * 4 + 1u, sizeof(struct interval));
    t->comm.at = arena_array(&c->arena, o->steps * 4 + 1u, sizeof(struct interval));
    t->memcpy.at = arena_array(&c->arena, o->steps * 4 + 1u, sizeof(struct interval));
    actors[r] = (struct actor){.c = c, .t = t, .rank = r, .seed = o->seed * 7919 + r * 104729 + 1};
    for (u32 k = 0; k < 8; k++)
      uniform(&actors[r].seed);
  }
}

/* Turns it into a run without GPU times: only calls. */
static void forget_gpu_times(struct cluster *c) {
  for (u32 i = 0; i < c->model.n_arrivals; i++)
    c->model.arrivals[i].start = c->model.arrivals[i].end = NS_UNKNOWN;
  for (u32 i = 0; i < c->model.n_collectives; i++)
    c->model.collectives[i].last_start = NS_UNKNOWN;
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    u32 n = 0;
    for (u32 i = 0; i < t->n_spans; i++)
      if (!SPAN_ON_DEVICE(t->spans[i].kind))
        t->spans[n++] = t->spans[i];
    t->n_spans = n;
    t->n_edges = 0;
    t->compute.n = t->comm.n = t->memcpy.n = 0;
    t->has_compute = t->has_comm = t->has_memcpy = false;
  }
}

struct cluster *cluster_new(const struct cluster_options *options) {
  struct cluster *c = calloc(1, sizeof(*c));
  struct actor actors[CLUSTER_RANKS];
  c->options = *options;
  lay_out_model(c);
  lay_out_timelines(c, actors);
  for (u32 step = 0; step < options->steps; step++) {
    for (u32 r = 0; r < options->ranks; r++) {
      actors[r].step = step;
      (options->on_gpu ? begin_step_gpu : begin_step_cpu)(&actors[r], step);
    }
    meet(c, actors, step);
  }
  c->model.begin = 0;
  for (u32 r = 0; r < options->ranks; r++) {
    sort_timeline(&c->timelines[r]);
    c->model.ranks[r].begin = 0;
    c->model.ranks[r].end = actors[r].now;
    c->model.end = MAX(actors[r].now, c->model.end);
  }
  if (options->no_gpu_times)
    forget_gpu_times(c);
  if (options->no_steps)
    c->model.steps = (struct steps){.method = "none", .confidence = NAN};
  return c;
}

void cluster_free(struct cluster *cluster) {
  arena_release(&cluster->arena);
  free(cluster);
}

static int load(const struct model *model, u32 rank, struct timeline *timeline) {
  const struct cluster *c = model->internal;
  *timeline = c->timelines[rank];
  return 0;
}

static void release(struct timeline *timeline) {
  (void)timeline;
}

static const char *name_of(const struct timeline *timeline, u32 name) {
  (void)timeline;
  return names[name];
}

struct results *cluster_analyse(struct cluster *cluster, const struct analyse_options *options) {
  static const struct timeline_source source = {load, release, name_of};
  struct analyse_options none = no_options();
  cluster->model.internal = cluster;
  model_number_hosts(&cluster->model);
  return analyse_with(&cluster->model, options ? options : &none, &source);
}

const struct finding *finding_of(const struct results *results, const char *id) {
  for (u32 i = 0; i < results->n_findings; i++)
    if (!strcmp(finding_id_words[results->findings[i].id], id))
      return &results->findings[i];
  return NULL;
}

struct cluster_options healthy_gpu(void) {
  return (struct cluster_options){.ranks = 8,
                                  .steps = 50,
                                  .warmup = 2,
                                  .on_gpu = true,
                                  .forward = 100 * MS,
                                  .backward = 100 * MS,
                                  .transfer = 10 * MS,
                                  .input = 1 * MS};
}

struct cluster_options healthy_cpu(void) {
  struct cluster_options o = healthy_gpu();
  o.on_gpu = false;
  o.ranks = 4;
  return o;
}

u32 stragglers_in(const struct results *results) {
  u32 n = 0;
  for (u32 i = 0; i < results->n_ranks; i++)
    n += results->ranks[i].straggler;
  return n;
}

void cluster_end(struct results *results, struct cluster *cluster) {
  results_free(results);
  cluster_free(cluster);
}
