/* SPDX-License-Identifier: MIT
 *
 * Synthetic training runs in which every time is known in closed form: data-parallel steps of
 * forward, backward with bucketed all-reduces that overlap it, and an optimizer.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"
#include "trace_writer.h"

enum tracegen_flavour { TRACEGEN_NCCL, TRACEGEN_GLOO };

struct tracegen_options {
  const char
      *directory; /* created if missing; the run is a folder in it, the truth a file beside that */
  const char *run;
  enum tracegen_flavour flavour;
  u32 ranks, steps;
  u32 buckets;      /* all-reduces per step; all but the last have one size */
  u32 kernels;      /* per bucket in backward, and the same number in forward */
  bool gpu_spans;   /* NCCL: GPU times of kernels, copies and collectives */
  bool event_pairs; /* of these only the collectives, as with pairs of events */
  u32 ahead;       /* NCCL: the host waits for the step that many steps ago; 0: for the same step */
  bool phases;     /* PHASE records */
  bool step_marks; /* STEP records */
  u32 slow_rank;   /* TSCOPE_UNKNOWN_RANK for none */
  u32 slow_ranks;  /* how many, from that one on */
  double slow_factor;
  double slow_share;      /* of the steps, which are the same on all of them */
  bool skew;              /* ranks' clocks have offsets of up to 3 s and drifts of up to 50 ppm */
  bool skew_hosts;        /* so have the clocks of hosts, which their ranks share and say so */
  u32 drift_ppm;          /* instead of 50 */
  u64 wall_ahead_ns;      /* the wall clock of host N is ahead by N times this */
  u64 wall_step_ns;       /* NTP sets the wall clock of host N forward by N times this */
  u32 unmarked_rank;      /* gloo: does something outside of phases; TSCOPE_UNKNOWN_RANK for none */
  u64 unmarked_ns;        /* its time in each step */
  bool unmarked_asleep;   /* sleeps meanwhile */
  bool unmarked_by_turns; /* each step another rank */
  u32 hang_rank; /* gloo: does not call a last collective, until the job is killed; likewise */
  u32 islands;   /* communicators with no rank in common; 1 for a normal run */
  u32 ranks_per_host;
  u32 lone_hosts; /* the last so many: each has a communicator of its own ranks, and no other */
  u32 mute_hosts; /* so many before these do not record when collectives really ran */
  u32 lost_ranks; /* that many of the last ranks have no file */
  u32 cut_rank;   /* its file is cut to cut_bytes; TSCOPE_UNKNOWN_RANK for none */
  size_t cut_bytes;
  struct trace_words words;      /* n > 0: they replace all names */
  u32 header_bytes, chunk_bytes; /* of the file; 0 for the format's default */
  u64 start_realtime_ns;         /* start of the run, which orders the runs of a directory */
  u64 data_ns, copy_ns, kernel_ns, transfer_ns, optimizer_ns, launch_ns;
  u64 jitter_ns;      /* largest difference between ranks in a step's first kernel */
  u64 end_noise_ns;   /* largest difference between ranks at a collective's end */
  double end_pattern; /* share of its transfer by which the last rank's end is always later than the
                         first's, the others' between */
};

/* Sums of one rank over all steps. */
struct tracegen_rank {
  i64 offset_ns; /* its clock = true time + offset + drift x true time */
  double drift_ppm;
  u64 compute_ns, comm_ns, exposed_ns, wait_ns;
  u64 events;
};

struct tracegen_truth {
  struct tracegen_rank *ranks; /* [ranks] */
  u64 *step_begin;             /* [(steps + 1) * ranks] on the host, true time, nanoseconds */
  u64 *gpu_end;                /* [steps * ranks] end of the step's last GPU work */
  u64 *collective_end;         /* [steps * buckets * islands] without the end noise */
  u64 *collective_start;       /* likewise: the arrival of the last rank */
};

struct tracegen_options tracegen_defaults(void);

/* Writes the run. Returns 0 or negative errno. The caller frees the truth. */
int tracegen_write(const struct tracegen_options *options, struct tracegen_truth *truth);
void tracegen_truth_free(struct tracegen_truth *truth);

/* The local clock of a rank at a true time: nanoseconds of its CLOCK_MONOTONIC. */
u64 tracegen_clock(const struct tracegen_rank *rank, u64 true_ns);

/* How much later than collective_end the collective ended on this rank. */
u64 tracegen_end_noise(const struct tracegen_options *options, u32 rank, u32 step, u32 bucket);
