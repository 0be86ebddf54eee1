/* SPDX-License-Identifier: MIT
 *
 * What the sources of this folder share: facts found once PyTorch is there, what each thread keeps,
 * and helpers.
 */
#pragma once

#include "record/families.h"
#include "torch/torch_record.h"

#define TORCH_OP_UNKNOWN 100 /* of enum c10d::OpType */

/* A RecordFunction range that is a phase, from its start callback to its end callback. */
struct torch_range {
  const void *range; /* the at::RecordFunction */
  u64 *dur;
  u64 start;
  u8 phase;          /* enum tscope_phase, 0: none of its own */
  bool ends_forward; /* the forward pass lasts until it ends, or until the next such */
};

/* A bucket's collective that DDP has queued. */
struct torch_bucket {
  const void *reducer;
  u32 comm, seq;
};

/* polls.c: the work that a thread asks for again and again; NULL: none. */
struct torch_polls {
  const void *work;
  u32 comm, seq;
  u32 questions;
  u64 first, last;    /* question */
  u64 cpu_ns, at_cpu; /* the thread's CPU clock, and when it was read */
  u64 *dur;           /* of the wait, once it is taken for one */
  const u8 *recorded; /* up to here, with the last question */
};

#define TORCH_RANGES 64
#define TORCH_BUCKETS 512

/* In tscope_thread.family[TSCOPE_FAMILY_TORCH]. */
struct torch_thread {
  struct torch_range ranges[TORCH_RANGES]; /* open ones, outermost first */
  u32 n_ranges;
  struct torch_range forward; /* of FSDP: its end is not known before the next phase */
  u32 n_buckets;              /* that have not been waited for */
  u32 next_bucket;            /* the one being waited for */
  struct torch_bucket buckets[TORCH_BUCKETS];
  struct torch_polls polls;
};

static inline struct torch_thread *torch_thread_of(const struct tscope_thread *thread) {
  return thread->family[TSCOPE_FAMILY_TORCH];
}

struct torch_family {
  u32 gloo_run;                                           /* string: name of a gloo worker's span */
  u32 backward;                                           /* string: name of a backward pass */
  const char *(*range_name)(const void *range);           /* at::RecordFunction::name */
  u8 (*op_type)(const void *work);                        /* c10d::Work::retrieveOpType */
  u64 (*next_number)(void);                               /* at::sequence_number::peek */
  u64 (*thread_number)(void);                             /* at::RecordFunction::currentThreadId */
  int (*tensor_numel)(const void *tensor, i64 *elements); /* aoti_torch_get_numel */
  int (*tensor_dtype)(const void *tensor, i32 *scalar_type); /* aoti_torch_get_dtype */
};

extern struct torch_family torch_family;

/* Finds PyTorch and installs the range callback, unless done before; for hooks that may run before
 * the family could at wake-up. */
void torch_init(struct tscope_thread *thread);

/* enum c10d::OpType of a piece of work. */
u8 torch_op_type(const void *work);

/* Elements and bytes of a tensor or list of tensors; dtype unknown and nothing counted where this
 * PyTorch does not export that, or the tensors have several types. */
struct torch_count {
  u64 elements, bytes;
  u8 dtype; /* enum tscope_dtype */
};
struct torch_count torch_count_tensors(enum torch_tensors shape, const void *tensors);

/* The thread's CPU clock, at an instant that is now. */
void torch_record_cpu_time(struct tscope_thread *thread, u64 now);

/* Opens a COMM_WAIT; returns its dur, or NULL. */
u64 *torch_wait_record(struct tscope_thread *thread, u64 start, u32 comm, u32 seq);

/* Opens a COMM_WAIT as the scope's span. */
void torch_wait_open(struct tscope_thread *thread, struct torch_scope *scope, u32 comm, u32 seq);

/* polls.c: the thread asked whether work is done. */
void polls_note(struct tscope_thread *thread, const void *work, u32 comm, u32 seq, bool done);

/* operators.c: starts to record the operators of the backward pass. */
void operators_init(struct tscope_thread *thread);

/* Makes PyTorch report its ranges; again, in a child that was forked when it did not. */
void torch_phases_install(struct tscope_thread *thread);
void torch_listening_again(void);
