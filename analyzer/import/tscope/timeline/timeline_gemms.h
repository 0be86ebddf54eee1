/* SPDX-License-Identifier: MIT
 *
 * GEMMs of a timeline while it is being decoded: every shape once, pairs of events traced back to
 * their calls, and the launches of graphs that contain GEMMs.
 */
#pragma once

#include "base/hash_index.h"
#include "base/vector.h"
#include "import/tscope/events/definitions.h"
#include "model/gemms.h"

/* A call that says that it was timed, and what was timed, by their number. */
struct timed_call {
  i64 start;
  u32 number;
  u16 lane;
};
struct timed_work {
  i64 start, end;
  u32 number, one_in;
};

struct gemms_build {
  HASHED(struct gemm_shape) shapes;
  VECTOR(struct timed_call) calls;
  VECTOR(struct timed_work) works;
  VECTOR(struct graph_content) contents;
};

struct timeline_build;

/* The content of graphs, from the definitions. */
void timeline_gemms_begin(struct timeline_build *build);

void timeline_gemm(struct timeline_build *build, const struct tscope_gemm_record *gemm,
                   struct interval call, u16 lane);
void timeline_gemm_time(struct timeline_build *build, const struct tscope_gpu_work_record *work,
                        struct interval ran);
void timeline_replay(struct timeline_build *build, u32 graph, struct interval call, u16 lane);

/* Sorts what is known of arithmetic and makes the timeline's GEMMs of the rest, in the
 * timeline's arena. */
void timeline_gemms_end(struct timeline_build *build);

void gemms_build_release(struct gemms_build *build);
