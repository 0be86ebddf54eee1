/* SPDX-License-Identifier: MIT
 *
 * What the analyses found: the input of every report, and nothing else is. Numbers are doubles;
 * NAN is "unknown" and is printed as such, as null in JSON, never as 0. The shape follows
 * docs/report-json.md. Everything lives in the results' arena.
 */
#ifndef TSCOPE_RESULTS_H
#define TSCOPE_RESULTS_H

#include "analyses/check_result.h"
#include "analyses/convergence/convergence_result.h"
#include "analyses/gpu/module_result.h"
#include "analyses/gpu/product_result.h"
#include "analyses/lines/line_result.h"
#include "analyses/memory/memory_result.h"
#include "analyses/run_end/run_end_result.h"
#include "analyses/steps/series_result.h"
#include "model/model.h"

enum severity { SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_CRITICAL };

struct finding {
  const char *id; /* from findings.def */
  enum severity severity;
  double worth_s; /* seconds of the run it would save; NAN if it cannot be told; ranks findings */
  char *title;
  char *evidence; /* always with a number */
  char *action;
  u32 *ranks; /* global ranks concerned */
  u32 n_ranks;
};

/* What could not be judged, and why. */
struct undecided {
  const char *what; /* "collectives", "step times", ... */
  const char *why;
};

struct coverage {
  const char *name; /* "collective times", "kernel times", ... */
  double share;     /* 0..1 */
  const char *note; /* NULL, or what is missing and why */
};

struct rank_result {
  u32 rank; /* global */
  const char *host;
  double mean_compute_ms, median_compute_ms;
  double slowest_count, slowest_fraction, z, p_value, rel_slowdown, imposed_wait_ms;
  double comm_ms, exposed_ms, exposed_wait_ms, exposed_transfer_ms; /* per step */
  double data_ms; /* in the data phase, per step */
  double idle_ms; /* neither compute, communication nor copy, per step */
  bool straggler;
  const char *reason;     /* of a straggler: "slow compute", "slow input", ...; NULL if not one */
  const char *collective; /* at which a straggler keeps its peers waiting; NULL if not one */
  double last_collectives, judged_collectives; /* it came last in so many of so many */
  double last_wait_ms; /* that the mean peer waited for it in those, per step */
  double lateness_ms;  /* typical, of a straggler, behind the median of its peers; else NAN */
};

struct overlap_by_op {
  const char *op;
  double comm_ms, exposed_ms, exposed_wait_ms, exposed_transfer_ms; /* per step, mean over ranks */
};

struct collective_result {
  const char *comm; /* name, or a short form of the identity with its size */
  const char *op;
  double count;                  /* of instances in the steps looked at */
  double bytes;                  /* per instance */
  double algbw_gbps, busbw_gbps; /* 1e9 bytes/s, median */
  double wait_ms, transfer_ms;   /* median per instance, wait: mean over ranks */
  const char
      *algorithm; /* in NCCL's words, with '/' between where it chose several; NULL: not told */
  const char *protocol;
  double channels; /* median, NAN: not told */
  u32 comm_index;  /* in model.comms */
  u32 from, to;    /* send/recv: global ranks; INDEX_NONE for collectives */
};

struct share {
  const char *name;
  double ms;
};

/* On the critical path, by name. */
struct path_name_result {
  const char *name, *category;
  const char *shortened; /* of a mangled kernel what tells it from others, else the name */
  double ms, count;      /* per step */
};

/* One stretch of it. */
struct path_segment_result {
  u32 rank; /* global */
  const char *name, *category;
  const char *reached_by; /* what it had to wait for: "thread", "launch", ...; NULL at the start */
  double start_ms, ms;    /* since the path's beginning */
};

struct path_edge_result {
  const char *name;
  double count; /* per step */
};

enum what_if_kind {
  WHAT_IF_RANK,          /* `rank` as fast as the median of its peers */
  WHAT_IF_EVERY_RANK,    /* every rank as fast as that */
  WHAT_IF_COMMUNICATION, /* transfers take no time; ranks still wait for each other */
  WHAT_IF_LAUNCHES,      /* the host takes no time but for input */
  WHAT_IF_INPUT,         /* the data phase takes no time */
  WHAT_IF_LINE           /* the host does not wait at one line of the program */
};

struct what_if {
  enum what_if_kind kind;
  char *change;
  double step_ms;
  double saving_fraction;
  i64 rank; /* global rank it concerns, -1 if none */
};

struct pipeline_stage {
  u32 stage;
  double compute_ms, bubble_ms; /* per step, mean over its ranks */
  u32 *ranks;                   /* global ranks */
  u32 n_ranks;
};

struct budget_line {
  const char *name;
  double seconds; /* mean over ranks, steps looked at */
  double fraction;
  double recoverable; /* seconds, NAN if it cannot be told */
};

/* Times of what ran on the GPU, summed over the whole input and all ranks. */
struct kernel_category_result {
  const char *category;
  double count, sum_ms, share; /* share of the sum over all categories */
};

struct kernel_result {
  const char *name; /* demangled, whole */
  const char *shortened;
  const char *category;
  double count, sum_ms, mean_ms, max_ms, share;
};

/* One GPU from its first work to its last: total_ms is the sum of the four before it. */
struct gpu_timeline_result {
  u32 rank; /* global */
  double compute_ms, exposed_comm_ms, exposed_memcpy_ms, idle_ms, total_ms;
  double busy_fraction;
  double host_bound_ms, kernel_gap_ms, other_ms; /* idle_ms is their sum */
};

/* How the hosts fed the GPUs, all ranks together. */
struct launch_result {
  double kernels, short_kernels, short_ms;
  double delay_median_us, delay_p95_us, delay_max_us; /* end of the call to start of the work */
  double queue_mean, queue_max, queue_full_ms;        /* calls made, work not begun, by stream */
  double syncs, sync_ms;
  double fill_count, fill_ms; /* operators that fill, and their work on the GPU */
  double recompute_ms;        /* on the GPU */
};

struct copy_result {
  const char *direction;
  double count, sum_ms, bytes, gbps; /* 1e9 bytes/s while copying */
};

struct fill_result {
  const char *name; /* with the shape where it is recorded */
  double count, sum_ms;
};

/* Ranges that the program named through NVTX, summed over all ranks and the whole input. */
struct named_range_result {
  const char *name, *domain; /* domain "" is the program itself */
  double count, sum_ms, mean_ms, max_ms;
  double share; /* of the ranks' time, nested ranges included in those around them */
};

struct analysis;

struct diff_result; /* diff/ */

struct results {
  const struct model *model;
  /* quality */
  double events, lost;
  u32 *partial_ranks;
  u32 n_partial;
  const char *gpu_timing;
  struct coverage *coverage;
  u32 n_coverage;
  double overhead_fraction;     /* own cost / run time, estimate */
  double overhead_helper_cpu_s; /* all ranks */
  double overhead_ns_per_event; /* on the job's threads, once awake */
  double overhead_startup_ms;   /* waking up, once, mean over ranks */
  double overhead_gpu_clock_ms; /* that the GPU clock source says it took, mean over ranks */
  double trace_bytes;
  /* steps */
  double step_count, warmup_excluded, step_median_ms, step_p95_ms, step_mean_ms, step_cv;
  double looked_at_s; /* the steps looked at, one after the other; what worths are part of */
  double *step_ms; /* [n_step_ms] wall of each step, mean over ranks, in order, warm-up included */
  u32 n_step_ms;
  u32 changed_step; /* the first of those that take longer for good, by index; 0: none does */
  /* from the host's end of a step to the GPU's; NAN where no end is known on a GPU */
  double host_ahead_ms;        /* median over steps of the mean over ranks */
  double host_ahead_max_ms;    /* of any rank and step */
  double host_ahead_max_steps; /* steps that the host had ended before its GPU ended one more */
  /* phases, per step, mean over ranks */
  double data_ms, forward_ms, backward_ms, optimizer_ms, comm_ms, other_ms;
  /* distributed */
  double dist_steps, mean_step_wall_ms, comm_fraction, imbalance_cv, sync_skew_ms,
      wall_frac_lost_to_imbalance;
  struct rank_result *ranks;
  u32 n_ranks;
  /* overlap, per step, mean over ranks */
  double ov_comm_ms, ov_overlapped_ms, ov_exposed_ms, ov_exposed_wait_ms, ov_exposed_transfer_ms,
      ov_exposed_fraction;
  /* step = compute + exposed communication + exposed copy + idle, exactly */
  double ov_step_ms, ov_compute_ms, ov_exposed_copy_ms, ov_idle_ms;
  double ov_ranks; /* whose means these are; others do not know theirs */
  double ov_steps; /* counted on each of them, mean: those of which all GPU work is known */
  const char *overlap_reason; /* why unknown, NULL if known */
  const char *wait_method;    /* how wait was told from transfer, NULL if it was not */
  bool whole_run;             /* no steps: figures per step are for the whole run instead */
  struct overlap_by_op *by_op;
  u32 n_by_op;
  struct collective_result *collectives;
  u32 n_collectives;
  /* critical path, per step */
  double path_wall_ms;
  u32 path_steps_used;        /* the path was walked in so many steps */
  const char *path_reason;    /* why unknown, NULL if known */
  double path_selfcheck;      /* replay of unedited durations / measured - 1 */
  const char *what_if_reason; /* why what-ifs are missing or unreliable, NULL if they hold */
  struct share *path_by_category;
  u32 n_path_categories;
  double *path_by_rank;                      /* [n_ranks] ms */
  struct path_name_result *path_by_name;     /* most time first, fifty at most */
  struct path_segment_result *path_segments; /* of one sample, in order, from its beginning */
  struct path_edge_result *path_edges;
  u32 n_path_by_name, n_path_segments, n_path_edges;
  struct what_if *what_if;
  u32 n_what_if;
  /* kernels, most time first; none where kernels_reason says why */
  struct kernel_category_result *kernel_categories;
  u32 n_kernel_categories;
  struct kernel_result *kernels;
  u32 n_kernels;              /* KERNELS_LISTED at most */
  double kernel_names;        /* how many there are */
  double kernels_ranks;       /* whose GPU work this is */
  double kernels_seen;        /* share of the run in which they were looked at */
  const char *kernels_note;   /* what their kinds do not tell, NULL if nothing */
  const char *kernels_reason; /* why there are none, or none but collectives: no shares then */
  /* the GPUs' time, whole input */
  struct gpu_timeline_result gpu_timeline; /* mean over ranks */
  double gpu_timeline_ranks;               /* that it is the mean of */
  double gpu_timeline_seen;                /* share of their time of which all GPU work is known */
  struct gpu_timeline_result *gpu_timelines;
  u32 n_gpu_timelines;
  const char *gpu_timeline_reason; /* why unknown, NULL if known */
  struct launch_result launch;
  struct copy_result *copies; /* by direction */
  u32 n_copies;
  struct fill_result *fills; /* most time first */
  u32 n_fills;
  /* named ranges, most time first */
  struct named_range_result *named_ranges;
  u32 n_named_ranges; /* NAMED_RANGES_LISTED at most */
  /* pipeline.c; all NAN where there is none */
  double pipeline_stages, pipeline_micro_batches; /* micro-batches a step */
  double pipeline_chunks; /* model chunks a stage holds: 1, or more of an interleaved schedule */
  double pipeline_bubble, pipeline_inherent, pipeline_excess; /* fractions of compute + bubble */
  double pipeline_excess_ms;                                  /* of a step */
  struct pipeline_stage *pipeline_stage;
  u32 n_pipeline_stage;
  const char *pipeline_reason; /* why unknown, NULL if known */
  /* budget */
  double wall_s;
  struct budget_line *budget;
  u32 n_budget;
  double residual_s, mfu, hfu;
  double flops_per_step;      /* of the whole job, as given or estimated */
  bool flops_estimated;       /* from the forward pass's matrix products */
  const char *mfu_note;       /* what the estimate rests on; NULL */
  double peak_flops;          /* per second, all devices together: what mfu is a share of */
  const char *peak_precision; /* of which it is the peak; NULL: as given */
  const char *peak_note;      /* why that and no other, NULL for the usual one */
  const char *peak_reason;    /* why peak_flops is unknown, NULL if known */
  const char *mfu_reason;     /* why mfu is unknown, NULL if known */
  /* hfu is what the matrix products that were called come to, each against the peak of its own
   * precision: a lower bound of all arithmetic */
  const char *hfu_reason; /* why hfu is unknown, NULL if known */
  const char *hfu_note;   /* what else to know about it, NULL if nothing */
  double hfu_coverage;    /* share of GPU compute time whose arithmetic is known */
  double hfu_attention;   /* what attention adds to hfu, an estimate by its grids; not part of it */
  double hfu_attention_coverage; /* share of GPU compute time that this is */
  double product_flops;          /* per step, all ranks seen together */
  struct lines_result lines;
  struct memory_result memory;
  struct collective_check check;
  struct run_end run_end;
  const struct diff_result *diff; /* against an earlier run, by diff_results(); NULL */
  struct module_result modules;
  struct products_result products;
  struct convergence_result convergence;
  struct series_result series;
  /* "ok" only where nothing was found and nothing is undecided; "undecided", "note", "warning",
   * "critical" */
  const char *verdict;
  struct undecided *undecided;
  u32 n_undecided;
  /* findings, most worth first */
  struct finding *findings;
  u32 n_findings;
  /* What else is known of single steps, ranks and calls (analysis.h), for outputs that show those
   * one by one; NULL in results made by hand. Its model and options must still be there. */
  const struct analysis *analysis;
  void *internal;
};

struct kernel_names;

struct analyse_options {
  struct kernel_names *kernel_names; /* kernels.h; NULL: the built-in categories */
  double flops_per_step;             /* NAN if not given */
  double params, tokens_per_step;    /* NAN if not given; 6 x params x tokens */
  double peak_tflops;                /* NAN: from the device table */
  double gpu_bytes;                  /* memory of one device; NAN or 0: as the input tells */
  unsigned threads;
  void (*progress)(void *user, const char *what, double fraction);
  void *user;
};

/* Pure: the same model and options give the same results. 0, or negative errno. */
int analyse(const struct model *model, const struct analyse_options *options,
            struct results **results);
void results_free(struct results *results);

#endif
