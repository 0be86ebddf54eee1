/* SPDX-License-Identifier: MIT
 *
 * A training job for the stand-in cluster: the CUDA and NCCL calls of a data-parallel,
 * pipeline-parallel or tensor-parallel trainer, with kernels that only take time. It links the
 * stand-ins by soname and has no code for a profiler, except for marks of steps with --marks.
 * `train --help` lists the options.
 *
 * Without RANK in the environment it starts one process for each rank and waits for them. With
 * RANK, WORLD_SIZE and MASTER_PORT set, as torchrun sets them, it is that rank.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../preload/include/tscope.h"
#include "train.h"

void check_cuda(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  fprintf(stderr, "train: %s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

void check_nccl(ncclResult_t error, const char *what) {
  if (error == ncclSuccess)
    return;
  fprintf(stderr, "train: %s: %s\n", what, ncclGetErrorString(error));
  exit(1);
}

static double uniform(struct rank *rank) {
  rank->random = rank->random * 6364136223846793005u + 1442695040888963407u;
  return (double)(rank->random >> 11) / 9007199254740992.0;
}

/* The factor for a kernel's time in this step: larger in warm-up and on a slow rank, and random. */
static double time_factor(struct rank *rank) {
  const struct options *options = rank->options;
  double factor = 1 + options->jitter * (2 * uniform(rank) - 1);
  if (rank->step < options->warmup)
    factor *= options->warmup_factor;
  bool slow_stage = options->pipeline > 1 &&
                    (rank->stage == options->slow_stage || rank->stage == options->slow_stage_too);
  if ((rank->rank == options->slow_rank || slow_stage) && rank->step >= options->slow_from)
    factor *= options->slow_factor;
  return factor;
}

void run_kernel(struct rank *rank, enum kernel kernel, double ms) {
  standin_next_kernel_ns((int64_t)(ms * 1e6 * time_factor(rank)));
  CUDA(launch_kernel(kernel, rank->compute));
}

/* In place, each rank its part. */
static void all_gather(struct rank *rank, size_t bytes, ncclComm_t comm, cudaStream_t stream) {
  int ranks, own;
  NCCL(ncclCommCount(comm, &ranks));
  NCCL(ncclCommUserRank(comm, &own));
  size_t count = bytes / sizeof(float) / (size_t)ranks;
  NCCL(ncclAllGather((float *)rank->gradients + (size_t)own * count, rank->gradients, count,
                     ncclFloat, comm, stream));
}

void all_reduce(struct rank *rank, size_t bytes, ncclComm_t comm, cudaStream_t stream) {
  if (rank->options->family)
    family_all_reduce(rank, bytes, comm, stream);
  else if (rank->options->gather)
    all_gather(rank, bytes, comm, stream);
  else
    NCCL(ncclAllReduce(rank->gradients, rank->gradients, bytes / sizeof(float), ncclFloat, ncclSum,
                       comm, stream));
}

void stream_after(cudaStream_t later, cudaStream_t earlier, cudaEvent_t event) {
  CUDA(cudaEventRecord(event, earlier));
  CUDA(cudaStreamWaitEvent(later, event, 0));
}

enum fault {
  FAULT_SLEEP = 1,
  FAULT_DIE,
  FAULT_STOP,
  FAULT_SKIP,
  FAULT_HALF,
  FAULT_EXIT,
  FAULT_ABORT,
  FAULT_CRASH,
  FAULT_EXTRA,
  FAULT_ERROR,
  FAULT_MEMORY
};

static bool is_fault_due(const struct rank *rank, int bucket) {
  const struct options *options = rank->options;
  bool has_fault = rank->rank == options->fault_rank || rank->rank == options->fault_rank_too;
  return bucket == 0 && has_fault && rank->step == options->fault_step;
}

static void inject_fault(enum fault fault) {
  while (fault == FAULT_SLEEP)
    pause();
  if (fault == FAULT_DIE || fault == FAULT_STOP)
    raise(fault == FAULT_DIE ? SIGKILL : SIGSTOP);
  if (fault == FAULT_EXIT)
    exit(3);
  if (fault == FAULT_ABORT)
    abort();
  if (fault == FAULT_CRASH)
    raise(SIGSEGV);
  while (fault == FAULT_MEMORY) {
    char *memory = malloc(16 << 20);
    if (memory)
      memset(memory, 1, 16 << 20);
  }
}

void fall_ill(const struct rank *rank) {
  if (is_fault_due(rank, 0))
    inject_fault((enum fault)rank->options->fault);
}

/* The bucket's gradients are complete: reduces them while the backward pass goes on. */
void reduce_bucket(struct rank *rank, int bucket) {
  const struct options *options = rank->options;
  double kb = bucket ? options->bucket_kb : options->first_bucket_kb;
  if (is_fault_due(rank, bucket)) {
    inject_fault((enum fault)options->fault);
    if (options->fault == FAULT_SKIP)
      return;
    if (options->fault == FAULT_HALF)
      kb /= 2;
    if (options->fault == FAULT_EXTRA)
      all_reduce(rank, (size_t)(kb * 1024), rank->dp_comm, rank->comm_stream);
    if (options->fault == FAULT_ERROR)
      NCCL(ncclAllReduce(rank->comm_stream, rank->comm_stream, 1, (ncclDataType_t)99, ncclSum,
                         rank->dp_comm, rank->comm_stream));
  }
  stream_after(rank->comm_stream, rank->compute, rank->buckets[bucket]);
  all_reduce(rank, (size_t)(kb * 1024), rank->dp_comm, rank->comm_stream);
  if (options->peer_kb > 0)
    CUDA(cudaMemcpyPeerAsync(rank->gradients, 0, rank->activations, 0,
                             (size_t)(options->peer_kb * 1024), rank->comm_stream));
}

static void run_layers(struct rank *rank, enum kernel kernel, double ms, bool backward) {
  const struct options *options = rank->options;
  int per_bucket = (options->layers + options->buckets - 1) / options->buckets;
  for (int layer = 0; layer < options->layers; layer++) {
    run_kernel(rank, kernel, ms / options->layers);
    run_gemms(rank);
    if (options->experts)
      exchange_tokens(rank);
    else if (options->tensor > 1) /* the activations of the layer, on the compute stream */
      all_reduce(rank, (size_t)(options->tensor_kb * 1024), rank->tp_comm, rank->compute);
    bool full = (layer + 1) % per_bucket == 0 || layer + 1 == options->layers;
    if (backward && full && rank->dp_size > 1 && options->overlap)
      reduce_bucket(rank, layer / per_bucket);
  }
}

static void reduce_gradients_at_end(struct rank *rank) {
  if (rank->dp_size > 1 && !rank->options->overlap)
    for (int bucket = 0; bucket < rank->options->buckets; bucket++)
      reduce_bucket(rank, bucket);
}

static void load_input(struct rank *rank) {
  const struct options *options = rank->options;
  double ms = rank->rank == options->slow_input_rank || options->slow_input_rank < 0
                  ? options->input_ms
                  : 0;
  if (ms > 0) {
    struct timespec left = {(time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6)};
    while (nanosleep(&left, &left) != 0)
      ;
  }
  CUDA(cudaMemcpyAsync(rank->input, rank->host_input, (size_t)(options->input_kb * 1024),
                       cudaMemcpyHostToDevice, rank->compute));
}

/* The host is at most `ahead` steps ahead of the GPU, as in a trainer that reads its loss late. */
static void wait_for_earlier_step(struct rank *rank) {
  int ahead = rank->options->ahead;
  if (ahead && rank->step >= ahead)
    CUDA(cudaEventSynchronize(rank->step_done[(rank->step - ahead) % MAX_AHEAD]));
}

/* The GPU work of a step, without its input. */
static void launch_step(struct rank *rank) {
  const struct options *options = rank->options;
  if (options->pipeline > 1) {
    pipeline_step(rank);
  } else {
    run_layers(rank, FORWARD, options->forward_ms, false);
    run_layers(rank, BACKWARD, options->backward_ms, true);
  }
  reduce_gradients_at_end(rank);
  stream_after(rank->compute, rank->comm_stream, rank->reduced);
  run_kernel(rank, OPTIMIZER, options->optimizer_ms);
}

/* Launches the step as a graph, which is captured the first time. */
static void launch_graph(struct rank *rank) {
  if (!rank->graph) {
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(rank->compute, cudaStreamCaptureModeThreadLocal));
    launch_step(rank);
    CUDA(cudaStreamEndCapture(rank->compute, &graph));
    CUDA(cudaGraphInstantiateWithFlags(&rank->graph, graph, 0));
    CUDA(cudaGraphDestroy(graph));
  }
  CUDA(cudaGraphLaunch(rank->graph, rank->compute));
}

static void step(struct rank *rank) {
  int graph = rank->options->graph;
  wait_for_earlier_step(rank);
  standin_mark("step", rank->step);
  load_input(rank);
  standin_mark("launch", rank->step);
  if (graph && rank->step >= graph)
    launch_graph(rank);
  else
    launch_step(rank);
  CUDA(cudaEventRecord(rank->step_done[rank->step % MAX_AHEAD], rank->compute));
}

/* Neighbouring ranks form a tensor-parallel group; the next level is the pipeline, then data. */
static void make_communicators(struct rank *rank) {
  const struct options *options = rank->options;
  int tensor = options->tensor, pipeline = options->pipeline;
  int id = options->alone ? 0 : rank->rank;
  ncclUniqueId unique;
  if (options->alone)
    NCCL(ncclGetUniqueId(&unique));
  else
    unique = rendezvous(rank);
  NCCL(ncclCommInitRank(&rank->world, rank->size, unique, id));
  rank->stage = id / tensor % pipeline;
  rank->dp_size = rank->size / (tensor * pipeline);
  rank->dp_comm = rank->world;
  if (tensor > 1)
    NCCL(ncclCommSplit(rank->world, id / tensor, id, &rank->tp_comm, NULL));
  if (pipeline > 1)
    NCCL(ncclCommSplit(rank->world, id / (tensor * pipeline) * tensor + id % tensor, id,
                       &rank->pp_comm, NULL));
  if (tensor * pipeline > 1)
    NCCL(ncclCommSplit(rank->world, id % (tensor * pipeline), id, &rank->dp_comm, NULL));
}

static void set_up(struct rank *rank) {
  const struct options *options = rank->options;
  size_t kb =
      (size_t)fmax(fmax(options->bucket_kb, fmax(options->first_bucket_kb, options->peer_kb)),
                   fmax(options->tensor_kb, options->message_kb));
  CUDA(cudaSetDevice(rank->local_rank));
  make_communicators(rank);
  make_message_comms(rank);
  CUDA(cudaStreamCreateWithFlags(&rank->compute, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&rank->comm_stream, cudaStreamNonBlocking));
  for (int i = 0; i < 4 && options->schedule; i++)
    CUDA(cudaStreamCreateWithFlags(&rank->messages[i / 2][i % 2], cudaStreamNonBlocking));
  for (int i = 0; i < options->buckets; i++)
    CUDA(cudaEventCreateWithFlags(&rank->buckets[i], cudaEventDisableTiming));
  for (int i = 0; i < MAX_AHEAD; i++)
    CUDA(cudaEventCreateWithFlags(&rank->step_done[i], cudaEventDisableTiming));
  CUDA(cudaEventCreateWithFlags(&rank->reduced, cudaEventDisableTiming));
  CUDA(cudaEventCreateWithFlags(&rank->message_ready, cudaEventDisableTiming));
  CUDA(cudaMalloc((void **)&rank->gradients, kb * 1024));
  CUDA(cudaMalloc((void **)&rank->activations, kb * 1024));
  CUDA(cudaMalloc((void **)&rank->input, (size_t)(options->input_kb * 1024)));
  CUDA(cudaMallocHost((void **)&rank->host_input, (size_t)(options->input_kb * 1024)));
  memset(rank->host_input, 1, (size_t)(options->input_kb * 1024));
  CUDA(cudaMemsetAsync(rank->gradients, 0, kb * 1024, rank->compute));
  CUDA(cudaMemsetAsync(rank->activations, 0, kb * 1024, rank->compute));
  CUDA(cudaDeviceSynchronize());
}

/* The loss after the last step: the sum of a number from each rank, to show that data was really
 * reduced. */
static float read_loss(struct rank *rank) {
  float loss = (float)(rank->rank + 1);
  CUDA(
      cudaMemcpyAsync(rank->gradients, &loss, sizeof(loss), cudaMemcpyHostToDevice, rank->compute));
  all_reduce(rank, sizeof(loss), rank->world, rank->compute);
  CUDA(
      cudaMemcpyAsync(&loss, rank->gradients, sizeof(loss), cudaMemcpyDeviceToHost, rank->compute));
  CUDA(cudaStreamSynchronize(rank->compute));
  return loss;
}

static void tear_down(struct rank *rank) {
  CUDA(cudaDeviceSynchronize());
  end_gemms(rank);
  if (rank->graph)
    CUDA(cudaGraphExecDestroy(rank->graph));
  if (rank->dp_comm != rank->world)
    NCCL(ncclCommDestroy(rank->dp_comm));
  if (rank->tp_comm)
    NCCL(ncclCommDestroy(rank->tp_comm));
  if (rank->pp_comm)
    NCCL(ncclCommDestroy(rank->pp_comm));
  for (int i = 0; i < 4 && rank->options->schedule; i++)
    NCCL(ncclCommDestroy(rank->message_comms[i / 2][i % 2]));
  NCCL(ncclCommDestroy(rank->world));
  for (int i = 0; i < rank->options->buckets; i++)
    CUDA(cudaEventDestroy(rank->buckets[i]));
  for (int i = 0; i < MAX_AHEAD; i++)
    CUDA(cudaEventDestroy(rank->step_done[i]));
  CUDA(cudaEventDestroy(rank->reduced));
  CUDA(cudaEventDestroy(rank->message_ready));
  CUDA(cudaStreamDestroy(rank->compute));
  CUDA(cudaStreamDestroy(rank->comm_stream));
  for (int i = 0; i < 4 && rank->options->schedule; i++)
    CUDA(cudaStreamDestroy(rank->messages[i / 2][i % 2]));
  CUDA(cudaFree(rank->gradients));
  CUDA(cudaFree(rank->activations));
  CUDA(cudaFree(rank->input));
  CUDA(cudaFreeHost(rank->host_input));
}

static int run_rank(const struct options *options) {
  struct rank rank = {.options = options,
                      .rank = environment_number("RANK", 0),
                      .size = options->alone ? 1 : environment_number("WORLD_SIZE", 1),
                      .local_rank = environment_number("LOCAL_RANK", 0)};
  rank.random = (uint64_t)(options->seed + 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank.rank * 7919;
  if (rank.size % (options->tensor * options->pipeline)) {
    fprintf(stderr, "train: %d ranks cannot be split in %d x %d\n", rank.size, options->tensor,
            options->pipeline);
    return 2;
  }
  register_kernels(options->family ? family_preparation(options->family) : NULL);
  set_up(&rank);
  for (; rank.step < options->steps; rank.step++) {
    if (options->marks)
      TSCOPE_STEP((uint64_t)rank.step);
    step(&rank);
  }
  CUDA(cudaDeviceSynchronize());
  standin_mark("end", options->steps);
  float loss = options->loss ? read_loss(&rank) : 0;
  tear_down(&rank);
  if (options->loss && rank.rank == 0)
    printf("loss %.9g\n", (double)loss);
  return 0;
}

int main(int argc, char **argv) {
  struct options options = options_default;
  int status = options_parse(&options, argc, argv);
  if (status >= 0)
    return status;
  if (getenv("RANK"))
    return run_rank(&options);
  return launch_ranks(&options, argv);
}
