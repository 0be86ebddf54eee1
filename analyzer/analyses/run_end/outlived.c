/* SPDX-License-Identifier: MIT
 *
 * Who fell silent first, where no common clock puts ends in order: a host that is lost before its
 * GPU times were delivered. Nobody ends a barrier-like collective before all have called it. So a
 * rank outlived another at least by its own time since it ended a collective, less the other's time
 * since it called the same one: each is read on one clock.
 */
#include "analyses/run_end/run_end.h"
#include "kernels/communication.h"

/* What is known of the ranks, by index into model.ranks. */
struct lives {
  const struct analysis *a;
  const struct ending *const *of; /* [n_ranks] */
  i64 *outlived;                  /* [n_ranks] by somebody, at least by so much */
  bool *first;                    /* [n_ranks] those that may have fallen silent first */
  i64 *left;                      /* [n_ranks] how much it outlived all of these, at least */
};

static i64 since_call(const struct lives *lives, const struct arrival *arrival) {
  return lives->of[arrival->rank]->at - arrival->call_start;
}

static i64 since_end(const struct lives *lives, const struct arrival *arrival) {
  const struct ending *ending = lives->of[arrival->rank];
  return arrival->end == NS_UNKNOWN || ending->what == ENDING_OLDER ? NS_UNKNOWN
                                                                    : ending->from - arrival->end;
}

static bool is_usable(const struct collective *collective) {
  return op_is_barrier_like(collective->op) && !collective->mismatched;
}

static void find_outlived(struct lives *lives, const struct arrival *at, u32 n) {
  i64 longest = NS_UNKNOWN;
  for (u32 i = 0; i < n; i++) {
    i64 since = since_end(lives, &at[i]);
    longest = MAX(since, longest);
  }
  for (u32 i = 0; i < n && longest != NS_UNKNOWN; i++) {
    i64 by = longest - since_call(lives, &at[i]);
    i64 *most = &lives->outlived[at[i].rank];
    *most = MAX(by, *most);
  }
}

/* Only where all of the first took part: then its members outlived each of them. */
static void find_left(struct lives *lives, const struct arrival *at, u32 n, u32 n_first) {
  i64 longest = INT64_MIN;
  u32 members = 0;
  for (u32 i = 0; i < n; i++) {
    if (!lives->first[at[i].rank])
      continue;
    i64 since = since_call(lives, &at[i]);
    longest = MAX(since, longest);
    members++;
  }
  for (u32 i = 0; i < n && members == n_first; i++) {
    i64 since = since_end(lives, &at[i]), *most = &lives->left[at[i].rank];
    if (since != NS_UNKNOWN && since - longest > *most)
      *most = since - longest;
  }
}

static u32 choose_first(struct lives *lives, i64 apart) {
  u32 n_ranks = lives->a->model->n_ranks, n = 0;
  i64 most = NS_UNKNOWN;
  for (u32 r = 0; r < n_ranks; r++)
    if (lives->of[r]->what == ENDING_SILENT && lives->outlived[r] > most)
      most = lives->outlived[r];
  for (u32 r = 0; r < n_ranks && most >= apart; r++)
    n += lives->first[r] = lives->of[r]->what == ENDING_SILENT && lives->outlived[r] > most - apart;
  return n;
}

bool *outlived_first(const struct analysis *a, const struct ending *const *of, i64 apart) {
  const struct model *model = a->model;
  struct lives lives = {.a = a,
                        .of = of,
                        .outlived = arena_array(a->arena, model->n_ranks, sizeof(i64)),
                        .first = arena_array(a->arena, model->n_ranks, sizeof(bool)),
                        .left = arena_array(a->arena, model->n_ranks, sizeof(i64))};
  for (u32 r = 0; r < model->n_ranks; r++)
    lives.outlived[r] = lives.left[r] = NS_UNKNOWN;
  for (u32 c = 0; c < model->n_collectives; c++)
    if (is_usable(&model->collectives[c]))
      find_outlived(&lives, &model->arrivals[model->collectives[c].first_arrival],
                    model->collectives[c].n_arrivals);
  u32 n = choose_first(&lives, apart);
  for (u32 c = 0; c < model->n_collectives && n; c++)
    if (is_usable(&model->collectives[c]))
      find_left(&lives, &model->arrivals[model->collectives[c].first_arrival],
                model->collectives[c].n_arrivals, n);
  for (u32 r = 0; r < model->n_ranks; r++)
    if (!lives.first[r] && of[r]->what != ENDING_OLDER && lives.left[r] < apart)
      return NULL;
  return n && n < model->n_ranks ? lives.first : NULL;
}
