/* SPDX-License-Identifier: MIT
 *
 * A round begins where the host pauses and then launches the same as after other pauses; where it
 * pauses nowhere, the period of the launches is a round. Where work comes between two rounds that
 * others do not have (a validation), the round before it is longer.
 */
#include "join/launch_rounds.h"

#include <math.h>

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/period.h"
#include "base/robust.h"
#include "base/sorting.h"

#define FEW_CALLS 100u  /* launches for each collective */
#define SEARCHED 65536u /* launches at the end of the run in which a period is looked for */
#define ALIKE 32u       /* launches by which the begin of a round is known */
#define BEGINNING 8u    /* launches by which begins are compared with each other */
#define STANDS_OUT 4.0
#define MOSTLY 0.75
#define LEAST_ROUNDS 6u /* three of anything may be all that a program does */
#define LONGEST 16u     /* rounds that work between two of them is at most as long as */

struct pattern {
  const struct launched *launched;
  const u32 *tokens;
  u32 n;
  u32 length; /* of a round */
  u32 like;   /* where one begins */
};

bool rank_needs_rounds(const struct rank_events *events) {
  bool named = events->marks.n || events->step_ranges.n ||
               ANY(events->phases.at, events->phases.n, phase,
                   phase->kind == TSCOPE_PHASE_OPTIMIZER || phase->kind == TSCOPE_PHASE_BACKWARD ||
                       phase->kind == TSCOPE_PHASE_FORWARD);
  return !named && events->launches &&
         FEW_CALLS * ((u64)events->calls.n + events->kernels.n) <= events->launches;
}

/* A microsecond means no pause. */
static double pause_before(const struct launched *launched, u32 i) {
  return i ? fmax((double)(launched[i].start - launched[i - 1].end), 1e3) : 1e3;
}

static u32 longest_pause(const struct launched *launched, const struct period *period) {
  SCOPED u32 *counts = memory_zeroed(period->length, sizeof(*counts));
  SCOPED double *logs = memory_zeroed(period->length, sizeof(*logs));
  for (u32 i = period->first; i < period->last; i++) {
    u32 place = (i - period->first) % period->length;
    logs[place] += log(pause_before(launched, i));
    counts[place]++;
  }
  u32 best = find_longest_gap(logs, counts, period->length);
  return period->first + best;
}

/* By the period of the last launches. */
static bool find_by_period(struct pattern *pattern) {
  struct period period;
  u32 from = pattern->n > SEARCHED ? pattern->n - SEARCHED : 0;
  if (!find_period(pattern->tokens + from, pattern->n - from, &period))
    return false;
  period.first += from;
  period.last += from;
  pattern->length = period.length;
  pattern->like = longest_pause(pattern->launched, &period);
  return true;
}

/* Launches that are followed by the same ones. */
struct begin {
  u32 next; /* what follows, as a hash */
  u32 at;
};

ORDER_BY(by_next, struct begin, UP(next) UP(at))

static double usual_pause(const struct launched *launched, u32 n) {
  SCOPED double *pauses = memory_array(n, sizeof(*pauses));
  for (u32 i = 0; i < n; i++)
    pauses[i] = pause_before(launched, i);
  return lower_median(pauses, n);
}

/* How well the pauses before these launches make them begins: 0 if most of them have none. */
static double worth_as_begins(const struct launched *launched, const struct begin *begins, u32 n,
                              double usual) {
  double sum = 0;
  u32 pausing = 0;
  FOR_EACH(begins, n, begin) {
    double times = pause_before(launched, begin->at) / usual;
    bool pauses = times >= STANDS_OUT;
    pausing += pauses;
    sum += pauses ? log(times) : 0;
  }
  return n >= LEAST_ROUNDS && pausing >= MOSTLY * n ? sum : 0;
}

static u32 usual_distance(const struct begin *begins, u32 n) {
  SCOPED double *distances = memory_array(n, sizeof(*distances));
  for (u32 i = 1; i < n; i++)
    distances[i - 1] = begins[i].at - begins[i - 1].at;
  return (u32)lower_median(distances, n - 1);
}

/* By what the host launches after it has paused: each time the same. That holds also where some
 * rounds have more launches than others. */
static bool find_by_pauses(struct pattern *pattern) {
  const u32 *tokens = pattern->tokens;
  u32 n = pattern->n > BEGINNING ? pattern->n - BEGINNING : 0;
  SCOPED struct begin *begins = memory_array(size_sum(n, 1), sizeof(*begins));
  double best = 0, usual = n ? usual_pause(pattern->launched, pattern->n) : 0;
  for (u32 i = 0; i < n; i++)
    begins[i] = (struct begin){(u32)hash_bytes(HASH_SEED, tokens + i, BEGINNING * sizeof(u32)), i};
  SORT(begins, n, by_next);
  for (u32 i = 0, same; i < n; i += same) {
    same = ROW_OF_EQUALS(begins + i, n - i, a, b, a->next == b->next);
    double worth = worth_as_begins(pattern->launched, begins + i, same, usual);
    if (worth > best) {
      best = worth;
      pattern->length = usual_distance(begins + i, same);
      u32 like = i + same / 2; /* of the last ones a whole round may not be there */
      while (pattern->n - begins[like].at < pattern->length)
        like--;
      pattern->like = begins[like].at;
    }
  }
  return best > 0;
}

static bool begins_at(const struct pattern *pattern, u32 at) {
  u32 compared = MIN(pattern->length, ALIKE);
  if (at + compared > pattern->n)
    return false;
  return !ANY_NUMBER(0, compared, i, pattern->tokens[at + i] != pattern->tokens[pattern->like + i]);
}

/* Where the round after this one begins; where this one ends if none does soon: a run that ends
 * otherwise must not be searched to its end for each of its rounds. */
static u32 next_round(const struct pattern *pattern, u32 at) {
  u32 usual = at + pattern->length;
  if (usual >= pattern->n || begins_at(pattern, usual))
    return usual;
  u64 end = at + (u64)LONGEST * pattern->length;
  for (u32 next = at + pattern->length / 2 + 1; next < pattern->n && next < end; next++)
    if (begins_at(pattern, next))
      return next;
  return usual;
}

/* Share of the launches that are those of the round that the others are held against. */
static double share_alike(const struct pattern *pattern, u32 from, u32 to) {
  u32 alike = 0, n = MAX(to - from, pattern->length);
  for (u32 i = 0; i < pattern->length && from + i < to; i++)
    alike += pattern->tokens[from + i] == pattern->tokens[pattern->like + i];
  return (double)alike / n;
}

/* The pause before each of the rounds, too. */
static void add_rounds(struct rank_events *events, const struct pattern *pattern, double *pauses) {
  const struct launched *launched = pattern->launched;
  u32 at = 0, next;
  while (at < pattern->n && !begins_at(pattern, at))
    at++;
  for (i64 start = at < pattern->n ? launched[at].start : 0; at + pattern->length <= pattern->n;
       at = next) {
    next = next_round(pattern, at);
    struct rank_round round = {start, launched[next - 1].end, share_alike(pattern, at, next)};
    pauses[events->rounds.n] = fmax((double)(launched[at].start - start), 1e3);
    VECTOR_PUSH(&events->rounds, round);
    start = round.end;
  }
}

/* Rounds that the host makes without a pause between them are one. Returns how many are. */
static u32 merge_by_pauses(struct rank_events *events, const double *pauses) {
  u32 first, kept = 0, n = events->rounds.n;
  struct rank_round *rounds = events->rounds.at;
  u32 each = n > 1 ? find_gap_period(pauses + 1, n - 1, &first) : 1;
  if (each == 1)
    return 1;
  for (u32 i = (first + 1) % each; i + each <= n; i += each) {
    struct rank_round whole = {rounds[i].start, rounds[i + each - 1].end, 0};
    for (u32 k = 0; k < each; k++)
      whole.match += rounds[i + k].match / each;
    rounds[kept++] = whole;
  }
  events->rounds.n = kept;
  return each;
}

ORDER_BY(by_thread, struct launched, UP(thread) UP(start) UP(end))

/* Others may prefetch or log. Sets *n. */
static struct launched *of_busiest_thread(struct launched *launched, u32 *n) {
  u32 first = 0, most = 0;
  SORT(launched, *n, by_thread);
  for (u32 i = 0, same; i < *n; i += same) {
    same = ROW_OF_EQUALS(launched + i, *n - i, a, b, a->thread == b->thread);
    first = same > most ? i : first;
    most = MAX(same, most);
  }
  *n = most;
  return launched + first;
}

static bool find_pattern(struct pattern *pattern) {
  return find_by_pauses(pattern) || find_by_period(pattern);
}

void find_launch_rounds(struct rank_events *events, struct launched *launched, u32 n) {
  if (n == 0)
    return;
  SCOPED u32 *tokens = memory_array(n, sizeof(*tokens));
  launched = of_busiest_thread(launched, &n);
  struct pattern pattern = {.launched = launched, .tokens = tokens, .n = n};
  for (u32 i = 0; i < n; i++)
    tokens[i] = launched[i].shape;
  bool found = find_pattern(&pattern);
  for (u32 i = 0; i < n && !found; i++) /* sizes that vary from step to step hide it */
    tokens[i] = launched[i].name;
  if (found || find_pattern(&pattern)) {
    SCOPED double *pauses = memory_array(n, sizeof(*pauses));
    add_rounds(events, &pattern, pauses);
    /* Any launch alone is like the one before. That each is a step would only be a guess. */
    if (merge_by_pauses(events, pauses) * pattern.length == 1 || events->rounds.n < LEAST_ROUNDS)
      events->rounds.n = 0;
  }
}
