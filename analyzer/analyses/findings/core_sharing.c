/* SPDX-License-Identifier: MIT */
#include "analyses/findings/core_sharing.h"

#include <math.h>

#include "analyses/thresholds.h"
#include "base/texts.h"

/* Hosts of one name are still several. */
static bool same_host(const struct model *model, const struct rank *a, const struct rank *b) {
  return (!a->host && !b->host) ||
         model_same_host(model, (u32)(a - model->ranks), (u32)(b - model->ranks));
}

static bool same_quota(const struct model *model, const struct rank *a, const struct rank *b) {
  return same_host(model, a, b) &&
         same_text(a->info[TSCOPE_INFO_CPU_QUOTA], b->info[TSCOPE_INFO_CPU_QUOTA]);
}

static bool same_cores(const struct rank *a, const struct rank *b) {
  return same_text(a->info[TSCOPE_INFO_CORES], b->info[TSCOPE_INFO_CORES]);
}

/* A rank's quota where it is less than the cores of all ranks that share it; else NULL. */
static const char *quota_of(const struct model *model, const struct rank *rank) {
  u32 cores = 0;
  if (isnan(rank->scheduling.quota) || !rank->info[TSCOPE_INFO_CPU_QUOTA])
    return NULL;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank *other = &model->ranks[r];
    bool counted = !same_quota(model, rank, other);
    for (u32 i = 0; i < r && !counted; i++)
      counted = same_quota(model, rank, &model->ranks[i]) && same_cores(&model->ranks[i], other);
    cores += counted ? 0 : other->scheduling.cores;
  }
  return rank->scheduling.quota < cores ? rank->info[TSCOPE_INFO_CPU_QUOTA] : NULL;
}

static bool shares_cores(const struct model *model, const struct core_sharing *s,
                         const struct rank *rank) {
  const char *quota = quota_of(model, rank);
  return same_host(model, s->first, rank) && same_text(s->quota, quota) &&
         (quota || same_text(s->cores_list, rank->info[TSCOPE_INFO_CORES]));
}

static bool is_known(const struct rank *rank) {
  const struct rank_scheduling *sum = &rank->scheduling;
  return sum->seconds >= OVERSUBSCRIBED_LEAST_S && !isnan(sum->wait_s) && !isnan(sum->cpu_s) &&
         sum->cores > 0;
}

static void add_rank(struct core_sharing *s, const struct rank *rank) {
  const struct rank_scheduling *sum = &rank->scheduling;
  s->n++;
  s->threads += sum->threads;
  s->cores = s->quota ? sum->quota : fmax(s->cores, sum->cores);
  ADD_EACH(s, sum, seconds, cpu_s, wait_s, training_wait_s);
  s->stolen_s = isnan(sum->stolen_s) ? s->stolen_s : fmax(s->stolen_s, sum->stolen_s);
}

double core_waiting_share(const struct core_sharing *s) {
  return s->wait_s / (s->wait_s + s->cpu_s);
}

bool cores_are_short(const struct core_sharing *s) {
  return s->n && core_waiting_share(s) >= OVERSUBSCRIBED_SHARE &&
         s->wait_s >= OVERSUBSCRIBED_OF_WALL * s->seconds;
}

bool cores_shared_with_others(const struct core_sharing *s) {
  double wall = s->seconds / s->n;
  return s->cpu_s / wall < OVERSUBSCRIBED_FULL * s->cores;
}

bool cores_short_by_themselves(const struct core_sharing *s) {
  double wall = s->seconds / s->n;
  return (s->cpu_s + s->wait_s) / wall > OVERSUBSCRIBED_DEMAND * s->cores &&
         !cores_shared_with_others(s);
}

struct core_sharing *core_sharing_of(const struct model *model, struct core_sharing *groups, u32 n,
                                     const struct rank *rank) {
  return is_known(rank) ? FIND(groups, n, one, shares_cores(model, one, rank)) : NULL;
}

u32 core_sharing_list(const struct model *model, struct core_sharing *groups) {
  u32 n = 0;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    if (!is_known(rank))
      continue;
    struct core_sharing *group = core_sharing_of(model, groups, n, rank);
    if (!group) {
      group = &groups[n++];
      *group = (struct core_sharing){.first = rank,
                                     .host = rank->host,
                                     .cores_list = rank->info[TSCOPE_INFO_CORES],
                                     .quota = quota_of(model, rank)};
    }
    add_rank(group, rank);
  }
  return n;
}
