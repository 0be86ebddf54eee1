/* SPDX-License-Identifier: MIT
 *
 * A data-parallel run built by hand, with a schedule simple enough for closed forms. Per step and
 * rank: input, then forward F and backward B1, B2 on stream 0; all-reduce A1 after B1 (hidden
 * behind B2) and A2 after B2 on stream 1; the host launches everything, then waits for A2. Without
 * GPU the host itself runs F, B1, B2 in its phases and gloo runs A1, A2.
 *
 *   A1 starts at the latest end of B1 over all ranks and takes `transfer`; A2 does the same after
 *   B2 and A1.
 *
 * Times in nanoseconds. Everything is freed by cluster_free().
 */
#pragma once

#include "figures.h"
#include "seeded.h"

#define CLUSTER_RANKS 64
#define US 1000ll
#define MS 1000000ll
#define LAUNCH (5 * US) /* host time of a launch call */
#define LATENCY                                                                                    \
  (8 * US)                /* from the start of a launch to the start of its kernel on an idle GPU  \
                           */
#define WAKE_UP (10 * US) /* from the end of A2 until the host continues */

struct cluster_options {
  u32 ranks, steps, warmup;
  bool on_gpu;
  i64 forward, backward; /* backward: each half */
  i64 transfer;
  i64 input;                       /* on every rank */
  i64 extra_input[CLUSTER_RANKS];  /* in addition, per rank */
  i64 waits[CLUSTER_RANKS];        /* for something else, before its input, per rank */
  const i64 *late_input;           /* in addition, [step * ranks + rank]; NULL: none */
  const i64 *late_first;           /* the same in B1, before A1; without GPU only */
  const i64 *late_backward;        /* the same before A2; without GPU only */
  i64 late_forward[CLUSTER_RANKS]; /* in F in addition, per rank; without GPU only */
  double slow[CLUSTER_RANKS];      /* extra compute as a share; 0: none */
  u32 slow_from, slow_until;       /* the step in which `slow` begins; and ends, 0: never */
  i64 exposed_memcpy;              /* between F and B1, on the device */
  i64 late_launch[CLUSTER_RANKS];  /* host work between F's launch and B1's, outside all phases */
  bool autograd;                   /* with GPU: another thread launches B1 to A2 meanwhile */
  double noise;                    /* compute varies uniformly by this fraction */
  u32 seed;
  i64 slow_step;        /* every tenth step takes this much longer in F, on all ranks */
  u32 slow_every;       /* not every tenth step but every n-th; 0: every tenth */
  bool waits_for_first; /* without GPU: B2 begins after A1 */
  u32 meets_every;      /* without GPU: A1 and A2 are in every n-th step only; 0: in each */
  bool no_overlap;      /* A1 starts after B2 too */
  bool unaligned;       /* as if clocks could not be aligned */
  bool no_gpu_times;    /* calls and launches only */
  bool no_steps;
};

struct cluster {
  struct cluster_options options;
  struct model model;
  struct timeline *timelines;
  struct arena arena;
};

struct cluster *cluster_new(const struct cluster_options *options);
void cluster_free(struct cluster *cluster);

/* analyse_with() on the cluster; fails the test on error. */
struct results *cluster_analyse(struct cluster *cluster, const struct analyse_options *options);

/* The first finding of this id, NULL if there is none. */
const struct finding *finding_of(const struct results *results, const char *id);

/* How many ranks are named. */
u32 stragglers_in(const struct results *results);

/* Frees both. */
void cluster_end(struct results *results, struct cluster *cluster);

/* A healthy cluster of eight ranks with GPUs: 100 + 2 x 100 ms of compute, 10 ms transfers, 50
 * steps. The same without GPUs. */
struct cluster_options healthy_gpu(void);
struct cluster_options healthy_cpu(void);
