/* SPDX-License-Identifier: MIT */
#include "import/tscope/gpu_runs/pairing.h"

#include "base/checked_memory.h"
#include "base/sorting.h"

#define LOOK_AHEAD 16u

static bool kinds_match(const struct ordered *cause, const struct ordered *effect) {
  return cause->what == effect->what || cause->what == 0 || effect->what == 0;
}

static bool can_pair(const struct ordered *cause, const struct ordered *effect) {
  return kinds_match(cause, effect) && effect->at + PAIRING_SLACK_NS >= cause->at;
}

static bool one_to_one(const struct ordered *causes, const struct ordered *effects, u32 n) {
  return !ANY_NUMBER(0, n, i, !kinds_match(&causes[i], &effects[i]));
}

/* The fewest causes or effects to leave out, going back, until the rest fits again. */
static void skip_back(const struct ordered *causes, i64 *i, const struct ordered *effects, i64 *j) {
  for (i64 skip = 1; skip <= LOOK_AHEAD; skip++) {
    if (*j >= skip && can_pair(&causes[*i], &effects[*j - skip])) {
      *j -= skip;
      return;
    }
    if (*i >= skip && can_pair(&causes[*i - skip], &effects[*j])) {
      *i -= skip;
      return;
    }
  }
  --*i;
  --*j;
}

static void skip_forward(const struct ordered *causes, u32 n_causes, u32 *i,
                         const struct ordered *effects, u32 n_effects, u32 *j) {
  for (u32 skip = 1; skip <= LOOK_AHEAD; skip++) {
    if (*j + skip < n_effects && can_pair(&causes[*i], &effects[*j + skip])) {
      *j += skip;
      return;
    }
    if (*i + skip < n_causes && can_pair(&causes[*i + skip], &effects[*j])) {
      *i += skip;
      return;
    }
  }
  ++*i;
  ++*j;
}

static u32 pair_from_front(const struct ordered *causes, u32 n_causes,
                           const struct ordered *effects, u32 n_effects, u32 *effect_of) {
  u32 pairs = 0;
  for (u32 i = 0, j = 0; i < n_causes && j < n_effects;) {
    if (can_pair(&causes[i], &effects[j])) {
      effect_of[i++] = j++;
      pairs++;
    } else if (kinds_match(&causes[i], &effects[j])) {
      j++; /* the effect is older than any cause left */
    } else {
      skip_forward(causes, n_causes, &i, effects, n_effects, &j);
    }
  }
  return pairs;
}

u32 pair_in_order(const struct ordered *causes, u32 n_causes, const struct ordered *effects,
                  u32 n_effects, bool end_is_lost, u32 *effect_of) {
  if (n_causes == n_effects && one_to_one(causes, effects, n_causes)) {
    for (u32 i = 0; i < n_causes; i++)
      effect_of[i] = i;
    return n_causes;
  }
  FILL(effect_of, n_causes, INDEX_NONE);
  if (end_is_lost)
    return pair_from_front(causes, n_causes, effects, n_effects, effect_of);
  u32 pairs = 0;
  for (i64 i = (i64)n_causes - 1, j = (i64)n_effects - 1; i >= 0 && j >= 0;) {
    if (can_pair(&causes[i], &effects[j])) {
      effect_of[i--] = (u32)j--;
      pairs++;
    } else if (kinds_match(&causes[i], &effects[j])) {
      i--; /* the cause is younger than any effect left */
    } else {
      skip_back(causes, &i, effects, &j);
    }
  }
  return pairs;
}

/* What was watched in no session comes last. */
ORDER_BY(by_session, struct ordered, UP(session) UP(of))

void pair_sessions(struct pairable *all, bool end_is_lost,
                   void pair(void *user, u32 cause, u32 effect), void *user) {
  SORT(all->causes.at, all->causes.n, by_session);
  SORT(all->effects.at, all->effects.n, by_session);
  const struct ordered *cause = all->causes.at, *effect = all->effects.at;
  u32 left = all->causes.n, left_effects = all->effects.n, n, n_effects;
  SCOPED u32 *effect_of = memory_array(left, sizeof(*effect_of));
  for (; left && cause->session != INDEX_NONE; cause += n, left -= n) {
    for (; left_effects && effect->session < cause->session; left_effects--)
      effect++;
    n = FIRST_NOT(0, left, i, cause[i].session == cause->session);
    n_effects = FIRST_NOT(0, left_effects, i, effect[i].session == cause->session);
    pair_in_order(cause, n, effect, n_effects, end_is_lost, effect_of);
    for (u32 i = 0; i < n; i++)
      if (effect_of[i] != INDEX_NONE)
        pair(user, cause[i].of, effect[effect_of[i]].of);
  }
}

void pairable_free(struct pairable *all) {
  FREE_EACH(all, causes.at, effects.at);
}
