/* SPDX-License-Identifier: MIT
 *
 * The distinct names of one trace, each with what it means: determined once per name, not per
 * event.
 */
#pragma once

#include <string.h>

#include "base/arena.h"
#include "base/hash_index.h"
#include "import/kineto/json_scan.h"
#include "kernels/kernels.h"

/* What a call of the GPU runtime does. */
enum kineto_call {
  KINETO_CALL_OTHER,
  KINETO_CALL_LAUNCH, /* a kernel or a graph */
  KINETO_CALL_MEMCPY, /* asynchronous, or not: then it waits */
  KINETO_CALL_MEMSET,
  KINETO_CALL_SYNC_DEVICE,
  KINETO_CALL_SYNC_STREAM,
  KINETO_CALL_SYNC_EVENT,
  KINETO_CALL_EVENT_RECORD,
  KINETO_CALL_STREAM_WAIT,
  KINETO_CALL_CAPTURE_BEGIN,
  KINETO_CALL_CAPTURE_END,
  KINETO_CALL_INSTANTIATE, /* what was captured becomes launchable */
};

struct kineto_name {
  const char *text;
  const char *raw; /* with its escapes */
  u32 raw_bytes;
  u64 step;                           /* ProfilerStep#step */
  u8 call;                            /* enum kineto_call */
  u8 phase;                           /* enum tscope_phase of an annotation or operator; 0 none */
  u8 op;                              /* enum tscope_op that an annotation is named after; 0 any */
  u8 copy;                            /* enum tscope_memcpy that a copy is named after */
  bool copies;                        /* work of a device that copies, whatever its category */
  bool is_step;                       /* ProfilerStep# */
  u8 iteration;                       /* enum step_kind of an inference engine's annotation; 0 */
  struct communication communication; /* of a kernel; see kineto_communication() */
  bool communication_known;
  bool comm_range;   /* of an annotation: nccl:all_reduce and the like */
  bool comm_worker;  /* of those: as it ran, on a worker of the host (gloo) */
  u8 worker_op;      /* an operator that gives a worker a collective to run (c10d::allreduce_) */
  bool waits;        /* an operator that waits for one */
  bool waits_inside; /* a function of PyTorch that only runs operators and waits */
  bool param_comms;  /* record_param_comms */
  bool backward;     /* autograd's own ranges */
  bool fill;         /* of an operator: aten::fill_ and the like */
};

struct kineto_names {
  struct arena arena;
  HASHED(struct kineto_name) list;   /* [0] is the empty one */
  u64 bad_escapes;                   /* names that have some */
  struct kernel_names *kernel_names; /* NULL: the built-in table */
};

/* Number of a name, 0 for the empty one. */
u32 kineto_name_of(struct kineto_names *names, struct json_text text);

static inline u32 kineto_number_of(struct kineto_names *names, const char *name) {
  return kineto_name_of(names, (struct json_text){.at = name, .n = (u32)strlen(name)});
}

/* What the kernel of that name communicates. */
struct communication kineto_communication(struct kineto_names *names, u32 name);

void kineto_names_free(struct kineto_names *names);
