/* SPDX-License-Identifier: MIT
 *
 * Which calls ran as one kernel: NCCL launches all calls of a group on one communicator and stream
 * together, such as a send to the next stage of a pipeline and a receive from it.
 */

#include "analyses/analyses.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/hash_index.h"

static u32 comm_of(const struct analysis *a, const struct arrival *arrival) {
  return arrival->collective == INDEX_NONE ? INDEX_NONE
                                           : a->model->collectives[arrival->collective].comm;
}

static bool same_kernel(const struct analysis *a, const struct arrival *x,
                        const struct arrival *y) {
  return x->rank == y->rank && x->group == y->group && x->stream == y->stream &&
         x->start == y->start && comm_of(a, x) == comm_of(a, y);
}

static void join_if_grouped(struct analysis *a, struct hash_index *heads, u32 index) {
  const struct arrival *arrivals = a->model->arrivals, *call = &arrivals[index];
  u32 hash = hash_number(0, (u64)call->rank << 32 | call->group);
  HASH_INDEX_EACH(heads, hash, head)
    if (same_kernel(a, &arrivals[head], call)) {
      a->next_call[index] = a->next_call[head];
      a->next_call[head] = index;
      return;
    }
  hash_index_add(heads, hash, index);
}

static bool is_grouped(const struct arrival *arrival) {
  return arrival->group && arrival->start != NS_UNKNOWN;
}

void group_calls_join(struct analysis *a) {
  const struct model *model = a->model;
  SCOPED struct hash_index heads = {0};
  a->next_call = arena_array(a->arena, model->n_arrivals, sizeof(u32));
  for (u32 i = 0; i < model->n_arrivals; i++) {
    a->next_call[i] = i;
    if (is_grouped(&model->arrivals[i]))
      join_if_grouped(a, &heads, i);
  }
}
