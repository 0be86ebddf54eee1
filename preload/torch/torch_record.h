/* SPDX-License-Identifier: MIT
 *
 * What each recorder of torch_hooks.def does before (_begin) and after (_end) the real call. Every
 * _begin pushes `scope`, recording or not; every _end pops it. Those without a scope say their
 * shape, TORCH_SHAPE_recorder: see torch_hooks.c.
 */
#pragma once

#include "torch/torch_scope.h"

/* The _end of a recorder for which the call's end means nothing. */
#define TORCH_ONLY_POPS(recorder)                                                                  \
  static inline void recorder##_end(struct torch_scope *scope) {                                   \
    torch_scope_pop(scope);                                                                        \
  }

/* Where a collective's element count comes from. */
enum torch_tensors {
  NO_TENSORS,
  TENSOR,  /* at::Tensor */
  TENSORS, /* std::vector<at::Tensor> */
};

/* What of a collective's c10d::…Options is worth reading. */
enum torch_options {
  PLAIN,
  REDUCES,       /* starts with the ReduceOp */
  ROOTED,        /* starts with the root rank */
  REDUCES_ROOTED /* ReduceOp, then root rank */
};

/* gloo_work.c: collectives and transfers */
void call_begin(struct torch_scope *scope, enum torch_tensors tensors_shape, const void *tensors,
                enum torch_options options_shape, const void *options);
TORCH_ONLY_POPS(call)
void transfer_begin(struct torch_scope *scope, enum tscope_op op, const void *group,
                    const void *tensors, int peer, void *result);
void transfer_end(struct torch_scope *scope);
void enqueue_begin(struct torch_scope *scope, const void *group, const void *work);
TORCH_ONLY_POPS(enqueue)
void run_begin(struct torch_scope *scope, const void *work);
TORCH_ONLY_POPS(run)
void wait_begin(struct torch_scope *scope, const void *self);
TORCH_ONLY_POPS(wait)
#define TORCH_SHAPE_polled ~, AFTER
void polled_after(bool done, const void *self);
void forget_begin(struct torch_scope *scope, const void *self);
TORCH_ONLY_POPS(forget)

/* gloo_comm.c: process groups */
void group_made_begin(struct torch_scope *scope, const void *group, int rank, int size);
void group_made_end(struct torch_scope *scope);
void nccl_comm_made_begin(struct torch_scope *scope, const void *group);
TORCH_ONLY_POPS(nccl_comm_made)
void group_end_begin(struct torch_scope *scope, const void *group);
TORCH_ONLY_POPS(group_end)
void group_named_begin(struct torch_scope *scope, const void *name);
TORCH_ONLY_POPS(group_named)
void group_described_begin(struct torch_scope *scope, const void *text);
TORCH_ONLY_POPS(group_described)

/* ddp.c: DistributedDataParallel's waits */
void bucket_queued_begin(struct torch_scope *scope, const void *reducer);
void bucket_queued_end(struct torch_scope *scope);
void buckets_waited_begin(struct torch_scope *scope, const void *reducer);
void buckets_waited_end(struct torch_scope *scope);
void bucket_arrived_begin(struct torch_scope *scope);
void bucket_arrived_end(struct torch_scope *scope);

/* torch_phases.c */
void backward_begin(struct torch_scope *scope);
TORCH_ONLY_POPS(backward)

/* operators.c: their numbers, and autograd's functions for them */
#define TORCH_SHAPE_numbered ~, BEFORE
void numbered_before(void);
void evaluated_begin(struct torch_scope *scope, const void *evaluated);
TORCH_ONLY_POPS(evaluated)

/* tensor_memory.c */
#define TSCOPE_TORCH_CPU 0xff00u /* c10::Device: type CPU, no index */
#define TORCH_SHAPE_tensor ~, GUARDED
#define TORCH_SHAPE_tensor_totals ~, GUARDED
#define TORCH_SHAPE_tensor_refused ~, GUARDED
void record_tensor(struct tscope_thread *thread, u16 device, const void *address, i64 bytes);
void record_tensor_totals(struct tscope_thread *thread, u16 device, const void *address, i64 bytes,
                          u64 allocated, u64 reserved);
void record_tensor_refused(struct tscope_thread *thread, u16 device, i64 bytes, u64 allocated,
                           u64 reserved);
