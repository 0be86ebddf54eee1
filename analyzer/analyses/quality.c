/* SPDX-License-Identifier: MIT
 *
 * How far the report can be trusted: what was seen, lost and known, and what looking cost.
 */
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/lines/line_sums.h"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "base/texts.h"

#define MAX_COVERAGE 24

static bool is_partial(const struct analysis *a, u32 index) {
  const struct rank *rank = &a->model->ranks[index];
  return rank->damage || !rank->closed || rank_lost(rank) || !a->ranks[index].loaded;
}

static void list_partial_ranks(struct analysis *a) {
  const struct model *model = a->model;
  struct results *r = a->results;
  u32 *partial = arena_array(a->arena, size_sum(model->n_ranks, model->world_size), sizeof(u32));
  u32 n = model_missing_ranks(model, partial);
  n += LIST_WHERE(partial + n, 0, model->n_ranks, i, is_partial(a, i), model->ranks[i].rank);
  SORT(partial, n, by_u32);
  r->partial_ranks = partial;
  r->n_partial_ranks = n;
}

static void add_coverage(struct results *r, const char *name, double part, double whole,
                         const char *note) {
  if (whole <= 0)
    return;
  double share = part < whole ? part / whole : 1;
  r->coverage[r->n_coverage++] = (struct coverage){name, share, share < 1 ? note : NULL};
}

static void add_collective_coverage(struct analysis *a, double calls, double runs) {
  const char *note = "the others have only the time of the call";
  const struct rank *rank = FIND(a->model->ranks, a->model->n_ranks, one,
                                 one->collective_calls && gpu_timing_reason(a->model, one));
  if (runs == 0)
    note = say(a,
               "NO COLLECTIVE TIMES: communication ran, but when is NOT KNOWN; exposed "
               "communication, waits and stragglers are not known%s",
               say_why(a, rank ? gpu_timing_reason(a->model, rank) : NULL));
  add_coverage(a->results, "collective times", runs, calls, note);
}

/* Of what ran on the GPUs, what can be led back to a call on the host. */
static void add_gpu_coverage(struct analysis *a) {
  struct results *r = a->results;
  struct rank_flops all = flops_all(a, false);
  const struct model *model = a->model;
  struct rank_summary sum = analysis_sums(a);
  double replays = (double)sum.graph_launches, replays_run = (double)sum.graph_launches_run;
  double fixed = replays - (double)sum.graph_launches_open;
  double in_graphs = TOTAL(double, model->ranks, model->n_ranks, one, (double)one->replayed_runs);
  double known = TOTAL(double, model->ranks, model->n_ranks, one, (double)one->replayed_known);
  bool own_traces = ANY(model->ranks, model->n_ranks, one, one->info[TSCOPE_INFO_TSCOPE]);
  add_coverage(r, "collective calls", (double)sum.collective_kernels_called,
               (double)sum.collective_kernels,
               sum.collective_kernels_called
                   ? "collectives without a recorded call: they cannot be matched across ranks"
                   : "NO COLLECTIVE CALLS: collectives ran but their calls were NOT SEEN; ranks "
                     "cannot be compared by them");
  add_coverage(r, "launch calls", (double)all.launched, (double)all.kernels,
               all.launched ? "kernels without a recorded launch, such as those of libraries with "
                              "their own CUDA runtime"
                            : "NO LAUNCH CALLS: kernels ran but their launches were NOT SEEN");
  add_coverage(
      r, "graph replays", replays_run, replays,
      replays_run
          ? "replays of CUDA graphs without any recorded work on the GPU"
          : "NO GRAPH CONTENT: CUDA graphs were launched but what ran in them was NOT SEEN");
  if (fixed < replays)
    add_coverage(r, "replays without conditions", fixed, replays,
                 "CUDA graphs with conditional nodes: their content is known, but not how often it "
                 "ran; CUPTI reports only the first run");
  if (known < in_graphs)
    add_coverage(
        r, "collectives in graphs found by their nodes", known, in_graphs,
        "these were found in a replay only by their order in time, which CUDA does not guarantee");
  if (!own_traces && !all.gemms)
    return;
  const char *note = "GEMMs without a recorded call or size";
  if (!all.gemms)
    note = "NO GEMM CALLS: their kernels ran but the calls were NOT SEEN; HFU is unknown";
  else if (all.captured)
    note = "GEMMs in CUDA graphs: their replays cannot be distinguished";
  else if (all.replays_unknown)
    note = "GEMMs in replays of CUDA graphs without a recorded capture";
  else if (!all.gemm_known_ns)
    note =
        "the launches inside cuBLAS were not recorded, so its kernels cannot be assigned to calls";
  add_coverage(r, "GEMMs", (double)all.gemm_known_ns, (double)all.gemm_ns, note);
}

/* Ends of steps on the GPU, where anything of its time is known. */
static void add_step_end_coverage(struct analysis *a) {
  double steps = 0, known = 0;
  FOR_EACH_STEP(a, step)
    for (u32 i = 0; i < a->model->n_ranks; i++) {
      const struct rank *rank = &a->model->ranks[i];
      if (!a->ranks[i].on_gpu || (!rank->gpu_kernels && !rank->collective_runs))
        continue;
      steps += analysis_has_step(a, i, step);
      known += analysis_host_ahead(a, i, step, step) != NS_UNKNOWN;
    }
  add_coverage(
      a->results, "ends of steps on the GPU", known, steps,
      known ? "steps without a known end on the GPU: the host's end is used, or they are left out"
            : "NO ENDS ON THE GPU: its work during a host step may have been launched in an "
              "earlier one");
}

/* Of the functions that programs looked up by name, those that tscope stood in for. */
static void add_look_up_coverage(struct analysis *a) {
  double seen = 0, all = 0;
  const char *other = NULL;
  FOR_EACH(a->model->ranks, a->model->n_ranks, each) {
    const char *lines = each->info[TSCOPE_INFO_LOOKED_UP];
    for (struct named_value one; next_named_value(&lines, &one);) {
      bool is_seen = one.value && text_is_piece("seen", one.value, (size_t)one.of_value);
      all += one.value != NULL;
      seen += is_seen;
      if (one.value && !is_seen && !other)
        other = say(a, "%.*s of %.*s", one.of_name, one.name, one.of_value, one.value);
    }
  }
  add_coverage(a->results, "functions found by name", seen, all,
               say(a, "another copy of a library: calls of its functions are NOT SEEN, such as %s",
                   other ? other : "those of one rank"));
}

/* Looks at what threads do between calls: fewer where they cost more than they may. */
static void add_look_coverage(struct analysis *a) {
  struct fewer_looks all = {0};
  u32 rank = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct fewer_looks *one = &a->line_sums[i].fewer;
    all.wanted += one->wanted;
    all.missed += one->missed;
    if (one->missed > 0 && one->slowest_us > all.slowest_us) {
      all.slowest_us = one->slowest_us;
      rank = a->model->ranks[i].rank;
    }
  }
  add_coverage(a->results, "looks at lines", all.wanted - all.missed, all.wanted,
               say(a,
                   "the CPU time or the room in the trace that sampling may use was not enough for "
                   "all; on rank %u it was down to one each %s",
                   rank, duration_ms(all.slowest_us / 1e3).text));
}

static void list_coverage(struct analysis *a) {
  const struct model *model = a->model;
  struct results *r = a->results;
  struct rank_summary sum = analysis_sums(a);
  double kept = sum.steps, unseen = sum.steps_unseen, untimed = sum.steps_untimed;
  double launches = 0, kernels = 0, calls = 0, runs = 0, phased = 0;
  bool inferred = false;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const struct rank *rank = &model->ranks[i];
    launches += (double)rank->launches;
    kernels += (double)MIN(rank->gpu_kernels, rank->launches);
    calls += (double)rank->collective_calls;
    runs += (double)rank->collective_runs;
    phased += a->ranks[i].has_phases || (model->lengths_only && a->ranks[i].has_input);
    inferred |= a->ranks[i].has_input && !a->ranks[i].has_phases;
  }
  r->coverage = arena_array(a->arena, MAX_COVERAGE, sizeof(*r->coverage));
  u32 expected = model_ranks_of_job(model);
  add_coverage(r, "ranks", model->n_ranks, expected, "traces of some ranks were not found");
  add_collective_coverage(a, calls, runs);
  if (communication_unseen(a))
    add_coverage(r, "collectives", 0, 1, r->overlap_reason);
  add_coverage(r, "kernel times", kernels, launches,
               kernels > 0 ? "launches without a recorded run on the GPU"
                           : "NO KERNEL TIMES: work was launched, but when it ran is NOT KNOWN");
  add_gpu_coverage(a);
  u32 matched =
      NUMBER_OF(model->collectives, model->n_collectives, one, one->complete && !one->mismatched);
  add_coverage(r, "matched collectives", matched, model->n_collectives,
               "some members are missing or disagree: waits there are lower bounds");
  add_coverage(r, "phases", phased, model->n_ranks,
               inferred ? "only waiting for input is known: the job names no other phase"
                        : "ranks without training phases");
  add_look_up_coverage(a);
  if (launches == 0 || kernels > 0)
    add_coverage(r, gpu_timing_any_work(a) || kernels > 0 ? "steps with kernels" : "whole steps",
                 kept + unseen, kept + unseen + sum.steps_overwritten,
                 "kernels of earlier steps were overwritten at the disk limit");
  add_step_end_coverage(a);
  add_look_coverage(a);
  if (untimed > 0)
    add_coverage(
        r, "steps with times of all collectives", kept, kept + untimed,
        kept ? "the others are left out of overlap and path: their collectives ran in CUDA graphs "
               "that CUPTI reported as a whole (TSCOPE_GPU_GRAPHS), or their records were lost"
             : "NO STEP HAS THE TIMES OF ALL ITS COLLECTIVES: they ran in CUDA graphs that CUPTI "
               "reported as a whole (TSCOPE_GPU_GRAPHS), or their records were lost");
  if (sum.steps_left_out > 0)
    add_coverage(r, "steps whose collectives have times", kept, kept + sum.steps_left_out,
                 "a sample, as --timed-steps asked for: communication, waits and the critical path "
                 "are those of these steps");
  if (unseen > 0)
    add_coverage(r, "steps whose GPU time was taken", kept, kept + unseen,
                 gpu_timing_why_no_times(a));
}

/* Launch calls made since CUPTI was first opened. */
static double launches_since_cupti(const struct rank *rank) {
  double run = (double)(rank->end - rank->begin);
  return run > 0 ? (double)rank->launches * gpu_timing_since_cupti(rank) / run : 0;
}

/* What CUPTI adds to a launch, on an H200 with a program in C (docs/performance.md: the row
 * cost_of_kinds of scripts/gpu-check). */
#define CUPTI_LAUNCH_NS 2000.0

/* What 300 small operators take longer, beyond what is counted (docs/performance.md). */
#define OPERATORS_US 20

static const char *basis_of_cost(struct analysis *a, bool under_cupti) {
  const char *launches =
      under_cupti
          ? say(a,
                ", and each launch %.1f \u00b5s in CUPTI (an H200), where the GPU waits for "
                "the host",
                CUPTI_LAUNCH_NS / 1e3)
          : "";
  return say(a, "estimated; 300 small operators take %d \u00b5s more on a test machine%s",
             OPERATORS_US, launches);
}

static void fill_own_cost(struct analysis *a) {
  const struct model *model = a->model;
  struct results *r = a->results;
  double startup = 0, calls = 0, duration = 0, helper = 0, gpu_clock = 0, since_cupti = 0;
  r->events = r->lost = r->trace_bytes = model->n_ranks ? 0 : NAN;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    startup += (double)rank->cost_startup_ns;
    calls +=
        (double)rank->cost_ns_per_record * (double)rank->records + (double)rank->cost_slow_path_ns;
    helper += ns_to_s(rank->cost_helper_cpu_ns);
    gpu_clock += ns_to_ms(rank->gpu_overhead_ns);
    since_cupti += launches_since_cupti(rank);
    r->events += (double)rank->records;
    r->lost += (double)rank_lost(rank);
    r->trace_bytes += (double)rank->file_bytes;
    if (rank->begin != NS_UNKNOWN && rank->end != NS_UNKNOWN)
      duration += (double)(rank->end - rank->begin);
  }
  double cost = startup + calls;
  r->overhead_fraction = duration > 0 && cost > 0 ? cost / duration : NAN;
  r->overhead_helper_cpu_s = cost > 0 ? helper : NAN;
  r->overhead_ns_per_event = r->events > 0 && cost > 0 ? calls / r->events : NAN;
  r->overhead_gpu_clock_ms = gpu_clock > 0 ? gpu_clock / model->n_ranks : NAN;
  r->overhead_cupti_launches = since_cupti > 0 ? since_cupti / model->n_ranks : NAN;
  r->overhead_cupti_fraction =
      since_cupti > 0 && duration > 0 ? since_cupti * CUPTI_LAUNCH_NS / duration : NAN;
  if (!isnan(r->overhead_fraction))
    r->overhead_basis = basis_of_cost(a, since_cupti > 0);
  r->overhead_startup_ms = cost > 0 ? startup / model->n_ranks / 1e6 : NAN;
}

void quality_analyse(struct analysis *a) {
  fill_own_cost(a);
  a->results->gpu_timing = gpu_timing_describe(a);
  list_partial_ranks(a);
  list_coverage(a);
}
