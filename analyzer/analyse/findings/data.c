/* SPDX-License-Identifier: MIT
 *
 * DATA.PARTIAL: each way in which the run was not seen whole, and what to do about it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "findings.h"

static int missing_ranks(struct findings *f, u32 *ranks) {
  const struct model *model = f->a->model;
  u32 n = 0, next = 0;
  for (u32 i = 0; i <= model->n_ranks; i++) {
    u32 found = i < model->n_ranks ? model->ranks[i].rank : model->world_size;
    for (; next < found && next < model->world_size; next++)
      ranks[n++] = next;
    next = found + 1;
  }
  if (n == 0)
    return 0;
  return finding_add(
      f, SEVERITY_CRITICAL, NAN,
      arena_printf(f->a->arena, "%u of %u ranks were not found", n, model->world_size),
      arena_printf(f->a->arena,
                   "No trace of rank %s. What they did to the others is not seen: waits are lower "
                   "bounds.",
                   ranks_in_words(f->a->arena, ranks, n)),
      arena_text(f->a->arena, model->recorder
                                  ? "Record on every rank, and give the files of all of them."
                                  : "Gather the trace directories of all hosts into one, or point "
                                    "TSCOPE_DIR at storage that all hosts share."),
      ranks, n);
}

static int cut_ranks(struct findings *f, u32 *ranks) {
  const struct model *model = f->a->model;
  u32 n = 0, pending = 0;
  const char *damage = NULL;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const struct rank *rank = &model->ranks[i];
    if (rank->closed && !rank->damage && f->a->ranks[i].loaded)
      continue;
    ranks[n++] = rank->rank;
    damage = damage ? damage : rank->damage;
  }
  for (u32 i = 0; i < model->n_arrivals; i++)
    pending += model->arrivals[i].call_end == NS_UNKNOWN;
  if (n == 0)
    return 0;
  char *inside = pending
                     ? arena_printf(f->a->arena, " %u collective calls never returned.", pending)
                     : arena_text(f->a->arena, "");
  return finding_add(
      f, SEVERITY_WARNING, NAN,
      arena_printf(f->a->arena, "%u rank%s did not end in order", n, n > 1 ? "s" : ""),
      arena_printf(f->a->arena, "Rank %s: %s.%s", ranks_in_words(f->a->arena, ranks, n),
                   damage ? damage
                          : "the trace was never closed, so the process was killed or is "
                            "still running",
                   inside ? inside : ""),
      arena_text(f->a->arena, "If the job was not stopped on purpose, read the last lines of those "
                              "ranks' logs (out of memory, signals); what they recorded until then "
                              "is in this report."),
      ranks, n);
}

static int lost_records(struct findings *f, u32 *ranks) {
  static const char *const reasons[TSCOPE_LOSS_REASONS] = {
#define X(NAME, value, text) [value] = text,
      TSCOPE_LOSSES(X)
#undef X
  };
  const struct model *model = f->a->model;
  u64 by_reason[TSCOPE_LOSS_REASONS] = {0}, sum = 0;
  u32 n = 0, bare = 0, most = 0;
  for (u32 i = 0; i < model->n_ranks; i++) {
    u64 of_rank = 0;
    for (u32 k = 0; k < TSCOPE_LOSS_REASONS; k++) {
      by_reason[k] += model->ranks[i].lost[k];
      of_rank += model->ranks[i].lost[k];
    }
    bare += f->a->ranks[i].steps_bare;
    sum += of_rank;
    if (of_rank)
      ranks[n++] = model->ranks[i].rank;
  }
  if (sum == 0)
    return 0;
  for (u32 k = 1; k < TSCOPE_LOSS_REASONS; k++)
    most = by_reason[k] > by_reason[most] ? k : most;
  /* The ring forgets the oldest detail by design; the steps that still have theirs are whole. */
  bool only_ring = by_reason[TSCOPE_LOSS_RING] == sum;
  double share = (double)sum / ((double)sum + f->r->events);
  return finding_add(
      f, only_ring ? SEVERITY_INFO : SEVERITY_WARNING, NAN,
      arena_printf(f->a->arena, "%.2g %% of the events were not kept", 100 * share),
      arena_printf(
          f->a->arena,
          "%llu of %.0f events on %u ranks; most: %s. %u steps of these ranks are left out "
          "of overlap and budget for it.",
          (unsigned long long)sum, (double)sum + f->r->events, n, reasons[most], bare),
      only_ring ? arena_text(f->a->arena, "Raise the disk cap to keep more of the run in detail; "
                                          "collectives, steps and phases are kept whole anyway.")
                : arena_text(f->a->arena, "Give the trace directory space and a fast local disk, "
                                          "then measure again."),
      ranks, n);
}

static int unseen_collectives(struct findings *f, u32 *ranks) {
  const struct model *model = f->a->model;
  u64 calls = 0;
  u32 n = 0;
  const char *why = NULL;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const struct rank *rank = &model->ranks[i];
    if (rank->collective_calls == 0 || rank->collective_runs > 0)
      continue;
    calls += rank->collective_calls;
    why = why ? why : rank->gpu_clock_reason;
    ranks[n++] = rank->rank;
  }
  if (n == 0)
    return 0;
  return finding_add(
      f, SEVERITY_CRITICAL, NAN, arena_text(f->a->arena, "COMMUNICATION TIMES ARE MISSING"),
      arena_printf(f->a->arena,
                   "%llu collective calls on %u ranks, none with the time it ran%s%s. Exposed "
                   "communication is UNKNOWN, not zero.",
                   (unsigned long long)calls, n, why ? ": " : "", why ? why : ""),
      arena_text(f->a->arena,
                 "Let tscope read GPU times: CUPTI's library must be found and no "
                 "other profiler may hold it; see the GPU timing line for the reason."),
      ranks, n);
}

static int unseen_kernels(struct findings *f, u32 *ranks) {
  const struct model *model = f->a->model;
  u64 launches = 0;
  u32 n = 0;
  const char *why = NULL;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const struct rank *rank = &model->ranks[i];
    if (rank->launches == 0 || rank->gpu_kernels > 0)
      continue;
    launches += rank->launches;
    why = why ? why : rank->gpu_clock_reason;
    ranks[n++] = rank->rank;
  }
  if (n == 0)
    return 0;
  return finding_add(
      f, SEVERITY_WARNING, NAN, arena_text(f->a->arena, "GPU times are missing"),
      arena_printf(f->a->arena, "%llu launches on %u ranks, none with the time it ran%s%s.",
                   (unsigned long long)launches, n, why ? ": " : "", why ? why : ""),
      arena_text(f->a->arena,
                 "Let tscope read GPU times: CUPTI's library must be found and no "
                 "other profiler may hold it; see the GPU timing line for the reason."),
      ranks, n);
}

static int unaligned_clocks(struct findings *f) {
  const struct model *model = f->a->model;
  if (model->clock_aligned || model->n_ranks < 2)
    return 0;
  return finding_add(
      f, SEVERITY_WARNING, NAN, arena_text(f->a->arena, "The ranks' clocks could not be aligned"),
      arena_printf(f->a->arena,
                   "Clock alignment: %s. There is no critical path across the %u ranks; waits rest "
                   "on the shortest member of each collective.",
                   model->clock_method ? model->clock_method : "not known", model->n_ranks),
      arena_text(f->a->arena, "Record a stretch of the run that has collectives over all ranks, "
                              "and all its ranks."),
      NULL, 0);
}

int rule_partial_data(struct findings *f) {
  u32 room = f->a->model->n_ranks + f->a->model->world_size + 1;
  u32 *ranks = arena_array(f->a->arena, room, sizeof(u32));
  if (!ranks)
    return -ENOMEM;
  int error = missing_ranks(f, ranks);
  if (!error)
    error = cut_ranks(f, ranks);
  if (!error)
    error = lost_records(f, ranks);
  if (!error)
    error = unseen_collectives(f, ranks);
  if (!error)
    error = unseen_kernels(f, ranks);
  return error ? error : unaligned_clocks(f);
}
