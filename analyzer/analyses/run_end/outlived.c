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

static void find_outlived(struct lives *lives, const struct collective *of) {
  i64 longest = NS_UNKNOWN;
  FOR_EACH_MEMBER(lives->a->model, of, member)
    longest = MAX(since_end(lives, member), longest);
  if (longest == NS_UNKNOWN)
    return;
  FOR_EACH_MEMBER(lives->a->model, of, member) {
    i64 *most = &lives->outlived[member->rank];
    *most = MAX(longest - since_call(lives, member), *most);
  }
}

/* Only where all of the first took part: then its members outlived each of them. */
static void find_left(struct lives *lives, const struct collective *of, u32 n_first) {
  i64 longest = INT64_MIN;
  u32 members = 0;
  FOR_EACH_MEMBER(lives->a->model, of, member)
    if (lives->first[member->rank]) {
      longest = MAX(since_call(lives, member), longest);
      members++;
    }
  if (members < n_first)
    return;
  FOR_EACH_MEMBER(lives->a->model, of, member) {
    i64 since = since_end(lives, member), *most = &lives->left[member->rank];
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
  FOR_EACH(model->collectives, model->n_collectives, one)
    if (is_usable(one))
      find_outlived(&lives, one);
  u32 n = choose_first(&lives, apart);
  FOR_EACH(model->collectives, n ? model->n_collectives : 0, one)
    if (is_usable(one))
      find_left(&lives, one, n);
  for (u32 r = 0; r < model->n_ranks; r++)
    if (!lives.first[r] && of[r]->what != ENDING_OLDER && lives.left[r] < apart)
      return NULL;
  return n && n < model->n_ranks ? lives.first : NULL;
}
