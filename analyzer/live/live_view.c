/* SPDX-License-Identifier: MIT */
#include "live/live_view.h"

#include <math.h>
#include <time.h>

#include "base/checked_memory.h"
#include "base/now.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/trace_words.h"
#include "import/tscope/files/process_state.h"
#include "inspect/this_host.h"
#include "inspect/trace_process.h"
#include "kernels/communication.h"

#define USUAL_STEPS 32u
#define GPU_OLD_S 3.0 /* what was seen of a GPU longer ago than this says nothing about now */
#define LEAST_THRESHOLD_S 1.0
#define THRESHOLD_STEPS 5.0
#define THRESHOLD_UNKNOWN_S 2.0

static const char *const state_names[] = {
    [LIVE_RUNNING] = "running", [LIVE_SILENT] = "silent", [LIVE_STOPPED] = "stopped",
    [LIVE_GONE] = "gone",       [LIVE_KILLED] = "killed", [LIVE_FAILED] = "failed",
    [LIVE_ENDED] = "ended",     [LIVE_UNCERTAIN] = "-"};

const char *live_state_name(enum live_state state) {
  return state_names[state];
}

const char *live_group_name(struct live_view *view, const struct comm_definition *comm) {
  return comm_label(comm->name, comm->identity, comm->size, &view->arena);
}

static bool is_on_this_host(const struct live_process *process, const char *clock) {
  return tscope_is_this_host(process->trace.file.header.host) &&
         (clock ? strcmp(clock, own_clock_read().text) == 0
                : may_be_this_boot(process->definitions.now.realtime_minus_monotonic));
}

/* As in the report. Where the clocks are not known, as at the start, the boot must agree, too: what
 * `here` is said of is looked at in /proc. */
static bool is_same_host(const struct live_host *host, const struct tscope_file_header *header,
                         const char *clock) {
  return host_is_same(host->name, host->clock, header->host, clock) &&
         ((host->clock && clock) || processes_share_host(host->header, header));
}

static u32 host_of(struct live_view *view, const struct live_process *process) {
  const struct tscope_file_header *header = &process->trace.file.header;
  const char *clock = process->definitions.now.info[TSCOPE_INFO_CLOCK];
  for (u32 i = view->n_hosts; i-- > 0;)
    if (is_same_host(&view->hosts[i], header, clock)) {
      view->hosts[i].ranks++;
      return i;
    }
  view->hosts[view->n_hosts] = (struct live_host){.name = header->host,
                                                  .header = header,
                                                  .clock = clock,
                                                  .ranks = 1,
                                                  .here = is_on_this_host(process, clock),
                                                  .error_s = NAN,
                                                  .behind_s = NAN};
  return view->n_hosts++;
}

static double median_of_last(const struct live_steps *steps) {
  double last[USUAL_STEPS];
  u32 n = MIN(steps->n, USUAL_STEPS);
  memcpy(last, steps->lengths + steps->n - n, n * sizeof(*last));
  return n ? median_of(last, n) : NAN;
}

static void fill_steps(struct live_rank *rank) {
  rank->step_s = rank->steps.n ? rank->steps.lengths[rank->steps.n - 1] : NAN;
  rank->usual_s = median_of_last(&rank->steps);
  rank->since_step_s = live_seconds_between(rank->steps.last, rank->seen_ns);
}

/* The innermost open phase of training: a user's range may be anything. */
static void fill_phase(struct live_rank *rank) {
  const struct live_opens *phases = &rank->process->phases;
  rank->phase = NULL;
  rank->phase_s = NAN;
  FOR_EACH(phases->at, phases->n, open) {
    const char *name = open->kind == TSCOPE_PHASE_USER ? live_string(rank->process, open->name)
                                                       : phase_word(open->kind);
    if (!name || (rank->phase && open->kind == TSCOPE_PHASE_USER))
      continue;
    rank->phase = name;
    rank->phase_s = live_seconds_between(open->start, rank->seen_ns);
  }
}

static void fill_last_call(struct live_view *view, struct live_rank *rank) {
  const struct live_process *process = rank->process;
  const struct live_last_call *last = &process->last;
  rank->called_s = rank->in_wait_s = NAN;
  rank->op = rank->group = NULL;
  rank->in_call = last->any && last->open;
  FOR_EACH(process->waits.at, process->waits.n, wait)
    rank->in_wait_s = fmax(live_seconds_between(wait->start, rank->seen_ns),
                           isnan(rank->in_wait_s) ? 0 : rank->in_wait_s);
  if (!last->any)
    return;
  rank->op = last->op ? op_name(last->op) : "graph";
  rank->called_s = live_seconds_between(last->start, rank->seen_ns);
  if (last->comm != INDEX_NONE)
    rank->group = live_group_name(view, &process->called.comms[last->comm]);
}

static void fill_memory(struct live_rank *rank) {
  const struct live_process *process = rank->process;
  rank->gpu_memory = gpu_memory_bytes(process->definitions.now.info);
  rank->memory = rank->peak = rank->reserved = process->n_memory ? 0 : NAN;
  FOR_EACH(process->memory, process->n_memory, one) {
    rank->memory += (double)one->allocated;
    rank->peak += (double)one->peak;
    rank->reserved += (double)one->reserved;
  }
}

static void fill_losses(struct live_view *view, struct live_rank *rank) {
  const struct tscope_file_header *header = &rank->process->trace.file.header;
  for (u32 i = 0; i < TSCOPE_LOSS_REASONS; i++) {
    view->lost[i] += header->lost[i];
    if (i != TSCOPE_LOSS_RING)
      rank->lost += header->lost[i];
  }
  rank->overwritten = header->lost[TSCOPE_LOSS_RING];
  view->damaged += rank->process->trace.damaged;
}

static void fill_gpu(struct live_rank *rank) {
  i64 until;
  rank->gpu = live_gpu_share(rank->process, &until);
  if (!(live_seconds_between(until, rank->seen_ns) < GPU_OLD_S))
    rank->gpu = NAN;
}

ORDER_BY(by_rank, struct live_rank, UP(rank))

static void list_ranks(struct live_view *view, struct live_run *run) {
  view->ranks = arena_array(&view->arena, run->entries.n, sizeof(*view->ranks));
  view->hosts = arena_array(&view->arena, run->entries.n, sizeof(*view->hosts));
  FOR_EACH(run->entries.at, run->entries.n, one) {
    struct live_entry *entry = *one;
    view->unreadable += !entry->process;
    view->left_out += entry->of_run && entry->left_out && entry->attempt == run->attempt;
    if (!entry->of_run || entry->left_out)
      continue;
    view->numbered += entry->rank != entry->process->rank;
    view->ranks[view->n_ranks++] = (struct live_rank){.entry = entry,
                                                      .process = entry->process,
                                                      .rank = entry->rank,
                                                      .stalled_s = NAN,
                                                      .late_s = NAN,
                                                      .late_more_s = NAN,
                                                      .waits_for = -1,
                                                      .waits_s = NAN};
    u32 world = entry->process->trace.file.header.world_size;
    view->world = MAX(world, view->world);
  }
  SORT(view->ranks, view->n_ranks, by_rank);
  FOR_EACH_CHANGED(view->ranks, view->n_ranks, rank)
    rank->host = host_of(view, rank->process);
}

bool live_is_running(const struct live_rank *rank) {
  return rank->state == LIVE_RUNNING || rank->state == LIVE_UNCERTAIN;
}

bool live_is_in_trouble(const struct live_rank *rank) {
  return !live_is_running(rank) && rank->state != LIVE_ENDED;
}

/* The rank whose steps represent the job's: one that runs, if any does, with at least as many
 * lengths as any other. */
static void choose_reference(struct live_view *view) {
  double since = 0;
  FOR_EACH(view->ranks, view->n_ranks, each) {
    const struct live_rank *rank = each, *best = view->reference;
    bool runs = live_is_running(rank), best_runs = best && live_is_running(best);
    if (rank->steps.n &&
        (!best || runs > best_runs || (runs == best_runs && rank->steps.n > best->steps.n)))
      view->reference = rank;
    if ((runs || !view->n_running) && rank->since_step_s > since)
      since = rank->since_step_s;
  }
  view->step_s = view->rate = view->since_step_s = NAN;
  view->step_method = view->reference ? view->reference->steps.method : NULL;
  if (!view->reference)
    return;
  view->step_s = view->reference->usual_s;
  /* Where some steps are much longer, as those in which ranks meet, the usual one tells no rate. */
  const struct live_steps *steps = &view->reference->steps;
  view->rate = 1 / mean_of(steps->lengths, steps->n);
  view->since_step_s = since;
}

void live_view_make(struct live_view *view, struct live_run *run) {
  i64 realtime = clock_ns(CLOCK_REALTIME), monotonic = clock_ns(CLOCK_MONOTONIC);
  u64 start = UINT64_MAX, latest = 0;
  *view = (struct live_view){.run = run, .now_realtime_ns = (u64)realtime};
  list_ranks(view, run);
  live_find_steps(view, &run->hint);
  FOR_EACH_CHANGED(view->ranks, view->n_ranks, rank) {
    const struct tscope_file_header *header = &rank->process->trace.file.header;
    live_find_state(view, rank, realtime, monotonic);
    fill_steps(rank);
    fill_phase(rank);
    fill_last_call(view, rank);
    fill_memory(rank);
    fill_losses(view, rank);
    fill_gpu(rank);
    view->n_running += live_is_running(rank);
    view->n_over += rank->state == LIVE_ENDED;
    view->n_trouble += live_is_in_trouble(rank);
    start = MIN(header->start_realtime_ns, start);
    u64 seen = (u64)(rank->seen_ns + rank->process->definitions.now.realtime_minus_monotonic);
    latest = rank->seen_ns == NS_UNKNOWN ? latest : MAX(seen, latest);
  }
  choose_reference(view);
  view->since_start_s = latest > start ? ns_to_s(latest - start) : NAN;
  view->threshold_s = isnan(view->step_s) ? THRESHOLD_UNKNOWN_S
                                          : fmax(LEAST_THRESHOLD_S, THRESHOLD_STEPS * view->step_s);
  view->model = live_model_make(view, live_waits_matter(view));
  live_join(view);
  live_find_late_lines(view);
  live_find_waits(view);
  FOR_EACH_CHANGED(view->ranks, view->n_ranks, one)
    live_describe_stall(view, one);
  live_merge_stalls(view);
}

void live_view_release(struct live_view *view) {
  model_free(view->model);
  arena_release(&view->arena);
  *view = (struct live_view){0};
}
