/* SPDX-License-Identifier: MIT
 *
 * One step of a 1F1B pipeline: a stage runs as many forward passes as there are stages after it,
 * then one forward and one backward pass in turn, then the remaining backward passes. The messages
 * to and from the same neighbour are in one group, so that neither rank waits for the other.
 */
#include "train.h"

static void exchange(struct rank *rank, int to, int from) {
  size_t count = (size_t)(rank->options->message_kb * 1024) / sizeof(float);
  stream_after(rank->comm_stream, rank->compute, rank->message_ready);
  NCCL(ncclGroupStart());
  if (to >= 0)
    NCCL(ncclSend(rank->activations, count, ncclFloat, to, rank->pp_comm, rank->comm_stream));
  if (from >= 0)
    NCCL(ncclRecv(rank->activations, count, ncclFloat, from, rank->pp_comm, rank->comm_stream));
  NCCL(ncclGroupEnd());
  stream_after(rank->compute, rank->comm_stream, rank->message_ready);
}

static void one_forward_one_backward(struct rank *rank) {
  const struct options *options = rank->options;
  int stages = options->pipeline, stage = rank->stage, batches = options->micro_batches;
  int before = stage > 0 ? stage - 1 : -1, after = stage < stages - 1 ? stage + 1 : -1;
  int warmup = stages - 1 - stage < batches ? stages - 1 - stage : batches,
      steady = batches - warmup;
  double forward = options->forward_ms / batches, backward = options->backward_ms / batches;

  for (int i = 0; i < warmup; i++) {
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
  for (int i = 0; i < warmup; i++) {
    exchange(rank, -1, after);
    run_kernel(rank, BACKWARD, backward);
    if (before >= 0)
      exchange(rank, before, -1);
  }
}

void pipeline_step(struct rank *rank) {
  const struct options *options = rank->options;
  if (options->schedule == SCHEDULE_1F1B)
    one_forward_one_backward(rank);
  else
    scheduled_step(rank);
  if (rank->dp_size > 1)
    for (int bucket = 0; bucket < options->buckets && options->overlap; bucket++)
      reduce_bucket(rank, bucket);
}
