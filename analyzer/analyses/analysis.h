/* SPDX-License-Identifier: MIT
 *
 * One analysis in the making, shared by the files of this folder. driver.c calls them in order:
 *
 *   steps -> collectives -> [every rank: ends of steps, overlap, graph slices] -> stragglers ->
 *   path, what-if -> phases, budget, quality -> findings
 *
 * A rank's timeline is loaded, reduced to a struct rank_summary and a few graph slices, and
 * released, so memory does not grow with the length of the run. All times are int64 nanoseconds
 * until they enter the results: integer sums do not depend on the order in which threads finish.
 */
#ifndef TSCOPE_ANALYSIS_H
#define TSCOPE_ANALYSIS_H

#include "analyses/results.h"
#include "base/arena.h"
#include "model/products.h"

#define OPS 32 /* above every TSCOPE_OP_ value; 0 is "not known" */

/* A step as one rank saw it. */
struct window {
  i64 begin, end;
  u32 step; /* index into model.steps */
};

struct op_times {
  i64 comm, exposed, wait, transfer; /* exposed - wait - transfer could not be told apart */
};

/* Arithmetic of one rank in the steps looked at (flops.c). A kernel's time is known when a call
 * tells its arithmetic, estimated when its grid does. */
struct rank_flops {
  double flops, estimated;
  double forward;                  /* of both, called in the forward pass */
  u32 forward_ranks;               /* in sums: ranks with any */
  double by_precision[PRECISIONS]; /* `flops` apart */
  u32 steps;
  i64 wall_ns;                           /* of the steps */
  i64 kernel_ns, known_ns, estimated_ns; /* all kernels that are no collective, summed */
  i64 product_ns, product_known_ns;      /* of those, matrix products by their name */
  u64 kernels, launched;                 /* kernels; of which the launch was seen */
  u64 products, unknown;                 /* calls, those of replayed graphs too; of unknown size */
  u64 captured;        /* that went into graphs of which the trace does not say what they hold */
  u64 replays_unknown; /* of graphs whose capture was not seen */
  i64 replayed_ns[PRECISIONS]; /* of known_ns, in replays of graphs */
  double replayed_flops;       /* all of whose kernels these are */
};

/* One rank, summed over the steps looked at, in nanoseconds. */
struct rank_summary {
  bool loaded;
  bool on_gpu, has_compute, has_comm, has_copy;
  bool has_phases, has_input; /* phases are named; loading of input is named or inferred */
  u32 steps;                  /* looked at on this rank */
  u32 steps_bare;             /* left out: their kernels were overwritten in the ring */
  u32 steps_untimed;          /* left out: when collectives called in them ran is not known */
  u32 steps_unseen;           /* left out: CUPTI rested, or was another's, for part of them */
  i64 total, compute, exposed_comm, exposed_copy, idle; /* total is the sum of the others */
  i64 data;                                             /* in the data phase */
  i64 data_stall; /* of which nothing else ran: part of idle */
  i64 host_bound; /* idle inside other training phases: part of idle */
  struct op_times all, by_op[OPS];
  struct rank_flops flops;
  u64 collective_kernels; /* that ran on the GPU, in the whole run; of which the call was seen */
  u64 collective_kernels_called;
  u64 graph_launches, graph_launches_run, graph_launches_open; /* as in struct timeline */
  i64 detail_begin; /* of the GPU's, in the trace; NS_UNKNOWN: all of it */
  i64 gpu_known;    /* of its run, the time of which all that ran on its GPU is in the trace */
};

struct graph;
struct kernel_sums;
struct launch_sums;
struct product_sums;
struct series_gathering;

struct analysis {
  const struct model *model;
  const struct analyse_options *options;
  struct timeline_source source;
  struct results *results;
  struct arena *arena;     /* the results' */
  bool whole_run;          /* no steps: one window from each rank's begin to its end */
  u32 first_step, n_steps; /* looked at: warm-up left out */
  i64 *begin, *end;        /* as in struct steps: as the model tells them until the rank is looked
                              at, from then on as its kernels do */
  u8 *told;                /* likewise */
  struct timeline *early;  /* of rank 0, where it was needed first; NULL */
  struct rank_summary *ranks;
  float *compute_ms; /* [rank * n_steps + step - first_step], NAN where not known */
  i64 *transfer;     /* [n_collectives], NS_UNKNOWN */
  u32 *next_call;    /* [n_arrivals] next of the calls that ran as one kernel (a group's), a ring;
                        itself where it ran alone */
  bool *untimed;     /* [rank * n_steps + step - first_step] see untimed.c */
  i64 *waited_elsewhere; /* [n_arrivals] exposed wait of that rank in other communicators, since its
                            step began, up to this arrival */
  struct graph *graph;
  struct kernel_names *kernel_names;
  struct kernel_sums *kernel_sums;
  struct launch_sums *launch_sums;   /* [n_ranks] */
  struct product_sums *product_sums; /* [n_ranks] */
  struct series_gathering *series;   /* series.h; NULL without steps */
};

/* The step on one rank; false where it does not have it. */
bool analysis_window(const struct analysis *a, u32 rank, u32 step, struct window *window);

/* Whether a rank's host has the step. */
bool analysis_has_step(const struct analysis *a, u32 rank, u32 step);

/* The step that is under way on one rank at an instant, on its host or its GPU; -1. */
i32 analysis_step_at(const struct analysis *a, u32 rank, i64 time);

/* How long before the GPU's end of `step` the host had ended step `later`; NS_UNKNOWN where the
 * GPU's is not known or the host has none. */
i64 analysis_host_ahead(const struct analysis *a, u32 rank, u32 step, u32 later);

/* Whether the GPU was not done when the host was, at the end of a step. */
bool analysis_ends_on_gpu(const struct analysis *a, u32 rank, u32 step);

/* untimed.c: whether, of a rank's collectives called in a step, so many have no times that their
 * sum would be too small. */
int untimed_prepare(struct analysis *a);
bool analysis_untimed(const struct analysis *a, u32 rank, u32 step);

/* Whether that is so of more than a few steps of a rank. */
bool rank_lacks_times(const struct rank_summary *rank);

/* Whether all the GPU did in a step of a rank was watched; in all steps from window.begin on up to
 * window.step. */
bool analysis_gpu_seen(const struct analysis *a, u32 rank, const struct window *window);

/* "1, 2, 5 and 7 more". NULL when out of memory. */
char *ranks_in_words(struct arena *arena, const u32 *ranks, u32 n);

/* gpu_timing.c: how GPU time was had, and why not for all of the run. NULL when out of memory. */
const char *gpu_timing_describe(struct analysis *a);
const char *gpu_timing_why_not_taken(struct analysis *a);
const char *gpu_timing_why_not_watched(const struct analysis *a); /* NULL where it always was */

/* Why a rank's GPU work has no times, where it has none; NULL if nothing tells. */
const char *gpu_timing_reason(const struct rank *rank);

/* What to do about that reason, which may be NULL. */
const char *gpu_timing_remedy(const char *reason);

/* Whether a collective lies in the steps looked at. */
bool analysis_looks_at(const struct analysis *a, const struct collective *collective);

/* Name of an enum tscope_op. */
const char *op_name(u8 op);

/* Bus bandwidth over algorithm bandwidth for n ranks (nccl-tests, doc/PERFORMANCE.md); NAN where
 * nothing is moved. */
double op_bus_factor(u8 op, u32 n);

/* The communicator's name, or a short form of its identity with its size, in the arena. NULL when
 * out of memory. */
const char *comm_label(const struct model *model, u32 index, struct arena *arena);

/* Collectives in which no member can finish before all have started. */
bool op_is_barrier_like(u8 op);

/* Where an arrival stopped waiting and its transfer began, NS_UNKNOWN if it cannot be told. A
 * kernel that runs several calls waits for the members of all of them. */
i64 arrival_transfer_begin(const struct analysis *a, const struct arrival *arrival);

static inline double ns_to_ms(i64 ns) {
  return (double)ns / 1e6;
}

/* A pause of the host that the model takes for loading of input, before the copy that `span`
 * launches. */
struct input_pause {
  i64 begin, end;
  u32 span; /* of the timeline */
};

/* Lists them in order; none where the trace names its data phases. */
int input_pauses(const struct analysis *a, const struct timeline *timeline, struct arena *arena,
                 struct input_pause **pauses, u32 *n);

/* The analyses. Each returns 0 or negative errno. */
int steps_prepare(struct analysis *a);
int steps_count_warmup(struct analysis *a);
int steps_analyse(struct analysis *a);
int steps_on_gpu_rank(struct analysis *a, const struct timeline *timeline);
int collectives_prepare(struct analysis *a);
int group_calls_join(struct analysis *a);
int collectives_analyse(struct analysis *a);
int overlap_rank(struct analysis *a, const struct timeline *timeline);
int overlap_summarise(struct analysis *a);

/* Where all steps were left out: why most were. */
const char *overlap_why_no_steps(struct analysis *a);

/* Whether the identity of overlap.c holds for this rank with nothing missing. */
bool rank_overlap_known(const struct rank_summary *rank);

/* Whether a job of several ranks on GPUs showed no collective at all: then communication is not
 * zero but unknown. */
bool communication_unseen(const struct analysis *a);
int phases_analyse(struct analysis *a);
int stragglers_analyse(struct analysis *a);
int last_arrivals_analyse(struct analysis *a);
int pipeline_analyse(struct analysis *a);
enum { NAMED_RANGES_LISTED = 100 };
int named_ranges_analyse(struct analysis *a);
int budget_analyse(struct analysis *a);
int memory_analyse(struct analysis *a);
int verdict_analyse(struct analysis *a);
int modules_analyse(struct analysis *a);
int convergence_analyse(struct analysis *a);
int quality_analyse(struct analysis *a);
int findings_analyse(struct analysis *a);

/* findings/undecided.c: what cannot be judged, before the findings; and, after them, the verdict in
 * a word. */
int undecided_analyse(struct analysis *a);
int verdict_word_analyse(struct analysis *a);

/* utilisation.c: MFU and HFU, after products. */
int utilisation_analyse(struct analysis *a);

/* Dense peak of one device in a precision, by its name (peaks.def); NAN if it is not in the table
 * or has none. */
double device_peak_tflops(const char *name, enum precision precision);

/* The same of a rank's device, but what the options say for all precisions, known or not. */
double rank_peak_tflops(const struct analysis *a, u32 rank, enum precision precision);

/* kernel_times.c: what ran on the GPUs by name and category. */
enum { KERNELS_LISTED = 100 };
int kernel_times_prepare(struct analysis *a);
int kernel_times_rank(struct analysis *a, const struct timeline *timeline);
int kernel_times_summarise(struct analysis *a);
void kernel_times_free(struct analysis *a);

/* gpu_timeline.c: what each GPU did, and why it was idle. */
int gpu_timeline_prepare(struct analysis *a);
int gpu_timeline_rank(struct analysis *a, const struct timeline *timeline);
int gpu_timeline_summarise(struct analysis *a);

/* launches.c: how the hosts fed the GPUs. */
int launches_prepare(struct analysis *a);
int launches_rank(struct analysis *a, const struct timeline *timeline);
int launches_summarise(struct analysis *a);
void launches_free(struct analysis *a);

/* flops.c: arithmetic that calls tell, and what it covers. */
int flops_rank(struct analysis *a, const struct timeline *timeline);

/* The call with known arithmetic that a launch was made in: index into timeline.arithmetic, or
 * INDEX_NONE. */
u32 arithmetic_around(const struct timeline *timeline, const struct span *launch);

/* What became of the calls of a timeline (flops.c), by index into timeline.arithmetic. */
struct arithmetic_calls {
  const i64 *ran;        /* start of the first kernel, NS_UNKNOWN if none was seen */
  const i64 *took;       /* of its kernels, summed */
  const bool *looked_at; /* it is in the steps looked at */
  const u64 *replays;    /* [products.n_contents] replays that are */
};

/* products.c: time and speed of matrix products, by shape and precision. */
int products_prepare(struct analysis *a);
int products_rank(struct analysis *a, const struct timeline *timeline,
                  const struct arithmetic_calls *calls);
int products_summarise(struct analysis *a);
void products_free(struct analysis *a);

/* Summed over the ranks; only those that were seen to call a matrix product if `only_products`. */
struct rank_flops flops_all(const struct analysis *a, bool only_products);

/* graph.h: critical path and what-if. */
int graph_plan(struct analysis *a);
int critical_path_analyse(struct analysis *a);
void graph_free(struct analysis *a);

/* analyse() with timelines from elsewhere. */
int analyse_with(const struct model *model, const struct analyse_options *options,
                 const struct timeline_source *source, struct results **results);

#endif
