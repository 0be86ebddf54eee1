/* SPDX-License-Identifier: MIT
 *
 * From a flight record of calls to results.check.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/hang/verdict.h"

/* For one group: once it is out of step, everything that follows is. */
#define MISMATCHES_KEPT 10u

#define FRAMES_SHOWN 12u

struct flight_check {
  struct call_index index;
  struct matching matching;
  channel_list channels;
  suspect_list suspects;
  struct collective_check *check;
  bool *desync; /* [ranks] */
};

static struct arena *arena_of(const struct flight_check *m) {
  return m->index.arena;
}

static void put_groups(struct flight_check *m) {
  const struct flight_record *flight = m->index.flight;
  struct check_group *groups = arena_array(arena_of(m), flight->n_groups, sizeof(*groups));
  for (u32 g = 0; g < flight->n_groups; g++) {
    const struct flight_group *from = &flight->groups[g];
    groups[g] = (struct check_group){.name = from->name,
                                     .desc = from->desc,
                                     .size = from->members_known ? from->n_members : (double)NAN,
                                     .matched = (double)m->matching.matched_of[g],
                                     .mismatched = (double)m->matching.mismatched_of[g]};
    for (u32 p = m->index.first_place[g]; p < m->index.first_place[g + 1]; p++) {
      groups[g].recorded += flight->ranks[m->index.members[p].rank].seen;
      groups[g].pending += m->index.members[p].oldest_pending != SEQ_UNKNOWN;
    }
  }
  FOR_EACH(m->channels.at, m->channels.n, channel)
    groups[channel->group].pending += (channel->send != INDEX_NONE) + (channel->recv != INDEX_NONE);
  m->check->groups = groups;
  m->check->n_groups = flight->n_groups;
}

static void put_mismatches(struct flight_check *m) {
  const struct flight_record *flight = m->index.flight;
  struct collective_check *check = m->check;
  u32 n = m->matching.mismatches.n;
  check->every_mismatch = arena_array(arena_of(m), n, sizeof(*check->every_mismatch));
  check->mismatches = arena_array(arena_of(m), n, sizeof(*check->mismatches));
  u32 *kept_of = arena_array(arena_of(m), flight->n_groups, sizeof(u32));
  FOR_EACH(m->matching.mismatches.at, n, from) {
    const struct flight_group *group = &flight->groups[from->group];
    struct check_mismatch to = {
        .group = flight_group_label(group),
        .group_name = group->name,
        .group_index = from->group,
        .seq = (double)from->seq,
        .call = verdict_name_call(&m->index, from->op, from->seq, from->group),
        .ranks = verdict_global_ranks(&m->index, from->ranks, from->n_ranks),
        SAME(from, op, state, detail, message, n_ranks)};
    check->every_mismatch[check->n_every_mismatch++] = to;
    if (kept_of[from->group]++ < MISMATCHES_KEPT)
      check->mismatches[check->n_mismatches++] = to;
  }
  check->mismatches_found = n;
}

/* The call that a rank is in: the oldest of all its pending calls. NULL if it is in none. */
static const struct flight_call *oldest_pending(const struct flight_record *flight, u32 rank) {
  const struct flight_rank *r = &flight->ranks[rank];
  return FIND(&flight->calls[r->first_call], r->n_calls, one,
              flight_call_is_pending(one) && !one->coalesced);
}

static const char *stack_text(const struct flight_check *m, const struct flight_call *call) {
  if (!call || !call->stack)
    return NULL;
  char *text = NULL;
  for (u32 i = 0; i < call->stack->n && i < FRAMES_SHOWN; i++)
    text = arena_list(arena_of(m), text, "\n", "%s",
                      call_frame_in_stack(arena_of(m), &call->stack->frames[i]));
  return text;
}

static void put_suspect(struct flight_check *m, u32 rank, enum suspect_reason reason,
                        struct suspect_facts facts) {
  const struct flight_record *flight = m->index.flight;
  struct check_suspect *out = &m->check->suspects[m->check->n_suspects++];
  *out = (struct check_suspect){.reason = reason,
                                .facts = facts,
                                .stack = stack_text(m, oldest_pending(flight, rank)),
                                SAME(&flight->ranks[rank], rank, host, silent)};
}

/* The first disagreement of each group; later ones follow from it. */
static void find_desync(struct flight_check *m) {
  const struct flight_record *flight = m->index.flight;
  struct arena *arena = arena_of(m);
  bool *seen = arena_array(arena, flight->n_groups, sizeof(bool));
  m->desync = arena_array(arena, flight->n_ranks, sizeof(bool));
  FOR_EACH(m->matching.mismatches.at, m->matching.mismatches.n, mismatch) {
    if (mismatch->state > MATCH_DTYPE || seen[mismatch->group])
      continue;
    seen[mismatch->group] = true;
    FOR_EACH(mismatch->ranks, mismatch->n_ranks, rank)
      m->desync[*rank] = true;
    if (!m->check->desync)
      m->check->desync =
          arena_printf(arena, "%s: %s: %s",
                       verdict_name_call(&m->index, mismatch->op, mismatch->seq, mismatch->group),
                       match_state_words[mismatch->state], mismatch->detail);
  }
  FOR_EACH(m->suspects.at, m->suspects.n, suspect)
    m->desync[suspect->rank] |= suspect->reason == SUSPECT_OTHER_ORDER;
  m->check->desync_ranks = arena_array(arena, flight->n_ranks, sizeof(u32));
  m->check->n_desync_ranks = LIST_WHERE(m->check->desync_ranks, 0, flight->n_ranks, r, m->desync[r],
                                        flight->ranks[r].rank);
}

static void put_suspects(struct flight_check *m) {
  const struct flight_record *flight = m->index.flight;
  struct collective_check *check = m->check;
  u32 n = m->suspects.n;
  check->suspects = arena_array(arena_of(m), flight->n_ranks, sizeof(*check->suspects));
  check->hang_ranks = arena_array(arena_of(m), n, sizeof(u32));
  FOR_EACH(m->suspects.at, n, suspect) {
    check->hang_ranks[check->n_hang_ranks++] = flight->ranks[suspect->rank].rank;
    put_suspect(m, suspect->rank, suspect->reason, suspect->facts);
  }
  for (u32 r = 0; r < flight->n_ranks && n == 0; r++)
    if (m->desync[r])
      put_suspect(m, r, SUSPECT_DISAGREES, (struct suspect_facts){.detail = check->desync});
}

static enum check_verdict verdict_of(const struct collective_check *check) {
  bool hang = check->n_hang_ranks > 0, desync = check->n_desync_ranks > 0;
  if (hang || desync)
    return hang && desync ? CHECK_HANG_AND_DESYNC : hang ? CHECK_HANG : CHECK_DESYNC;
  return check->cannot_tell ? CHECK_CANNOT_TELL : CHECK_NONE;
}

static void put_totals(struct flight_check *m) {
  const struct flight_record *flight = m->index.flight;
  struct collective_check *check = m->check;
  check->matched = (double)m->matching.matched;
  check->checked = (double)m->matching.calls;
  check->unrecorded = arena_array(arena_of(m), flight->n_ranks, sizeof(u32));
  check->n_unrecorded = LIST_WHERE(check->unrecorded, 0, flight->n_ranks, r, !flight->ranks[r].seen,
                                   flight->ranks[r].rank);
  check->verdict = verdict_of(check);
}

static void check_flight_record(struct flight_check *m, const struct flight_record *flight,
                                struct arena *arena) {
  call_index_make(&m->index, flight, arena);
  matching_make(&m->index, &m->matching);
  messages_match(&m->index, &m->matching, &m->channels);
  waits_find_suspects(&m->index, &m->matching, &m->channels, m->check, &m->suspects);
  add_nccl_reports(&m->index, m->check);
  put_groups(m);
  put_mismatches(m);
  find_desync(m);
  put_suspects(m);
  put_totals(m);
}

void verdict_of_flight_record(const struct flight_record *flight, struct arena *arena,
                              struct collective_check *check) {
  struct flight_check m = {.check = check};
  *check = (struct collective_check){
      .flight = flight, .source = flight->source, .pending_s = (double)NAN, .nccl_ranks = NAN};
  check_flight_record(&m, flight, arena);
  FREE_EACH(&m, matching.mismatches.at, channels.at, suspects.at);
}

void verdict_analyse(struct analysis *a) {
  struct collective_check *check = &a->results->check;
  *check = unknown_collective_check;
  if (a->model->flight)
    verdict_of_flight_record(a->model->flight, a->arena, check);
  if (check->n_suspects)
    return;
  /* Dumps that name nobody may be of another moment, or have nothing of some libraries' calls. */
  const struct flight_record *traced = model_traced_calls(a->model, a->arena);
  struct collective_check of_traces = unknown_collective_check;
  if (traced)
    verdict_of_flight_record(traced, a->arena, &of_traces);
  if (traced && (!a->model->flight || of_traces.n_suspects))
    *check = of_traces;
}
