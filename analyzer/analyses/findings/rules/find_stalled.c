/* SPDX-License-Identifier: MIT
 *
 * A job that stalls although no pending collective shows who holds it up: finds the rank
 * whose threads are in another place than those of the others.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/stalls/stall_words.h"
#include "base/quantity.h"
#include "base/texts.h"

static u32 count_ranks_at(const struct stalls_result *stalls, const struct stalled_rank *where) {
  return NUMBER_OF(stalls->ranks, stalls->n_ranks, one,
                   same_text(one->place, where->place) && same_text(one->call, where->call));
}

/* The rank whose place is shared by the fewest ranks, if they are fewer than half of all; else
 * NULL. */
static const struct stalled_rank *odd_rank(const struct stalls_result *stalls) {
  const struct stalled_rank *odd = LARGEST(stalls->ranks, stalls->n_ranks, rank, rank->place,
                                           -(double)count_ranks_at(stalls, rank));
  return odd && 2 * count_ranks_at(stalls, odd) < stalls->n_ranks ? odd : NULL;
}

static const struct stalled_rank *most_common_place(const struct stalls_result *stalls) {
  return LARGEST(stalls->ranks, stalls->n_ranks, rank, true, count_ranks_at(stalls, rank));
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
    if (same_text(rank->place, named->place) && same_text(rank->call, named->call))
      ranks[n++] = rank->rank;
  }
  const char *place = stall_place(arena, named);
  const char *where = place ? place : "a place that is not known";
  const char *others = odd ? say(f, " %u of the others: %s.", count_ranks_at(stalls, common),
                                 common->words ? common->words : "not known")
                           : "";
  u32 all = f->a->model->n_ranks;
  const char *who = n == 1 ? say(f, "rank %u", ranks[0]) : say(f, "%u of %u ranks", n, all);
  finding_add(f, SEVERITY_CRITICAL, (double)NAN, say(f, "The job stalled: %s at %s", who, where),
              say(f, "The record shows no progress for %s. %s: %s.%s",
                  isnan(longest) ? "a while" : duration_s(longest).text, who,
                  named->words ? named->words : "what it did is not known", others),
              odd || (n == 1 && all > 1)
                  ? "Look at that line and at what it waits for: a lock, a file, a process, the "
                    "network. The other ranks probably wait for it."
                  : "These ranks are at the same place: look at what they all wait for (a file "
                    "system, a server, a rank that is not among them).",
              ranks, n);
}
