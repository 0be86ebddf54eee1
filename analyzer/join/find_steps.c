/* SPDX-License-Identifier: MIT */
#include "join/find_steps.h"

#include <math.h>

#include "base/checked_memory.h"
#include "base/command_line.h"
#include "base/robust.h"
#include "base/sets.h"
#include "base/sorting.h"

ORDER_INDICES_BY(by_value, u64, LESS_FIRST(*a, *b))

u32 commonest(u64 *values, u32 n, u32 *times) {
  u32 first = 0;
  SCOPED u32 *order = memory_array(size_sum(n, 1), sizeof(*order));
  sets_begin(order, n);
  SORT_INDICES(order, n, values, by_value);
  *times = 0;
  for (u32 i = 0, same; i < n; i += same) {
    same = ROW_OF_EQUALS(&order[i], n - i, a, b, values[*a] == values[*b]);
    if (same > *times || (same == *times && order[i] < first))
      first = order[i];
    *times = MAX(same, *times);
  }
  return first;
}

i32 model_step_at(const struct model *model, u32 rank, i64 time) {
  i32 step = LAST_BEGUN(model->steps.n, s, step_on_host(model, s, rank).start, time);
  return step >= 0 && time < step_on_host(model, (u32)step, rank).end ? step : -1;
}

struct interval step_on_gpu(struct interval host, struct interval gpu, u8 *known) {
  bool begin = gpu.start != NS_UNKNOWN, end = gpu.end != NS_UNKNOWN;
  *known = (u8)((begin ? STEP_BEGIN_KNOWN : 0) | (end ? STEP_END_KNOWN : 0));
  if ((!begin && gpu.end > host.end) || (!end && gpu.start > host.start))
    return (struct interval){NS_UNKNOWN, NS_UNKNOWN};
  return (struct interval){begin ? gpu.start : host.start, end ? gpu.end : host.end};
}

static void put_step(struct steps *steps, size_t cell, const struct rank_bounds *bounds, u32 step) {
  struct interval host = {bounds->at.at[step], bounds->at.at[step + 1]};
  struct interval gpu = {NS_UNKNOWN, NS_UNKNOWN};
  if (step + 1 < bounds->gpu.n)
    gpu = (struct interval){bounds->gpu.at[step], bounds->gpu.at[step + 1]};
  struct interval whole = step_on_gpu(host, gpu, &steps->ends_known[cell]);
  steps->host_begin[cell] = host.start;
  steps->host_end[cell] = host.end;
  steps->begin[cell] = whole.start;
  steps->end[cell] = whole.end;
}

u32 bounds_steps(const struct rank_bounds *bounds, u32 n_ranks) {
  return MOST_OF(u32, bounds, n_ranks, one, one->at.n > 1 ? one->first + one->at.n - 1 : 0);
}

double bounds_believed(const struct model *model, struct rank_bounds *bounds, u32 least,
                       u32 fewer) {
  u32 n = model->n_ranks, most = MOST_OF(u32, bounds, n, one, one->at.n);
  u32 agreeing = NUMBER_OF(bounds, n, one, one->at.n + fewer >= most);
  if (2 * NUMBER_OF(bounds, n, one, bounds_has_steps(one)) >= n && most >= least)
    return (double)agreeing / n;
  bounds_forget(bounds, n);
  return 0;
}

void bounds_forget(struct rank_bounds *bounds, u32 n_ranks) {
  FOR_EACH_CHANGED(bounds, n_ranks, one)
    one->at.n = 0;
}

i32 bounds_step_at(const struct rank_bounds *bounds, i64 time) {
  u32 after = FIRST_NOT(0, (u32)bounds->at.n, i, bounds->at.at[i] <= time);
  return after == 0 || after == bounds->at.n ? -1 : (i32)(bounds->first + after - 1);
}

static void assemble(struct model *model, const struct rank_bounds *bounds) {
  struct arena *arena = model_arena(model);
  u32 n = bounds_steps(bounds, model->n_ranks);
  size_t cells = (size_t)n * model->n_ranks;
  struct steps *steps = &model->steps;
  i64 **const times[] = {&steps->begin, &steps->end, &steps->host_begin, &steps->host_end};
  for (size_t k = 0; k < LENGTH_OF(times); k++) {
    *times[k] = arena_array(arena, cells, sizeof(i64));
    FILL(*times[k], cells, NS_UNKNOWN);
  }
  steps->ends_known = arena_array(arena, cells, sizeof(*steps->ends_known));
  steps->open = ANY(bounds, model->n_ranks, one, one->open);
  for (u32 r = 0; r < model->n_ranks; r++)
    for (u32 s = 0; s + 1 < bounds[r].at.n; s++)
      put_step(steps, cell_of_step(model, bounds[r].first + s, r), &bounds[r], s);
  steps->n = n;
}

static double length_of(const struct model *model, u32 step, u32 rank) {
  size_t cell = cell_of_step(model, step, rank);
  i64 begin = model->steps.begin[cell];
  return begin == NS_UNKNOWN ? NAN : (double)(model->steps.end[cell] - begin);
}

u32 model_count_warmup(const double *lengths, u32 n, bool of_hosts) {
  u32 warmup = 1;
  if (n < 2)
    return 0;
  SCOPED double *later = memory_array(n, sizeof(*later));
  u32 known = LIST_KNOWN(later, n / 2, n, s, lengths[s]);
  double usual = known ? lower_median(later, known) : NAN;
  while (warmup < n / 4 && (lengths[warmup] > WARMUP_FACTOR * usual ||
                            (of_hosts && lengths[warmup] < usual / WARMUP_FACTOR)))
    warmup++;
  return warmup;
}

/* Whether the length of a step that launches work is that of its host, which may run ahead. */
static bool lasts_as_on_host(const struct model *model, u32 step) {
  const u8 both = STEP_BEGIN_KNOWN | STEP_END_KNOWN;
  return ANY_NUMBER(0, model->n_ranks, r,
                    !isnan(length_of(model, step, r)) && model->ranks[r].launches &&
                        model->steps.ends_known[cell_of_step(model, step, r)] != both);
}

static void count_warmup(struct model *model) {
  bool of_hosts = ANY_NUMBER(1, model->steps.n / 4, s, lasts_as_on_host(model, s));
  SCOPED double *lengths = memory_array(size_sum(model->steps.n, 1), sizeof(*lengths));
  for (u32 s = 0; s < model->steps.n; s++)
    lengths[s] = MEAN_KNOWN(0, model->n_ranks, r, length_of(model, s, r));
  model->steps.warmup = model_count_warmup(lengths, model->steps.n, of_hosts);
  model->steps.warmup_by_lengths = true;
}

static void choose_steps(struct model *model, const char *wanted) {
  u32 n = model->steps.n, first, last;
  bool none = command_line_steps(wanted, &first, &last) != NULL;
  u32 from = none ? n : MIN(first, n), to = none || last >= n ? n : last + 1;
  size_t skipped = (size_t)from * model->n_ranks;
  model->steps.begin += skipped;
  model->steps.end += skipped;
  model->steps.host_begin += skipped;
  model->steps.host_end += skipped;
  model->steps.ends_known += skipped;
  model->steps.kind += model->steps.kind ? from : 0;
  model->steps.times += model->steps.times ? from : 0;
  model->steps.open &= to == n;
  model->steps.n = to - from;
  model->steps.first = from;
  model->steps.chosen_from = to - from < n ? n : 0;
}

static void step_of_arrivals(struct model *model, const struct rank_bounds *bounds) {
  i32 n = (i32)model->steps.n, dropped = (i32)model->steps.first;
  FOR_EACH_CHANGED(model->arrivals, model->n_arrivals, arrival) {
    if (!model->steps.by_collectives) {
      arrival->step = n ? model_step_at(model, arrival->rank, arrival->call_start) : -1;
    } else if (arrival->step >= 0) {
      arrival->step += (i32)bounds[arrival->rank].first - dropped;
      if (arrival->step < 0 || arrival->step >= n)
        arrival->step = -1;
    }
  }
  FOR_EACH_CHANGED(model->collectives, model->n_collectives, collective)
    collective->step = collective->n_arrivals ? members_of(model, collective)->step : -1;
}

/* What the iterations of an inference engine hold, by the marks of a rank that has them all. */
static void set_kinds(struct model *model) {
  struct steps *steps = &model->steps;
  for (u32 r = 0; r < model->n_ranks && !steps->kind; r++) {
    const struct rank_events *events = model_events(model, r);
    if (events->marks.n < steps->n || !steps->n || !events->marks.at[0].kind)
      continue;
    steps->kind = arena_array(model_arena(model), steps->n, sizeof(*steps->kind));
    for (u32 s = 0; s < steps->n; s++)
      steps->kind[s] = events->marks.at[s].kind;
    steps->method = "the engine's iterations";
  }
}

/* Of no rank as much as of the one of which least is kept. */
static void set_times(struct model *model, const struct rank_bounds *bounds) {
  struct steps *steps = &model->steps;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = model_events(model, r);
    if (events->step_bounds.n == 0 || events->step_bounds.n != bounds[r].at.n)
      continue;
    if (!steps->times)
      steps->times = arena_array(model_arena(model), steps->n, sizeof(*steps->times));
    for (u32 s = 0; s + 1 < bounds[r].at.n; s++) {
      u8 *times = &steps->times[bounds[r].first + s], own = events->step_bounds.at[s].times;
      *times = MAX(own, *times);
    }
  }
}

void bounds_release(struct rank_bounds *bounds, u32 n_ranks) {
  FOR_EACH(bounds, n_ranks, bound)
    FREE_EACH(bound, at.at, gpu.at);
  free(bounds);
}

static const char repeated_launches[] = "repeated launches";

const char *bounds_by_names(const struct model *model, struct rank_bounds *bounds,
                            double *confidence) {
  const char *marks_are = internal_of(model)->marks_are;
  return bounds_by_marks(model, bounds, confidence)       ? marks_are ? marks_are : "step marks"
         : bounds_by_ranges(model, bounds, confidence)    ? "NVTX ranges"
         : bounds_by_optimizer(model, bounds, confidence) ? "optimizer phases"
                                                          : NULL;
}

const char *bounds_by_repetition(const struct model *model, struct rank_bounds *bounds,
                                 double *confidence) {
  return bounds_by_passes(model, TSCOPE_PHASE_BACKWARD, bounds, confidence)  ? "backward passes"
         : bounds_by_passes(model, TSCOPE_PHASE_FORWARD, bounds, confidence) ? "forward passes"
         : bounds_by_launches(model, bounds, confidence)                     ? repeated_launches
                                                                             : NULL;
}

static bool repeats_itself(const struct rank_bounds *bounds, u32 n) {
  return ANY(bounds, n, one, one->at.n > LEAST_STEPS);
}

/* Two or three collectives, such as barriers at the begin and the end, are weak evidence: any other
 * is preferred. */
static void find_repeated_steps(struct model *model, struct rank_bounds **bounds,
                                unsigned threads) {
  struct steps *steps = &model->steps;
  bool period = bounds_by_period(model, *bounds, &steps->confidence, threads);
  if (!period || !repeats_itself(*bounds, model->n_ranks)) {
    struct rank_bounds *others = memory_zeroed(model->n_ranks, sizeof(*others));
    const char *found = bounds_by_repetition(model, others, &steps->confidence);
    bounds_release(found ? *bounds : others, model->n_ranks);
    *bounds = found ? others : *bounds;
    steps->method = found ? found : steps->method;
    steps->by_pattern = found == repeated_launches;
    period &= !found;
  }
  if (period) {
    steps->method = "collective period";
    steps->by_collectives = steps->by_pattern = true;
  }
}

void find_steps(struct model *model, const struct model_options *options) {
  struct rank_bounds *bounds = memory_zeroed(model->n_ranks, sizeof(*bounds));
  model->steps = (struct steps){.method = "none", .confidence = NAN};
  const char *named = bounds_by_names(model, bounds, &model->steps.confidence);
  if (named)
    model->steps.method = named;
  else
    find_repeated_steps(model, &bounds, options->threads);
  if (!model->steps.by_collectives) {
    bounds_agree(model, bounds, &model->steps.confidence);
    bounds_of_peers(model, bounds);
  }
  for (u32 r = 0; r < model->n_ranks && !model->steps.by_collectives; r++)
    bounds_on_gpu(model_events(model, r), &bounds[r]);
  assemble(model, bounds);
  set_kinds(model);
  set_times(model, bounds);
  if (options->steps)
    choose_steps(model, options->steps);
  else if (!options->include_warmup && !model->steps.kind) /* its kinds take different times */
    count_warmup(model);
  step_of_arrivals(model, bounds);
  bounds_release(bounds, model->n_ranks);
}
