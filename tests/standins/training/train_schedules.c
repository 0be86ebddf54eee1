/* SPDX-License-Identifier: MIT
 *
 * Pipelines whose stages have several parts of the model, or put off half of the backward pass.
 * Each direction has a stream for what is sent and one for what is received. NCCL runs what is
 * called on one communicator in order, so neighbouring links have communicators of their own.
 *
 * Interleaved 1F1B [Narayanan et al., 2021]: stage s has the layers s, s + p, ... of chunks; the
 * last stage sends on to the first. Zero bubble [ZB-H1, Qi et al., 2023]: the gradient of the
 * weights is computed when the gradient of the input has been sent on and nothing else is there.
 */
#include "train.h"

enum { MOST_PASSES = 512 };
enum pass { PASS_FORWARD, PASS_BACKWARD, PASS_WEIGHTS };

struct schedule {
  struct {
    enum pass pass;
    int chunk;
  } at[MOST_PASSES];
  int n, chunks;
};

static void add(struct schedule *s, enum pass pass, int chunk) {
  if (s->n < MOST_PASSES) {
    s->at[s->n].pass = pass;
    s->at[s->n++].chunk = chunk;
  }
}

static int chunk_of(int k, int stages, int chunks) {
  return k % (stages * chunks) / stages;
}

static void interleaved(struct schedule *s, int stages, int stage, int batches) {
  int chunks = s->chunks = 2, total = chunks * batches;
  int warmup = (stages - stage - 1) * 2 + (chunks - 1) * stages;
  warmup = warmup < total ? warmup : total;
  for (int k = 0; k < total + warmup; k++) {
    if (k < total)
      add(s, PASS_FORWARD, chunk_of(k, stages, chunks));
    if (k >= warmup)
      add(s, PASS_BACKWARD, chunks - 1 - chunk_of(k - warmup, stages, chunks));
  }
}

static void zero_bubble(struct schedule *s, int stages, int stage, int batches) {
  int warmup = stages - 1 - stage, weights = 0;
  s->chunks = 1;
  warmup = warmup < batches ? warmup : batches;
  for (int k = 0; k < batches + warmup; k++) {
    if (k < batches)
      add(s, PASS_FORWARD, 0);
    if (k >= warmup)
      add(s, PASS_BACKWARD, 0);
    bool steady = k >= warmup && k < batches;
    if ((steady && k - warmup + 1 - weights > stage) || k >= batches) {
      add(s, PASS_WEIGHTS, 0);
      weights++;
    }
  }
  for (; weights < batches; weights++)
    add(s, PASS_WEIGHTS, 0);
}

void make_message_comms(struct rank *rank) {
  for (int i = 0; i < 4 && rank->options->schedule; i++)
    NCCL(ncclCommSplit(rank->pp_comm, 0, rank->stage, &rank->message_comms[i / 2][i % 2], NULL));
}

static void message(struct rank *rank, enum pass pass, bool send, int peer) {
  size_t count = (size_t)(rank->options->message_kb * 1024) / sizeof(float);
  cudaStream_t stream = rank->messages[pass][send];
  bool upper = send == (pass == PASS_FORWARD); /* the link to the stage after this one */
  int stages = rank->options->pipeline, link = (rank->stage + (upper ? 0 : stages - 1)) % stages;
  ncclComm_t comm = rank->message_comms[pass][link % 2];
  if (send) {
    stream_after(stream, rank->compute, rank->message_ready);
    NCCL(ncclSend(rank->activations, count, ncclFloat, peer, comm, stream));
  } else {
    NCCL(ncclRecv(rank->activations, count, ncclFloat, peer, comm, stream));
    stream_after(rank->compute, stream, rank->message_ready);
  }
}

/* A pass of one chunk, between the message that it needs and the message that needs it. */
static void run_pass(struct rank *rank, const struct schedule *s, int i, double backward_ms) {
  const struct options *options = rank->options;
  enum pass pass = s->at[i].pass;
  int stages = options->pipeline, parts = stages * s->chunks;
  int part = s->at[i].chunk * stages + rank->stage; /* in order of layers */
  int towards = pass == PASS_FORWARD ? 1 : -1, from = part - towards, to = part + towards;
  double share = 1.0 / options->micro_batches / s->chunks;
  if (pass == PASS_WEIGHTS) {
    run_kernel(rank, BACKWARD, backward_ms * share);
    return;
  }
  if (from >= 0 && from < parts)
    message(rank, pass, false, from % stages);
  if (pass == PASS_FORWARD)
    run_kernel(rank, FORWARD, options->forward_ms * share);
  else
    run_kernel(rank, BACKWARD, backward_ms * share);
  if (to >= 0 && to < parts)
    message(rank, pass, true, to % stages);
}

void scheduled_step(struct rank *rank) {
  const struct options *options = rank->options;
  struct schedule s = {.n = 0};
  bool halves = options->schedule == SCHEDULE_ZERO_BUBBLE;
  if (halves)
    zero_bubble(&s, options->pipeline, rank->stage, options->micro_batches);
  else
    interleaved(&s, options->pipeline, rank->stage, options->micro_batches);
  for (int i = 0; i < s.n; i++)
    run_pass(rank, &s, i, options->backward_ms / (halves ? 2 : 1));
}
