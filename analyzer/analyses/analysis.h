/* SPDX-License-Identifier: MIT
 *
 * The state of one analysis, which those in the folders here share. driver.c runs the table of
 * analyses.def over it.
 *
 * A rank's timeline is loaded, reduced to a struct rank_summary and a few graph slices, and
 * released, so memory does not grow with the length of the run. All times are int64 nanoseconds
 * until they enter the results, because integer sums do not depend on the order in which threads
 * finish.
 */
#pragma once

#include "analyses/results/results.h"
#include "base/arena.h"
#include "base/vector.h"
#include "kernels/communication.h"
#include "model/gemms.h"

#define OPS COMM_OPS /* by enum tscope_op and enum comm_op; 0 is "not known" */

/* A step as one rank saw it. */
struct window {
  i64 begin, end;
  u32 step; /* index into model.steps */
};

struct op_times {
  i64 comm, exposed, wait, transfer; /* exposed - wait - transfer could not be separated */
  u8 op;
};

/* Arithmetic of one rank in the analysed steps (flops.c). A kernel's arithmetic is known if it
 * comes from a call, estimated if it comes from its grid. */
struct rank_flops {
  double flops, estimated;
  double forward;                  /* of both, called in the forward pass */
  u32 forward_ranks;               /* in sums: ranks with any */
  double by_precision[PRECISIONS]; /* `flops` apart */
  u32 steps;
  i64 wall_ns;                           /* of the steps */
  i64 kernel_ns, known_ns, estimated_ns; /* all kernels that are not collectives, summed */
  i64 gemm_ns, gemm_known_ns;            /* of those, GEMMs by their name */
  u64 kernels, launched;                 /* kernels; those with a recorded launch */
  u64 gemms, unknown;  /* calls, including those of replayed graphs; those of unknown size */
  u64 captured;        /* that went into graphs with unknown content */
  u64 replays_unknown; /* of graphs whose capture was not seen */
  i64 replayed_ns[PRECISIONS]; /* of known_ns, in replays of graphs */
  double replayed_flops;       /* all of whose kernels these are */
};

struct gpu_gaps;

/* One rank, summed over the analysed steps, in nanoseconds. */
struct rank_summary {
  bool loaded;
  const struct gpu_gaps *gaps; /* gpu/gpu_gaps.h; only while its timeline is loaded */
  i64 *exposed; /* likewise, by number of the collective in the timeline: its part of exposed_comm;
                   NS_UNKNOWN outside of the steps that are summed */
  u32 spans[SPAN_KINDS]; /* of its timeline, by kind: so that none is looked for in vain */
  bool on_gpu, has_compute, has_comm, has_memcpy;
  bool has_cpu_times;         /* as in struct timeline */
  bool has_phases, has_input; /* phases are named; loading of input is named or inferred */
  u32 steps;                  /* analysed on this rank */
  u32 steps_overwritten;      /* left out: their kernels were overwritten in the ring */
  u32 steps_untimed;          /* left out: it is not known when collectives called in them ran */
  u32 steps_left_out;         /* because the times of their collectives are not kept */
  u32 steps_unseen; /* left out: CUPTI rested, or another client used it, for part of them */
  i64 total, compute, exposed_comm, exposed_memcpy, idle; /* total is the sum of the others */
  i64 other_steps; /* steps that contain something other than training: counted in none of the
                      others */
  i64 data;        /* in the data phase */
  i64 data_stall;  /* of which nothing else ran: part of idle */
  i64 begun_late;  /* idle though work was launched, for over LONGEST_LATENCY: part of idle */
  i64 capturing;   /* idle while the host captured a CUDA graph, work not launched: part of idle */
  u32 capture_steps; /* steps in which it did */
  i64 host_bound;    /* idle inside other training phases: part of idle */
  i64 outside;       /* in no phase of training or loading, while nothing communicates */
  struct op_times all;
  VECTOR(struct op_times) by_op; /* those that the rank has, until all ranks are summarised */
  struct rank_flops flops;
  u64 collective_kernels; /* that ran on the GPU in the whole run; of these, with a recorded call */
  u64 collective_kernels_called;
  u64 graph_launches, graph_launches_run, graph_launches_open; /* as in struct timeline */
  i64 gpu_known; /* the part of its run for which the trace has all work of its GPU */
};

struct graph;
struct kernel_sums;
struct launch_sums;
struct kernels_of_rank;
struct line_sums;
struct lone_line;
struct line_tree;
struct gemm_sums;
struct operator_sums;
struct series_sums;
struct endings;

struct analysis {
  const struct model *model;
  const struct analyse_options *options;
  struct timeline_source source;
  struct results *results;
  struct arena *arena;     /* the results' */
  bool whole_run;          /* no steps: one window from each rank's begin to its end */
  u32 first_step, n_steps; /* analysed; warm-up is left out */
  u8 *other_work_of; /* [steps.n] 1 + index into results.other_work; 0: training. NULL: all are */
  u8 *turn_of;       /* [steps.n] 1 + index into results.turns; 0: none. NULL: none has any */
  u32 n_training;    /* of the analysed steps */
  i64 *begin, *end;  /* as in struct steps: from the model until the rank is analysed, then from its
                        kernels */
  u8 *ends_known;    /* likewise */
  struct timeline *timeline_of_rank0; /* if it was needed before its turn; NULL */
  struct rank_summary *ranks;
  struct carrier **keeps; /* [n_ranks] see analysis_keeps(); NULL */
  float *compute_ms;      /* [rank * n_steps + step - first_step], NAN where not known */
  float *kernels_in;      /* likewise: how many a device runs in a step */
  i64 *transfer;          /* [n_collectives], NS_UNKNOWN */
  u32 *next_call; /* [n_arrivals] the next of the calls that ran as one kernel (a group's), as a
                     ring; itself if it ran alone */
  bool *untimed;  /* [rank * n_steps + step - first_step] see untimed.c */
  i64 *time_in_other_comms; /* [n_arrivals] exposed time of that rank in other communicators, since
                            its step began, up to this arrival */
  struct graph *graph;
  struct kernel_names *kernel_names;
  struct kernel_sums *kernel_sums;
  struct kernels_of_rank *kernels_of_ranks; /* [n_ranks] */
  struct operator_sums *operator_sums;
  struct launch_sums *launch_sums; /* [n_ranks] */
  struct line_sums *line_sums;     /* [n_ranks] */
  struct line_tree *line_tree;     /* of the stacks of all ranks */
  struct lone_line *lone_lines;    /* [n_ranks] lines/lone_line.c; NULL: not asked for yet */
  struct gemm_sums *gemm_sums;     /* [n_ranks] */
  struct memory_sums *memory_sums;
  struct series_sums *series; /* series.h; NULL without steps */
  struct endings *endings;    /* run_end/run_end.h; NULL where ends are not recorded */
};

/* Where what is found on the rank is written while its timeline is analysed; NULL: nowhere. */
static inline struct carrier *analysis_keeps(const struct analysis *a, u32 rank) {
  return a->keeps ? a->keeps[rank] : NULL;
}

/* analyse() with timelines from elsewhere. */
struct results *analyse_with(const struct model *model, const struct analyse_options *options,
                             const struct timeline_source *source);
