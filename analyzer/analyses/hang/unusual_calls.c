/* SPDX-License-Identifier: MIT
 *
 * Ranks that wait for each other in a circle: if some came to their call from one after which they
 * never called it before, and the others as always, those left a call out, or made another one. But
 * where all begin something new, and one of two is behind, this tells nothing: so they must be
 * fewer than the others, or another member must have come to the same call as always.
 */
#include "analyses/hang/suspects.h"
#include "base/texts.h"

/* So often a call must have been made before for what follows it to be usual. */
enum { LEAST_TIMES = 3 };

static bool is_like(const struct flight_call *a, const struct flight_call *b) {
  return a->group == b->group && a->message == b->message && a->sends == b->sends &&
         a->peer == b->peer && same_text(a->op, b->op);
}

/* The call that a rank is in, the one that it made before, and whether it went from the one to the
 * other before, if it made the first often enough. */
struct came {
  const struct flight_call *before, *pending;
  enum answer as_usual;
};

static struct came came_of(const struct flight_record *flight, u32 rank) {
  const struct flight_rank *of = &flight->ranks[rank];
  const struct flight_call *calls = &flight->calls[of->first_call];
  struct came came = {
      .pending = FIND(calls, of->n_calls, one, flight_call_is_pending(one) && !one->coalesced)};
  u32 times = 0, alike = 0;
  if (!came.pending || came.pending == calls)
    return (struct came){0};
  came.before = came.pending - 1;
  for (const struct flight_call *one = calls; one < came.before; one++) {
    times += is_like(one, came.before);
    alike += is_like(one, came.before) && is_like(one + 1, came.pending);
  }
  came.as_usual = times < LEAST_TIMES ? ANSWER_UNKNOWN : alike ? ANSWER_YES : ANSWER_NO;
  return came;
}

/* Of all ranks, once. */
static const struct came *came_of_all(struct suspect_search *j) {
  if (j->came)
    return j->came;
  struct came *came = arena_array(j->index->arena, j->g->ranks, sizeof(*came));
  for (u32 r = 0; r < j->g->ranks; r++)
    came[r] = came_of(j->index->flight, r);
  return j->came = came;
}

/* Whether another member is in the same collective, and came to it as always. */
static bool another_came_as_usual(const struct suspect_search *j, u32 rank) {
  const struct flight_call *own = j->came[rank].pending;
  return !own->message && ANY(j->came, j->g->ranks, one,
                              one->as_usual == ANSWER_YES && one->pending->group == own->group &&
                                  one->pending->seq == own->seq && !one->pending->message);
}

/* "recv from rank 3 of default_pg", or as elsewhere. */
static char *name_of(const struct suspect_search *j, const struct flight_call *call) {
  u32 peer = call->message ? call->peer : INDEX_NONE;
  if (peer == INDEX_NONE)
    return verdict_call_name(j->index, call);
  const char *op = say(j->index, "%s %s rank %u", call->op, call->sends ? "to" : "from",
                       j->index->flight->ranks[peer].rank);
  return verdict_name_call(j->index, op, SEQ_UNKNOWN, call->group);
}

static void name_unusual(struct suspect_search *j, u32 rank) {
  const struct came *came = &j->came[rank];
  char *pending = name_of(j, came->pending);
  name_suspect(j, rank, SUSPECT_OTHER_ORDER,
               (struct suspect_facts){
                   .call = pending,
                   .detail = say(j->index,
                                 "waits in %s, which it called after %s: it never did so before, "
                                 "and the others that wait for each other called theirs as always",
                                 pending, name_of(j, came->before)),
                   .last_called = SEQ_UNKNOWN,
                   .where = j->index->flight->ranks[rank].where});
}

bool name_unusual_of_cycle(struct suspect_search *j, u32 cycle) {
  const struct came *came = came_of_all(j);
  const u32 *cycle_of = j->g->cycle;
  u32 n = j->g->ranks_in_cycle[cycle], usual = 0, unusual = 0;
  for (u32 r = 0; r < j->g->ranks; r++) {
    usual += cycle_of[r] == cycle && came[r].as_usual == ANSWER_YES;
    unusual += cycle_of[r] == cycle && came[r].as_usual == ANSWER_NO;
  }
  if (!unusual || usual + unusual < n ||
      (2 * unusual >= n && ANY_NUMBER(0, j->g->ranks, r,
                                      cycle_of[r] == cycle && came[r].as_usual == ANSWER_NO &&
                                          !another_came_as_usual(j, r))))
    return false;
  for (u32 r = 0; r < j->g->ranks; r++)
    if (cycle_of[r] == cycle && came[r].as_usual == ANSWER_NO)
      name_unusual(j, r);
  return true;
}
