/* SPDX-License-Identifier: MIT
 *
 * A job that stalls although no pending collective shows who holds it up: finds the rank
 * whose threads are in another place than those of the others.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/stalls/stall_words.h"
#include "base/quantity.h"
#include "base/rank_list.h"

static u32 count_ranks_at(const struct stalls_result *stalls, const struct stalled_rank *where) {
  return NUMBER_OF(stalls->ranks, stalls->n_ranks, one, stall_same_place(one, where));
}

/* A rank at the place of most ranks; any if no place is known. */
static const struct stalled_rank *most_common_place(const struct stalls_result *stalls) {
  return LARGEST(stalls->ranks, stalls->n_ranks, rank, true, count_ranks_at(stalls, rank));
}

/* The rank whose place is shared by the fewest ranks, if they are fewer than half of all, and fewer
 * than at another place; else NULL. */
static const struct stalled_rank *odd_rank(const struct stalls_result *stalls) {
  const struct stalled_rank *odd = LARGEST(stalls->ranks, stalls->n_ranks, rank, rank->place,
                                           -(double)count_ranks_at(stalls, rank));
  u32 n = odd ? count_ranks_at(stalls, odd) : 0;
  return odd && 2 * n < stalls->n_ranks && n < count_ranks_at(stalls, most_common_place(stalls))
             ? odd
             : NULL;
}

/* "at train.py:12: asleep", with whose words these are where others there do something else. */
static const char *describe_doing(struct findings *f, const struct stalled_rank *named) {
  const struct stalls_result *stalls = &f->r->stalls;
  bool same = ALL(stalls->ranks, stalls->n_ranks, one,
                  one == named || stall_does_the_same(one, named) ||
                      (named->place && !stall_same_place(one, named)));
  return say(f, "%s: %s", same ? "" : say(f, ", such as rank %u", named->rank),
             named->words ? named->words : "what it did is not known");
}

static const char *action_for(struct findings *f, bool differs, bool at_one_place,
                              const u32 *untraced, u32 n_untraced) {
  if (differs)
    return "Look at that line and at what it waits for: a lock, a file, a process, the network. "
           "The other ranks probably wait for it.";
  if (at_one_place && n_untraced)
    return say(f,
               "Look at %s first: they have no trace, so they may never have come to where the "
               "others wait. Read their logs, and see where they are (tscope stacks PID).",
               ranks_in(f->a->arena, untraced, n_untraced));
  return at_one_place
             ? "These ranks are at the same place: look at what they all wait for (a file system, "
               "a server, a rank that is not among them)."
             : "Look at what each rank does: their places do not show which of them the others "
               "wait for.";
}

void rule_stalled(struct findings *f) {
  const struct stalls_result *stalls = &f->r->stalls;
  struct arena *arena = f->a->arena;
  if (!stalls->n_ranks || f->r->check.n_hang_ranks) /* DIST.HANG has the line */
    return;
  const struct stalled_rank *odd = odd_rank(stalls), *common = most_common_place(stalls);
  const struct stalled_rank *named = odd ? odd : common;
  u32 *ranks = arena_array(arena, stalls->n_ranks, sizeof(*ranks)), n = 0;
  double longest = NAN;
  FOR_EACH(stalls->ranks, stalls->n_ranks, rank) {
    longest = fmax(longest, rank->for_s);
    if (!named->place || stall_same_place(rank, named))
      ranks[n++] = rank->rank;
  }
  const char *place = stall_place(arena, named);
  const char *where = place ? place : "a place that is not known";
  const char *others = odd ? say(f, " %u of the others%s.", count_ranks_at(stalls, common),
                                 describe_doing(f, common))
                           : "";
  u32 *untraced = arena_array(arena, f->a->model->world_size, sizeof(*untraced)),
      n_untraced = model_missing_ranks(f->a->model, untraced),
      all = f->a->model->n_ranks + n_untraced;
  const char *who = n == 1 ? say(f, "rank %u", ranks[0]) : say(f, "%u of %u ranks", n, all);
  finding_add(f, SEVERITY_CRITICAL, (double)NAN, say(f, "The job stalled: %s at %s", who, where),
              say(f, "The record shows no progress for %s. %s%s.%s",
                  isnan(longest) ? "a while" : duration_s(longest).text, who,
                  describe_doing(f, named), others),
              action_for(f, odd || (stalls->n_ranks == 1 && f->a->model->n_ranks > 1),
                         place && n == stalls->n_ranks, untraced, n_untraced),
              ranks, n);
}
