/* SPDX-License-Identifier: MIT
 *
 * GEMMs of one rank, beyond struct arithmetic: their shapes, the times that pairs of events
 * measured for some of them, and the GEMMs in CUDA graphs.
 */
#pragma once

#include "kernels/precision.h"
#include "model/rank_timeline.h"

struct gemm_shape {
  u32 m, n, k, batch; /* TSCOPE_UNKNOWN if not known or not the same for the whole batch */
  u8 a, b, c;         /* enum tscope_dtype */
  u8 precision;       /* enum precision */
};

/* A GEMM between a pair of events: one of `one_in` calls. */
struct gemm_time {
  i64 start, end; /* from when the GPU reached the first event to when it reached the second */
  u32 call;       /* index into timeline.arithmetic */
  u32 one_in;
};

/* Calls of one shape in a graph. */
struct graph_gemm {
  u32 shape, calls;
  u64 flops; /* of one, ARITHMETIC_UNKNOWN if not known */
};

/* Kernels of one name that a graph's GEMMs launched. */
struct graph_kernel {
  u32 name;     /* for timeline_name() */
  u32 count;    /* in one replay */
  u8 precision; /* enum precision of the GEMMs; PRECISION_UNKNOWN if they differ */
};

/* What a graph does each time it is launched. */
struct graph_content {
  u32 captured; /* number of the captured graph */
  u32 calls;
  u64 flops; /* of all that are known */
  struct graph_gemm *gemms;
  struct graph_kernel *kernels;
  u32 n_gemms, n_kernels;
  bool named; /* all kernels of all GEMMs are in `kernels` */
};

struct gemms {
  struct gemm_shape *shapes; /* struct arithmetic's `what` of a GEMM */
  struct gemm_time *times;
  struct graph_content *contents; /* `what` of a replay */
  u32 n_shapes, n_times, n_contents;
};

/* The shape of a GEMM, NULL if not known. */
static inline const struct gemm_shape *gemm_shape(const struct timeline *timeline,
                                                  const struct arithmetic *gemm) {
  const struct gemms *gemms = timeline->gemms;
  bool known = gemms && !gemm->estimate && !gemm->replay && gemm->what < gemms->n_shapes;
  return known ? &gemms->shapes[gemm->what] : NULL;
}

/* The content of a replay, NULL if it is not known. */
static inline const struct graph_content *replay_content(const struct timeline *timeline,
                                                         const struct arithmetic *replay) {
  const struct gemms *gemms = timeline->gemms;
  bool known = gemms && replay->replay && replay->what < gemms->n_contents;
  return known ? &gemms->contents[replay->what] : NULL;
}
