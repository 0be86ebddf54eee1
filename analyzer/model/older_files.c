/* SPDX-License-Identifier: MIT
 *
 * Files of different age, as copies of a running job's are. A rank was alive when its peers ended a
 * collective that needs it. If its file does not contain that collective, the file is older: it
 * does not show how the rank ended.
 */
#include <stdlib.h>

#include "base/checked_memory.h"
#include "kernels/communication.h"
#include "model/building.h"

struct older_search {
  const struct model *model;
  u32 *order;                /* collectives by communicator */
  i64 *last_call, *last_seq; /* [n_ranks] on one communicator; NS_UNKNOWN */
  bool *older;               /* [n_ranks] */
};

/* What each rank did last on a communicator. */
static void find_last(struct older_search *s, u32 from, u32 to) {
  for (u32 r = 0; r < s->model->n_ranks; r++)
    s->last_call[r] = s->last_seq[r] = NS_UNKNOWN;
  for (u32 k = from; k < to; k++) {
    const struct collective *collective = &s->model->collectives[s->order[k]];
    FOR_EACH(members_of(s->model, collective), collective->n_arrivals, arrival) {
      s->last_call[arrival->rank] = MAX(arrival->call_start, s->last_call[arrival->rank]);
      s->last_seq[arrival->rank] = MAX(collective->seq, s->last_seq[arrival->rank]);
    }
  }
}

/* Whether a member went on after it had ended the collective. One that lost a peer ends it too,
 * with an error, and then calls no more. */
static bool was_ended(const struct older_search *s, const struct collective *collective) {
  return ANY(members_of(s->model, collective), collective->n_arrivals, one,
             one->end != NS_UNKNOWN && s->last_call[one->rank] > one->end);
}

static void look_at_comm(struct older_search *s, u32 from, u32 to) {
  const struct comm *comm = &s->model->comms[s->model->collectives[s->order[from]].comm];
  find_last(s, from, to);
  for (u32 k = from; k < to; k++) {
    const struct collective *collective = &s->model->collectives[s->order[k]];
    if (!op_is_barrier_like(collective->op) || collective->n_arrivals >= comm->size ||
        collective->mismatched || !comm->members || !was_ended(s, collective))
      continue;
    FOR_EACH(comm->members, comm->size, member) {
      u32 rank = *member;
      if (rank != INDEX_NONE && s->last_seq[rank] < collective->seq)
        s->older[rank] = true;
    }
  }
}

bool *model_find_older_files(const struct model *model, struct arena *arena) {
  struct older_search s = {.model = model,
                           .order = memory_array(size_sum(model->n_collectives, 1), sizeof(u32)),
                           .last_call = memory_array(size_sum(model->n_ranks, 1), sizeof(i64)),
                           .last_seq = memory_array(size_sum(model->n_ranks, 1), sizeof(i64)),
                           .older = arena_array(arena, model->n_ranks, sizeof(bool))};
  model_list_by_comm(model, s.order);
  for (u32 from = 0, n; from < model->n_collectives; from += n) {
    n = ROW_OF_EQUALS(&s.order[from], model->n_collectives - from, a, b,
                      model->collectives[*a].comm == model->collectives[*b].comm);
    look_at_comm(&s, from, from + n);
  }
  for (u32 r = 0; r < model->n_ranks; r++)
    s.older[r] &=
        !model->ranks[r].closed && ALL(model->ranks[r].lost, TSCOPE_LOSS_REASONS, one, !*one);
  FREE_EACH(&s, order, last_call, last_seq);
  return s.older;
}
