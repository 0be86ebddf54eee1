/* SPDX-License-Identifier: MIT
 *
 * Which collective of one rank is which collective of another. Newer traces number them; others
 * give only the order on each rank, and a trace may begin a few collectives earlier or later than
 * another. Within a process group the sequences of kind, type and size are aligned where they agree
 * best.
 */

#include "base/by_key.h"
#include "base/hash.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "import/kineto/kineto.h"
#include "kernels/communication.h"

#define MOST_SHIFT 64
#define FIRST_SEQ 65536u /* above any shift */
#define LEAST_AGREEMENT 0.9

struct comm_member {
  u64 identity;
  u32 rank;
  u32 *calls; /* index into events.calls, in order */
  u32 *tokens;
  u32 n;
  bool numbered; /* by the trace itself */
};

struct matching {
  struct model *model;
  struct arena arena; /* of the members */
  VECTOR(struct comm_member) members;
  u64 compared, equal;
  u32 refused; /* ranks in groups that do not agree */
  u32 unnamed; /* groups that are assumed to include all ranks */
};

ORDER_BY(by_identity, struct comm_member, UP(identity) UP(rank))

static u32 token_of(const struct rank_call *call) {
  u64 size = call->op == TSCOPE_OP_ALLTOALL ? 0 : call->count;
  return hash_number((u32)call->op << 8 | call->dtype, size);
}

/* A member for each communicator of a rank, with its calls. */
static void add_members(struct matching *m, u32 rank) {
  const struct rank_events *events = model_events(m->model, rank);
  const struct rank_call *calls = events->calls.at;
  struct by_key of = LISTED_BY_KEY(events->n_comms, 0, events->calls.n, i,
                                   !op_is_message(calls[i].op), calls[i].comm);
  for (u32 c = 0; c < events->n_comms; c++) {
    u32 n = of.begin[c + 1] - of.begin[c];
    struct comm_member member = {.identity = events->comms[c].identity,
                                 .rank = rank,
                                 .calls =
                                     arena_elements(&m->arena, of.at + of.begin[c], n, sizeof(u32)),
                                 .tokens = arena_array(&m->arena, n, sizeof(u32)),
                                 .n = n};
    member.numbered = ALL(member.calls, n, one, calls[*one].seq != TSCOPE_UNKNOWN);
    for (u32 i = 0; i < n; i++)
      member.tokens[i] = token_of(&calls[member.calls[i]]);
    VECTOR_PUSH(&m->members, member);
  }
  FREE_EACH(&of, begin, at);
}

static u32 count_equal(const struct comm_member *a, const struct comm_member *b, i32 shift,
                       u32 *compared) {
  u32 equal = 0;
  *compared = 0;
  for (i64 i = 0; i < a->n; i++) {
    i64 k = i + shift;
    if (k < 0 || k >= b->n)
      continue;
    ++*compared;
    equal += a->tokens[i] == b->tokens[k];
  }
  return equal;
}

/* By how many collectives `a` began later than `reference`: 0 unless another offset agrees better.
 */
static i32 find_shift(const struct comm_member *a, const struct comm_member *reference, u32 *equal,
                      u32 *compared) {
  i32 best = 0;
  *equal = count_equal(a, reference, 0, compared);
  for (i32 distance = 1; distance <= MOST_SHIFT && *equal < a->n; distance++)
    for (i32 shift = -distance; shift <= distance; shift += 2 * distance) {
      u32 among, count = count_equal(a, reference, shift, &among);
      if (count > *equal) {
        *equal = count;
        *compared = among;
        best = shift;
      }
    }
  return best;
}

static void number(const struct matching *m, const struct comm_member *member, u32 first) {
  struct rank_events *events = model_events(m->model, member->rank);
  for (u32 i = 0; i < member->n; i++)
    events->calls.at[member->calls[i]].seq = first + i;
}

/* One process group on all its ranks. */
static void match_group(struct matching *m, const struct comm_member *members, u32 n) {
  u32 longest = 0;
  bool numbered = true;
  for (u32 i = 0; i < n; i++) {
    longest = members[i].n > members[longest].n ? i : longest;
    numbered &= members[i].numbered;
  }
  if (n > 1 && members[longest].n && members[0].identity >> 8 == KINETO_UNNAMED >> 8)
    m->unnamed++;
  if (numbered || members[longest].n == 0)
    return;
  for (u32 i = 0; i < n; i++) {
    u32 equal, compared;
    i32 shift = find_shift(&members[i], &members[longest], &equal, &compared);
    bool agrees = (double)equal >= LEAST_AGREEMENT * compared;
    /* collectives that do not agree get numbers that no other has */
    number(m, &members[i], agrees ? (u32)((i32)FIRST_SEQ + shift) : (i + 2) << 22);
    m->refused += !agrees;
    if (i != longest && agrees) {
      m->compared += compared;
      m->equal += equal;
    }
  }
}

void kineto_number_collectives(struct model *model) {
  struct matching m = {.model = model};
  for (u32 r = 0; r < model->n_ranks; r++)
    add_members(&m, r);
  SORT(m.members.at, m.members.n, by_identity);
  for (u32 i = 0, n; i < m.members.n; i += n) {
    n = ROW_OF_EQUALS(&m.members.at[i], m.members.n - i, a, b, a->identity == b->identity);
    match_group(&m, &m.members.at[i], n);
  }
  if (m.unnamed)
    model_note(model, "the traces do not name their process groups: collectives on a "
                      "separate stream are assumed to be of all ranks");
  if (m.compared)
    model_note(model,
               "collectives of different ranks are matched by their order in each process "
               "group: %s of %llu agree in kind and size",
               percent((double)m.equal / (double)m.compared).text, (unsigned long long)m.compared);
  if (m.refused)
    model_note(model,
               "collectives of %u ranks agree with their peers' in less than %s of "
               "the calls and are not matched",
               m.refused, percent(LEAST_AGREEMENT).text);
  arena_release(&m.arena);
  free(m.members.at);
}
