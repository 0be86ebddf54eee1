/* SPDX-License-Identifier: MIT
 *
 * Which send meets which receive: the i-th send from one member of a communicator to another meets
 * the i-th receive there from it.
 */
#pragma once

#include "join/joining.h"

/* One side of a message. */
struct message_side {
  u32 comm, source, target; /* of model.comms; members by their number in it */
  u32 rank, call;           /* in order of time for each rank and op */
  u32 bundle;               /* of exchanges.h */
  u8 op;
};

typedef VECTOR(struct message_side) message_sides;

/* Whether a call sends or receives, and did not fail. */
bool call_is_message(const struct rank_call *call);

/* The side that this call of a rank is; false where it is none, or not known between whom. */
bool message_side_of(const struct model *model, u32 rank, u32 call, struct message_side *side);

/* Those of one source and target, the sends first: [0, n_sends) and [n_sends, n). */
typedef void message_visitor(void *user, const struct message_side *at, u32 n_sends, u32 n);

void message_sides_sort(message_sides *sides);
void message_sides_visit(const message_sides *sides, message_visitor *visit, void *user);
