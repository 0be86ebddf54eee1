/* SPDX-License-Identifier: MIT
 *
 * Which collective of one rank is which collective of another. Newer traces number them; others
 * give only the order on each rank, and a trace may begin a few collectives earlier or later than
 * another. Within a process group the sequences of kind, type and size are aligned where they agree
 * best.
 */

#include "base/checked_memory.h"
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
  u32 rank, comm; /* comm: of this rank's definitions */
  u32 *calls;     /* index into events.calls, in order */
  u32 *tokens;
  u32 n;
  bool numbered; /* by the trace itself */
};

struct matching {
  struct model *model;
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

/* A member for each communicator of a rank, and room for its calls. */
static void add_members(struct matching *m, u32 rank) {
  const struct rank_events *events = model_events(m->model, rank);
  u32 n = events->n_comms, first = m->members.n;
  for (u32 c = 0; c < n; c++)
    VECTOR_PUSH(&m->members, (struct comm_member){.identity = events->comms[c].identity,
                                                  .rank = rank,
                                                  .comm = c,
                                                  .numbered = true});
  if (n == 0)
    return;
  struct comm_member *members = m->members.at + first;
  FOR_EACH(events->calls.at, events->calls.n, item)
    if (!op_is_message(item->op))
      members[item->comm].n++;
  FOR_EACH_CHANGED(members, n, one) {
    one->calls = memory_array(size_sum(one->n, 1), sizeof(u32));
    one->tokens = memory_array(size_sum(one->n, 1), sizeof(u32));
    one->n = 0;
  }
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    struct comm_member *member = &members[call->comm];
    if (op_is_message(call->op))
      continue;
    member->numbered &= call->seq != TSCOPE_UNKNOWN;
    member->calls[member->n] = i;
    member->tokens[member->n++] = token_of(call);
  }
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
  FOR_EACH(m.members.at, m.members.n, member) {
    free(member->calls);
    free(member->tokens);
  }
  free(m.members.at);
}
