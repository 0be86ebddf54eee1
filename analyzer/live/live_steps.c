/* SPDX-License-Identifier: MIT
 *
 * The steps of a process, by the rules of the report (analyzer/join/find_steps.c) as far as one
 * rank allows: marks, else ranges, else the optimizer's phases, else the period of its calls. For
 * the last only the length is known, not where a step begins.
 */
#include <math.h>

#include "base/period.h"
#include "live/live_process.h"

enum { LEAST_CALLS = 8, FEW_CALLS = 64 };

const char *live_step_method_name(enum live_step_method method) {
  static const char *const names[] = {[LIVE_STEPS_UNKNOWN] = "none",
                                      [LIVE_STEPS_MARKS] = "step marks",
                                      [LIVE_STEPS_RANGES] = "NVTX ranges",
                                      [LIVE_STEPS_OPTIMIZER] = "optimizer phases",
                                      [LIVE_STEPS_PERIOD] = "collective period"};
  return names[method];
}

/* Lengths between every `each`-th of the times kept, counted from the very first. */
static void add_lengths(struct live_steps *steps, const struct live_times *times, u32 each) {
  u64 kept = times->n < LIVE_STEP_ENDS ? times->n : LIVE_STEP_ENDS, first = times->n - kept;
  i64 before = NS_UNKNOWN;
  for (u64 i = first; i < times->n; i++) {
    if (i % each != each - 1)
      continue;
    i64 at = times->at[i % LIVE_STEP_ENDS];
    if (before != NS_UNKNOWN && at > before)
      steps->lengths[steps->n++] = (double)(at - before) / 1e9;
    steps->last = before = at;
  }
}

/* Several optimizers step in a fixed order. */
static u32 find_optimizers_per_step(const struct live_times *times) {
  u64 kept = times->n < LIVE_STEP_ENDS ? times->n : LIVE_STEP_ENDS, first = times->n - kept;
  u32 tokens[LIVE_STEP_ENDS], n = 0;
  bool several = false;
  for (u64 i = first; i < times->n; i++) {
    tokens[n] = times->token[i % LIVE_STEP_ENDS];
    several |= tokens[n++] != tokens[0];
  }
  struct period period;
  return several && find_period(tokens, n, &period) ? period.length : 1;
}

static u32 in_order(const struct live_tokens *tokens, u32 *at, float *pauses) {
  u64 kept = tokens->n < LIVE_TOKENS ? tokens->n : LIVE_TOKENS;
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
  return same >= 0.95 * (n - from);
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
  u64 kept = tokens->n < LIVE_TOKENS ? tokens->n : LIVE_TOKENS, each = tokens->period;
  u64 whole = kept / each;
  if (whole > LIVE_STEP_ENDS)
    whole = LIVE_STEP_ENDS;
  steps->count = tokens->n / each;
  u64 last = steps->count * each, first = last - whole * each; /* calls that begin a period */
  i64 before = NS_UNKNOWN;
  for (u64 i = first; i <= last; i += each) {
    if (i + LIVE_TOKENS < tokens->n || i >= tokens->n)
      continue;
    i64 at = tokens->start[i % LIVE_TOKENS];
    if (before != NS_UNKNOWN && at > before && steps->n < LIVE_STEP_ENDS)
      steps->lengths[steps->n++] = (double)(at - before) / 1e9;
    steps->last = before = at;
  }
}

void live_steps_of(struct live_process *process, u32 *hint, struct live_steps *steps) {
  *steps = (struct live_steps){.last = NS_UNKNOWN};
  if (process->marks.n) {
    steps->method = LIVE_STEPS_MARKS;
    steps->count = process->mark;
    add_lengths(steps, &process->marks, 1);
  } else if (process->ranges.n > 2) {
    steps->method = LIVE_STEPS_RANGES;
    steps->count = process->range_number == INDEX_NONE ? process->ranges.n : process->range_number;
    add_lengths(steps, &process->ranges, 1);
  } else if (process->optimizers.n) {
    u32 each = find_optimizers_per_step(&process->optimizers);
    steps->method = LIVE_STEPS_OPTIMIZER;
    steps->count = process->optimizers.n / each;
    add_lengths(steps, &process->optimizers, each);
  } else {
    find_calls_per_step(&process->tokens, hint);
    if (process->tokens.period) {
      steps->method = LIVE_STEPS_PERIOD;
      add_period_lengths(steps, &process->tokens);
    }
  }
}
