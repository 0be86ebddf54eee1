/* SPDX-License-Identifier: MIT
 *
 * Steps from what the program itself marks: marks made by its author, or PyTorch's optimizer
 * ranges.
 */

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/period.h"
#include "base/sorting.h"
#include "join/find_steps.h"

static void push(struct rank_bounds *bounds, i64 time) {
  VECTOR_PUSH(&bounds->at, time);
}

/* End of the last thing that a rank's host did for training after an instant: its last step ends
 * there. If no such thing is known, the end of the last thing that its GPU did. */
static i64 last_activity(const struct rank_events *events, i64 after) {
  i64 host = NS_UNKNOWN, gpu = NS_UNKNOWN;
#define LATEST(list)                                                                               \
  for (u32 i = 0; i < events->list.n; i++)                                                         \
    host = MAX(events->list.at[i].end, host);
  LATEST(calls)
  LATEST(phases)
  LATEST(waits)
#undef LATEST
  FOR_EACH(events->runs.at, events->runs.n, run) {
    i64 *last = run->stream == TSCOPE_NO_STREAM ? &host : &gpu;
    *last = MAX(run->end, *last);
  }
  return host > after ? host : gpu;
}

bool bounds_by_marks(const struct model *model, struct rank_bounds *bounds, double *confidence) {
  const struct rank_events *all = internal_of(model)->events;
  u32 most = MOST_OF(u32, all, model->n_ranks, one, one->marks.n), agreeing = 0;
  if (most == 0)
    return false;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = &all[r];
    FOR_EACH(events->marks.at, events->marks.n, each)
      push(&bounds[r], each->time);
    const struct rank_mark *mark = events->marks.n ? &events->marks.at[events->marks.n - 1] : NULL;
    i64 last = mark ? last_activity(events, mark->time) : NS_UNKNOWN;
    bounds[r].open = mark && !mark->ends && last > mark->time;
    if (bounds[r].open)
      push(&bounds[r], last);
    agreeing += events->marks.n == most;
  }
  *confidence = (double)agreeing / model->n_ranks;
  return true;
}

u32 list_phases(const struct rank_events *events, u8 kind, u32 *phases) {
  u32 n = 0;
  i64 covered = INT64_MIN;
  for (u32 i = 0; i < events->phases.n; i++) {
    const struct rank_phase *phase = &events->phases.at[i];
    if (phase->kind != kind || phase->end == NS_UNKNOWN || phase->start < covered)
      continue;
    covered = phase->end;
    phases[n++] = i;
  }
  return n;
}

u32 phases_per_step(const struct rank_events *events, const u32 *phases, u32 n) {
  SCOPED u32 *tokens = memory_array(size_sum(n, 1), sizeof(*tokens));
  struct period period = {.length = 1};
  bool several = false;
  for (u32 i = 0; i < n; i++) {
    tokens[i] = events->phases.at[phases[i]].name_hash;
    several |= tokens[i] != tokens[0];
  }
  if (several && !find_period(tokens, n, &period))
    period.length = 1;
  return period.length;
}

i64 begin_of_phases(const struct rank_events *events, u32 first) {
  FOR_EACH(events->phases.at, first, phase) {
    u8 kind = phase->kind;
    if (kind == TSCOPE_PHASE_DATA || kind == TSCOPE_PHASE_FORWARD || kind == TSCOPE_PHASE_BACKWARD)
      return phase->start;
  }
  return events->phases.at[first].start;
}

/* The optimizer's steps of a rank: their phases, and where each ends. Those that are taken inside
 * of one backward pass, one for each parameter, are one step, and it ends with that pass. */
static u32 list_optimizer_steps(const struct rank_events *events, u32 *phases, i64 *ends) {
  SCOPED u32 *passes = memory_array(size_sum(events->phases.n, 1), sizeof(*passes));
  u32 n_passes = list_phases(events, TSCOPE_PHASE_BACKWARD, passes), pass = 0, joined = INDEX_NONE;
  u32 n = list_phases(events, TSCOPE_PHASE_OPTIMIZER, phases), kept = 0;
  FOR_EACH(phases, n, phase) {
    const struct rank_phase *of = events->phases.at, *step = &of[*phase];
    while (pass < n_passes && of[passes[pass]].end < step->end)
      pass++;
    bool inside = pass < n_passes && of[passes[pass]].start <= step->start;
    kept -= inside && joined == pass;
    joined = inside ? pass : INDEX_NONE;
    phases[kept] = *phase;
    ends[kept++] = inside ? of[passes[pass]].end : step->end;
  }
  return kept;
}

#define MOST_MODELS 4u

/* What a rank called between two instants. */
struct called {
  const struct rank_call *at;
  u32 n;
};

static struct called called_between(const struct rank_events *events, i64 from, i64 to) {
  const struct rank_call *calls = events->calls.at;
  u32 first = FIRST_NOT(0, events->calls.n, i, calls[i].start < from);
  u32 end = FIRST_NOT(first, events->calls.n, i, calls[i].start < to);
  return (struct called){calls + first, end - first};
}

static u32 token_of_call(const struct rank_call *call) {
  return hash_number((u32)call->op << 8 | call->dtype, call->count);
}

static u32 *sorted_tokens(const struct called *of) {
  u32 *tokens = memory_array(size_sum(of->n, 1), sizeof(*tokens));
  for (u32 i = 0; i < of->n; i++)
    tokens[i] = token_of_call(&of->at[i]);
  SORT(tokens, of->n, by_u32);
  return tokens;
}

/* Whether less than half of the calls of each are also among those of the other. */
static bool are_unlike(const struct called *a, const struct called *b) {
  SCOPED u32 *in_a = sorted_tokens(a), *in_b = sorted_tokens(b);
  u32 of_a = NUMBER_OF(in_a, a->n, token, FIND_SORTED(in_b, b->n, token, by_u32));
  u32 of_b = NUMBER_OF(in_b, b->n, token, FIND_SORTED(in_a, a->n, token, by_u32));
  return 2 * of_a < a->n && 2 * of_b < b->n;
}

/* Several models are trained by turns, each with an optimizer of its own, and all optimizers have
 * the same name: then what ranks exchange of one has other sizes than what they exchange of the
 * next. How many they are; 1 if that does not show. */
static u32 models_by_turns(const struct rank_events *events, const i64 *ends, u32 n) {
  SCOPED u32 *tokens = memory_zeroed(size_sum(n, 1), sizeof(*tokens));
  struct period period;
  for (u32 i = 1; i < n; i++) {
    struct called of = called_between(events, ends[i - 1], ends[i]);
    FOR_EACH(of.at, of.n, call)
      tokens[i] = hash_number(tokens[i], token_of_call(call));
  }
  if (n < 2 || !find_period(tokens + 1, n - 1, &period) || period.length < 2 ||
      period.length > MOST_MODELS)
    return 1;
  struct called of[MOST_MODELS];
  for (u32 k = 0; k < period.length; k++) {
    u32 i = period.first + 1 + k;
    of[k] = called_between(events, ends[i - 1], ends[i]);
    if (ANY(of, k, other, !are_unlike(other, &of[k])))
      return 1;
  }
  return period.length;
}

bool bounds_by_optimizer(const struct model *model, struct rank_bounds *bounds,
                         double *confidence) {
  const struct rank_events *all = internal_of(model)->events;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = &all[r];
    SCOPED u32 *phases = memory_array(size_sum(events->phases.n, 1), sizeof(*phases));
    SCOPED i64 *ends = memory_array(size_sum(events->phases.n, 1), sizeof(*ends));
    u32 n = list_optimizer_steps(events, phases, ends);
    u32 per_step = n ? phases_per_step(events, phases, n) : 1;
    per_step = per_step == 1 ? models_by_turns(events, ends, n) : per_step;
    if (n >= per_step && n > 0)
      push(&bounds[r], begin_of_phases(events, phases[0]));
    for (u32 i = per_step; i <= n; i += per_step)
      push(&bounds[r], ends[i - 1]);
  }
  double agreeing = bounds_believed(model, bounds, 2, 0);
  *confidence = agreeing > 0 ? agreeing : *confidence;
  return agreeing > 0;
}
