/* SPDX-License-Identifier: MIT */
#include "base/period.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"

#define ANCHORS 4u
#define MOST_CANDIDATES 2048u /* per anchor */
#define ANCHOR_WINDOW 8u
#define MOST_GAP_PERIOD 256u
#define LEAST_REPEATS 4u
#define MOST_AT_END 16u
#define LEAST_EXPLAINED 0.8
#define LEAST_CONTRAST 2.0
#define LEAST_APART 0.85
#define NO_CHANCE 1e-9 /* of one place; some 30,000 are looked at */
#define CLEARLY_LONGER 1.5

struct numbered {
  u32 token, at;
};

ORDER_BY(by_token, struct numbered, UP(token))

/* Renumbers tokens from 0 in `dense`; how many different ones there are. */
static u32 renumber(const u32 *tokens, u32 n, u32 *dense) {
  SCOPED struct numbered *sorted = memory_array(n, sizeof(*sorted));
  for (u32 i = 0; i < n; i++)
    sorted[i] = (struct numbered){tokens[i], i};
  SORT(sorted, n, by_token);
  u32 kinds = 0;
  for (u32 i = 0; i < n; i++) {
    kinds += i == 0 || sorted[i].token != sorted[i - 1].token;
    dense[sorted[i].at] = kinds - 1;
  }
  return kinds;
}

struct period_search {
  const u32 *tokens; /* dense */
  u32 n, kinds;
  u32 tail;            /* what comes before may be start-up */
  u32 *times, *misses; /* [kinds] */
};

static bool same_window(const struct period_search *search, u32 a, u32 b) {
  for (u32 i = 0; i < ANCHOR_WINDOW && i <= a; i++)
    if (search->tokens[a - i] != search->tokens[b - i])
      return false;
  return true;
}

/* Distances at which the tokens before some anchors come again. */
static u32 list_candidates(const struct period_search *search, u32 *candidates) {
  u32 found = 0;
  for (u32 anchor = 0; anchor < ANCHORS; anchor++) {
    u32 at = search->n - 1 - (u32)((u64)(search->n - search->tail) * anchor / (2 * ANCHORS));
    u32 most = (search->n - search->tail) / 2, here = 0;
    for (u32 back = 1; back <= most && back <= at && here < MOST_CANDIDATES; back++)
      if (same_window(search, at - back, at)) {
        candidates[found++] = back;
        here++;
      }
  }
  return found;
}

/* Share of tail tokens that repeat with this period; 0 as soon as it cannot be enough, or if a rare
 * token contradicts it. */
static double try_period(struct period_search *search, u32 period) {
  u32 from = search->tail + period, missed = 0;
  if (from >= search->n)
    return 0;
  u32 checked = search->n - from;
  u32 most = (u32)((1 - PERIOD_LEAST_MATCH) * checked);
  for (u32 i = from; i < search->n; i++)
    if (search->tokens[i] != search->tokens[i - period] && ++missed > most)
      return 0;
  if (missed) {
    memset(search->times, 0, search->kinds * sizeof(*search->times));
    memset(search->misses, 0, search->kinds * sizeof(*search->misses));
    for (u32 i = from; i < search->n; i++) {
      search->times[search->tokens[i]]++;
      search->misses[search->tokens[i]] += search->tokens[i] != search->tokens[i - period];
    }
    for (u32 kind = 0; kind < search->kinds; kind++)
      if (search->times[kind] >= 2 && 2 * search->misses[kind] > search->times[kind])
        return 0;
  }
  return 1 - (double)missed / checked;
}

/* How far the period reaches in both directions. A single token that does not repeat is skipped. */
static void find_reach(const struct period_search *search, struct period *period) {
  const u32 *tokens = search->tokens;
  u32 length = period->length;
  period->last = search->n;
  while (period->last > search->tail + 2 * length &&
         tokens[period->last - 1] != tokens[period->last - 1 - length])
    period->last--;
  u32 i = period->last - 1;
  for (; i >= length; i--) {
    if (tokens[i] == tokens[i - length])
      continue;
    u32 matched = 0, looked = 0;
    for (; looked < length && i >= length + looked; looked++)
      matched += tokens[i - looked] == tokens[i - looked - length];
    if (looked < length || 2 * matched < looked || length < 3) {
      period->first = i - length + 1;
      return;
    }
  }
  period->first = 0;
}

/* Without the few that are done once at the end, such as the sum of a last loss or a barrier:
 * tokens that are nowhere else, except at the very beginning. */
static u32 without_ending(const u32 *tokens, u32 n) {
  const u32 beginning = n / 8, least = n > MOST_AT_END ? n - MOST_AT_END : 0;
  while (n > least) {
    u32 i = n - 1;
    while (i > beginning && tokens[i - 1] != tokens[n - 1])
      i--;
    if (i > beginning)
      break;
    n--;
  }
  return n;
}

bool find_period(const u32 *tokens, u32 n, struct period *period) {
  *period = (struct period){0};
  n = without_ending(tokens, n);
  if (n < 2)
    return false;
  SCOPED u32 *dense = memory_array(n, sizeof(*dense));
  SCOPED u32 *candidates = memory_array(ANCHORS * MOST_CANDIDATES, sizeof(*candidates));
  struct period_search search = {.tokens = dense, .n = n, .tail = n >= 12 ? n / 4 : 0};
  search.kinds = renumber(tokens, n, dense);
  search.times = memory_zeroed(size_sum(search.kinds, 1), sizeof(*search.times));
  search.misses = memory_zeroed(size_sum(search.kinds, 1), sizeof(*search.misses));
  if (search.kinds) {
    u32 found = list_candidates(&search, candidates);
    SORT(candidates, found, by_u32);
    for (u32 i = 0; i < found && period->length == 0; i++) {
      if (i > 0 && candidates[i] == candidates[i - 1])
        continue;
      double match = try_period(&search, candidates[i]);
      if (match > 0)
        *period = (struct period){.length = candidates[i], .match = match};
    }
    if (period->length)
      find_reach(&search, period);
  }
  free(search.times);
  free(search.misses);
  return period->length > 0;
}

/* Share of the variance of log gaps that is explained by the position in a period of `length`;
 * *contrast gets the ratio of the longest position to the typical one. */
static double explained_by(const double *logs, u32 n, u32 length, double *means, u32 *first,
                           double *contrast) {
  double mean = 0, total = 0, left = 0, others = 0;
  for (u32 i = 0; i < n; i++)
    mean += logs[i] / n;
  for (u32 place = 0; place < length; place++) {
    double sum = 0;
    u32 count = 0;
    for (u32 i = place; i < n; i += length, count++)
      sum += logs[i];
    means[place] = sum / count;
    if (place == 0 || means[place] > means[*first])
      *first = place;
  }
  for (u32 i = 0; i < n; i++) {
    total += (logs[i] - mean) * (logs[i] - mean);
    left += (logs[i] - means[i % length]) * (logs[i] - means[i % length]);
  }
  for (u32 place = 0; place < length; place++)
    if (place != *first)
      others = fmax(others, means[place]);
  *contrast = exp(means[*first] - others);
  return total > 0 ? 1 - left / total : 0;
}

/* Whether the gaps at the first place are nearly all longer than the middle between theirs and the
 * others, and the others nearly all shorter: single ones may be any. A busy machine that holds up
 * the host makes many of the others longer; then those at the first place are more than chance
 * would put there, of all places and lengths. */
static bool are_apart(const double *logs, u32 n, u32 length, const double *means, u32 first) {
  u32 at_first = 0, longer = 0, shorter = 0;
  double others = 0;
  for (u32 place = 0; place < length; place++)
    others += place == first ? 0 : means[place] / (length - 1);
  for (u32 i = 0; i < n; i++) {
    bool is_longer = logs[i] > (means[first] + others) / 2;
    at_first += i % length == first;
    longer += i % length == first && is_longer;
    shorter += i % length != first && !is_longer;
  }
  double by_chance = binomial_tail(longer, at_first, (n - at_first - shorter + longer) / (double)n);
  return longer >= LEAST_APART * at_first &&
         (shorter >= LEAST_APART * (n - at_first) || by_chance < NO_CHANCE);
}

u32 find_gap_period(const double *gaps, u32 n, u32 *first) {
  double means[MOST_GAP_PERIOD];
  SCOPED double *logs = memory_array(size_sum(n, 1), sizeof(*logs));
  u32 found = 1;
  *first = 0;
  double smallest = 1;
  FOR_EACH(gaps, n, gap)
    if (*gap > 0 && (*gap < smallest || smallest == 1))
      smallest = *gap;
  for (u32 i = 0; i < n; i++)
    logs[i] = log(fmax(gaps[i], smallest));
  for (u32 length = 2; length <= MOST_GAP_PERIOD && length * LEAST_REPEATS <= n; length++) {
    double contrast;
    u32 place = 0;
    double explained = explained_by(logs, n, length, means, &place, &contrast);
    if (contrast >= LEAST_CONTRAST &&
        (explained >= LEAST_EXPLAINED || are_apart(logs, n, length, means, place))) {
      found = length;
      *first = place;
      break;
    }
  }
  return found;
}

u32 find_longest_gap(double *logs, const u32 *counts, u32 length) {
  u32 best = 0;
  for (u32 place = 0; place < length; place++) {
    logs[place] = counts[place] ? logs[place] / counts[place] : 0;
    if (logs[place] > logs[best])
      best = place;
  }
  return logs[best] - logs[0] < log(CLEARLY_LONGER) ? 0 : best;
}
