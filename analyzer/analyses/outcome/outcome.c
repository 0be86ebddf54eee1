/* SPDX-License-Identifier: MIT */
#include "analyses/outcome/outcome.h"

#include <math.h>

#include "analyses/lines/line_sums.h"
#include "analyses/stalls/stall_words.h"
#include "base/rank_list.h"

const char *find_lost_host(const struct outcome *o) {
  const struct model *model = o->a->model;
  u32 host = INDEX_NONE; /* its first rank */
  for (u32 i = 0; i < o->n; i++) {
    const struct ending *ending = &o->endings[i];
    if (!o->culprit[i])
      continue;
    if (ending->what != ENDING_SILENT || ending->cause == END_EXCEPTION ||
        (host != INDEX_NONE && !model_same_host(model, ending->rank, host)))
      return NULL;
    host = ending->rank;
  }
  bool others = false;
  for (u32 i = 0; i < o->n && host != INDEX_NONE; i++) {
    if (o->endings[i].rank == INDEX_NONE || o->culprit[i])
      continue;
    if (model_same_host(model, o->endings[i].rank, host))
      return NULL;
    others = true;
  }
  return others ? model->ranks[host].host : NULL;
}

const struct ending *first_culprit(const struct outcome *o) {
  return FIND(o->endings, o->n, one, o->culprit[one - o->endings]);
}

bool ended_first(const struct outcome *o, const struct ending *first) {
  return o->ordered && ALL(o->endings, (size_t)(first - o->endings), one,
                           o->culprit[one - o->endings] || one->what == ENDING_NONE);
}

/* How long before the next of the ranks that ended after it; NAN, also if it only held them up. */
static double time_to_next_end(const struct outcome *o) {
  const struct ending *first = first_culprit(o);
  if (first && ((first->what == ENDING_STOPPED && !o->stopped_first) || was_paused(first) ||
                !ended_first(o, first)))
    return NAN;
  const struct ending *next =
      FIND(o->endings, first ? o->n : 0, one,
           !o->culprit[one - o->endings] && one->what != ENDING_NONE && one->at >= first->at);
  return next ? ns_to_s(next->at - first->at) : NAN;
}

/* The step that a rank was in; the step after the last one that it ended is not in the model. */
static double step_in_progress(const struct model *model, u32 rank, i64 time) {
  const struct steps *steps = &model->steps;
  i32 step = model_step_at(model, rank, time);
  if (step >= 0)
    return (double)(steps->first + (u32)step);
  for (u32 s = steps->n; s-- > 0;) {
    i64 end = step_on_host(model, s, rank).end;
    if (end != NS_UNKNOWN && end <= time)
      return (double)(steps->first + s + 1);
  }
  return NAN;
}

static void fill_ending(const struct outcome *o, const struct ending *ending, bool culprit,
                        struct rank_ending *out) {
  static const enum rank_end_way hows[] = {
      [ENDING_IN_ORDER] = RANK_END_EXIT,  [ENDING_OWN] = RANK_END_EXIT,
      [ENDING_LOST_PEER] = RANK_END_EXIT, [ENDING_STOPPED] = RANK_END_SIGNAL,
      [ENDING_SILENT] = RANK_END_SILENT,  [ENDING_OLDER] = RANK_END_SILENT,
      [ENDING_NONE] = RANK_END_NO_RECORD};
  const struct model *model = o->a->model;
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
              : !only_followed(o, ending)       ? END_PART_OWN
                                                : END_PART_FOLLOWED;
  if (!rank)
    return;
  out->exception = rank->ending.exception;
  out->exception_at = exception_place(o->a, &rank->ending);
  out->last_seen = stack_last_sampled(o->a, ending->rank);
  out->ends_there = o->a->line_sums && o->a->line_sums[ending->rank].last_ends;
  out->at_s = ns_to_s(ending->from);
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
  out->call = words_of_last_call(o->a, ending);
}

static void fill_run_end(struct outcome *o, struct run_end *end) {
  struct arena *arena = o->a->arena;
  end->ranks = arena_array(arena, o->n, sizeof(*end->ranks));
  end->culprits = arena_array(arena, o->n, sizeof(*end->culprits));
  for (u32 i = 0; i < o->n; i++) {
    fill_ending(o, &o->endings[i], o->culprit[i], &end->ranks[end->n_ranks++]);
    if (o->culprit[i])
      end->culprits[end->n_culprits++] = o->endings[i].global;
  }
  end->followed =
      NUMBER_OF(o->endings, o->n, one, !o->culprit[one - o->endings] && only_followed(o, one));
  end->calls = o->counts.words;
}

static void resolve_end(struct outcome *o) {
  struct run_end *end = &o->a->results->run_end;
  bool orderly = end->how == RUN_ENDED_IN_ORDER;
  u32 marked = orderly ? 0 : mark_culprits(o);
  fill_run_end(o, end);
  bool unseen = count_endings(o, ENDING_SILENT) + count_endings(o, ENDING_OLDER) +
                    count_endings(o, ENDING_NONE) ==
                o->n;
  if (orderly || (unseen && !marked)) /* it may still be running */
    return;
  end->how = marked ? RUN_ENDED_EARLY : RUN_END_CANNOT_TELL;
  if (!marked) {
    end->summary = words_of_unknown_end(o);
    return;
  }
  const struct ending *first = first_culprit(o);
  bool by_calls = first->what == ENDING_IN_ORDER || first->what == ENDING_LOST_PEER ||
                  first->what == ENDING_STOPPED || lived_to_the_stop(o, first) || only_aborts(o);
  bool own =
      first->cause != END_SIGNAL && first->cause != END_LOST_PEER && !lived_to_the_stop(o, first);
  end->held_up =
      was_paused(first) || (by_calls && first->what != ENDING_IN_ORDER && !only_aborts(o) &&
                            !o->stopped_first && !is_odd(o, first->rank));
  end->cause = find_lost_host(o)                            ? END_HOST_LOST
               : by_calls && is_odd(o, first->rank)         ? END_CALLS_DIFFER
               : o->stopped_first                           ? END_STOPPED
               : end->held_up && !own                       ? END_HELD_UP
               : by_calls && first->what == ENDING_IN_ORDER ? END_LEFT_EARLY
                                                            : first->cause;
  end->ahead_s = time_to_next_end(o);
  end->summary = words_of_end(o, end);
}

/* Whether the ranks that the pending calls point to did end the run. */
static bool names_only_culprits(const struct outcome *o) {
  const struct collective_check *check = &o->a->results->check;
  return ALL(check->suspects, check->n_suspects, suspect,
             ranks_have(o->a->results->run_end.culprits, o->a->results->run_end.n_culprits,
                        suspect->rank));
}

/* Calls are left unfinished on all that waited for a rank that ended: then its end says more than
 * they do. */
static void withdraw_suspects(struct collective_check *check) {
  check->n_suspects = check->n_hang_ranks = 0;
  check->cannot_tell = "see how the run ended";
  check->verdict = check->verdict == CHECK_HANG_AND_DESYNC ? CHECK_DESYNC
                   : check->verdict == CHECK_HANG          ? CHECK_CANNOT_TELL
                                                           : check->verdict;
}

static const struct stalled_rank *stall_of(const struct stalls_result *stalls, u32 rank) {
  const struct stalled_rank *last = NULL;
  FOR_EACH(stalls->ranks, stalls->n_ranks, one)
    if (one->rank == rank && one->words && *one->words)
      last = one;
  return last;
}

/* For a rank that does not stall at a known place: where samples saw it last. */
static void add_last_seen(struct analysis *a, struct check_suspect *suspect) {
  u32 r = model_rank_index(a->model, suspect->rank);
  if (r == INDEX_NONE || a->model->ranks[r].closed || !a->line_sums[r].last)
    return;
  suspect->place = call_frame_place(a->arena, a->line_sums[r].last, model_folder(a->model));
  suspect->evidence = words_with_last_seen(a->arena, suspect->evidence, stack_last_sampled(a, r));
}

/* The calls alone name a suspect; its stall shows where it is. */
static void place_suspect(struct analysis *a, struct check_suspect *suspect) {
  const struct stalled_rank *stall = stall_of(&a->results->stalls, suspect->rank);
  if (!stall) {
    add_last_seen(a, suspect);
    return;
  }
  if (!suspect->stack)
    suspect->stack = stall->frames;
  suspect->place = stall->place;
  suspect->doing = stall->what;
  suspect->evidence = words_with_stall(a->arena, suspect->evidence, stall);
}

static void say_suspects(struct analysis *a, struct collective_check *check) {
  FOR_EACH_CHANGED(check->suspects, check->n_suspects, suspect) {
    suspect->evidence = words_of_suspect(a->arena, suspect);
    if (!check->desync && suspect->reason == SUSPECT_OTHER_ORDER)
      check->desync = suspect->evidence;
  }
}

void outcome_resolve(struct analysis *a) {
  struct collective_check *check = &a->results->check;
  say_suspects(a, check);
  if (a->endings) {
    struct outcome o = {.a = a,
                        .endings = a->endings->at,
                        .n = a->endings->n,
                        .counts = a->endings->counts,
                        .culprit = arena_array(a->arena, a->endings->n, sizeof(bool)),
                        .ordered = model_all_aligned(a->model)};
    resolve_end(&o);
    if (a->results->run_end.n_culprits && !names_only_culprits(&o))
      withdraw_suspects(check);
  }
  FOR_EACH_CHANGED(check->suspects, check->n_suspects, suspect)
    place_suspect(a, suspect);
}
