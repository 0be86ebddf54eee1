/* SPDX-License-Identifier: MIT
 *
 * The ends of the chains of waiting (waits.c), each with the reason why it must be examined first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/hang/suspects.h"

int accuse(struct judging *j, u32 rank, enum suspect_reason reason, char *evidence) {
  if (j->named[rank])
    return 0;
  struct suspect suspect = {.rank = rank, .reason = reason, .evidence = evidence};
  if (!evidence || !VECTOR_PUSH(&j->waits->suspects, suspect))
    return -ENOMEM;
  j->named[rank] = true;
  return 0;
}

static char *where(const struct judging *j, u32 rank) {
  const char *at = j->index->ledger->ranks[rank].where;
  return at ? arena_printf(j->index->arena, " %s", at) : arena_text(j->index->arena, "");
}

static char *holders_of(const struct judging *j, u32 front) {
  u32 n, *ranks = graph_holders(j->g, front, &n);
  return ranks ? verdict_rank_list(j->index, ranks, n) : NULL;
}

/* --- In no call at all --- */

/* More ranks wait in it, or it was called earlier. */
static bool says_more(const struct judging *j, u32 front, u32 than) {
  u32 a = j->g->fronts.at[front].holders, b = j->g->fronts.at[than].holders;
  return a != b ? a > b : call_of(j, front)->created < call_of(j, than)->created;
}

/* Of the calls that wait for each rank, the one with the most ranks in it. INDEX_NONE if none
 * waits. */
static int find_waiting(const struct judging *j, u32 **out) {
  const struct graph *g = j->g;
  u32 *waiting = arena_array(j->index->arena, g->ranks + 1u, sizeof(u32));
  if (!waiting)
    return -ENOMEM;
  memset(waiting, 0xff, g->ranks * sizeof(u32));
  for (u32 e = 0; e < g->edges.n; e++) {
    u32 from = g->edges.at[e].from, to = g->edges.at[e].to;
    if (from < g->ranks)
      continue;
    u32 front = from - g->ranks;
    if (waiting[to] == INDEX_NONE || says_more(j, front, waiting[to]))
      waiting[to] = front;
  }
  *out = waiting;
  return 0;
}

static int accuse_silent(struct judging *j, u32 rank, u32 front) {
  char *name = verdict_call_name(j->index, call_of(j, front)), *in = holders_of(j, front);
  char *at = where(j, rank);
  if (!name || !in || !at)
    return -ENOMEM;
  return accuse(
      j, rank, SUSPECT_SILENT,
      arena_printf(
          j->index->arena, "Rank %u called %s and the record does not show its end; %s %s in it.%s",
          global(j, rank), name, in, j->g->fronts.at[front].holders == 1 ? "waits" : "wait", at));
}

static int accuse_absent(struct judging *j, u32 rank, u32 front) {
  const struct ledger_rank *absent = &j->index->ledger->ranks[rank];
  const struct member_progress *member =
      member_progress_of(j->index, j->g->fronts.at[front].group, rank);
  if (absent->silent && member && member->called != SEQ_UNKNOWN &&
      member->called >= j->g->fronts.at[front].seq)
    return accuse_silent(j, rank, front);
  char *name = verdict_call_name(j->index, call_of(j, front)), *in = holders_of(j, front);
  char *last = arena_text(j->index->arena, "");
  if (member && member->called != SEQ_UNKNOWN && !call_of(j, front)->message)
    last = arena_printf(j->index->arena, " The last it called there is %lld.",
                        (long long)member->called);
  char *at = where(j, rank);
  if (!name || !in || !last || !at)
    return -ENOMEM;
  char *evidence = arena_printf(
      j->index->arena,
      "Rank %u has not called %s, in which %s %s; it is in no other call either.%s%s", absent->rank,
      name, in, j->g->fronts.at[front].holders == 1 ? "waits" : "wait", last, at);
  return accuse(j, rank, absent->ended ? SUSPECT_ENDED : SUSPECT_ABSENT, evidence);
}

/* A rank without a record may be the one that crashed, or its record was not collected. */
static int accuse_unrecorded(struct judging *j, const u32 *waiting) {
  struct waits *w = j->waits;
  u32 seen = 0;
  for (u32 r = 0; r < j->g->ranks; r++)
    seen += j->index->ledger->ranks[r].seen;
  bool few = w->n_unrecorded == 1 || 2 * w->n_unrecorded < seen;
  for (u32 i = 0; i < w->n_unrecorded && few; i++) {
    u32 rank = w->unrecorded[i], front = waiting[rank];
    char *name = verdict_call_name(j->index, call_of(j, front)), *in = holders_of(j, front);
    if (!name || !in)
      return -ENOMEM;
    int error = accuse(
        j, rank, SUSPECT_NO_RECORD,
        arena_printf(j->index->arena, "Rank %u left no record, and %s wait%s for it in %s.",
                     global(j, rank), in, j->g->fronts.at[front].holders == 1 ? "s" : "", name));
    if (error)
      return error;
  }
  return 0;
}

static int judge_absent(struct judging *j) {
  struct graph *g = j->g;
  u32 *waiting;
  int error = find_waiting(j, &waiting);
  j->waits->unrecorded = error ? NULL : arena_array(j->index->arena, g->ranks + 1u, sizeof(u32));
  if (!error && !j->waits->unrecorded)
    error = -ENOMEM;
  for (u32 r = 0; r < g->ranks && !error; r++) {
    if (waiting[r] == INDEX_NONE || g->first_edge[r] != g->first_edge[r + 1])
      continue;
    if (j->index->ledger->ranks[r].seen)
      error = accuse_absent(j, r, waiting[r]);
    else
      j->waits->unrecorded[j->waits->n_unrecorded++] = r;
  }
  if (!error && j->waits->suspects.n == 0)
    error = accuse_unrecorded(j, waiting);
  return error;
}

/* --- The only ones left in a call --- */

/* In most collectives no member finishes before all have done their part. So the members that are
 * still in it are held up by something of their own; in one-way operations only if nothing else
 * holds them up. */
static bool is_left_behind(const struct judging *j, u32 rank, u32 front) {
  const struct front *f = &j->g->fronts.at[front];
  if (f->channel != INDEX_NONE || f->waited || !f->done || f->holders > f->done)
    return false;
  return verdict_joins_all(call_of(j, front)->op) || !graph_waits_for_others(j->g, rank);
}

static int judge_left_behind(struct judging *j) {
  struct graph *g = j->g;
  for (u32 r = 0; r < g->ranks; r++) {
    u32 oldest = INDEX_NONE;
    for (u32 e = g->first_edge[r]; e < g->first_edge[r + 1]; e++) {
      u32 front = g->edges.at[e].to - g->ranks;
      if (is_left_behind(j, r, front) &&
          (oldest == INDEX_NONE || order_on(j, r, front) < order_on(j, r, oldest)))
        oldest = front;
    }
    if (oldest == INDEX_NONE)
      continue;
    const struct front *front = &g->fronts.at[oldest];
    char *name = verdict_call_name(j->index, call_of(j, oldest)), *at = where(j, r);
    if (!name || !at)
      return -ENOMEM;
    int error =
        accuse(j, r, SUSPECT_OLDER_CALLS,
               arena_printf(j->index->arena,
                            "Rank %u is still in %s, which %u of the %u members with a record of "
                            "it have finished.%s",
                            global(j, r), name, front->done, front->done + front->holders, at));
    if (error)
      return error;
  }
  return 0;
}

/* --- Circles --- */

static char *circle_evidence(const struct judging *j, u32 rank) {
  const struct graph *g = j->g;
  for (u32 e = g->first_edge[rank]; e < g->first_edge[rank + 1]; e++) {
    u32 node = g->edges.at[e].to;
    if (g->first_edge[node] == g->first_edge[node + 1])
      continue;
    u32 n = g->first_edge[node + 1] - g->first_edge[node];
    u32 *ranks = arena_array(j->index->arena, n, sizeof(u32));
    for (u32 i = 0; ranks && i < n; i++)
      ranks[i] = g->edges.at[g->first_edge[node] + i].to;
    char *list = ranks ? verdict_rank_list(j->index, ranks, n) : NULL;
    char *name = verdict_call_name(j->index, call_of(j, node - g->ranks));
    return list && name ? arena_printf(j->index->arena,
                                       "Rank %u waits in %s for %s, which in turn wait%s for it.",
                                       global(j, rank), name, list, n == 1 ? "s" : "")
                        : NULL;
  }
  return arena_printf(j->index->arena, "Rank %u is in a circle of ranks that wait for each other.",
                      global(j, rank));
}

/* Ranks of a circle that are in a call. */
static u32 holders_inside(const struct graph *g, u32 front, u32 circle) {
  u32 n = 0;
  for (u32 e = 0; e < g->edges.n && g->edges.at[e].from < g->ranks; e++)
    n += g->edges.at[e].to == g->ranks + front && g->circle[g->edges.at[e].from] == circle;
  return n;
}

/* If most ranks of a circle are in one call, the others are out of order; else all are. */
static int judge_circle(struct judging *j, u32 circle) {
  struct graph *g = j->g;
  u32 most = 0, most_node = INDEX_NONE;
  bool tie = false;
  for (u32 f = 0; f < g->fronts.n; f++) {
    u32 holders = g->circle[g->ranks + f] == circle ? holders_inside(g, f, circle) : 0;
    if (holders == 0 || holders < most)
      continue;
    tie = holders == most;
    most = holders;
    most_node = g->ranks + f;
  }
  bool decided = !tie && most_node != INDEX_NONE && 2 * most > g->ranks_in[circle];
  for (u32 r = 0; r < g->ranks; r++) {
    bool inside = g->circle[r] == circle, with_most = false;
    for (u32 e = g->first_edge[r]; inside && e < g->first_edge[r + 1]; e++)
      with_most |= g->edges.at[e].to == most_node;
    if (!inside || (decided && with_most))
      continue;
    int error =
        accuse(j, r, decided ? SUSPECT_OTHER_ORDER : SUSPECT_IN_CIRCLE, circle_evidence(j, r));
    if (error)
      return error;
  }
  return 0;
}

static int judge_circles(struct judging *j) {
  int error = 0;
  for (u32 c = 0; c < j->g->circles && !error; c++)
    if (j->g->ranks_in[c] > 1 && !j->g->leads_on[c])
      error = judge_circle(j, c);
  return error;
}

/* --- Calls that do not agree --- */

static enum suspect_reason odd_reason(enum match_state state) {
  return state == MATCH_TYPE    ? SUSPECT_OTHER_CALL
         : state == MATCH_DTYPE ? SUSPECT_OTHER_DTYPE
                                : SUSPECT_OTHER_SIZES;
}

static int accuse_odd(struct judging *j, const struct mismatch *m) {
  const struct ledger_group *group = &j->index->ledger->groups[m->group];
  int error = 0;
  for (u32 i = 0; i < m->n_ranks && !error; i++)
    error = accuse(j, m->ranks[i], odd_reason(m->state),
                   arena_printf(j->index->arena, "%s %lld of %s: %s.", m->op, (long long)m->seq,
                                group->desc ? group->desc : group->name, m->detail));
  return error;
}

/* Once members are out of step, everything that follows is too: the first mismatch of a group
 * counts, if the group is stuck in one. Mismatches without a majority count only if nothing else
 * does. */
static int judge_mismatches(struct judging *j, bool decided) {
  const struct matching *m = j->matching;
  u32 group = INDEX_NONE, first = 0;
  bool done = true;
  int error = 0;
  for (u32 i = 0; i < m->mismatches.n && !error; i++) {
    const struct mismatch *mismatch = &m->mismatches.at[i];
    if (mismatch->state > MATCH_DTYPE)
      continue;
    if (mismatch->group != group) {
      group = mismatch->group;
      first = i;
      done = false;
    }
    if (mismatch->pending && !done && m->mismatches.at[first].minority == decided) {
      error = accuse_odd(j, &m->mismatches.at[first]);
      done = true;
    }
  }
  return error;
}

/* --- All of it --- */

static void count_waits(struct judging *j) {
  const struct graph *g = j->g;
  struct waits *w = j->waits;
  w->since = NS_UNKNOWN;
  w->pending_calls = g->fronts.n;
  for (u32 r = 0; r < g->ranks; r++) {
    bool pending = g->first_edge[r] != g->first_edge[r + 1];
    w->pending_ranks += pending;
    w->victims += pending && !j->named[r];
  }
  for (u32 f = 0; f < g->fronts.n; f++) {
    i64 created = call_of(j, f)->created;
    if (created != NS_UNKNOWN && (w->since == NS_UNKNOWN || created < w->since))
      w->since = created;
  }
}

static int unrecorded_cannot_tell(struct judging *j) {
  struct waits *w = j->waits;
  char *list = verdict_rank_list(j->index, w->unrecorded, w->n_unrecorded);
  w->cannot_tell = list ? arena_printf(j->index->arena,
                                       "%s left no record and others wait for them: they ended "
                                       "without writing one, or it was not collected",
                                       list)
                        : NULL;
  return w->cannot_tell ? 0 : -ENOMEM;
}

static int judge(struct judging *j) {
  struct waits *w = j->waits;
  int error = judge_absent(j);
  if (!error)
    error = judge_left_behind(j);
  if (!error)
    error = judge_circles(j);
  if (!error)
    error = judge_mismatches(j, true);
  if (!error && w->suspects.n == 0)
    error = judge_mismatches(j, false);
  if (!error && w->suspects.n == 0)
    error = judge_order(j);
  count_waits(j);
  if (error || w->suspects.n || w->pending_ranks == 0)
    return error;
  if (w->n_unrecorded)
    return unrecorded_cannot_tell(j);
  error = judge_root(j);
  w->victims -= w->suspects.n; /* that are in that call themselves */
  return error;
}

static int by_rank(const void *left, const void *right) {
  const struct suspect *a = left, *b = right;
  return (a->rank > b->rank) - (a->rank < b->rank);
}

int waits_judge(struct call_index *index, const struct matching *matching,
                const channel_list *channels, struct waits *waits) {
  struct graph g;
  *waits = (struct waits){.since = NS_UNKNOWN};
  struct judging j = {.g = &g, .index = index, .matching = matching, .waits = waits};
  int error = graph_make(&g, index, channels);
  j.named = error ? NULL : arena_array(index->arena, g.ranks + 1u, sizeof(bool));
  if (!error)
    error = j.named ? judge(&j) : -ENOMEM;
  if (!error)
    error = waits_list(&g, j.waits);
  graph_release(&g);
  if (!error && waits->suspects.n)
    qsort(waits->suspects.at, waits->suspects.n, sizeof(*waits->suspects.at), by_rank);
  return error;
}
