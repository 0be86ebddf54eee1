/* SPDX-License-Identifier: MIT
 *
 * How much findings are worth together. Each is about certain lines of the budget, and no second
 * can be saved twice. Starting with the finding that is worth most, each takes what is left of its
 * lines. The part that is already taken is what it has in common with the findings before it.
 */
#include <errno.h>
#include <math.h>

#include "analyses/findings/findings.h"

#define ANYTHING_OF_TRAINING (~0u & ~DRAWS_OTHER)

static enum draws budget_line_of(enum budget_part part) {
  switch (part) {
  case BUDGET_COMPUTE:
  case BUDGET_COMPUTE_AT_PEAK:
  case BUDGET_COMPUTE_BEYOND:
    return DRAWS_COMPUTE;
  case BUDGET_INPUT:
    return DRAWS_INPUT;
  case BUDGET_RANKS:
    return DRAWS_WAIT;
  case BUDGET_COMMUNICATION:
  case BUDGET_COMMUNICATION_OR_WAIT:
    return DRAWS_TRANSFER;
  case BUDGET_MEMCPYS:
    return DRAWS_MEMCPY;
  case BUDGET_LAUNCH_AND_IDLE:
  case BUDGET_IDLE_IN_PHASES:
  case BUDGET_OUTSIDE_PHASES:
  case BUDGET_ASLEEP_OUTSIDE:
  case BUDGET_OUTSIDE_UNKNOWN:
    return DRAWS_IDLE;
  case BUDGET_OTHER_THAN_TRAINING:
    return DRAWS_OTHER;
  case BUDGET_NOT_SEEN:
    break;
  }
  return DRAWS_REST;
}

struct budget_claims {
  double left[32]; /* seconds of the run, by bit of enum draws */
  u32 *claimed;    /* [n_findings] bits of the lines that a finding claimed */
};

static void fill_seconds_left(struct budget_claims *claims, const struct results *r) {
  double rest = r->looked_at_s;
  for (u32 i = 0; i < r->n_budget && r->wall_s > 0; i++) {
    double seconds = r->budget[i].seconds / r->wall_s * r->looked_at_s;
    claims->left[__builtin_ctz(budget_line_of(r->budget[i].part))] += seconds;
    rest -= seconds;
  }
  claims->left[__builtin_ctz(DRAWS_REST)] += rest > 0 ? rest : 0;
}

/* Takes up to this many seconds from those lines; returns how many it got. */
static double claim_seconds(struct budget_claims *claims, u32 from, double seconds, u32 *bits) {
  double taken = 0;
  for (u32 i = 0; i < 32; i++) {
    double some = fmin(claims->left[i], seconds - taken);
    if (!(from >> i & 1) || !(some > 0))
      continue;
    claims->left[i] -= some;
    taken += some;
    *bits |= 1u << i;
  }
  return taken;
}

static u32 lines_of(const struct finding *finding) {
  u32 draws = finding->draws ? finding->draws : finding_draws(finding->id);
  return draws == DRAWS_ANY ? ANYTHING_OF_TRAINING : draws;
}

static int list_overlaps(struct findings *f, const struct budget_claims *claims, u32 index,
                         u32 own) {
  struct finding *finding = &f->r->findings[index];
  finding->overlaps = arena_array(f->a->arena, index + 1u, sizeof(*finding->overlaps));
  if (!finding->overlaps)
    return -ENOMEM;
  for (u32 i = 0; i < index; i++) {
    const char *id = finding_id_words[f->r->findings[i].id];
    bool listed = !(claims->claimed[i] & own);
    for (u32 k = 0; k < finding->n_overlaps; k++)
      listed |= finding->overlaps[k] == id;
    if (!listed)
      finding->overlaps[finding->n_overlaps++] = id;
  }
  return 0;
}

/* If a rank becomes faster, the others wait less, and the rank itself also computes for less time.
 * So what a finding does not get from its own lines, and no other finding took there, it takes from
 * other lines. */
static int split_worth(struct findings *f, struct budget_claims *claims, u32 index) {
  struct finding *finding = &f->r->findings[index];
  u32 own = lines_of(finding), bits = 0;
  double enough = (1 - WORTH_OVERLAP) * finding->worth_s;
  double added = claim_seconds(claims, own, finding->worth_s, &bits);
  int error = added < enough ? list_overlaps(f, claims, index, own) : 0;
  if (!error && added < enough && !finding->n_overlaps) {
    added += claim_seconds(claims, ~0u, finding->worth_s - added, &bits);
    error = added < enough ? list_overlaps(f, claims, index, ~0u) : 0;
  }
  finding->worth_added_s = added;
  claims->claimed[index] = bits;
  return error;
}

int findings_split_worths(struct findings *f) {
  struct results *r = f->r;
  struct budget_claims claims = {.claimed =
                                     arena_array(f->a->arena, r->n_findings + 1u, sizeof(u32))};
  int error = claims.claimed ? 0 : -ENOMEM;
  bool known = r->looked_at_s > 0;
  if (known)
    fill_seconds_left(&claims, r);
  for (u32 i = 0; i < r->n_findings && !error; i++) {
    r->findings[i].worth_added_s = r->findings[i].worth_s;
    if (!isnan(r->findings[i].worth_s) && known)
      error = split_worth(f, &claims, i);
  }
  return error;
}
