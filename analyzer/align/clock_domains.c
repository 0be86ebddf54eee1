/* SPDX-License-Identifier: MIT */
#include "align/clock_domains.h"
#include "base/checked_memory.h"
#include "base/sorting.h"

#include <string.h>

#define MOST_CONTRADICTIONS 0.1 /* share of the collectives: a few times may be damaged */

struct claim {
  const char *clock; /* may be NULL; then: */
  const char *host;  /* may be NULL */
  i64 realtime_minus_monotonic;
  const struct clock_facts *facts;
  u32 rank;
};

ORDER_BY(by_claim, struct claim, BY_TEXT(clock) BY_TEXT(host) UP(realtime_minus_monotonic) UP(rank))

/* Not whether they share a host (host_is_same()): containers of other names read the same clock. To
 * be placed alike without proof takes more than a name and a boot that may be the same. */
static bool claim_same_clock(const struct claim *a, const struct claim *b) {
  if (a->clock || b->clock)
    return a->clock && b->clock && strcmp(a->clock, b->clock) == 0;
  if (!a->host || !b->host || strcmp(a->host, b->host) != 0)
    return false;
  i64 apart = clock_realtime_difference(b->facts, a->facts);
  return apart != NS_UNKNOWN && apart > -SAME_CLOCK_NS && apart < SAME_CLOCK_NS;
}

static void group_claims(struct clock_domains *domains, const struct model *model,
                         const struct clock_facts *facts) {
  SCOPED struct claim *claims = memory_array(model->n_ranks, sizeof(*claims));
  for (u32 r = 0; r < model->n_ranks; r++) {
    const char *clock = model->ranks[r].info[TSCOPE_INFO_CLOCK];
    claims[r] = clock ? (struct claim){.clock = clock, .facts = &facts[r], .rank = r}
                      : (struct claim){NULL, model->ranks[r].host,
                                       facts[r].realtime_minus_monotonic, &facts[r], r};
  }
  SORT(claims, model->n_ranks, by_claim);
  domains->certain = true;
  for (u32 i = 0; i < model->n_ranks; i++) {
    bool same = i && claim_same_clock(&claims[i - 1], &claims[i]);
    domains->n += !same;
    domains->of[claims[i].rank] = domains->n - 1;
    domains->certain &= !same || claims[i].clock;
  }
}

/* What one collective shows of one domain. */
struct witness {
  i64 last_start, first_end;
  u32 collective, members;
  bool counted;
};

struct trial {
  struct witness *witnesses; /* [domains.n] */
  u32 *looked, *against;     /* [domains.n] collectives of several members; that contradict */
  bool *confirmed;           /* [n_ranks] */
};

static void add_witness(struct witness *witness, const struct arrival *arrival, u32 collective) {
  if (witness->members == 0 || witness->collective != collective)
    *witness = (struct witness){INT64_MIN, INT64_MAX, collective, 0, false};
  witness->members++;
  witness->last_start = MAX(arrival->start, witness->last_start);
  witness->first_end = MIN(arrival->end, witness->first_end);
}

static void look_at_collective(struct trial *trial, const struct clock_domains *domains,
                               const struct model *model, u32 number) {
  const struct collective *collective = &model->collectives[number];
  FOR_EACH_MEMBER(model, collective, member)
    if (arrival_has_run(member))
      add_witness(&trial->witnesses[domains->of[member->rank]], member, number);
  FOR_EACH_MEMBER(model, collective, member) {
    u32 domain = domains->of[member->rank];
    struct witness *witness = &trial->witnesses[domain];
    if (!arrival_has_run(member) || witness->members < 2)
      continue;
    trial->confirmed[member->rank] = true;
    if (witness->counted)
      continue;
    witness->counted = true;
    trial->looked[domain]++;
    trial->against[domain] += witness->last_start > witness->first_end &&
                              witness->last_start - READ_LATE_NS > witness->first_end;
  }
}

/* Numbers the domains again: in the order of their first ranks, those that `split` one per rank. */
static void renumber(struct clock_domains *domains, const struct model *model, const bool *split,
                     const bool *confirmed) {
  SCOPED u32 *members = memory_zeroed(domains->n, sizeof(*members));
  SCOPED u32 *number = memory_zeroed(domains->n, sizeof(*number));
  u32 n = 0;
  domains->confirmed = true;
  FOR_EACH(domains->of, model->n_ranks, each)
    members[*each]++;
  for (u32 r = 0; r < model->n_ranks; r++) {
    u32 old = domains->of[r];
    bool shares = members[old] > 1 && !split[old];
    if (!shares || number[old] == 0)
      number[old] = ++n;
    domains->of[r] = number[old] - 1;
    domains->shared += shares;
    domains->confirmed &= !shares || confirmed[r];
  }
  domains->n = n;
}

void clock_domains_find(struct clock_domains *domains, const struct model *model,
                        const struct clock_facts *facts, const struct samples *samples,
                        struct arena *arena) {
  *domains = (struct clock_domains){.of = arena_array(arena, model->n_ranks, sizeof(u32))};
  group_claims(domains, model, facts);
  struct trial trial = {.witnesses = arena_array(arena, domains->n, sizeof(struct witness)),
                        .looked = arena_array(arena, domains->n, sizeof(u32)),
                        .against = arena_array(arena, domains->n, sizeof(u32)),
                        .confirmed = arena_array(arena, model->n_ranks, sizeof(bool))};
  bool *split = arena_array(arena, domains->n, sizeof(*split));
  FOR_EACH(samples->at, samples->n, sample)
    for (u32 k = 0; k < sample->n && !sample->messages; k++)
      look_at_collective(&trial, domains, model, sample->collectives[k]);
  for (u32 d = 0; d < domains->n; d++)
    split[d] = trial.against[d] > MOST_CONTRADICTIONS * trial.looked[d];
  renumber(domains, model, split, trial.confirmed);
}
