/* SPDX-License-Identifier: MIT
 *
 * A job that hangs, and ranks that call different things.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/texts.h"

#define ONES_NAMED 3u

/* ", on node1" if all these are there and the job has other hosts too; else nothing. */
static const char *describe_host(struct findings *f, const u32 *ranks, u32 n) {
  const struct model *model = f->a->model;
  bool recorded = ALL(ranks, n, one, model_rank_index(model, *one) != INDEX_NONE);
  const char *host = recorded ? model_host_of(model, mark_ranks(f->a, ranks, n)) : NULL;
  return host ? say(f, ", on %s", host) : "";
}

/* What is known of the first few, one sentence each. */
static const char *describe_suspects(struct findings *f) {
  const struct collective_check *check = &f->r->check;
  const char *text = "";
  for (u32 i = 0; i < check->n_suspects && i < ONES_NAMED; i++)
    text = arena_list(f->arena, text, " ", "%s", check->suspects[i].evidence);
  return text;
}

static const char action_for_ended_process[] =
    "That process died or was stopped: look at its last output, the kernel log of its host (out of "
    "memory, Xid errors) and the scheduler's events. The other ranks are victims.";

const char *hang_action(const struct check_suspect *first) {
  if (first->doing == STALL_STOPPED)
    return "Find out what stopped it (a debugger, Ctrl-Z, a scheduler that suspends jobs, a frozen "
           "container). `kill -CONT` with its process id lets it go on. The other ranks wait for "
           "it.";
  switch (first->reason) {
  case SUSPECT_NCCL_ERROR:
    return "Read NCCL's messages of that rank (NCCL WARN; NCCL_DEBUG=INFO says more) and the "
           "kernel log of its host (Xid, links, the NIC), then the same at the other end. NCCL "
           "reports an error where it sees it, which need not be where it began.";
  case SUSPECT_NO_RECORD:
    return "Look for its crash: its last output, the kernel log and the scheduler's events of its "
           "host. The other ranks are victims.";
  case SUSPECT_ABSENT:
  case SUSPECT_SILENT:
    return first->silent ? action_for_ended_process
                         : "Look at what that rank's Python does outside communication: a stack of "
                           "the live process, its data loader, a lock, a checkpoint, an exception "
                           "on one rank. The others are victims.";
  case SUSPECT_ENDED:
    return "That rank ended while others still wait: an exception, an early exit, or fewer batches "
           "than its peers have.";
  case SUSPECT_OLDER_CALLS:
    return first->silent ? action_for_ended_process
                         : "Look at that rank's device and links first: the kernel log for Xid "
                           "errors, its GPU's health, its NIC. The others are victims.";
  case SUSPECT_IN_CIRCLE:
  case SUSPECT_OTHER_ORDER:
    if (first->facts.two_threads)
      return "Give the second thread a group of its own (dist.new_group; async_save of "
             "torch.distributed.checkpoint takes process_group=), or make all calls of a group in "
             "one thread.";
    return "Make every rank call collectives in the same order, and order sends and receives so "
           "that they do not wait for each other.";
  case SUSPECT_UNMET:
    return "Compare the tags of the send and the receive, and how many messages each rank has "
           "made. "
           "If they agree, look at the link between the two ranks. The others are victims.";
  default:
    return "Compare that rank's call with its peers': the branch it took, the sizes it was given.";
  }
}

/* ", at train.py:9 and train.py:12": the places of the suspects, each once; "" if none is known. */
static const char *describe_places(struct findings *f) {
  const struct collective_check *check = &f->r->check;
  const char *text = "";
  u32 named = 0;
  for (u32 i = 0; i < check->n_suspects && named < ONES_NAMED; i++) {
    const char *place = check->suspects[i].place;
    if (place && !ANY(check->suspects, i, one, same_text(one->place, place)))
      text = say(f, "%s%s%s", text, named++ ? " and " : ", at ", place);
  }
  return text;
}

/* Ranks without a record that others wait for may hold up the job as well. */
static const char *describe_unrecorded(struct findings *f) {
  const struct collective_check *check = &f->r->check;
  u32 n = check->n_awaited_unrecorded;
  if (n == 0 || check->suspects[0].reason == SUSPECT_NO_RECORD)
    return "";
  return say(f,
             " Others also wait for %s, which left no record: whether %s only %s too is not known.",
             ranks_in(f->a->arena, check->awaited_unrecorded, n), n == 1 ? "it" : "they",
             n == 1 ? "waits" : "wait");
}

void rule_hang(struct findings *f) {
  const struct collective_check *check = &f->r->check;
  if (check->n_hang_ranks == 0)
    return;
  const char *who = ranks_in(f->a->arena, check->hang_ranks, check->n_hang_ranks),
             *what = describe_suspects(f);
  const char *title =
      say(f, "The job is held up: look at %s first%s%s", who,
          describe_host(f, check->hang_ranks, check->n_hang_ranks), describe_places(f));
  const char *age = isnan(check->pending_s) ? ""
                                            : say(f, " The oldest has been waiting for %s.",
                                                  duration_s(check->pending_s).text);
  bool also = check->n_nccl_errors != 0;
  const char *evidence = say(f,
                             "%s %s in calls that have not finished; %.0f of them only "
                             "wait for others.%s%s%s%s",
                             what, plural_is(check->pending_ranks, "rank").text, check->victims,
                             age, describe_unrecorded(f), also ? " " : "", also ? check->nccl : "");
  finding_add(f, SEVERITY_CRITICAL, (double)NAN, title, evidence, hang_action(&check->suspects[0]),
              check->hang_ranks, check->n_hang_ranks);
}

void rule_desync(struct findings *f) {
  const struct collective_check *check = &f->r->check;
  if (check->n_desync_ranks == 0)
    return;
  const char *who = ranks_in(f->a->arena, check->desync_ranks, check->n_desync_ranks);
  finding_add(
      f, SEVERITY_CRITICAL, (double)NAN,
      say(f, "Ranks call different collectives: look at %s first", who),
      say(f, "%s%s %.0f of %.0f calls in the record match on all members.", check->desync,
          text_ends_with(check->desync, ".") ? "" : ".", check->matched, check->checked),
      check->n_suspects && check->suspects[0].reason == SUSPECT_OTHER_ORDER
          ? hang_action(&check->suspects[0])
          : "Find the code that makes this rank make a different call: a branch on data or rank, a "
            "batch of another shape, a parameter without gradient, another version of the code.",
      check->desync_ranks, check->n_desync_ranks);
}
