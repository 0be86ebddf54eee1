/* SPDX-License-Identifier: MIT
 *
 * Batches that other processes prepare, one after the other: whether the program takes them as fast
 * as they come. Then it is of no use to take them faster.
 *
 * How long it is from one batch that the program waited for to the next does not depend on what the
 * program did meanwhile, if the processes need that time: samples then find them at work. If these
 * find them idle for a part of it, they can save that part (path_replay.c). If the
 * queue holds batches, it is what the program did, and the time that taking one needs. So where
 * samples are few, the slope of the first over the second decides, 0 or 1.
 */
#include <math.h>

#include "analyses/lines/line_sums.h"
#include "analyses/path/path_slice.h"
#include "base/checked_memory.h"
#include "base/statistics.h"

/* A queue from which a batch is missing less often than this is not what limits the program. */
#define MOST_BATCHES_READY 8u

/* Taking a batch that is ready also takes time: the program waited if that took so much longer than
 * the quickest, and this share of the time since the batch before, or so long. */
#define LONGER 100000
#define SHARE 10
#define LONG 5000000

/* Samples of workers that say how busy they are. Those that are idle for two thirds of the time are
 * ahead. */
#define LEAST_LOOKS 10
#define LEAST_BUSY 0.35

/* A program waits this share of its time for no batches that are ready. Where it waits less, there
 * must be so many batches, and it must not always do the same, for a slope to be known. */
#define LEAST_BATCHES 8u
#define LEAST_SCATTER 0.01
#define WAITS_SHARE 0.25

static bool was_awaited(const struct node *batch, i64 quickest, i64 before) {
  i64 took = batch->end - batch->start;
  return took >= quickest + LONGER && (took >= LONG || took >= (batch->end - before) / SHARE);
}

/* Times between batches, and what the program did in them. */
struct paces {
  double n, between, work, squares, products, waits;
};

static void add_pace(struct paces *p, double between, double work, double waits) {
  p->n++;
  p->between += between;
  p->work += work;
  p->squares += work * work;
  p->products += between * work;
  p->waits += waits;
}

/* Which share of their time the workers of a rank prepare batches; NAN if it is not known. */
static double busy_share(const struct slice_builder *c) {
  const struct line_sums *sums = c->a->line_sums ? &c->a->line_sums[c->t->rank] : NULL;
  i64 look = c->t->call_sites ? c->t->call_sites->sample_ns : 0;
  return sums && look > 0 && sums->workers_ns >= LEAST_LOOKS * look
             ? (double)sums->workers_busy_ns / (double)sums->workers_ns
             : NAN;
}

static bool limits_program(const struct paces *p, double busy) {
  if (!isnan(busy))
    return busy >= LEAST_BUSY;
  double variance = (p->squares - p->work * p->work / p->n) / p->n;
  double least = LEAST_SCATTER * p->between / p->n;
  if (p->waits >= WAITS_SHARE * p->between)
    return p->n > 0;
  if (p->n < LEAST_BATCHES || !(variance > least * least))
    return false;
  return (p->products - p->between * p->work / p->n) / p->n < variance / 2;
}

/* Samples find workers idle more often than they are where a machine is busy: it takes them when
 * the others leave it a core. Of two batches in a row that the program waited for, workers needed
 * all the time between, or the program got no core to take the second one: by the median of these
 * they are more busy than they are. The truth is between both. */
static double busy_by_pace(const struct slice_builder *c, u32 lane, double sampled) {
  const struct node *nodes = c->slice->nodes;
  u32 n = 0, batches = 0, first = 0, before = INDEX_NONE;
  SCOPED double *paces = memory_array(c->lanes[lane].next - c->lanes[lane].base, sizeof(*paces));
  for (u32 i = c->lanes[lane].base; i < c->lanes[lane].next; i++) {
    if (!nodes[i].batch)
      continue;
    if (before != INDEX_NONE && nodes[i].launch == before)
      paces[n++] = (double)(nodes[i].end - nodes[before].end);
    first = batches++ ? first : i;
    before = i;
  }
  sampled = sampled >= ALWAYS_BUSY ? 1 : sampled;
  if (n < LEAST_BATCHES || !(sampled >= LEAST_BUSY))
    return sampled;
  double all = (double)(nodes[before].end - nodes[first].end) / (batches - 1);
  return (sampled + fmin(1, median_of(paces, n) / all)) / 2;
}

static i64 quickest_batch(const struct slice_builder *c, u32 lane) {
  const struct node *nodes = c->slice->nodes;
  i64 quickest = INT64_MAX;
  for (u32 i = c->lanes[lane].base; i < c->lanes[lane].next; i++)
    if (nodes[i].batch && nodes[i].end - nodes[i].start < quickest)
      quickest = nodes[i].end - nodes[i].start;
  return quickest;
}

static void link_lane(struct slice_builder *c, u32 lane) {
  struct node *nodes = c->slice->nodes;
  i64 quickest = quickest_batch(c, lane), before = c->slice->begin, waits = 0;
  u32 awaited = INDEX_NONE, since = 0;
  struct paces paces = {0};
  if (quickest == INT64_MAX)
    return;
  c->slice->batch_ns = quickest < LONGER ? quickest : LONGER;
  for (u32 i = c->lanes[lane].base; i < c->lanes[lane].next; i++) {
    if (!nodes[i].batch)
      continue;
    since++;
    waits += nodes[i].end - nodes[i].start;
    if (was_awaited(&nodes[i], c->slice->batch_ns, before)) {
      nodes[i].batch = BATCH_AWAITED;
      if (awaited != INDEX_NONE && since <= MOST_BATCHES_READY) {
        double between = (double)(nodes[i].end - nodes[awaited].end);
        nodes[i].launch = awaited;
        add_pace(&paces, between, between - (double)waits, (double)waits);
      }
      awaited = i;
      since = 0;
      waits = 0;
    }
    before = nodes[i].end;
  }
  bool limits = limits_program(&paces, c->slice->workers_busy);
  c->slice->workers_busy = busy_by_pace(c, lane, c->slice->workers_busy);
  for (u32 i = c->lanes[lane].base; i < c->lanes[lane].next && !limits; i++)
    if (nodes[i].batch) {
      nodes[i].batch = BATCH_READY;
      nodes[i].launch = INDEX_NONE;
    }
}

void slice_link_batches(struct slice_builder *c) {
  c->slice->workers_busy = busy_share(c);
  for (u32 lane = 0; lane < c->t->n_lanes; lane++)
    link_lane(c, lane);
}
