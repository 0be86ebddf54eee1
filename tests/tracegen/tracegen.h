/* SPDX-License-Identifier: MIT
 *
 * Synthetic training runs whose every time is known in closed form: data-parallel steps of
 * forward, backward with bucketed all-reduces that overlap it, and an optimizer.
 */
#ifndef TSCOPE_TRACEGEN_H
#define TSCOPE_TRACEGEN_H

#include <stdbool.h>

#include "format/tscope_format.h"
#include "trace_writer.h"

enum tracegen_flavour { TRACEGEN_NCCL, TRACEGEN_GLOO };

struct tracegen_options {
  const char *directory; /* made if missing; the run is a folder in it, the truth a file beside */
  const char *run;
  enum tracegen_flavour flavour;
  u32 ranks, steps;
  u32 buckets;      /* all-reduces per step; all but the last are of one size */
  u32 kernels;      /* per bucket and as many again per bucket's share of forward */
  bool gpu_spans;   /* NCCL: kernels, copies and collectives as they ran */
  bool event_pairs; /* of these, the collectives only, as pairs of events tell */
  u32 ahead;        /* NCCL: the host waits for the step so many steps back; 0: for its own */
  bool phases;      /* PHASE records */
  bool step_marks;  /* STEP records */
  u32 slow_rank;    /* TSCOPE_UNKNOWN_RANK for none */
  double slow_factor;
  bool skew;            /* clocks of ranks are off by up to 3 s and drift by up to 50 ppm */
  u32 unmarked_rank;    /* gloo: it does something in no phase, TSCOPE_UNKNOWN_RANK for none: */
  u64 unmarked_ns;      /* for so long in each step */
  bool unmarked_asleep; /* and sleeps in it */
  u32 hang_rank;        /* gloo: does not come to a last collective and is killed in it; likewise */
  u32 islands;          /* communicators with no rank in common; 1 for a sane run */
  u32 ranks_per_host;
  u32 lost_ranks; /* so many of the last ranks leave no file */
  u32 cut_rank;   /* its file is cut to cut_bytes; TSCOPE_UNKNOWN_RANK for none */
  size_t cut_bytes;
  struct trace_words words;      /* n > 0: they stand for all names */
  u32 header_bytes, chunk_bytes; /* of the file; 0 for the format's usual */
  u64 start_realtime_ns;         /* orders the runs of a directory */
  u64 data_ns, copy_ns, kernel_ns, transfer_ns, optimizer_ns, launch_ns;
  u64 jitter_ns;    /* largest difference between ranks in a step's first kernel */
  u64 end_noise_ns; /* largest difference between ranks at a collective's end */
};

/* What one rank spent, over all steps. */
struct tracegen_rank {
  i64 offset_ns; /* its clock = true time + offset + drift x true time */
  double drift_ppm;
  u64 compute_ns, comm_ns, exposed_ns, wait_ns;
  u64 events;
};

struct tracegen_truth {
  struct tracegen_rank *ranks; /* [ranks] */
  u64 *step_begin;             /* [(steps + 1) * ranks] on the host, true time, nanoseconds */
  u64 *gpu_end;                /* [steps * ranks] of the step's last work on the GPU */
  u64 *collective_end;         /* [steps * buckets * islands] without the end noise */
  u64 *collective_start;       /* likewise: the last member's arrival */
};

struct tracegen_options tracegen_defaults(void);

/* Writes the run. 0, or negative errno. The caller frees the truth. */
int tracegen_write(const struct tracegen_options *options, struct tracegen_truth *truth);
void tracegen_truth_free(struct tracegen_truth *truth);

/* Local clock of a rank, nanoseconds of its CLOCK_MONOTONIC, at a true time. */
u64 tracegen_clock(const struct tracegen_rank *rank, u64 true_ns);

/* How much later than collective_end the collective ended on this rank. */
u64 tracegen_end_noise(const struct tracegen_options *options, u32 rank, u32 step, u32 bucket);

#endif
