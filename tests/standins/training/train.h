/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the training program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "../standin.h"

enum { MAX_BUCKETS = 64, MAX_AHEAD = 8 };

/* The options, all of them numbers: X(type, field, "--name", default, "help"). */
#define TRAIN_OPTIONS(X)                                                                           \
  X(int, ranks, "--ranks", 4, "processes to run, when no launcher has set RANK")                   \
  X(int, steps, "--steps", 40, "training steps")                                                   \
  X(int, layers, "--layers", 8, "layers, each one kernel forward and one backward")                \
  X(double, forward_ms, "--forward-ms", 8, "computation of the forward pass")                      \
  X(double, backward_ms, "--backward-ms", 12, "computation of the backward pass")                  \
  X(double, optimizer_ms, "--optimizer-ms", 2, "computation of the optimizer")                     \
  X(int, buckets, "--buckets", 4, "gradient all-reduces per step")                                 \
  X(double, bucket_kb, "--bucket-kb", 256, "size of each bucket")                                  \
  X(double, first_bucket_kb, "--first-bucket-kb", 64, "of the first, smaller as in PyTorch's DDP") \
  X(int, overlap, "--overlap", 1, "0: reduce gradients only after the backward pass")              \
  X(int, gather, "--gather", 0, "1: gather gradients instead of summing them")                     \
  X(double, peer_kb, "--peer-kb", 0, "copied to another GPU after each bucket")                    \
  X(double, input_kb, "--input-kb", 256, "input copied to the device each step")                   \
  X(double, input_ms, "--input-ms", 0, "time the host takes to get the input of a step")           \
  X(int, slow_input_rank, "--slow-input-rank", -1, "the only rank with --input-ms; -1: all")       \
  X(int, slow_rank, "--slow-rank", -1, "rank whose kernels take longer; -1: none")                 \
  X(double, slow_factor, "--slow-factor", 1.3, "by this factor")                                   \
  X(int, slow_from, "--slow-from", 0, "first step in which it is slow")                            \
  X(int, fault, "--fault", 0,                                                                      \
    "1: sleep for ever, 2: die, 3: stop, 4: skip an all-reduce, 5: one of half the size, "         \
    "6: exit(3), 7: abort, 8: crash, 9: one all-reduce too many, 10: a call that NCCL refuses, "   \
    "11: take memory without end")                                                                 \
  X(int, fault_rank, "--fault-rank", 1, "rank with the fault, before its first bucket")            \
  X(int, fault_rank_too, "--fault-rank-too", -1, "a second rank with it")                          \
  X(int, fault_step, "--fault-step", 10, "step of the fault")                                      \
  X(int, tensor, "--tensor", 1, "ranks in a tensor-parallel group (ncclCommSplit)")                \
  X(double, tensor_kb, "--tensor-kb", 128, "all-reduce after each layer in such a group")          \
  X(int, experts, "--experts", 0,                                                                  \
    "1: such a group exchanges unequal parts, by send and receive, instead of summing")            \
  X(int, pipeline, "--pipeline", 1, "stages of a pipeline, 1F1B with send and receive")            \
  X(int, schedule, "--schedule", 0, "of a pipeline; 0: 1F1B, 1: interleaved, 2: zero bubble")      \
  X(int, slow_stage, "--slow-stage", -1, "stage whose kernels take longer; -1: none")              \
  X(int, slow_stage_too, "--slow-stage-too", -1, "a second stage that is as slow")                 \
  X(int, micro_batches, "--micro-batches", 4, "micro-batches per step in a pipeline")              \
  X(double, message_kb, "--message-kb", 128, "activations sent between stages")                    \
  X(int, warmup, "--warmup", 3, "first steps that are slower")                                     \
  X(double, warmup_factor, "--warmup-factor", 1.8, "by this factor")                               \
  X(double, jitter, "--jitter", 0.02, "kernel times vary by this share")                           \
  X(int, ahead, "--ahead", 2,                                                                      \
    "steps that the host may run ahead of the GPU, 1 to 8; 0: it never waits")                     \
  X(int, graph, "--graph", 0, "from this step on, the step is one CUDA graph; 0: none is")         \
  X(int, gemms, "--gemms", 0, "GEMMs in each layer, so many of each kind (bf16, tf32, fp32)")      \
  X(int, seed, "--seed", 1, "seed of the variation")                                               \
  X(int, alone, "--alone", 0, "1: every rank trains alone, in its own world")                      \
  X(int, marks, "--marks", 0, "1: marks the steps with tscope.h")                                  \
  X(int, loss, "--loss", 1, "0: no all-reduce of a loss after the last step")                      \
  X(double, link_gbps, "--link-gbps", 0.5,                                                         \
    "bandwidth between ranks, GB/s (small, as the data is)")                                       \
  X(double, latency_us, "--latency-us", 20, "latency of a collective")

struct options {
#define FIELD(type, field, name, fallback, help) type field;
  TRAIN_OPTIONS(FIELD)
#undef FIELD
  const char *slow_link; /* "2-3:0.25": the link runs at a quarter */
  const char *family;    /* whose kernels reduce; NULL: NCCL's */
  const char *log;       /* directory for the op logs and truth.json */
};

extern const struct options options_default;
/* Returns -1 if the program shall go on, else its exit status. */
int options_parse(struct options *options, int argc, char **argv);

enum schedule_kind { SCHEDULE_1F1B, SCHEDULE_INTERLEAVED, SCHEDULE_ZERO_BUBBLE };
enum kernel { FORWARD, BACKWARD, OPTIMIZER, PREPARATION, N_KERNELS };

struct rank {
  const struct options *options;
  int rank, size, local_rank, stage, dp_size, step;
  uint64_t random;
  ncclComm_t world, dp_comm, tp_comm, pp_comm; /* dp_comm may be world */
  cudaStream_t compute, comm_stream;
  ncclComm_t message_comms[2][2]; /* [direction][link is odd] */
  cudaStream_t messages[2][2];    /* of other schedules than 1F1B: [direction][sent] */
  cudaEvent_t buckets[MAX_BUCKETS], step_done[MAX_AHEAD], reduced, message_ready;
  cudaGraphExec_t graph; /* of a whole step */
  void *blas;            /* cuBLAS handle; NULL until the first GEMM */
  float *gradients, *activations;
  char *input, *host_input;
};

#define CUDA(call) check_cuda(call, #call)
#define NCCL(call) check_nccl(call, #call)
void check_cuda(cudaError_t error, const char *what);
void check_nccl(ncclResult_t error, const char *what);

void run_kernel(struct rank *rank, enum kernel kernel, double ms);
void reduce_bucket(struct rank *rank, int bucket);
void all_reduce(struct rank *rank, size_t bytes, ncclComm_t comm, cudaStream_t stream);
/* Future work on `later` waits for the present work on `earlier`. */
void stream_after(cudaStream_t later, cudaStream_t earlier, cudaEvent_t event);
/* train_gemms.c */
void run_gemms(struct rank *rank);
void end_gemms(struct rank *rank);
/* train_families.c */
void family_names(void); /* prints them */
void family_all_reduce(struct rank *rank, size_t bytes, ncclComm_t comm, cudaStream_t stream);
/* The kernel that this library runs on one GPU alone; NULL if there is none. */
const char *family_preparation(const char *name);
/* The fault of the options, if it is this rank's in this step; not all faults come back. */
void fall_ill(const struct rank *rank);
/* train_experts.c */
void exchange_tokens(struct rank *rank);
/* train_pipeline.c */
void pipeline_step(struct rank *rank);
/* train_schedules.c */
void make_message_comms(struct rank *rank);
void scheduled_step(struct rank *rank);
/* train_kernels.c: registration and launch as nvcc compiles them for this CUDA version */
void register_kernels(const char *preparation);
cudaError_t launch_kernel(enum kernel kernel, cudaStream_t stream);
/* train_launch.c */
int environment_number(const char *name, int fallback);
int launch_ranks(const struct options *options, char **argv);
ncclUniqueId rendezvous(const struct rank *rank);
