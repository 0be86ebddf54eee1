/* SPDX-License-Identifier: MIT
 *
 * Which calls ran as one kernel: NCCL launches all calls of a group on one communicator and stream
 * together, such as a send to the next stage of a pipeline and a receive from it.
 */

#include "analyses/analyses.h"

struct join {
  struct analysis *a;
  u32 *slots, mask; /* open addressing; slot holds arrival + 1 */
};

static u32 comm_of(const struct analysis *a, const struct arrival *arrival) {
  return arrival->collective == INDEX_NONE ? INDEX_NONE
                                           : a->model->collectives[arrival->collective].comm;
}

static bool same_kernel(const struct analysis *a, const struct arrival *x,
                        const struct arrival *y) {
  return x->rank == y->rank && x->group == y->group && x->stream == y->stream &&
         x->start == y->start && comm_of(a, x) == comm_of(a, y);
}

static void join_if_grouped(struct join *join, u32 index) {
  struct analysis *a = join->a;
  const struct arrival *arrivals = a->model->arrivals, *call = &arrivals[index];
  u64 hash = ((u64)call->rank << 32 | call->group) * 0x9e3779b97f4a7c15u;
  u32 slot = (u32)(hash >> 32) & join->mask;
  while (join->slots[slot] && !same_kernel(a, &arrivals[join->slots[slot] - 1], call))
    slot = (slot + 1) & join->mask;
  if (!join->slots[slot]) {
    join->slots[slot] = index + 1;
    return;
  }
  u32 head = join->slots[slot] - 1;
  a->next_call[index] = a->next_call[head];
  a->next_call[head] = index;
}

static bool is_grouped(const struct arrival *arrival) {
  return arrival->group && arrival->start != NS_UNKNOWN;
}

void group_calls_join(struct analysis *a) {
  const struct model *model = a->model;
  u32 grouped = 0;
  a->next_call = arena_array(a->arena, size_sum(model->n_arrivals, 1), sizeof(u32));
  for (u32 i = 0; i < model->n_arrivals; i++) {
    a->next_call[i] = i;
    grouped += is_grouped(&model->arrivals[i]);
  }
  if (!grouped)
    return;
  struct arena scratch = {0};
  struct join join = {.a = a, .mask = 1};
  while (join.mask < 2 * grouped)
    join.mask = join.mask * 2 + 1;
  join.slots = arena_array(&scratch, size_sum(join.mask, 1), sizeof(u32));
  for (u32 i = 0; join.slots && i < model->n_arrivals; i++)
    if (is_grouped(&model->arrivals[i]))
      join_if_grouped(&join, i);
  arena_release(&scratch);
}
