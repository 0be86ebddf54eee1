/* SPDX-License-Identifier: MIT
 *
 * A run that ended early, and who ended it.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "base/rank_list.h"
#include "base/texts.h"

/* What is known of the first that ended it; nothing if that rank is not in the list. */
static const struct rank_ending *first_culprit(const struct run_end *end) {
  static const struct rank_ending nothing;
  const struct rank_ending *first =
      FIND(end->ranks, end->n_ranks, one, one->rank == end->culprits[0]);
  return first ? first : &nothing;
}

/* Whether it is a device's memory that ran out: PyTorch's words, of CUDA and HIP. */
static bool of_device(const struct run_end *end) {
  const char *exception = text_or_empty(first_culprit(end)->exception);
  return strstr(exception, "CUDA out of memory") || strstr(exception, "HIP out of memory") ||
         strstr(exception, "CUDACachingAllocator");
}

static const char *action_for(const struct results *r) {
  const struct run_end *end = &r->run_end;
  static const struct {
    enum end_cause cause;
    const char *action;
  } actions[] = {
      {END_OUT_OF_MEMORY, "Give the job more memory, or use less: fewer or smaller data loader "
                          "workers, smaller batches, no copies of the data set in each rank."},
      {END_EXCEPTION, "Read that rank's traceback in its log, and fix what it names; the other "
                      "ranks' errors are consequences."},
      {END_EXIT_STATUS, "Find what makes that rank exit with that status: sys.exit(), a check in "
                        "its code, a library that ends the process."},
      {END_SIGNAL, "Look at that rank's last output, at its core dump if there is one, and at the "
                   "kernel log of its host for that moment."},
      {END_CUDA_ERROR, "Run that rank with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer to find the "
                       "kernel, and look at its host's kernel log for Xid errors."},
      {END_NCCL_ERROR, "Set NCCL_DEBUG=WARN and first read what NCCL says on that rank; then look "
                       "at the links of its host."},
      {END_CALLS_DIFFER, "Find the code that makes this rank make a different call: a branch on "
                         "data or rank, one batch less or more, a parameter without gradient."},
      {END_LEFT_EARLY,
       "Find why that rank finished before the others: fewer batches than its peers, an early "
       "return. Join, or a sampler that pads, gives all ranks the same number."},
      {END_HELD_UP,
       "Look at what that rank did instead: a stack of the live process, its data loader, a lock, "
       "a checkpoint. The others waited for it until something stopped them."},
      {END_STOPPED, "Find who stopped that rank: the scheduler's events (preemption, suspension, a "
                    "time limit), a shutdown of its host, a debugger, an operator."},
      {END_HOST_LOST,
       "Look at that host: its kernel log, the scheduler's events, its power and its network."},
  };
  if (end->cause == END_OUT_OF_MEMORY && of_device(end))
    return r->model->n_memories
               ? "Use less of the GPU's memory: see what the findings about memory name, a leak by "
                 "its line first. Else a smaller micro-batch with gradient accumulation, "
                 "activation checkpointing, sharded states."
               : "Use less of the GPU's memory: a smaller micro-batch with gradient accumulation, "
                 "activation checkpointing, sharded states; look for tensors that are kept from "
                 "step to step, and for other processes on that GPU.";
  FOR_EACH(actions, LENGTH_OF(actions), item)
    if (end->cause == item->cause)
      return item->action;
  return "Look at that rank's last output, the kernel log of its host (out of memory, Xid errors) "
         "and the scheduler's events for that moment.";
}

/* Why the first of them ended, if its own words say more than the kind of cause; where they are too
 * long for a title, their beginning and the place. */
static const char *why_ended(struct findings *f, const struct run_end *end) {
  enum { MOST = 160, BEGINNING = 80 }; /* characters */
  const struct rank_ending *first = first_culprit(end);
  const char *why = first->why, *place = first->exception_at;
  bool own_words = end->cause == END_SIGNAL || end->cause == END_STOPPED ||
                   end->cause == END_EXIT_STATUS || end->cause == END_EXCEPTION ||
                   end->cause == END_OUT_OF_MEMORY;
  if (!own_words || !why)
    return end_cause_words[end->cause];
  if (strlen(why) <= MOST)
    return why;
  u32 whole = BEGINNING;
  while (whole > BEGINNING / 2 && why[whole] != ' ')
    whole--; /* no word is cut */
  return say(f, "%.*s...%s%s", whole, why, place ? ", at " : "", text_or_empty(place));
}

static const char *what_happened(struct findings *f, const struct run_end *end) {
  const char *seen = first_culprit(end)->last_seen;
  if (end->cause == END_SILENT)
    return "fell silent before all others";
  if (end->cause == END_HELD_UP)
    return say(f, "held up the run until it was stopped%s%s", seen ? ", last seen at " : "",
               text_or_empty(seen));
  return say(f, "%s the run: %s", end->held_up ? "held up" : "ended", why_ended(f, end));
}

void rule_run_ended_early(struct findings *f) {
  const struct run_end *end = &f->r->run_end;
  if (!end->n_culprits)
    return;
  const char *who = ranks_first_in(f->a->arena, end->culprits, end->n_culprits);
  /* while ranks are in calls, these say more about the one that holds them up */
  const char *action =
      end->held_up && end->cause != END_STOPPED && f->r->check.n_hang_ranks
          ? hang_action(&f->r->check.suspects[0])
      : end->cause == END_EXIT_STATUS && first_culprit(end)->ends_there
          ? say(f,
                "Read what leads to the call of _exit() at %s. It ends the process "
                "at once: no handler runs, and output may be missing.",
                first_culprit(end)->last_seen)
          : action_for(f->r);
  const char *evidence =
      end->calls ? say(f, "%s Calls: %s.", end->summary, end->calls) : end->summary;
  finding_add(f, SEVERITY_CRITICAL, (double)NAN, say(f, "%s %s", who, what_happened(f, end)),
              evidence, action, end->culprits, end->n_culprits);
}
