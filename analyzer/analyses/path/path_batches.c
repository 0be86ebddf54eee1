/* SPDX-License-Identifier: MIT
 *
 * Batches that other processes prepare: when each was ready, and how long its worker needed for it.
 *
 * PyTorch's loader gives batches to its workers in turn, and asks each for two ahead. So a worker
 * begins a batch when it has made the one before, and when the program has taken that before it:
 * until then it has nothing to do. When a batch was ready is known where the program waited for it.
 * Where it did not, the batch was ready by then, and is taken to need as long as others do; where
 * samples tell how busy all workers are, as long as those leave for it that were waited for.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/lines/line_sums.h"
#include "analyses/path/path_run.h"
#include "analyses/path/path_slice.h"
#include "base/checked_memory.h"
#include "base/period.h"
#include "base/quantity.h"
#include "base/statistics.h"
#include "base/vector.h"

/* Taking a batch that is ready also takes time: the program waited if that took more than twice as
 * long as the quickest, and this share of the time since the batch before, or so long. */
#define LONGER 100000
#define SHARE 10
#define LONG 5000000

/* More samples of workers say how busy they are. The first stands for no time. */
#define LEAST_LOOKS 5

/* The usual time of a batch is that of those of which it is known; so many must be, and more where
 * there are no samples, because the program waits for the slow ones. Samples decide where they find
 * workers at work for less than this share of it, beyond doubt. */
#define LEAST_KNOWN 5
#define KNOWN_SHARE_UNSAMPLED 4
#define SAMPLED_SHARE 0.95

/* Without samples: a program that waits so many times as long for its peers as for its batches is
 * not held up by its workers. If these needed as long as a step, the waits for them would be by
 * chance; if less, they would soon be ahead. */
#define MOSTLY 2

/* Where workers are mostly idle, the program waits for one that takes very long only, that is so
 * many times as long as it usually takes to take a batch. */
#define MANY 3

/* Share of batches from which on it matters what is taken to be so of a loader. */
#define MATTERS 0.1

/* Which share of their time the workers of a rank prepare batches; NAN if it is not known. */
void slice_watch_workers(struct slice_builder *c) {
  const struct line_sums *sums = c->a->line_sums ? &c->a->line_sums[c->t->rank] : NULL;
  bool known = sums && sums->worker_looks > LEAST_LOOKS;
  c->slice->workers = sums ? sums->n_workers : 0;
  double busy = known ? (double)sums->workers_busy_ns / (double)sums->workers_ns : NAN;
  c->slice->workers_busy = busy;
  c->slice->one_worker_is_busier = sums && sums->one_worker_is_busier;
  c->slice->busiest_worker = sums ? sums->busiest_worker : 1;
  c->slice->workers_busy_most = known ? fmin(1, share_by_looks(busy, sums->worker_looks, 2)) : NAN;
}

typedef VECTOR(struct batch) batch_list;

/* How long a worker usually needs for a batch, 0 if that is not known; and whether it is mostly
 * idle. */
struct worker {
  i64 usual;
  bool idle;
};

/* The batches of one loader, in the order in which they are taken. */
struct loader {
  const struct sample_graph *g;
  struct slice *slice;
  struct batch *at;
  u32 n, base;         /* base: number of the first */
  i64 quickest;        /* to take a batch; LONG / 2 if all took longer */
  i64 waits_for_peers; /* of the program, in collectives */
  struct worker *workers;
};

static const struct worker *worker_of(const struct loader *of, u32 i) {
  return &of->workers[i % of->slice->workers];
}

static i64 time_of(const struct loader *of, u32 i) {
  const struct node *node = &of->g->nodes[of->at[i].node];
  return node->end - node->start;
}

static struct batch *batch_before(const struct loader *of, u32 i, u32 rounds) {
  u64 back = (u64)rounds * of->slice->workers;
  return i >= back ? &of->at[i - back] : NULL;
}

/* The worker has nothing to do before. INT64_MIN: it began before the sample, or at its begin. */
static i64 could_begin(const struct loader *of, u32 i) {
  const struct batch *same = batch_before(of, i, 1),
                     *asked = batch_before(of, i, BATCHES_ASKED_AHEAD);
  i64 begin = same ? same->ready : INT64_MIN;
  return asked ? MAX(of->g->nodes[asked->node].end, begin) : begin;
}

typedef VECTOR(struct loader) loader_list;

/* How many workers there are, where no sample says it: the program waits for the first of the
 * batches that they make at the same time, and then has one of each. */
static void count_workers(struct loader *of) {
  if (of->slice->workers)
    return;
  SCOPED double *times = memory_array(size_sum(of->n, 1), sizeof(*times));
  u32 place;
  for (u32 i = 0; i < of->n; i++)
    times[i] = (double)time_of(of, i);
  of->slice->workers = find_gap_period(times, of->n, &place);
  of->slice->workers_by_waits = of->slice->workers > 1;
  of->slice->workers_taken = of->slice->workers == 1;
}

static void find_awaited(struct loader *of) {
  i64 before = of->slice->begin;
  of->quickest = LONG / 2;
  for (u32 i = 0; i < of->n; i++)
    of->quickest = time_of(of, i) < of->quickest ? time_of(of, i) : of->quickest;
  for (u32 i = 0; i < of->n; i++) {
    struct batch *batch = &of->at[i];
    i64 took = time_of(of, i), end = of->g->nodes[batch->node].end;
    batch->awaited = took >= 2 * of->quickest + LONGER && end < of->slice->end &&
                     (took >= LONG || took >= (end - before) / SHARE);
    before = end;
  }
}

/* One that was waited for was ready when it takes as long to take it as others. */
static void find_ready(struct loader *of, i64 takes) {
  for (u32 i = 0; i < of->n; i++) {
    i64 took = time_of(of, i), least = of->at[i].awaited ? MIN(takes, took) : took;
    of->at[i].ready = of->at[i].latest = of->g->nodes[of->at[i].node].end - least;
  }
}

/* How long a batch takes its worker if they are at work for such a share of their time; NAN */
static double load_at(const struct loader *of, double busy) {
  const struct slice *slice = of->slice;
  return busy * slice->workers * (double)(slice->end - slice->begin) / of->n;
}

/* What is known of the times of some batches: those that were waited for, like those before them.
 */
static u32 list_known(const struct loader *of, u32 first, u32 each, double *loads) {
  u32 n = 0;
  for (u32 i = first; i < of->n; i += each) {
    const struct batch *same = batch_before(of, i, 1);
    if (of->at[i].awaited && same && same->awaited)
      loads[n++] = (double)(of->at[i].ready - could_begin(of, i));
  }
  return n;
}

/* Where the program had no core to take a batch, it looks as if it had waited for it. But then it
 * would have been ready for longer, if it took its worker as long as usual, than the program took
 * to take it; or the worker's next one was ready sooner after it than one can be. */
static bool was_ready_before(const struct loader *of, u32 i, i64 ready) {
  const struct batch *batch = &of->at[i], *next = batch + of->slice->workers;
  i64 wanted = of->g->nodes[batch->node].start;
  i64 usual = worker_of(of, i)->usual;
  if (!usual)
    return false; /* nothing says how long it took */
  if (wanted - ready > time_of(of, i))
    return true;
  return i + of->slice->workers < of->n &&
         of->g->nodes[next->node].end - batch->latest < usual / 4 * (next->awaited ? 2 : 3);
}

/* Whether it is known of most batches of a worker that the program waited for them, though all
 * workers may need equally long. */
static bool is_mostly_late(const struct loader *of, u32 worker) {
  u32 late = 0, all = 0;
  for (u32 i = worker; i < of->n; i += of->slice->workers, all++) {
    i64 begin = could_begin(of, i);
    late += of->at[i].awaited && begin != INT64_MIN &&
            !was_ready_before(of, i, begin + worker_of(of, i)->usual);
  }
  return 2 * late > all;
}

/* Where some workers are mostly waited for: these need as long as is known of their batches, and
 * the others share what samples find in addition. Not where samples find less than the first need,
 * or no worker is at work for so long, or where all may need equally long: when they have their
 * batches at the same time, the program takes all with the first, and without a core that is long.
 */
static void tell_workers_apart(struct loader *of, double *loads) {
  u32 workers = of->slice->workers, known = 0;
  double rest = load_at(of, of->slice->workers_busy) * of->n,
         most = load_at(of, of->slice->workers_busy_most) * of->n,
         most_of_one = of->slice->busiest_worker * (double)(of->slice->end - of->slice->begin);
  SCOPED double *usual = memory_array(size_sum(workers, 1), sizeof(*usual));
  for (u32 w = 0; w < workers; w++) {
    u32 n = list_known(of, w, workers, loads), all = w < of->n ? (of->n - w - 1) / workers + 1 : 0;
    double needs = n >= LEAST_KNOWN && 2 * n > all ? median_of(loads, n) : NAN;
    bool told = of->slice->one_worker_is_busier || is_mostly_late(of, w);
    usual[w] = told && SAMPLED_SHARE * needs * all <= most_of_one ? needs : NAN;
    known += isnan(usual[w]) ? 0 : all;
    rest -= isnan(usual[w]) ? 0 : usual[w] * all;
    most -= isnan(usual[w]) ? 0 : SAMPLED_SHARE * usual[w] * all;
  }
  for (u32 w = 0; w < workers && known && most >= 0; w++) {
    double others = known < of->n ? fmax(0, rest / (of->n - known)) : 0;
    of->workers[w] = (struct worker){(i64)(isnan(usual[w]) ? others : usual[w]), isnan(usual[w])};
  }
}

/* How long a batch usually takes its worker, where it is not known. */
static void find_usual(struct loader *of) {
  SCOPED double *loads = memory_array(size_sum(of->n, 1), sizeof(*loads));
  u32 n = list_known(of, 0, 1, loads);
  i64 waits = 0;
  for (u32 i = 0; i < of->n; i++)
    waits += time_of(of, i);
  double sampled = load_at(of, of->slice->workers_busy),
         most = load_at(of, of->slice->workers_busy_most),
         known = n >= LEAST_KNOWN ? median_of(loads, n) : NAN;
  bool idle = isnan(sampled) ? of->waits_for_peers > MOSTLY * waits : isnan(known);
  bool mostly_idle = most < SAMPLED_SHARE * known || idle;
  u32 alike = of->slice->workers_by_waits ? of->slice->workers : 1; /* for which each stands */
  bool told = !isnan(known) && (!isnan(sampled) || n * alike * KNOWN_SHARE_UNSAMPLED >= of->n);
  double usual = mostly_idle ? sampled : told ? known : NAN;
  FOR_EACH_CHANGED(of->workers, of->slice->workers, one)
    *one = (struct worker){isnan(usual) ? 0 : (i64)usual, mostly_idle};
  if (!isnan(sampled))
    tell_workers_apart(of, loads);
}

/* To take a batch of a worker that is mostly idle. */
static i64 usual_time(const struct loader *of) {
  SCOPED double *times = memory_array(size_sum(of->n, 1), sizeof(*times));
  u32 n = LIST_WHERE(times, 0, of->n, i, worker_of(of, i)->idle, (double)time_of(of, i));
  return n ? (i64)median_of(times, n) : 0;
}

/* A batch that nobody waited for was ready as soon as a worker usually has it. */
static void find_loads(struct loader *of) {
  find_usual(of);
  i64 long_time = MANY * usual_time(of);
  for (u32 i = 0; i < of->n; i++) {
    struct batch *batch = &of->at[i];
    const struct worker *worker = worker_of(of, i);
    const struct node *node = &of->g->nodes[batch->node];
    i64 could = could_begin(of, i), begin = could == INT64_MIN ? of->slice->begin : could;
    i64 usually = begin + worker->usual;
    batch->awaited &= (!worker->idle || time_of(of, i) > long_time) &&
                      (could == INT64_MIN || !was_ready_before(of, i, usually));
    batch->ready = batch->awaited ? batch->latest : MIN(batch->latest, usually);
    batch->takes = node->end - MAX(batch->ready, node->start);
    batch->loads = MAX(batch->ready - begin, 0);
  }
}

static void link_batches(struct loader *of) {
  u32 workers = of->slice->workers, ahead = BATCHES_ASKED_AHEAD * workers;
  for (u32 i = 0; i < of->n; i++) {
    of->at[i].same = i >= workers ? of->base + i - workers : INDEX_NONE;
    of->at[i].asked = i >= ahead ? of->base + i - ahead : INDEX_NONE;
  }
}

/* Where the workers' time for a batch that was waited for began: at the batch that was waited for
 * before, or where the program took one and so asked for another. */
static u32 loading_since(const struct loader *of, u32 i) {
  for (; i >= of->slice->workers; i -= of->slice->workers) {
    const struct batch *same = batch_before(of, i, 1),
                       *asked = batch_before(of, i, BATCHES_ASKED_AHEAD);
    if (asked && of->g->nodes[asked->node].end > same->ready)
      return asked->node;
    if (same->awaited)
      return same->node;
  }
  return INDEX_NONE;
}

/* How long it takes on average to take a batch that is ready: longer than the quickest where the
 * machine is busy. Where all are waited for, the peers of a rank tell it. */
static i64 usual_take(const batch_list *all) {
  double sum = 0;
  u32 n = 0;
  FOR_EACH(all->at, all->n, batch) {
    sum += batch->awaited ? 0 : (double)batch->takes;
    n += !batch->awaited;
  }
  return n ? (i64)(sum / n) : 0;
}

/* Where the program waits for all of its batches, its loader is as fast as it is with any number of
 * workers, and of batches asked for ahead. */
static void note_what_is_taken(const struct loader *of) {
  u32 awaited = NUMBER_OF(of->at, of->n, one, one->awaited), by_asking = 0;
  for (u32 i = 0; i < of->n; i++) {
    const struct batch *same = batch_before(of, i, 1),
                       *asked = batch_before(of, i, BATCHES_ASKED_AHEAD);
    by_asking += of->at[i].awaited && asked && of->g->nodes[asked->node].end > same->ready;
  }
  of->slice->workers_taken &= awaited && awaited < (1 - MATTERS) * of->n;
  of->slice->ahead_taken |= by_asking > MATTERS * awaited;
}

static void note_batches(struct sample_graph *g, struct loader *loader) {
  link_batches(loader);
  note_what_is_taken(loader);
  for (u32 i = 0; i < loader->n; i++) {
    g->nodes[loader->at[i].node].call = loader->base + i;
    g->nodes[loader->at[i].node].launch =
        loader->at[i].awaited ? loading_since(loader, i) : INDEX_NONE;
  }
}

/* The batches of all ranks, and the loaders that they are of. */
static void list_batches(struct sample_graph *g, batch_list *all, loader_list *loaders) {
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    u32 first = all->n;
    for (u32 i = g->base[rank]; i <= g->base[rank + 1]; i++) {
      bool over = i == g->base[rank + 1];
      if ((over || g->nodes[i].alone) && all->n > first) {
        VECTOR_PUSH(loaders,
                    ((struct loader){
                        .g = g, .slice = &g->slices[rank], .n = all->n - first, .base = first}));
        first = all->n;
      }
      if (!over && g->nodes[i].is_batch)
        VECTOR_PUSH(all, ((struct batch){.node = i}));
    }
  }
}

static void find_waits_for_peers(const struct sample_graph *g, loader_list *loaders) {
  SCOPED i64 *waits = memory_zeroed(size_sum(g->n_ranks, 1), sizeof(*waits));
  FOR_EACH(g->joins, loaders->n ? g->n_joins : 0, join) {
    i64 last = INT64_MIN;
    for (u32 i = 0; i < join->n; i++)
      last = MAX(last, g->nodes[g->members[join->first + i]].start);
    for (u32 i = 0; i < join->n && join->barrier; i++) {
      const struct node *member = &g->nodes[g->members[join->first + i]];
      waits[member->rank] += last - member->start;
    }
  }
  FOR_EACH_CHANGED(loaders->at, loaders->n, loader)
    loader->waits_for_peers = waits[loader->slice - g->slices];
}

void sample_graph_find_batches(struct sample_graph *g) {
  batch_list all = {0};
  SCOPED loader_list loaders = {0};
  list_batches(g, &all, &loaders);
  find_waits_for_peers(g, &loaders);
  FOR_EACH_CHANGED(loaders.at, loaders.n, loader) {
    loader->at = &all.at[loader->base];
    count_workers(loader);
    loader->workers = memory_zeroed(size_sum(loader->slice->workers, 1), sizeof(struct worker));
    find_awaited(loader);
    find_ready(loader, loader->quickest);
    find_loads(loader);
    find_loads(loader); /* without those that were found ready, others are usual */
  }
  i64 takes = usual_take(&all);
  FOR_EACH_CHANGED(loaders.at, loaders.n, loader) {
    bool known = takes == 0 || loader->quickest < LONG / 2;
    find_ready(loader, known ? MAX(takes, loader->quickest) : takes);
    find_loads(loader);
    note_batches(g, loader);
    free(loader->workers);
  }
  g->batches = all.at;
  g->n_batches = all.n;
}

const char *path_describe_loader(struct analysis *a, u32 rank) {
  const struct slice *told = NULL;
  for (u32 i = 0; a->graph && i < a->graph->n_samples && !told; i++) {
    const struct slice *slice = &a->graph->slices[(size_t)i * a->model->n_ranks + rank];
    told = slice->workers_by_waits || slice->workers_taken || slice->ahead_taken ? slice : NULL;
  }
  if (!told)
    return "";
  const char *workers =
      told->workers_by_waits ? say(a, " By when it waits, its loader has %s of equal speed.",
                                   plural(told->workers, "worker").text)
      : told->workers_taken  ? " It is not known how many workers its loader has: 1 is assumed."
                             : "";
  const char *ahead =
      told->ahead_taken
          ? say(a, " It is assumed to ask each worker for %u batches ahead, as PyTorch does.",
                BATCHES_ASKED_AHEAD)
          : "";
  return say(a, "%s%s", workers, ahead);
}
