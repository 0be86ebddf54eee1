/* SPDX-License-Identifier: MIT
 *
 * The time of a collective's transfer after all ranks have arrived:
 *
 *   STANDIN_LATENCY_US (10) + S x bus factor / (STANDIN_LINK_GBPS (50) x slowest link of the ring)
 *
 * with the bus factors of nccl-tests' PERFORMANCE.md, so that the bus bandwidth of a long transfer
 * is the bandwidth of the slowest link. STANDIN_SLOW_LINK="2-3:0.25,..." makes the link between
 * global ranks 2 and 3 run at a quarter of its bandwidth. A ring has a link from each rank of the
 * communicator to the next; a message uses the link between its two ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"

size_t dtype_bytes(ncclDataType_t dtype) {
  switch (dtype) {
  case ncclInt8:
  case ncclUint8:
  case ncclFloat8e4m3:
  case ncclFloat8e5m2:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default:
    return 0;
  }
}

size_t call_bytes(const struct call *call) {
  size_t bytes = call->count * dtype_bytes(call->dtype);
  switch (call->kind) {
  case CALL_ALLGATHER:
  case CALL_REDUCESCATTER:
  case CALL_ALLTOALL:
  case CALL_GATHER:
  case CALL_SCATTER:
    return bytes * (size_t)call->comm->nranks;
  default:
    return bytes;
  }
}

static double bus_factor(enum call_kind kind, int n) {
  switch (kind) {
  case CALL_ALLREDUCE:
    return 2.0 * (n - 1) / n;
  case CALL_ALLGATHER:
  case CALL_REDUCESCATTER:
  case CALL_ALLTOALL:
  case CALL_GATHER:
  case CALL_SCATTER:
    return (double)(n - 1) / n;
  default:
    return 1;
  }
}

static double link_factor(int left, int right) {
  const char *text = getenv("STANDIN_SLOW_LINK");
  double factor;
  int a, b;
  while (text && sscanf(text, "%d-%d:%lf", &a, &b, &factor) == 3) {
    if ((a == left && b == right) || (a == right && b == left))
      return factor;
    text = strchr(text, ',');
    if (text)
      text++;
  }
  return 1;
}

static double slowest_link(const struct call *call) {
  const struct ncclComm *comm = call->comm;
  const struct member *members = comm->segment->members;
  if (call->kind == CALL_SEND || call->kind == CALL_RECV)
    return link_factor(members[comm->rank].global_rank, members[call->peer].global_rank);
  double slowest = 1;
  for (int rank = 0; rank < comm->nranks; rank++) {
    double factor =
        link_factor(members[rank].global_rank, members[(rank + 1) % comm->nranks].global_rank);
    if (factor < slowest)
      slowest = factor;
  }
  return slowest;
}

int64_t law_transfer_ns(const struct call *call) {
  double latency = sim_setting("LATENCY_US", 10) * 1e3;
  double bytes_per_ns = sim_setting("LINK_GBPS", 50) * slowest_link(call);
  double bytes = (double)call_bytes(call) * bus_factor(call->kind, call->comm->nranks);
  return (int64_t)(latency + bytes / bytes_per_ns);
}
