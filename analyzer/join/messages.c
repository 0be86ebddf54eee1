/* SPDX-License-Identifier: MIT */
#include "join/messages.h"

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "kernels/communication.h"

ORDER_BY(by_meeting, struct message_side, UP(comm) UP(source) UP(target) UP(op) UP(call))

bool call_is_message(const struct rank_call *call) {
  return op_is_message(call->op) && !call->failed && call->peer >= 0;
}

bool message_side_of(const struct model *model, u32 rank, u32 call, struct message_side *side) {
  const struct rank_events *events = model_events(model, rank);
  const struct rank_call *of = &events->calls.at[call];
  u32 comm = model_comm_of(model, rank, of->comm);
  u32 self = comm == INDEX_NONE ? TSCOPE_UNKNOWN_RANK : events->comms[of->comm].rank;
  if (!call_is_message(of) || self == TSCOPE_UNKNOWN_RANK)
    return false;
  bool send = of->op == TSCOPE_OP_SEND;
  u32 peer = (u32)of->peer;
  *side = (struct message_side){.comm = comm,
                                .source = send ? self : peer,
                                .target = send ? peer : self,
                                .rank = rank,
                                .call = call,
                                .op = of->op};
  return true;
}

void message_sides_sort(message_sides *sides) {
  SORT(sides->at, sides->n, by_meeting);
}

void message_sides_visit(const message_sides *sides, message_visitor *visit, void *user) {
  for (u32 i = 0, n; i < sides->n; i += n) {
    const struct message_side *at = &sides->at[i];
    n = ROW_OF_EQUALS(at, sides->n - i, a, b,
                      a->comm == b->comm && a->source == b->source && a->target == b->target);
    visit(user, at, NUMBER_OF(at, n, one, one->op == TSCOPE_OP_SEND), n);
  }
}
