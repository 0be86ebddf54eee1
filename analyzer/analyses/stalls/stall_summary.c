/* SPDX-License-Identifier: MIT
 *
 * Where ranks stalled, according to their own records: first those that never went on, or went
 * on only to end, then past stalls. If the check of collectives names the rank that holds up the
 * job, it gets the line from here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/analysis.h"
#include "analyses/hang/verdict.h"
#include "analyses/lines/line_sums.h"
#include "analyses/stalls/stall_words.h"
#include "base/checked_memory.h"
#include "base/rank_list.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "inspect/thread_state.h"
#include "model/flight_record.h"

static double seconds(const struct analysis *a, i64 time) {
  return seconds_between(a->model->begin, time);
}

/* When each rank began the last collective that it completed: NS_UNKNOWN if it completed none. By
 * index of the model. */
static i64 *last_calls(struct arena *arena, const struct model *model) {
  i64 *last = arena_array(arena, model->n_ranks, sizeof(*last));
  FILL(last, model->n_ranks, NS_UNKNOWN);
  FOR_EACH(model->arrivals, model->n_arrivals, arrival) {
    i64 *own = &last[arrival->rank];
    *own = arrival->call_end != NS_UNKNOWN ? MAX(arrival->call_start, *own) : *own;
  }
  return last;
}

/* After a signal, launchers give a job this long to end. */
static const i64 ending_ns = 30 * 1000000000ll;

/* Whether the rank made a call after the stall was examined. The end of a stall is noticed later,
 * after about a second, in which there may be many calls. */
static bool calls_after(const struct rank_stall *stall, i64 last_call) {
  return stall->looked != NS_UNKNOWN && last_call != NS_UNKNOWN && last_call > stall->looked;
}

static bool has_frames(const struct rank_stall *stall) {
  const struct stalled_thread *first = stall_main_thread(stall);
  return stall->what == TSCOPE_STALL_NOTHING_MOVED && first && first->n_frames > 0;
}

/* Whether between the two the rank did nothing except end. */
static bool ends_between(const struct rank_stall *before, const struct rank_stall *after,
                         i64 last_call) {
  return before->end != NS_UNKNOWN && after->begin != NS_UNKNOWN &&
         !calls_after(before, last_call) && after->begin - before->end <= ending_ns;
}

/* The last stall, or one before it. A rank that received the signal to end may stall again,
 * more than once, while it ends, when it has no Python frames any more. Then the last stall with
 * frames says more. */
static const struct rank_stall *most_informative_stall(const struct rank *rank, i64 last_call) {
  const struct rank_stall *last = rank->n_stalls ? &rank->stalls[rank->n_stalls - 1] : NULL;
  const struct rank_stall *stall = last;
  while (stall && stall > rank->stalls && !has_frames(stall) &&
         ends_between(stall - 1, stall, last_call))
    stall--;
  return stall && has_frames(stall) ? stall : last;
}

/* The stall in which the rank's record ends, because it never or hardly went on. NULL if there is
 * none. A rank that is stopped right after a stall, such as a slow start, could not record the end
 * of the stall: its calls show it. */
static const struct rank_stall *last_stall(const struct analysis *a, const struct rank *rank,
                                           i64 last_call) {
  const struct rank_stall *stall = most_informative_stall(rank, last_call);
  if (!stall || stall->what != TSCOPE_STALL_NOTHING_MOVED || stall->begin == NS_UNKNOWN)
    return NULL;
  if (rank->closed || calls_after(stall, last_call))
    return NULL;
  if (stall->end == NS_UNKNOWN)
    return stall;
  bool in_order = a->results->run_end.how == RUN_ENDED_IN_ORDER;
  i64 lasted = stall->end - stall->begin;
  bool is_last = stall == &rank->stalls[rank->n_stalls - 1];
  i64 until = is_last ? rank_alive_until(rank) : stall[1].begin;
  bool soon = until - stall->end < MAX(lasted, ending_ns);
  return in_order || !soon ? NULL : stall;
}

/* The last stall of each rank, by index of the model. */
static const struct rank_stall **last_stalls(struct analysis *a) {
  const struct model *model = a->model;
  const struct rank_stall **last = arena_array(a->arena, model->n_ranks, sizeof(*last));
  const i64 *calls = last_calls(a->arena, model);
  for (u32 r = 0; r < model->n_ranks; r++)
    last[r] = last_stall(a, &model->ranks[r], calls[r]);
  return last;
}

static bool is_of_other_python(const struct rank_stall *stall, u64 thread) {
  const struct stalled_thread *first = stall_main_thread(stall);
  return ANY(stall->threads, stall->n_threads, one,
             one != first && one->python && one->number == thread);
}

/* The unfinished call that the rank's first thread waits in, as far as the check of collectives
 * knows it; NULL. What another thread of Python called, that one waits in; a thread of autograd
 * calls for the first one. */
static char *collective_of(const struct analysis *a, u32 global, const struct rank_stall *stall) {
  const struct collective_check *check = &a->results->check;
  u32 n;
  const struct flight_call *calls = waits_calls_of(check->flight, global, &n);
  bool others = false;
  FOR_EACH(check->waits, check->n_waits, wait) {
    if (!ranks_have(wait->ranks, wait->n_ranks, global))
      continue;
    const struct flight_call *call = waits_call_of(check->flight, global, wait);
    if (!call || !is_of_other_python(stall, call->thread))
      return call_name(a->arena, call ? call->op : wait->op, -1, wait->group);
    others = true;
  }
  const struct flight_call *open =
      FIND(calls, others ? n : 0, one,
           one->state != FLIGHT_COMPLETED && !is_of_other_python(stall, one->thread));
  return open ? call_name(a->arena, open->op, -1,
                          flight_group_label(&check->flight->groups[open->group]))
              : NULL;
}

static void add_rank(struct analysis *a, const struct rank *rank, const struct rank_stall *stall) {
  struct stalls_result *out = &a->results->stalls;
  struct stalled_rank *row = &out->ranks[out->n_ranks++];
  i64 end = stall->end == NS_UNKNOWN ? rank_alive_until(rank) : stall->end;
  *row = (struct stalled_rank){.rank = rank->rank,
                               .host = rank->host,
                               .since_s = seconds(a, stall->begin),
                               .for_s = end < stall->begin ? (double)NAN
                                                           : seconds_between(stall->begin, end)};
  if (isnan(out->limit_s) || stall->limit_s > out->limit_s)
    out->limit_s = stall->limit_s;
  double looked = seconds(a, stall->looked);
  if (isnan(out->recorded_s) || looked > out->recorded_s)
    out->recorded_s = looked;
  stall_describe(a->arena, stall, collective_of(a, rank->rank, stall), row);
}

/* What a rank of the same host saw of this rank's process, which recorded nothing itself; NULL. */
static const struct stalled_peer *find_peer_report(const struct analysis *a,
                                                   const struct rank *rank,
                                                   const struct rank_stall *const *last,
                                                   const struct rank **by) {
  const struct model *model = a->model;
  for (u32 r = 0; r < model->n_ranks && !rank->closed && rank->host; r++) {
    const struct rank *other = &model->ranks[r];
    const struct rank_stall *stall = last[r];
    bool neighbour =
        stall && other != rank && model_same_host(model, r, (u32)(rank - model->ranks));
    for (u32 i = 0; neighbour && i < stall->n_peers; i++)
      if (stall->peers[i].pid == rank->pid) {
        *by = other;
        return &stall->peers[i];
      }
  }
  return NULL;
}

static const char *describe_peer(const struct stalled_peer *peer, enum stall_doing *what) {
  bool frozen = thread_is_frozen(text_or_empty(peer->wait));
  *what = frozen || thread_is_stopped(peer->state) ? STALL_STOPPED
          : peer->state == 'D'                     ? STALL_INPUT_OUTPUT
                                                   : STALL_DEAD;
  return frozen                ? "frozen, like a paused container or cgroup"
         : *what == STALL_DEAD ? "ended, and its parent has not waited for it"
                               : stall_state_words(peer->state);
}

/* "; its first thread was last seen at train.py:12 (load)"; empty if there is no sample. */
static char *describe_last_seen(struct analysis *a, const struct rank *rank,
                                struct stalled_rank *at) {
  u32 r = (u32)(rank - a->model->ranks);
  const struct call_frame *last = a->line_sums[r].last;
  if (!last)
    return arena_text(a->arena, "");
  at->place = call_frame_place(a->arena, last, model_folder(a->model));
  at->file = arena_text(a->arena, last->file);
  at->function = arena_text(a->arena, last->function);
  at->line = last->line ? last->line : (double)NAN;
  return say(a, "; its first thread was last seen at %s", stack_last_sampled(a, r));
}

/* A rank that could not record itself what it is doing. */
static void add_seen_by_peer(struct analysis *a, const struct rank *rank,
                             const struct rank_stall *const *stalls) {
  struct stalls_result *out = &a->results->stalls;
  const struct rank *by = NULL;
  const struct stalled_peer *peer = find_peer_report(a, rank, stalls, &by);
  if (!peer)
    return;
  struct stalled_rank *row = &out->ranks[out->n_ranks++];
  i64 end = rank_alive_until(rank);
  *row = (struct stalled_rank){.rank = rank->rank,
                               .host = rank->host,
                               .since_s = seconds(a, end),
                               .for_s = seconds_between(end, a->model->end),
                               .line = (double)NAN,
                               .begins = "It is "};
  const char *words = describe_peer(peer, &row->what);
  char *last = describe_last_seen(a, rank, row);
  row->words = say(a, "%s: rank %u on the same host saw this of process %u%s%s%s%s", words,
                   by->rank, rank->pid, peer->call ? ", in " : "", text_or_empty(peer->call),
                   peer->file ? " of " : "", text_or_empty(peer->file));
  row->words = say(a, "%s%s", row->words, last);
}

static void list_ranks(struct analysis *a, const struct rank_stall *const *last) {
  const struct model *model = a->model;
  struct stalls_result *out = &a->results->stalls;
  u64 threads = TOTAL(u64, last, model->n_ranks, one, *one ? (*one)->n_threads : 0);
  out->ranks = arena_array(a->arena, model->n_ranks, sizeof(*out->ranks));
  SCOPED struct tree_stack *stacks = memory_zeroed(size_sum(threads, 1), sizeof(*stacks));
  struct stack_tree tree = {0};
  u32 n = 0;
  for (u32 r = 0; r < model->n_ranks; r++) {
    if (!last[r]) {
      add_seen_by_peer(a, &model->ranks[r], last);
      continue;
    }
    add_rank(a, &model->ranks[r], last[r]);
    n += stall_stacks(last[r], model->ranks[r].rank, stacks + n);
  }
  stack_tree_make(a->arena, stacks, n, &tree);
  out->tree = tree.nodes;
  out->n_tree = tree.n;
}

ORDER_BY(by_length, struct past_stall, DOWN(for_s) UP(rank))

static void add_past(struct analysis *a, const struct rank *rank, const struct rank_stall *stall) {
  struct stalls_result *out = &a->results->stalls;
  struct stalled_rank at = {0};
  stall_describe(a->arena, stall, NULL, &at);
  out->past[out->n_past++] = (struct past_stall){.rank = rank->rank,
                                                 .since_s = seconds(a, stall->begin),
                                                 .for_s = ns_to_s(stall->end - stall->begin),
                                                 .what = stall_word(stall->what),
                                                 .place = at.place,
                                                 .function = at.function};
}

static void list_past(struct analysis *a, const struct rank_stall *const *last) {
  const struct model *model = a->model;
  struct stalls_result *out = &a->results->stalls;
  u64 most = TOTAL(u64, model->ranks, model->n_ranks, one, one->n_stalls);
  out->past = arena_array(a->arena, most, sizeof(*out->past));
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank *rank = &model->ranks[r];
    FOR_EACH(rank->stalls, rank->n_stalls, stall) {
      if (stall != last[r] && stall->end != NS_UNKNOWN && stall->begin != NS_UNKNOWN)
        add_past(a, rank, stall);
    }
  }
  /* Only tscope's own traces have stalls. */
  out->past_known = model->n_ranks && !model->recorder ? out->n_past : (double)NAN;
  SORT(out->past, out->n_past, by_length);
  out->n_past = MIN(PAST_STALLS_LISTED, out->n_past);
}

void stalls_analyse(struct analysis *a) {
  struct stalls_result *out = &a->results->stalls;
  *out = (struct stalls_result){.limit_s = (double)NAN, .recorded_s = (double)NAN};
  const struct rank_stall *const *last = last_stalls(a);
  list_ranks(a, last);
  list_past(a, last);
}
