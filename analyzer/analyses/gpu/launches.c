/* SPDX-License-Identifier: MIT
 *
 * How the hosts fed the GPUs, over the whole input and all ranks: how long work waited between its
 * call and its start, how many calls were ahead of a stream, kernels too short to be worth a
 * launch, copies by direction, the cost of fills and recomputation.
 */
#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/queries.h"
#include "base/sorting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analysis.h"
#include "base/checked_memory.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "base/vector.h"

/* A GPU queues this many launches of a stream; one more blocks the host until the GPU begins
 * another. */
#define QUEUE_ROOM 1024
/* A launch costs the host about 5 us: it cannot keep a GPU busy with kernels shorter than two. */
#define SHORT_KERNEL_NS 10000
#define FILLS_LISTED 16u
#define DELAY_BUCKETS 1280u  /* up to 2^40 ns */
#define MEMCPY_DIRECTIONS 7u /* enum tscope_memcpy */

struct memcpy_sum {
  u64 count, unknown; /* unknown: of which the size is not known */
  i64 ns;
  double bytes;
};

struct fill_sum {
  const char *name;
  u64 count;
  i64 ns;
};

/* Of one rank. */
struct launch_sums {
  bool known;
  u64 kernels, short_kernels, launches, syncs, recomputations, fill_count;
  i64 short_ns, sync_ns, recompute_ns, fill_ns;
  i64 longest_delay, deepest, queue_span_ns, full_ns;
  double queued_ns;
  u32 *delays; /* [n_delays] from the bucket first_delay on: most of them are alike */
  u32 first_delay, n_delays;
  struct memcpy_sum memcpys[MEMCPY_DIRECTIONS];
  struct arena arena;     /* of the fills */
  struct fill_sum *fills; /* [n_fills], most time first */
  u32 n_fills;
};

/* Delays by size, with each octave in 32 equal parts: a percentile is accurate to 2 %. */
static u32 bucket_of(i64 ns) {
  if (ns <= 0)
    return 0;
  u32 octave = 63 - (u32)__builtin_clzll((u64)ns);
  u32 part = (u32)(octave >= 5 ? (u64)ns >> (octave - 5) : (u64)ns << (5 - octave)) & 31;
  u32 bucket = octave * 32 + part + 1;
  return bucket < DELAY_BUCKETS ? bucket : DELAY_BUCKETS - 1;
}

static double bucket_us(u32 bucket) {
  u32 at = bucket - 1;
  return bucket == 0 ? 0 : ldexp(1 + (at % 32 + 0.5) / 32, (int)(at / 32)) / 1e3;
}

static void widen_delays(struct launch_sums *sums, u32 bucket) {
  u32 first = bucket, end = bucket + 1, had = sums->first_delay + sums->n_delays;
  if (sums->n_delays) {
    first = MIN(first, sums->first_delay);
    end = MAX(end, had);
  }
  u32 *wider = memory_zeroed(end - first, sizeof(*wider));
  if (sums->n_delays)
    memcpy(wider + (sums->first_delay - first), sums->delays, sums->n_delays * sizeof(*wider));
  free(sums->delays);
  sums->delays = wider;
  sums->first_delay = first;
  sums->n_delays = end - first;
}

static inline void count_delays(struct launch_sums *sums, u32 bucket, u32 count) {
  if (bucket - sums->first_delay >= sums->n_delays)
    widen_delays(sums, bucket);
  sums->delays[bucket - sums->first_delay] += count;
}

enum name_class { NAME_PLAIN = 1, NAME_MEMSET, NAME_RECOMPUTE, NAME_AUTOGRAD };

static u8 class_of(const char *name) {
  if (text_starts_with(name, "aten::fill_") || text_starts_with(name, "aten::zero_"))
    return NAME_MEMSET;
  if (text_starts_with(name, "CheckpointFunctionBackward") || strcmp(name, "recompute") == 0)
    return NAME_RECOMPUTE;
  return text_starts_with(name, "autograd::engine::") ? NAME_AUTOGRAD : NAME_PLAIN;
}

/* What is open on a host's thread. */
struct thread {
  i64 fill_end, recompute_end;
  u32 fill; /* name */
};

/* When work of a stream was called and when it began, if both are known. */
struct stream {
  VECTOR(i64) called;
  VECTOR(i64) begun;
};

struct counting {
  struct analysis *a;
  const struct timeline *t;
  struct launch_sums *sums;
  VECTOR(u8) classes;            /* by name */
  struct thread *threads;        /* [n_lanes] */
  struct stream *streams;        /* [n_lanes] */
  u32 *fill_of;                  /* [n_spans] name of the fill that a launch is part of; 0 none */
  bool *recomputed;              /* [n_spans] likewise; both NULL until there is such a part */
  VECTOR(struct fill_sum) fills; /* by name */
};

static void add_host_span(struct counting *c, u32 i) {
  const struct span *span = &c->t->spans[i];
  struct thread *thread = &c->threads[span->lane];
  if (span->kind == SPAN_SYNC) {
    c->sums->syncs++;
    c->sums->sync_ns += span->end - span->start;
    return;
  }
  if (span->kind == SPAN_LAUNCH && c->fill_of) {
    c->fill_of[i] = span->start < thread->fill_end ? thread->fill : 0;
    c->recomputed[i] = span->start < thread->recompute_end;
  }
  if (span->kind != SPAN_OP && span->kind != SPAN_PHASE)
    return;
  VECTOR_REACH(&c->classes, span->name);
  u8 *class = &c->classes.at[span->name];
  if (!*class)
    *class = class_of(c->a->source.name(c->t, span->name));
  if (*class != NAME_PLAIN && !c->fill_of) {
    c->fill_of = memory_zeroed(c->t->n_spans, sizeof(*c->fill_of));
    c->recomputed = memory_zeroed(c->t->n_spans, sizeof(*c->recomputed));
  }
  if (*class == NAME_MEMSET && span->start >= thread->fill_end) {
    thread->fill_end = span->end;
    thread->fill = span->name;
    VECTOR_REACH(&c->fills, span->name);
    c->fills.at[span->name].count++;
  }
  /* The repeated forward pass, until the backward pass of its result begins inside. */
  if (*class == NAME_RECOMPUTE) {
    thread->recompute_end = span->end;
    c->sums->recomputations++;
  } else if (*class == NAME_AUTOGRAD && span->start < thread->recompute_end) {
    thread->recompute_end = span->start;
  }
}

static void add_memcpy(struct counting *c, u32 i) {
  const struct span *span = &c->t->spans[i];
  u8 direction = span->category < MEMCPY_DIRECTIONS ? span->category : TSCOPE_MEMCPY_UNKNOWN;
  struct memcpy_sum *sum = &c->sums->memcpys[direction];
  sum->count++;
  sum->ns += span->end - span->start;
  if (c->t->bytes && c->t->bytes[i] > 0)
    sum->bytes += (double)c->t->bytes[i];
  else
    sum->unknown++;
}

static void add_device_span(struct counting *c, u32 i) {
  const struct span *span = &c->t->spans[i];
  i64 took = span->end - span->start;
  if (span->kind == SPAN_MEMCPY)
    add_memcpy(c, i);
  if (span->kind == SPAN_KERNEL) {
    c->sums->kernels++;
    if (took < SHORT_KERNEL_NS) {
      c->sums->short_kernels++;
      c->sums->short_ns += took;
    }
  }
  if (span->launch == INDEX_NONE)
    return;
  const struct span *launch = &c->t->spans[span->launch];
  i64 delay = span->start > launch->end ? span->start - launch->end : 0;
  c->sums->launches++;
  count_delays(c->sums, bucket_of(delay), 1);
  c->sums->longest_delay = MAX(delay, c->sums->longest_delay);
  if (launch->start < span->start) { /* clocks may differ */
    VECTOR_PUSH(&c->streams[span->lane].called, launch->start);
    VECTOR_PUSH(&c->streams[span->lane].begun, span->start);
  }
  if (!c->fill_of)
    return;
  if (c->fill_of[span->launch])
    c->fills.at[c->fill_of[span->launch]].ns += took;
  if (c->recomputed[span->launch])
    c->sums->recompute_ns += took;
}

/* Mostly they are: a stream works in the order of its calls. SORT() sees that too, but its look at
 * each of them takes 0.5 % of a report's time. */
static void sort_times(i64 *times, u32 n) {
  if (ANY_NUMBER(1, n, i, times[i] < times[i - 1]))
    SORT(times, n, by_i64);
}

/* A stream's queue at a time. */
struct queue {
  i64 now, depth; /* calls made, less work begun */
  i64 deepest, full_ns;
  double queued_ns;
};

static inline void queue_to(struct queue *queue, i64 next, bool call) {
  i64 passed = next - queue->now;
  queue->queued_ns += (double)queue->depth * (double)passed;
  queue->full_ns += queue->depth >= QUEUE_ROOM ? passed : 0;
  queue->depth += call ? 1 : -1;
  queue->deepest = MAX(queue->depth, queue->deepest);
  queue->now = next;
}

/* Whether a call or a beginning comes next cannot be predicted: no branch depends on it. */
static void measure_queue(struct launch_sums *sums, i64 *called, i64 *begun, u32 n) {
  sort_times(called, n);
  sort_times(begun, n);
  i64 first = MIN(called[0], begun[0]);
  struct queue queue = {.now = first, .deepest = sums->deepest, .queued_ns = sums->queued_ns};
  u32 i = 0, k = 0;
  while (i < n && k < n) {
    bool call = called[i] <= begun[k];
    queue_to(&queue, call ? called[i] : begun[k], call);
    i += call;
    k += !call;
  }
  for (; i < n; i++)
    queue_to(&queue, called[i], true);
  for (; k < n; k++)
    queue_to(&queue, begun[k], false);
  sums->queued_ns = queue.queued_ns;
  sums->queue_span_ns += queue.now - first;
  sums->full_ns += queue.full_ns;
  sums->deepest = queue.deepest;
}

/* Spans come by their start, so a launch before the work that it caused. */
static void add_spans(struct counting *c) {
  const struct timeline *t = c->t;
  for (u32 i = 0; i < t->n_spans; i++) {
    if (t->spans[i].start < t->ring_begin)
      continue; /* what was beside it is overwritten */
    if (SPAN_ON_DEVICE(t->spans[i].kind))
      add_device_span(c, i);
    else
      add_host_span(c, i);
  }
  FOR_EACH_CHANGED(c->streams, t->n_lanes, stream) {
    if (stream->begun.n)
      measure_queue(c->sums, stream->called.at, stream->begun.at, stream->begun.n);
    FREE_EACH(stream, called.at, begun.at);
  }
}

ORDER_BY(more_first, struct fill_sum, DOWN(ns) BY_TEXT(name))

ORDER_BY(by_name, struct fill_sum, BY_TEXT(name))

/* The fills of a rank that cost most, by name. */
static void keep_fills(struct counting *c) {
  struct launch_sums *sums = c->sums;
  for (u32 i = 0; i < c->fills.n; i++)
    if (c->fills.at[i].count)
      c->fills.at[i].name = c->a->source.name(c->t, i);
  u32 n = KEEP_WHERE(c->fills.at, c->fills.n, one, one->count);
  sums->fill_ns = TOTAL(i64, c->fills.at, n, one, one->ns);
  sums->fill_count = TOTAL(u64, c->fills.at, n, one, one->count);
  SORT(c->fills.at, n, more_first);
  sums->n_fills = MIN(n, FILLS_LISTED);
  sums->fills = arena_elements(&sums->arena, c->fills.at, sums->n_fills, sizeof(*sums->fills));
  FOR_EACH_CHANGED(sums->fills, sums->n_fills, fill)
    fill->name = arena_text(&sums->arena, fill->name);
}

void launches_rank(struct analysis *a, const struct timeline *t) {
  if (!t->on_gpu || !t->has_compute)
    return;
  struct counting c = {.a = a,
                       .t = t,
                       .sums = &a->launch_sums[t->rank],
                       .threads = memory_zeroed(size_sum(t->n_lanes, 1), sizeof(*c.threads)),
                       .streams = memory_zeroed(size_sum(t->n_lanes, 1), sizeof(*c.streams))};
  FOR_EACH_CHANGED(c.threads, t->n_lanes, thread)
    thread->fill_end = thread->recompute_end = INT64_MIN;
  add_spans(&c);
  keep_fills(&c);
  c.sums->known = true;
  FREE_EACH(&c, classes.at, fills.at, threads, streams, fill_of, recomputed);
}

static void carry_fills(struct launch_sums *sums, struct carrier *c) {
  u32 n = carry_count(c, sums->n_fills, 3);
  if (c->reads) {
    sums->fills = arena_array(&sums->arena, n, sizeof(*sums->fills));
    sums->n_fills = n;
  }
  FOR_EACH_CHANGED(sums->fills, n, fill) {
    const char *name = fill->name;
    CARRY(c, &name);
    CARRY_EACH(c, fill, count, ns);
    if (c->reads)
      fill->name = arena_text(&sums->arena, text_or_empty(name));
  }
}

void launches_carry(struct analysis *a, u32 rank, struct carrier *c) {
  struct launch_sums *sums = &a->launch_sums[rank];
  CARRY(c, &sums->known);
  if (!sums->known)
    return;
  CARRY_EACH(c, sums, kernels, short_kernels, launches, syncs, recomputations, fill_count, short_ns,
             sync_ns, recompute_ns, fill_ns, longest_delay, deepest, queue_span_ns, full_ns,
             queued_ns);
  for (u32 i = 0; i < DELAY_BUCKETS; i++) {
    u32 at = i - sums->first_delay, count = at < sums->n_delays ? sums->delays[at] : 0;
    CARRY(c, &count);
    if (c->reads && count)
      count_delays(sums, i, count);
  }
  FOR_EACH_CHANGED(sums->memcpys, MEMCPY_DIRECTIONS, memcpy)
    CARRY_EACH(c, memcpy, count, unknown, ns, bytes);
  carry_fills(sums, c);
}

void launches_prepare(struct analysis *a) {
  a->launch_sums = arena_array(a->arena, a->model->n_ranks, sizeof(*a->launch_sums));
}

void launches_free(struct analysis *a) {
  FOR_EACH_CHANGED(a->launch_sums, a->model->n_ranks, sums) {
    free(sums->delays);
    arena_release(&sums->arena);
  }
}

static double quantile_us(const struct launch_sums *sums, double share) {
  u64 wanted = (u64)(share * (double)sums->launches), below = 0;
  for (u32 i = 0; i < sums->n_delays; i++) {
    below += sums->delays[i];
    if (below > wanted)
      return bucket_us(sums->first_delay + i);
  }
  return (double)sums->longest_delay / 1e3;
}

static void add_sums(struct launch_sums *all, const struct launch_sums *one) {
  all->known = true;
  ADD_EACH(all, one, kernels, short_kernels, short_ns, launches, syncs, sync_ns, recomputations,
           recompute_ns, fill_count, fill_ns, queued_ns, queue_span_ns, full_ns);
  all->deepest = MAX(one->deepest, all->deepest);
  all->longest_delay = MAX(one->longest_delay, all->longest_delay);
  for (u32 i = 0; i < one->n_delays; i++)
    if (one->delays[i])
      count_delays(all, one->first_delay + i, one->delays[i]);
  for (u32 i = 0; i < MEMCPY_DIRECTIONS; i++)
    ADD_EACH(&all->memcpys[i], &one->memcpys[i], count, ns, bytes, unknown);
}

static void list_memcpys(struct analysis *a, const struct launch_sums *all) {
  struct results *r = a->results;
  r->launch.memcpys = arena_array(a->arena, MEMCPY_DIRECTIONS, sizeof(*r->launch.memcpys));
  for (u32 i = 0; i < MEMCPY_DIRECTIONS; i++) {
    const struct memcpy_sum *sum = &all->memcpys[i];
    bool sized = sum->unknown == 0;
    if (sum->count)
      r->launch.memcpys[r->launch.n_memcpys++] =
          (struct memcpy_result){.direction = copy_word(i),
                                 .count = (double)sum->count,
                                 .sum_ms = ns_to_ms(sum->ns),
                                 .bytes = sized ? sum->bytes : NAN,
                                 .gbps = sized && sum->ns > 0 ? sum->bytes / (double)sum->ns : NAN};
  }
}

/* Ranks mostly fill the same: equal names are summed. */
static void list_fills(struct analysis *a) {
  struct results *r = a->results;
  u32 room = a->model->n_ranks * FILLS_LISTED;
  SCOPED struct fill_sum *all = memory_zeroed(size_sum(room, 1), sizeof(*all));
  u32 n = 0;
  FOR_EACH(a->launch_sums, a->model->n_ranks, launch_sum)
    FOR_EACH(launch_sum->fills, launch_sum->n_fills, one)
      all[n++] = *one;
  n = SORT_AND_JOIN(all, n, by_name, kept, more, ADD_EACH(kept, more, count, ns));
  SORT(all, n, more_first);
  n = MIN(n, FILLS_LISTED);
  r->launch.fills = arena_array(a->arena, n, sizeof(*r->launch.fills));
  FOR_EACH(all, n, each)
    r->launch.fills[r->launch.n_fills++] = (struct fill_result){
        arena_text(a->arena, each->name), (double)each->count, ns_to_ms(each->ns)};
}

void launches_summarise(struct analysis *a) {
  struct results *r = a->results;
  struct launch_result *out = &r->launch;
  SCOPED struct launch_sums *all = memory_zeroed(1, sizeof(*all));
  FOR_EACH(a->launch_sums, a->model->n_ranks, launch_sum)
    if (launch_sum->known)
      add_sums(all, launch_sum);
  *out = unknown_launch_result;
  if (all->known) {
    out->kernels = (double)all->kernels;
    out->short_kernels = (double)all->short_kernels;
    out->short_ms = ns_to_ms(all->short_ns);
    out->syncs = (double)all->syncs;
    out->sync_ms = ns_to_ms(all->sync_ns);
    if (all->launches) {
      out->delay_median_us = quantile_us(all, 0.5);
      out->delay_p95_us = quantile_us(all, 0.95);
      out->delay_max_us = (double)all->longest_delay / 1e3;
      out->queue_max = (double)all->deepest;
      out->queue_mean = all->queue_span_ns > 0 ? all->queued_ns / (double)all->queue_span_ns : NAN;
      out->queue_full_ms = ns_to_ms(all->full_ns);
    }
    if (all->fill_count) {
      out->fill_count = (double)all->fill_count;
      out->fill_ms = ns_to_ms(all->fill_ns);
    }
    if (all->recomputations)
      out->recompute_ms = ns_to_ms(all->recompute_ns);
    list_memcpys(a, all);
    list_fills(a);
  }
  free(all->delays);
}
