/* SPDX-License-Identifier: MIT
 *
 * The steps of all ranks, as the report finds them (analyzer/join/find_steps.c) in what is kept of
 * the last ones. Only the period of calls is followed rank by rank: to look for it at each poll
 * costs too much. Of such steps the length is known, not where one begins.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/period.h"
#include "base/sorting.h"
#include "join/find_steps.h"
#include "live/live_view.h"

enum { LEAST_CALLS = 8, FEW_CALLS = 64 };

static u32 in_order(const struct live_tokens *tokens, u32 *at, float *pauses) {
  u64 kept = MIN(tokens->n, LIVE_TOKENS);
  for (u64 i = 0; i < kept; i++) {
    u64 place = (tokens->n - kept + i) % LIVE_TOKENS;
    at[i] = tokens->token[place];
    pauses[i] = tokens->pause[place];
  }
  return (u32)kept;
}

/* Whether nearly all of the later calls are equal to those one period before. */
static bool has_period(const u32 *at, u32 n, u32 period) {
  u32 from = n / 4 + period, same = 0;
  if (period == 0 || from + period > n)
    return false;
  for (u32 i = from; i < n; i++)
    same += at[i] == at[i - period];
  return same >= PERIOD_LEAST_MATCH * (n - from);
}

/* Steps of several equal periods, recognised by the pauses between them. */
static u32 merge_periods(const float *pauses, u32 n, u32 length) {
  double gaps[LIVE_TOKENS];
  u32 periods = n / length, first, from = n - periods * length;
  for (u32 k = 0; k < periods; k++)
    gaps[k] = fmax(pauses[from + k * length], 1e3);
  return periods > 1 ? length * find_gap_period(gaps + 1, periods - 1, &first) : length;
}

static void find_calls_per_step(struct live_tokens *tokens, u32 *hint) {
  u32 at[LIVE_TOKENS];
  float pauses[LIVE_TOKENS];
  u64 news = tokens->n - tokens->tried;
  if (tokens->n < LEAST_CALLS || (news < FEW_CALLS && tokens->tried && news < tokens->tried / 2))
    return;
  u32 n = in_order(tokens, at, pauses);
  tokens->tried = tokens->n;
  if (has_period(at, n, tokens->period))
    return;
  if (has_period(at, n, *hint)) {
    tokens->period = *hint;
    return;
  }
  struct period period;
  tokens->period = find_period(at, n, &period) ? merge_periods(pauses, n, period.length) : 0;
  *hint = tokens->period;
}

static void add_period_lengths(struct live_steps *steps, const struct live_tokens *tokens) {
  u64 kept = MIN(tokens->n, LIVE_TOKENS), each = tokens->period;
  u64 whole = kept / each;
  whole = MIN(LIVE_STEP_ENDS, whole);
  steps->count = tokens->n / each;
  u64 last = steps->count * each, first = last - whole * each; /* calls that begin a period */
  i64 before = NS_UNKNOWN;
  for (u64 i = first; i <= last; i += each) {
    if (i + LIVE_TOKENS < tokens->n || i >= tokens->n)
      continue;
    i64 at = tokens->start[i % LIVE_TOKENS];
    if (before != NS_UNKNOWN && at > before && steps->n < LIVE_STEP_ENDS)
      steps->lengths[steps->n++] = ns_to_s(at - before);
    steps->last = before = at;
  }
}

static bool find_period_of_calls(struct live_rank *rank, u32 *hint) {
  struct live_tokens *tokens = &rank->process->tokens;
  find_calls_per_step(tokens, hint);
  if (!tokens->period)
    return false;
  rank->steps.method = "collective period";
  add_period_lengths(&rank->steps, tokens);
  return rank->steps.n >= LEAST_STEPS;
}

/* To be given back before the model is freed. */
static struct model *lend_events(const struct live_view *view) {
  struct model *model = model_new();
  model_make_ranks(model, view->n_ranks);
  for (u32 r = 0; r < view->n_ranks; r++)
    *model_events(model, r) = view->ranks[r].process->seen;
  return model;
}

static void take_back(const struct live_view *view, struct model *model) {
  for (u32 r = 0; r < view->n_ranks; r++)
    *model_events(model, r) = (struct rank_events){0};
  model_free(model);
}

#define FORGET(list, until)                                                                        \
  do {                                                                                             \
    u32 gone_ = FIRST_NOT(0, (list)->n, i_, *(const i64 *)&(list)->at[i_] < (until));              \
    if (gone_)                                                                                     \
      memmove((list)->at, (list)->at + gone_, ((list)->n - gone_) * sizeof(*(list)->at));          \
    (list)->n -= gone_;                                                                            \
  } while (0)

static void forget_before(struct live_process *process, i64 time) {
  FORGET(&process->seen.marks, time);
  FORGET(&process->seen.step_ranges, time);
  FORGET(&process->seen.phases, time);
}

static void forget_steps(struct live_process *process, const struct rank_bounds *bounds, u32 n) {
  process->steps_before += n;
  if (n)
    forget_before(process, bounds->at.at[n]);
}

void live_forget_steps(struct live_process *process) {
  struct model *model = model_new();
  struct rank_bounds bounds = {0};
  struct rank_events *seen = &process->seen;
  double confidence;
  model_make_ranks(model, 1);
  *model_events(model, 0) = *seen;
  if (bounds_by_names(model, &bounds, &confidence) ||
      bounds_by_repetition(model, &bounds, &confidence))
    forget_steps(process, &bounds, bounds.at.n / 2);
  else
    forget_before(process, seen->phases.n ? seen->phases.at[seen->phases.n / 2].start : INT64_MAX);
  *model_events(model, 0) = (struct rank_events){0};
  model_free(model);
  FREE_EACH(&bounds, at.at, gpu.at);
}

/* The last bound of marks is a guess, that of ranges is where the last one ends, not its step. */
static void use_bounds(struct live_rank *rank, const char *method, struct rank_bounds *bounds) {
  struct live_process *process = rank->process;
  struct live_steps *steps = &rank->steps;
  bool marks = process->seen.marks.n, ranges = !marks && process->seen.step_ranges.n > 2;
  u32 n = bounds->at.n - (bounds->at.n && (bounds->open || ranges));
  if (n == 0)
    return;
  u32 first = n > LIVE_STEP_ENDS ? n - LIVE_STEP_ENDS : 0;
  *steps = (struct live_steps){.method = method,
                               .counted = true,
                               .last = bounds->at.at[n - 1],
                               .count = marks ? process->mark
                                        : ranges && process->range_number != INDEX_NONE
                                            ? process->range_number
                                            : process->steps_before + n - !ranges};
  for (u32 i = first + 1; i < n; i++)
    if (bounds->at.at[i] > bounds->at.at[i - 1])
      steps->lengths[steps->n++] = ns_to_s(bounds->at.at[i] - bounds->at.at[i - 1]);
  forget_steps(process, bounds, first);
}

void live_find_steps(struct live_view *view, u32 *hint) {
  struct rank_bounds *bounds = memory_zeroed(size_sum(view->n_ranks, 1), sizeof(*bounds));
  struct model *model = lend_events(view);
  double confidence;
  u32 periodic = 0;
  const char *method = bounds_by_names(model, bounds, &confidence);
  FOR_EACH_CHANGED(view->ranks, view->n_ranks, rank) {
    rank->steps = (struct live_steps){.last = NS_UNKNOWN};
    periodic += !method && find_period_of_calls(rank, hint);
  }
  if (!method && 2 * periodic < view->n_ranks)
    method = bounds_by_repetition(model, bounds, &confidence);
  for (u32 r = 0; r < view->n_ranks && method; r++)
    use_bounds(&view->ranks[r], method, &bounds[r]);
  bounds_release(bounds, view->n_ranks);
  take_back(view, model);
}
