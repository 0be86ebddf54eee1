/* SPDX-License-Identifier: MIT */
#include "analyses/run_end/run_end.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/stalls/stall_words.h"
#include "base/quantity.h"

/* Ranks that end for their own reasons within this time of the first did so independently; later
 * ones count only if they raised the signal themselves. */
#define TOGETHER_NS (1000 * 1000 * 1000ll)
/* Traces without a word that stop within this time of each other stopped together. */
#define SIMULTANEOUS_NS (200 * 1000 * 1000ll)

#define X(NAME, value, text) [value] = text,
static const char *const op_names[OPS] = {TSCOPE_OPS(X)};
#undef X

struct end_search {
  struct analysis *a;
  struct ending *endings; /* in the order in which they ended */
  u32 n;
  struct call_counts counts;
  bool *culprit; /* by ending */
  bool ordered;  /* times of different ranks can be compared */
};

static int by_time(const void *left, const void *right) {
  const struct ending *a = left, *b = right;
  i64 x = a->what == ENDING_SILENT ? a->at : a->from,
      y = b->what == ENDING_SILENT ? b->at : b->from;
  return x != y ? (x < y ? -1 : 1) : a->global < b->global ? -1 : a->global > b->global;
}

static bool traces_record_ends(const struct model *model) {
  bool all = model->n_ranks > 0;
  for (u32 r = 0; r < model->n_ranks; r++)
    all = all && model->ranks[r].ending.known;
  return all;
}

static u32 count_endings(const struct end_search *j, enum ending_class what) {
  u32 n = 0;
  for (u32 i = 0; i < j->n; i++)
    n += j->endings[i].what == what;
  return n;
}

static bool is_odd(const struct end_search *j, u32 rank) {
  for (u32 i = 0; i < j->counts.n_odd; i++)
    if (j->counts.odd[i] == rank)
      return true;
  return false;
}

/* --- who ended the run --- */

/* Whether a rank made a collective that the other one never came to: there it waited for that one,
 * and what it raised in the end tells of the loss, whatever its words. */
static bool waited_for(const struct model *model, const struct ending *ending,
                       const struct ending *other) {
  const struct arrival *last = ending->last, *before = other->last;
  if (!last || !before || last->collective == INDEX_NONE || before->collective == INDEX_NONE)
    return false;
  const struct collective *its = &model->collectives[last->collective],
                          *others = &model->collectives[before->collective];
  return its->comm == others->comm && its->seq > others->seq;
}

/* Whether one that ended for its own reason did so because of `first`: it waited for it, or it
 * waited for others, and ended in the way in which waiting for lost ranks ends. */
static bool was_consequence(const struct end_search *j, const struct ending *ending,
                            const struct ending *first) {
  bool exception = ending->cause == END_EXCEPTION;
  if (j->ordered && ending->from - first->at > TOGETHER_NS)
    return true;
  return (exception && waited_for(j->a->model, ending, first)) ||
         (j->ordered && ending->from > first->at && ending->pending && !exception);
}

/* Of those that ended together for their own reasons, the first that did not wait for another. */
static const struct ending *find_first_own(const struct end_search *j) {
  const struct ending *first = NULL;
  for (u32 i = 0; i < j->n; i++) {
    const struct ending *ending = &j->endings[i];
    if (ending->what != ENDING_OWN)
      continue;
    if (!first || ((ending->from - first->from <= TOGETHER_NS || !j->ordered) &&
                   was_consequence(j, first, ending)))
      first = ending;
  }
  return first;
}

static u32 mark_own_reasons(struct end_search *j) {
  const struct ending *first = find_first_own(j);
  u32 marked = 0;
  for (u32 i = 0; i < j->n; i++) {
    const struct ending *ending = &j->endings[i];
    if (ending->what != ENDING_OWN || (ending != first && was_consequence(j, ending, first)))
      continue;
    j->culprit[i] = true;
    marked++;
  }
  return marked;
}

/* Clocks that are not aligned put no deaths in order: those that all others outlived for certain.
 */
static u32 mark_outlived(struct end_search *j) {
  u32 n_ranks = j->a->model->n_ranks, marked = 0;
  const struct ending **of = arena_array(j->a->arena, size_sum(n_ranks, 1), sizeof(*of));
  for (u32 i = 0; i < j->n; i++)
    if (j->endings[i].rank != INDEX_NONE)
      of[j->endings[i].rank] = &j->endings[i];
  const bool *first = outlived_first(j->a, of, SIMULTANEOUS_NS);
  for (u32 i = 0; i < j->n && first; i++)
    if (j->endings[i].rank != INDEX_NONE)
      marked += j->culprit[i] = first[j->endings[i].rank];
  return marked;
}

/* Else all that stopped without a word, if others reported that they lost a peer. */
static u32 mark_all_silent(struct end_search *j) {
  u32 marked = 0;
  for (u32 i = 0; i < j->n && count_endings(j, ENDING_LOST_PEER) > 0; i++)
    if (j->endings[i].what == ENDING_SILENT) {
      j->culprit[i] = true;
      marked++;
    }
  return marked;
}

/* The first of those that stopped without a word, if others lived on or reported that they lost a
 * peer. */
static u32 mark_silent(struct end_search *j, i64 before) {
  i64 first = INT64_MAX, last = INT64_MIN;
  u32 marked = 0, silent = 0;
  for (u32 i = 0; i < j->n; i++) {
    const struct ending *ending = &j->endings[i];
    last = ending->at > last && ending->what != ENDING_NONE && ending->what != ENDING_OLDER
               ? ending->at
               : last;
    if (ending->what != ENDING_SILENT)
      continue;
    silent++;
    first = ending->at < first ? ending->at : first;
  }
  bool lost = count_endings(j, ENDING_LOST_PEER) > 0;
  if (!silent || first >= before || (!lost && last - first < SIMULTANEOUS_NS))
    return 0;
  for (u32 i = 0; i < j->n; i++) {
    const struct ending *ending = &j->endings[i];
    if (ending->what != ENDING_SILENT || ending->at - first > SIMULTANEOUS_NS)
      continue;
    j->culprit[i] = true;
    marked++;
  }
  return marked;
}

/* Nobody ended for its own reason, and some lost a peer or were stopped: who called fewer
 * collectives than most, or more. */
static u32 mark_odd(struct end_search *j) {
  u32 marked = 0;
  for (u32 i = 0; i < j->n; i++)
    if (j->endings[i].rank != INDEX_NONE && is_odd(j, j->endings[i].rank)) {
      j->culprit[i] = true;
      marked++;
    }
  if (2 * marked < j->n)
    return marked;
  memset(j->culprit, 0, j->n);
  return 0;
}

/* The job hung until somebody stopped it: the verdict about its calls says who held it up. */
static u32 mark_suspects(struct end_search *j) {
  const struct collective_check *check = &j->a->results->check;
  u32 marked = 0;
  for (u32 i = 0; i < j->n; i++)
    for (u32 s = 0; s < check->n_suspects; s++)
      if (check->suspects[s].rank == j->endings[i].global && !j->culprit[i]) {
        j->culprit[i] = true;
        marked++;
      }
  return marked;
}

/* Those that ended normally while the others still waited for them. */
static u32 mark_early_leavers(struct end_search *j) {
  u32 marked = 0;
  for (u32 i = 0; i < j->n; i++)
    if (j->endings[i].what == ENDING_IN_ORDER) {
      j->culprit[i] = true;
      marked++;
    }
  return marked;
}

/* --- the words for it --- */

static char *list_names(const struct end_search *j, bool culprits, u32 *n) {
  u32 *ranks = arena_array(j->a->arena, size_sum(j->n, 1), sizeof(*ranks));
  *n = 0;
  for (u32 i = 0; i < j->n; i++)
    if (j->culprit[i] == culprits)
      ranks[(*n)++] = j->endings[i].global;
  return describe_ranks(j->a->arena, ranks, *n);
}

/* All ranks of one host, and nobody else, stopped without a word. */
static const char *find_lost_host(const struct end_search *j) {
  const struct model *model = j->a->model;
  u32 host = INDEX_NONE; /* its first rank */
  for (u32 i = 0; i < j->n; i++) {
    const struct ending *ending = &j->endings[i];
    if (!j->culprit[i])
      continue;
    if (ending->what != ENDING_SILENT ||
        (host != INDEX_NONE && !model_same_host(model, ending->rank, host)))
      return NULL;
    host = ending->rank;
  }
  bool others = false;
  for (u32 i = 0; i < j->n && host != INDEX_NONE; i++) {
    if (j->endings[i].rank == INDEX_NONE || j->culprit[i])
      continue;
    if (model_same_host(model, j->endings[i].rank, host))
      return NULL;
    others = true;
  }
  return others ? model->ranks[host].host : NULL;
}

static const struct ending *first_culprit(const struct end_search *j) {
  for (u32 i = 0; i < j->n; i++)
    if (j->culprit[i])
      return &j->endings[i];
  return NULL;
}

/* Whether no rank that only followed ended before this one. */
static bool ended_first(const struct end_search *j, const struct ending *first) {
  if (!j->ordered)
    return false;
  for (u32 i = 0; &j->endings[i] != first; i++)
    if (!j->culprit[i] && j->endings[i].what != ENDING_NONE)
      return false;
  return true;
}

/* How long before the next of the ranks that ended after it; NAN, also if it only held them up. */
static double time_to_next_end(const struct end_search *j, enum end_cause cause) {
  const struct ending *first = first_culprit(j);
  if (cause == END_HELD_UP || (first && !ended_first(j, first)))
    return NAN;
  for (u32 i = 0; first && i < j->n; i++)
    if (!j->culprit[i] && j->endings[i].what != ENDING_NONE && j->endings[i].at >= first->at)
      return (double)(j->endings[i].at - first->at) / 1e9;
  return NAN;
}

static char *describe_call(const struct analysis *a, const struct ending *ending) {
  const struct arrival *last = ending->last;
  const struct model *model = a->model;
  const char *op = op_names[last->op] ? op_names[last->op] : "collective";
  if (last->collective == INDEX_NONE)
    return arena_text(a->arena, op);
  const struct collective *collective = &model->collectives[last->collective];
  const struct comm *comm = &model->comms[collective->comm];
  return arena_printf(a->arena, "%s %u%s%s", op, collective->seq, comm->name ? " of " : "",
                      comm->name ? comm->name : "");
}

/* The step that a rank was in; the step after the last one that it ended is not in the model. */
static double step_in_progress(const struct model *model, u32 rank, i64 time) {
  const struct steps *steps = &model->steps;
  i32 step = model_step_at(model, rank, time);
  if (step >= 0)
    return (double)(steps->first + (u32)step);
  for (u32 s = steps->n; s-- > 0;) {
    size_t at = (size_t)s * model->n_ranks + rank;
    i64 end = (steps->host_end ? steps->host_end : steps->end)[at];
    if (end != NS_UNKNOWN && end <= time)
      return (double)(steps->first + s + 1);
  }
  return NAN;
}

static void fill_ending(const struct end_search *j, const struct ending *ending, bool culprit,
                        struct rank_ending *out) {
  static const enum rank_end_way hows[] = {
      [ENDING_IN_ORDER] = RANK_END_EXIT,  [ENDING_OWN] = RANK_END_EXIT,
      [ENDING_LOST_PEER] = RANK_END_EXIT, [ENDING_STOPPED] = RANK_END_SIGNAL,
      [ENDING_SILENT] = RANK_END_SILENT,  [ENDING_OLDER] = RANK_END_SILENT,
      [ENDING_NONE] = RANK_END_NO_RECORD};
  const struct model *model = j->a->model;
  const struct rank *rank = ending->rank == INDEX_NONE ? NULL : &model->ranks[ending->rank];
  *out = (struct rank_ending){.rank = ending->global,
                              .host = rank ? rank->host : NULL,
                              .how = hows[ending->what],
                              .status = NAN,
                              .signal = NAN,
                              .at_s = NAN,
                              .why = ending->why,
                              .step = NAN};
  out->part = culprit                           ? END_PART_CULPRIT
              : ending->what == ENDING_IN_ORDER ? END_PART_IN_ORDER
              : ending->what == ENDING_SILENT   ? END_PART_SILENT
              : ending->what == ENDING_OLDER    ? END_PART_OLDER
              : ending->what == ENDING_NONE     ? END_PART_NO_RECORD
                                                : END_PART_FOLLOWED;
  if (!rank)
    return;
  out->exception = rank->ending.exception;
  out->exception_at = exception_place(j->a, &rank->ending);
  out->last_seen = stack_last_sampled(j->a, ending->rank);
  out->at_s = (double)ending->from / 1e9;
  if (rank->ending.signal) {
    out->how = RANK_END_SIGNAL;
    out->signal = rank->ending.signal;
  } else if (rank->ending.kind != TSCOPE_END_UNSEEN) {
    out->how = rank->ending.kind == TSCOPE_END_AT_ONCE ? RANK_END_EXIT_AT_ONCE : RANK_END_EXIT;
    out->status = rank->ending.status;
  }
  out->step = step_in_progress(model, ending->rank, ending->from);
  out->phase = model_phase_at(model, ending->rank, ending->from);
  if (!ending->last)
    return;
  out->pending = ending->pending ? ANSWER_YES : ANSWER_NO;
  out->call = describe_call(j->a, ending);
}

static char *describe_place(const struct analysis *a, const struct rank_ending *row) {
  char *step = isnan(row->step) ? arena_text(a->arena, "")
                                : arena_printf(a->arena, " in step %.0f", row->step);
  return row->call ? arena_printf(a->arena, "%s, %s %s", step,
                                  row->pending == ANSWER_YES ? "waiting in" : "after", row->call)
                   : step;
}

static char *describe_end(const struct end_search *j, struct run_end *end) {
  struct arena *arena = j->a->arena;
  u32 n, others;
  char *who = list_names(j, true, &n), *rest = list_names(j, false, &others);
  const struct ending *first = first_culprit(j);
  if (!first)
    return NULL;
  const struct rank_ending *row = NULL;
  for (u32 i = 0; i < end->n_ranks; i++)
    if (end->ranks[i].rank == first->global)
      row = &end->ranks[i];
  bool held_up = end->cause == END_HELD_UP;
  char *where = describe_place(j->a, row);
  char *when = isnan(end->ahead_s) || others == 0
                   ? arena_text(arena, "")
                   : arena_printf(arena, ", %s before the next", duration_s(end->ahead_s).text);
  const char *host = find_lost_host(j);
  char *why = host ? arena_printf(arena, "all ranks of host %s fell silent", host)
                   : arena_text(arena, first->why);
  /* a sample from before an exception is not where it was raised */
  if (!host && row->last_seen && first->cause != END_EXCEPTION)
    why = arena_printf(arena, "%s, last seen at %s", why, row->last_seen);
  const char *how = held_up                 ? " held up the job until it was stopped"
                    : ended_first(j, first) ? " ended first"
                                            : " ended the run";
  return arena_printf(arena, "Rank%s %s%s%s%s: %s.%s%s%s", n > 1 ? "s" : "", who, how, where, when,
                      why, others ? " Rank" : "",
                      others > 1 ? "s "
                      : others   ? " "
                                 : "",
                      others ? arena_printf(arena, "%s only followed.", rest) : "");
}

/* Whether the ranks that the pending calls point to did end the run. */
static bool names_only_culprits(const struct end_search *j) {
  const struct collective_check *check = &j->a->results->check;
  u32 named = 0;
  for (u32 i = 0; i < j->n; i++)
    for (u32 s = 0; s < check->n_suspects; s++)
      named += j->culprit[i] && check->suspects[s].rank == j->endings[i].global;
  return named == check->n_suspects;
}

static void fill_run_end(struct end_search *j, struct run_end *end) {
  struct arena *arena = j->a->arena;
  end->ranks = arena_array(arena, size_sum(j->n, 1), sizeof(*end->ranks));
  end->culprits = arena_array(arena, size_sum(j->n, 1), sizeof(*end->culprits));
  for (u32 i = 0; i < j->n; i++) {
    fill_ending(j, &j->endings[i], j->culprit[i], &end->ranks[end->n_ranks++]);
    if (j->culprit[i])
      end->culprits[end->n_culprits++] = j->endings[i].global;
  }
  if (end->n_culprits && !names_only_culprits(j)) {
    struct collective_check *check = &j->a->results->check;
    check->n_suspects = check->n_hang_ranks = 0;
    check->cannot_tell = "see how the run ended";
    check->verdict = check->verdict == CHECK_HANG_AND_DESYNC ? CHECK_DESYNC
                     : check->verdict == CHECK_HANG          ? CHECK_CANNOT_TELL
                                                             : check->verdict;
  }
  end->followed = (double)(j->n - end->n_culprits);
  end->calls = j->counts.words;
}

/* A file that is older than those of other ranks does not show how its rank ended. */
static void mark_older_files(struct end_search *j) {
  const bool *older = model_find_older_files(j->a->model, j->a->arena);
  for (u32 i = 0; i < j->n; i++) {
    struct ending *ending = &j->endings[i];
    if (ending->what != ENDING_SILENT || !older[ending->rank])
      continue;
    ending->what = ENDING_OLDER;
    ending->why = "its file is older than those of its peers, which then ended collectives that it "
                  "is needed for";
  }
}

static void list_endings(struct end_search *j) {
  const struct model *model = j->a->model;
  u32 world = model->world_size;
  j->endings =
      arena_array(j->a->arena, size_sum(size_sum(model->n_ranks, world), 1), sizeof(*j->endings));
  j->culprit =
      arena_array(j->a->arena, size_sum(size_sum(model->n_ranks, world), 1), sizeof(*j->culprit));
  u32 next = 0;
  for (u32 r = 0; r < model->n_ranks; r++) {
    for (; next < model->ranks[r].rank && next < world; next++)
      j->endings[j->n++] = (struct ending){.rank = INDEX_NONE,
                                           .global = next,
                                           .what = ENDING_NONE,
                                           .from = INT64_MAX,
                                           .at = INT64_MAX,
                                           .cause = END_NO_RECORD,
                                           .why = "it left no record"};
    next = model->ranks[r].rank + 1;
    ending_of_rank(j->a, r, &j->endings[j->n++]);
  }
  mark_older_files(j);
  qsort(j->endings, j->n, sizeof(*j->endings), by_time);
  calls_compare(j->a, &j->counts);
}

/* A library that receives something other than it waits for may end the process, on any rank. */
static bool only_aborts(const struct end_search *j) {
  u32 aborts = 0;
  for (u32 i = 0; i < j->n; i++) {
    bool own = j->endings[i].what == ENDING_OWN;
    bool aborted = own && j->a->model->ranks[j->endings[i].rank].ending.signal == SIGABRT;
    if (own && !aborted)
      return false;
    aborts += aborted;
  }
  return aborts > 0;
}

/* The first rank that stopped without a word, before all that ended for their own reasons, ended
 * the run; else these did. */
static u32 mark_culprits(struct end_search *j) {
  i64 own = INT64_MAX;
  for (u32 i = 0; i < j->n && own == INT64_MAX; i++)
    if (j->endings[i].what == ENDING_OWN)
      own = j->endings[i].from;
  u32 marked = j->ordered ? mark_silent(j, own) : mark_outlived(j);
  if (!marked && !j->ordered && own == INT64_MAX)
    marked = mark_all_silent(j);
  if (!marked && only_aborts(j))
    marked = mark_odd(j);
  if (!marked)
    marked = mark_own_reasons(j);
  if (!marked && (count_endings(j, ENDING_LOST_PEER) || count_endings(j, ENDING_STOPPED))) {
    marked = mark_odd(j);
    if (!marked)
      marked = mark_suspects(j);
    if (!marked && count_endings(j, ENDING_LOST_PEER))
      marked = mark_early_leavers(j);
  }
  return marked;
}

void run_end_analyse(struct analysis *a) {
  struct run_end *end = &a->results->run_end;
  *end = (struct run_end){.ahead_s = NAN, .followed = NAN};
  if (!traces_record_ends(a->model))
    return;
  struct end_search j = {.a = a, .ordered = a->model->clock_aligned};
  list_endings(&j);
  bool orderly = count_endings(&j, ENDING_IN_ORDER) == j.n;
  u32 marked = orderly ? 0 : mark_culprits(&j);
  fill_run_end(&j, end);
  bool unseen = count_endings(&j, ENDING_SILENT) + count_endings(&j, ENDING_OLDER) +
                    count_endings(&j, ENDING_NONE) ==
                j.n;
  if (unseen && !marked)
    return; /* it may still be running */
  end->how = orderly ? RUN_ENDED_IN_ORDER : marked ? RUN_ENDED_EARLY : RUN_END_CANNOT_TELL;
  if (marked) {
    const struct ending *first = first_culprit(&j);
    bool by_calls = first->what == ENDING_IN_ORDER || first->what == ENDING_LOST_PEER ||
                    first->what == ENDING_STOPPED || only_aborts(&j);
    end->cause = find_lost_host(&j)                           ? END_HOST_LOST
                 : by_calls && is_odd(&j, first->rank)        ? END_CALLS_DIFFER
                 : by_calls && first->what == ENDING_STOPPED  ? END_HELD_UP
                 : by_calls && first->what == ENDING_IN_ORDER ? END_LEFT_EARLY
                                                              : first->cause;
    end->ahead_s = time_to_next_end(&j, end->cause);
    end->summary = describe_end(&j, end);
    return;
  }
}
