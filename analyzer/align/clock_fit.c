/* SPDX-License-Identifier: MIT */
#include "align/clock_fit.h"

#include <math.h>
#include <stdlib.h>

#include "align/clock_bounds.h"
#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/robust.h"
#include "base/sorting.h"

/* Error of a line at the ends of the run, in median deviations, by the root of the points: three
 * standard errors of a median (1.25 x 1.48), twice, because its slope is not known either. */
#define WORTH_A_THREAD 64u /* domains to place */
#define LINE_ERROR 11.1
#define QUICKEST 8u       /* at least so many ends that threads timed are used */
#define DRIFT_LEAST 10    /* points that can show a drift; where none shows, none is assumed */
#define INDEPENDENT 0.1   /* of the points: what delays threads lasts for many steps */
#define GPU_CLOCK_NS 2000 /* times of GPU kernels are put on the host's clock to about this */

/* One collective's ends: how far the axis is ahead of the domain's clock. */
struct end_point {
  double x, apart; /* ns from the domain's origin; less its base */
  double scatter;  /* ends of ranks that share a clock differ by this */
  double transfer; /* the shortest member's time */
  u32 sample;
};

/* What ties one domain to those already placed. */
struct ties {
  struct bounds bounds;
  VECTOR(struct end_point) ends;
  i64 begin;          /* of its ranks, by its own clock: what follows is relative to it */
  double first, last; /* ties */
  double reading;     /* the error of reading this clock and the axis, ns */
  i64 base;           /* the first tie's distance: what follows is relative to it */
  bool has_base, by_collectives;
};

/* A domain's part of one collective. */
struct domain_part {
  u32 collective, members;
  i64 last_start, first_end; /* of the members, by its own clock; NS_UNKNOWN */
  i64 one_end, latest_end;
  double ends; /* sum over members of end - one_end */
};

struct placed_part {
  i64 last_start, first_end; /* on the axis, as early and as late as they can have been */
  i64 one_end;
  double ends, scatter;
  u32 members;
};

struct fitter {
  const struct model *model;
  const struct clock_facts *facts;
  const struct samples *samples;
  const struct clock_domains *domains;
  struct domain_clock *clocks;
  struct ties *ties;         /* [domains.n] */
  struct domain_part *parts; /* [domains.n] */
  bool *is_new;              /* [domains.n] placed in this round */
  unsigned threads;
};

/* Differences of clocks can be as large as the type, if hosts count from different origins. */
static bool apart(i64 a, i64 b, i64 *difference) {
  return a != NS_UNKNOWN && b != NS_UNKNOWN && !__builtin_sub_overflow(a, b, difference);
}

/* The distance less the ties' base, which the first distance becomes. `x`: when it was. */
static double from_base(struct ties *ties, i64 distance, double x) {
  if (!ties->has_base) {
    ties->base = distance;
    ties->first = ties->last = x;
    ties->has_base = true;
  }
  ties->first = fmin(ties->first, x);
  ties->last = fmax(ties->last, x);
  return (double)((__int128)distance - ties->base);
}

static void add_bound(struct ties *ties, i64 axis, i64 local, bool most, double slack) {
  i64 distance;
  if (!apart(axis, local, &distance))
    return;
  double x = (double)((__int128)local - ties->begin), y = from_base(ties, distance, x);
  struct bound bound = {x, most ? y + slack : y - slack};
  if (most)
    VECTOR_PUSH(&ties->bounds.most, bound);
  else
    VECTOR_PUSH(&ties->bounds.least, bound);
}

static void add_end(struct ties *ties, double axis_ends, i64 axis_end,
                    const struct domain_part *part, double scatter, i64 transfer, u32 sample) {
  i64 distance;
  if (!apart(axis_end, part->one_end, &distance))
    return;
  double x = (double)((__int128)part->one_end - ties->begin);
  double ahead = from_base(ties, distance, x);
  struct end_point point = {.x = x,
                            .apart = ahead + axis_ends - part->ends / part->members,
                            .scatter = fmax(scatter, (double)(part->latest_end - part->first_end)),
                            .transfer = (double)transfer,
                            .sample = sample};
  VECTOR_PUSH(&ties->ends, point);
}

static void add_to_part(struct domain_part *part, const struct arrival *arrival, u32 collective) {
  if (part->members == 0 || part->collective != collective)
    *part = (struct domain_part){collective, 0, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, 0};
  part->last_start = MAX(arrival->start, part->last_start);
  i64 distance;
  if (arrival->end == NS_UNKNOWN)
    return;
  if (part->members == 0)
    part->one_end = part->first_end = part->latest_end = arrival->end;
  if (!apart(arrival->end, part->one_end, &distance))
    return;
  part->ends += (double)distance;
  part->first_end = MIN(arrival->end, part->first_end);
  part->latest_end = MAX(arrival->end, part->latest_end);
  part->members++;
}

/* Adds a placed domain's part, on the axis. Its own error makes its bounds weaker. */
static void add_placed(struct placed_part *all, const struct domain_clock *clock,
                       const struct domain_part *part) {
  i64 error = (i64)ceil(clock->error_ns), start, end, distance;
  start = clock_to_axis(&clock->clock, part->last_start);
  end = clock_to_axis(&clock->clock, part->first_end);
  if (start != NS_UNKNOWN)
    all->last_start = MAX(start - error, all->last_start);
  if (end != NS_UNKNOWN)
    all->first_end = least_known(end + error, all->first_end);
  i64 one = clock_to_axis(&clock->clock, part->one_end);
  if (one == NS_UNKNOWN)
    return;
  if (all->members == 0)
    all->one_end = one;
  if (!apart(one, all->one_end, &distance))
    return;
  all->ends += (double)distance * part->members + part->ends;
  all->members += part->members;
  all->scatter = fmax(all->scatter, (double)(part->latest_end - part->first_end));
}

/* Ties those of the collective's domains that have no place to those that have one. */
static void tie_collective(struct fitter *fitter, u32 number, u32 sample) {
  const struct collective *collective = &fitter->model->collectives[number];
  double slack = fitter->samples->at[sample].on_host ? 0 : GPU_CLOCK_NS;
  struct placed_part all = {NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, 0, 0, 0};
  bool others = false;
  FOR_EACH_MEMBER(fitter->model, collective, member) {
    u32 domain = fitter->domains->of[member->rank];
    add_to_part(&fitter->parts[domain], member, number);
    others |= !fitter->clocks[domain].placed;
  }
  if (!others)
    return;
  FOR_EACH_MEMBER(fitter->model, collective, member) {
    u32 domain = fitter->domains->of[member->rank];
    struct domain_part *part = &fitter->parts[domain];
    if (!fitter->clocks[domain].placed || part->members == 0 || part->collective != number)
      continue;
    add_placed(&all, &fitter->clocks[domain], part);
    part->members = 0;
  }
  if (!all.members)
    return;
  i64 shortest = member_times_of(fitter->model, collective).shortest;
  FOR_EACH_MEMBER(fitter->model, collective, member) {
    u32 domain = fitter->domains->of[member->rank];
    struct domain_part *part = &fitter->parts[domain];
    struct ties *ties = &fitter->ties[domain];
    if (fitter->clocks[domain].placed || part->members == 0 || part->collective != number)
      continue;
    add_bound(ties, all.last_start, part->first_end, false, slack);
    add_bound(ties, all.first_end, part->last_start, true, slack);
    add_end(ties, all.ends / all.members, all.one_end, part, all.scatter, shortest, sample);
    ties->by_collectives = true;
    part->members = 0;
  }
}

/* A receive ends after its send began. Ends differ by the latency, in each direction with another
 * sign. */
static void tie_message(struct fitter *fitter, u32 number, u32 sample) {
  const struct collective *message = &fitter->model->collectives[number];
  const struct arrival *send = members_of(fitter->model, message), *receive = send + 1;
  u32 from = fitter->domains->of[send->rank], to = fitter->domains->of[receive->rank];
  struct domain_clock *clocks = fitter->clocks;
  if (clocks[from].placed == clocks[to].placed)
    return;
  bool sends = !clocks[from].placed; /* the one to be placed */
  const struct arrival *own = sends ? send : receive, *other = sends ? receive : send;
  const struct domain_clock *placed = &clocks[sends ? to : from];
  struct ties *ties = &fitter->ties[sends ? from : to];
  double slack = placed->error_ns + (fitter->samples->at[sample].on_host ? 0 : GPU_CLOCK_NS);
  struct domain_part part = {0};
  add_to_part(&part, own, number);
  if (sends)
    add_bound(ties, clock_to_axis(&placed->clock, other->end), own->start, true, slack);
  else
    add_bound(ties, clock_to_axis(&placed->clock, other->start), own->end, false, slack);
  add_end(ties, 0, clock_to_axis(&placed->clock, other->end), &part, 0,
          member_times_of(fitter->model, message).shortest, sample);
}

struct ends_fit {
  struct line line; /* of `apart` */
  bool drifts;      /* the points show a drift */
  double error_ns;
};

/* Where some ends are timed on the GPU, only these count. */
static bool keep_gpu_ends(const struct fitter *fitter, struct ties *ties) {
  u32 kept =
      KEEP_WHERE(ties->ends.at, ties->ends.n, one, !fitter->samples->at[one->sample].on_host);
  if (kept >= CLOCK_FIT_LEAST)
    ties->ends.n = kept;
  return kept >= CLOCK_FIT_LEAST;
}

static struct line fit_points(const struct end_point *at, u32 n) {
  SCOPED double *x = memory_array(n, 3 * sizeof(double));
  double *y = x + n;
  for (u32 i = 0; i < n; i++) {
    x[i] = at[i].x;
    y[i] = at[i].apart;
  }
  return fit_line(x, y, n, MOST_DRIFT, y + n);
}

ORDER_BY(by_sample, struct end_point, UP(sample) UP(x))

/* The points of one sample are adjacent: the number of those that begin at `first`. */
static u32 same_sample(const struct ties *ties, u32 first) {
  return ROW_OF_EQUALS(&ties->ends.at[first], ties->ends.n - first, a, b, a->sample == b->sample);
}

/* What the order of a ring or a slow link does to ends is the smaller, the shorter the transfer. So
 * the clock follows the sample with the shortest transfers; its first point and their number. */
static u32 shortest_transfers(const struct fitter *fitter, const struct ties *ties, u32 *n) {
  u32 best = 0;
  i64 shortest = INT64_MAX;
  *n = ties->ends.n;
  for (u32 i = 0, points; i < ties->ends.n; i += points) {
    i64 transfer = fitter->samples->at[ties->ends.at[i].sample].transfer_ns;
    points = same_sample(ties, i);
    if (points < CLOCK_FIT_LEAST || transfer >= shortest)
      continue;
    shortest = transfer;
    best = i;
    *n = points;
  }
  return best;
}

/* How far ends are from being at the same time: as far as they differ between ranks of one host,
 * and between this sample and longer transfers. NAN if nothing shows it. */
static double measure_pattern(const struct ties *ties, u32 chosen, const struct line *line) {
  SCOPED double *values = memory_array(ties->ends.n, sizeof(double));
  for (u32 i = 0; i < ties->ends.n; i++)
    values[i] = ties->ends.at[i].scatter;
  double scatter = lower_median(values, ties->ends.n);
  double pattern = scatter > 0 ? scatter : NAN;
  for (u32 i = 0, points; i < ties->ends.n; i += points) {
    points = same_sample(ties, i);
    for (u32 k = 0; k < points; k++)
      values[k] = ties->ends.at[i + k].apart - line_at(line, ties->ends.at[i + k].x);
    if (ties->ends.at[i].sample != ties->ends.at[chosen].sample)
      pattern = fmax(pattern, fabs(lower_median(values, points)));
  }
  return pattern;
}

ORDER_BY(by_transfer, struct end_point, UP(transfer))

/* Keeps the quickest quarter, in which the fewest threads had to wait for a processor. Returns the
 * median of their transfers. */
static double keep_quickest(struct ties *ties) {
  u32 quarter = ties->ends.n / 4, least = MIN(ties->ends.n, QUICKEST);
  SORT(ties->ends.at, ties->ends.n, by_transfer);
  ties->ends.n = MAX(quarter, least);
  return ties->ends.at[(ties->ends.n - 1) / 2].transfer;
}

/* Threads may be late to notice an end: nothing shows by how much, but they notice within another
 * transfer. The same holds for kernels if nothing shows how far apart they end. */
static struct ends_fit fit_ends(const struct fitter *fitter, struct ties *ties) {
  u32 n, chosen = 0;
  double pattern = NAN, independent = 1;
  struct line line = {0};
  if (keep_gpu_ends(fitter, ties)) {
    SORT(ties->ends.at, ties->ends.n, by_sample);
    chosen = shortest_transfers(fitter, ties, &n);
    line = fit_points(&ties->ends.at[chosen], n);
    pattern = measure_pattern(ties, chosen, &line);
  }
  if (isnan(pattern)) {
    pattern = keep_quickest(ties);
    n = ties->ends.n;
    line = fit_points(ties->ends.at, n);
    independent = INDEPENDENT;
  }
  double error = line.mad * LINE_ERROR / sqrt(n * independent);
  double apart = fabs(line.slope) * (ties->last - ties->first);
  return (struct ends_fit){
      .line = line, .drifts = n >= DRIFT_LEAST && apart > 2 * error, .error_ns = pattern + error};
}

static struct clock_range ends_range(const struct ends_fit *fit, double x) {
  double middle = line_at(&fit->line, x);
  return (struct clock_range){middle - fit->error_ns, middle + fit->error_ns};
}

/* Whether bounds, which are certain, allow what is likely. If its middle contradicts them, ends
 * were further apart than assumed, and say nothing. */
static bool allows(const struct clock_range *certain, const struct clock_range *likely) {
  double middle = (likely->least + likely->most) / 2;
  return certain->least <= middle && middle <= certain->most;
}

static struct clock_range overlap_of(const struct clock_range *a, const struct clock_range *b) {
  return (struct clock_range){fmax(a->least, b->least), fmin(a->most, b->most)};
}

/* The ranges at both ends know the drift to `room`, over the time between them. Where the ends of
 * collectives do not show one, and a clock without drift is possible, it gets none. */
static void set_clock(struct domain_clock *clock, const struct ties *ties, bool drifts,
                      const struct clock_range *first, const struct clock_range *last) {
  double span = fmax(1, ties->last - ties->first);
  double room = (first->most - first->least + last->most - last->least) / 2;
  double at_first = (first->least + first->most) / 2, at_last = (last->least + last->most) / 2;
  double error = fmax(first->most - first->least, last->most - last->least) / 2;
  double most = fmax(first->most, last->most), least = fmin(first->least, last->least);
  double drifted = at_last - at_first;
  if (!drifts && fabs(drifted) <= room) {
    room += fabs(drifted);
    at_first = at_last = (most + least) / 2;
    error = (most - least) / 2;
  }
  clock->clock = (struct rank_clock){.pivot = ties->begin + (i64)llrint(ties->first),
                                     .offset = ties->base + (i64)llrint(at_first),
                                     .drift = (at_last - at_first) / span};
  clock->drift_error = fmin(MOST_DRIFT, (room + ties->reading) / span);
  clock->error_ns = ties->reading + error;
}

static double median_transfer(const struct ties *ties) {
  SCOPED double *transfers = memory_array(size_sum(ties->ends.n, 1), sizeof(*transfers));
  for (u32 i = 0; i < ties->ends.n; i++)
    transfers[i] = ties->ends.at[i].transfer;
  return lower_median(transfers, ties->ends.n);
}

static bool place_domain(const struct fitter *fitter, u32 domain) {
  struct ties *ties = &fitter->ties[domain];
  struct domain_clock *clock = &fitter->clocks[domain];
  struct clock_range first, last;
  if (ties->ends.n < CLOCK_FIT_LEAST)
    return false;
  u32 points = ties->ends.n;
  clock->transfer_ns = median_transfer(ties);
  struct ends_fit fit = fit_ends(fitter, ties);
  struct clock_range likely_first = ends_range(&fit, ties->first);
  struct clock_range likely_last = ends_range(&fit, ties->last);
  if (!clock_bounds_solve(&ties->bounds, ties->first, ties->last, &first, &last)) {
    set_clock(clock, ties, fit.drifts, &likely_first, &likely_last);
  } else {
    if (allows(&first, &likely_first) && allows(&last, &likely_last)) {
      first = overlap_of(&first, &likely_first);
      last = overlap_of(&last, &likely_last);
    }
    set_clock(clock, ties, fit.drifts, &first, &last);
    clock->by_bounds = clock->error_ns < fit.error_ns / 2;
  }
  clock->by_messages = !ties->by_collectives;
  clock->points = points;
  return true;
}

/* A round looks for what is tied to those placed in the rounds before. */
static void try_to_place(void *user, u32 domain, unsigned worker) {
  (void)worker;
  const struct fitter *fitter = user;
  struct domain_clock *clock = &fitter->clocks[domain];
  fitter->is_new[domain] = !clock->placed && place_domain(fitter, domain);
}

static void forget_ties(struct ties *ties) {
  ties->bounds.least.n = ties->bounds.most.n = ties->ends.n = 0;
  ties->has_base = ties->by_collectives = false;
}

/* Places what is tied to domains that have a place; messages only where nothing else ties. Returns
 * how many. */
static u32 place_next(struct fitter *fitter, bool messages) {
  u32 placed = 0, n = fitter->domains->n;
  FOR_EACH_CHANGED(fitter->ties, n, ty)
    forget_ties(ty);
  for (u32 s = 0; s < fitter->samples->n; s++) {
    const struct clock_sample *sample = &fitter->samples->at[s];
    FOR_EACH(sample->collectives, sample->n, collective)
      if (!sample->messages)
        tie_collective(fitter, *collective, s);
      else if (messages)
        tie_message(fitter, *collective, s);
  }
  parallel_for(n, n < WORTH_A_THREAD ? 1 : fitter->threads, try_to_place, fitter);
  for (u32 d = 0; d < n; d++) {
    placed += fitter->is_new[d];
    fitter->clocks[d].placed |= fitter->is_new[d];
  }
  return placed;
}

static void read_facts(struct fitter *fitter, u32 root) {
  FOR_EACH_CHANGED(fitter->ties, fitter->domains->n, ty)
    *ty = (struct ties){.begin = INT64_MAX};
  for (u32 r = 0; r < fitter->model->n_ranks; r++) {
    struct ties *ties = &fitter->ties[fitter->domains->of[r]];
    const struct clock_facts *facts = &fitter->facts[r];
    ties->begin = MIN(facts->begin, ties->begin);
    ties->reading = fmax(ties->reading, (double)facts->anchor_error_ns);
  }
  for (u32 d = 0; d < fitter->domains->n; d++)
    fitter->ties[d].reading += d == root ? 0 : fitter->ties[root].reading;
}

void clock_fit_domains(const struct model *model, const struct clock_facts *facts,
                       const struct samples *samples, const struct clock_domains *domains, u32 root,
                       struct domain_clock *clocks, unsigned threads) {
  struct fitter fitter = {.model = model,
                          .facts = facts,
                          .samples = samples,
                          .domains = domains,
                          .clocks = clocks,
                          .threads = threads,
                          .is_new = memory_zeroed(domains->n, sizeof(bool)),
                          .ties = memory_zeroed(domains->n, sizeof(struct ties)),
                          .parts = memory_zeroed(domains->n, sizeof(struct domain_part))};
  read_facts(&fitter, root);
  clocks[root].placed = true;
  clocks[root].clock = (struct rank_clock){.pivot = fitter.ties[root].begin};
  u32 left = domains->n - 1, placed;
  while (left && ((placed = place_next(&fitter, false)) || (placed = place_next(&fitter, true))))
    left -= placed;
  FOR_EACH(fitter.ties, domains->n, ty) {
    FREE_EACH(ty, bounds.least.at, bounds.most.at, ends.at);
  }
  FREE_EACH(&fitter, ties, parts, is_new);
}
