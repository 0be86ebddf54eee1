/* SPDX-License-Identifier: MIT
 *
 * One step of a pipeline, one forward, one backward: a stage takes in as many micro-batches as
 * there are stages behind it, then alternates, then drains. What goes to and comes from the same
 * neighbour goes in one group, so that neither waits for the other to start.
 */
#include "train.h"

static void exchange(struct rank *rank, int to, int from) {
  size_t count = (size_t)(rank->options->message_kb * 1024) / sizeof(float);
  stream_after(rank->comm_stream, rank->compute, rank->handed);
  NCCL(ncclGroupStart());
  if (to >= 0)
    NCCL(ncclSend(rank->activations, count, ncclFloat, to, rank->pp_comm, rank->comm_stream));
  if (from >= 0)
    NCCL(ncclRecv(rank->activations, count, ncclFloat, from, rank->pp_comm, rank->comm_stream));
  NCCL(ncclGroupEnd());
  stream_after(rank->compute, rank->comm_stream, rank->handed);
}

void pipeline_step(struct rank *rank) {
  const struct options *options = rank->options;
  int stages = options->pipeline, stage = rank->stage, batches = options->micro_batches;
  int before = stage > 0 ? stage - 1 : -1, after = stage < stages - 1 ? stage + 1 : -1;
  int warm = stages - 1 - stage < batches ? stages - 1 - stage : batches, steady = batches - warm;
  double forward = options->forward_ms / batches, backward = options->backward_ms / batches;

  for (int i = 0; i < warm; i++) {
    if (before >= 0)
      exchange(rank, -1, before);
    run_kernel(rank, FORWARD, forward);
    exchange(rank, after, -1);
  }
  if (steady && before >= 0)
    exchange(rank, -1, before);
  for (int i = 0; i < steady; i++) {
    run_kernel(rank, FORWARD, forward);
    if (after >= 0)
      exchange(rank, after, after);
    run_kernel(rank, BACKWARD, backward);
    if (before >= 0)
      exchange(rank, before, i + 1 < steady ? before : -1);
  }
  for (int i = 0; i < warm; i++) {
    exchange(rank, -1, after);
    run_kernel(rank, BACKWARD, backward);
    if (before >= 0)
      exchange(rank, before, -1);
  }
  if (rank->dp_size > 1)
    for (int bucket = 0; bucket < options->buckets && options->overlap; bucket++)
      reduce_bucket(rank, bucket);
}
