/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "analyses/queries.h"
#include "format/dtypes.h"
#include "report/timeline/shown.h"

/* The rank at the other end of a message; of a collective none. */
static u32 peer_of(const struct model *model, const struct collective *collective, u32 arrival) {
  if (!op_is_message(collective->op) || collective->n_arrivals != 2)
    return INDEX_NONE;
  bool sends = arrival == collective->first_arrival;
  return model->ranks[members_of(model, collective)[sends].rank].rank;
}

struct shown_collective shown_collective(const struct shown_scope *scope, u32 index,
                                         struct arena *arena) {
  const struct analysis *a = scope->results->analysis;
  const struct model *model = a->model;
  struct shown_collective is = {.collective = INDEX_NONE,
                                .comm_index = INDEX_NONE,
                                .peer = INDEX_NONE,
                                .bytes = NAN,
                                .busbw_gbps = NAN,
                                .wait = NS_UNKNOWN,
                                .transfer = NS_UNKNOWN};
  if (index >= model->n_arrivals)
    return is;
  const struct arrival *arrival = &model->arrivals[index];
  is.op = op_name(arrival->op);
  i64 begin = arrival_transfer_begin(a, arrival);
  if (begin != NS_UNKNOWN && arrival->end != NS_UNKNOWN) {
    is.wait = begin - arrival->start;
    is.transfer = arrival->end - begin;
  }
  if (arrival->collective == INDEX_NONE)
    return is;
  const struct collective *of = &model->collectives[arrival->collective];
  is.collective = arrival->collective;
  is.comm_index = of->comm;
  const struct comm *comm = &model->comms[of->comm];
  is.comm = comm_label(comm->name, comm->identity, comm->size, arena);
  is.dtype = of->dtype ? tscope_dtype_name(of->dtype) : NULL;
  COPY_EACH(&is, of, algorithm, protocol, seq);
  is.members = comm->size;
  is.peer = peer_of(model, of, index);
  is.bytes = of->bytes || of->op == TSCOPE_OP_BARRIER ? (double)of->bytes : NAN;
  i64 transfer = a->transfer[arrival->collective];
  if (transfer != NS_UNKNOWN && transfer > 0 && of->bytes && is.members)
    is.busbw_gbps = (double)of->bytes / (double)transfer * op_bus_factor(of->op, is.members);
  return is;
}
