/* SPDX-License-Identifier: MIT
 *
 * Time and speed of GEMMs, by shape and by precision. If CUPTI saw the kernels, the time of a call
 * is the time of its kernels. If pairs of events timed one call in so many, calls of one shape on
 * one rank represent each other:
 *
 *   time = sum over shapes of N mean        N calls, of which n were timed, with variance s^2
 *   its standard error = sqrt(sum of N^2 (1 - n/N) s^2 / n)
 *
 * a stratified sample (Cochran, Sampling Techniques, 5.4). Shapes of which no call was timed are
 * left out, and the report says so.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/gpu/arithmetic_calls.h"
#include "analyses/gpu/kernel_times.h"
#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "format/dtypes.h"

/* Times of calls, in nanoseconds. */
enum { LISTED = 50 };

struct moments {
  double n, sum, squares;
};

/* Calls of one shape on one rank, in the analysed steps. */
struct cell {
  struct gemm_shape shape;
  u32 rank;
  double calls, replayed;       /* made; made by replays of graphs */
  double flops, replayed_flops; /* of them */
  struct moments sample;        /* of those made */
  struct moments bounds;        /* calls before which the stream was idle: upper bounds */
  double estimated;             /* calls that the sample stands for */
  double time, variance;        /* of these together; variance of the time's error */
  double estimated_flops;
  bool bounded;
};

struct gemm_sums {
  struct cell *cells;
  u32 n;
  u32 one_in;
  bool by_kernels, by_pairs;
  bool replays_known; /* kernels show the time of all replayed GEMMs */
  bool replays_split; /* and of each precision's */
};

void gemms_prepare(struct analysis *a) {
  a->gemm_sums = arena_array(a->arena, a->model->n_ranks, sizeof(*a->gemm_sums));
}

void gemms_free(struct analysis *a) {
  FOR_EACH(a->gemm_sums, a->model->n_ranks, sums)
    free(sums->cells);
}

static void add_time(struct moments *sample, i64 ns) {
  sample->n++;
  sample->sum += (double)ns;
  sample->squares += (double)ns * (double)ns;
}

static void add_flops(double *sum, u64 flops, double calls) {
  *sum += flops == ARITHMETIC_UNKNOWN ? 0 : (double)flops * calls;
}

/* GEMMs whose shape is not known have a cell of their own, behind the others. */
static u32 cell_of(const struct timeline *t, const struct arithmetic *call) {
  u32 shapes = t->gemms ? t->gemms->n_shapes : 0;
  return MIN(call->what, shapes);
}

static void add_calls(struct gemm_sums *sums, const struct timeline *t,
                      const struct arithmetic_calls *calls) {
  for (u32 i = 0; i < t->n_arithmetic; i++) {
    const struct arithmetic *call = &t->arithmetic[i];
    if (call->estimate || call->replay || call->captured || !calls->analysed[i])
      continue;
    struct cell *cell = &sums->cells[cell_of(t, call)];
    cell->calls++;
    add_flops(&cell->flops, call->flops, 1);
    if (calls->first_start[i] != NS_UNKNOWN)
      add_time(&cell->sample, calls->kernel_ns[i]);
    sums->by_kernels |= calls->first_start[i] != NS_UNKNOWN;
  }
}

/* The time between two events is the time of the GEMM if the stream reached the first event after
 * the launch was over; else the GEMM may have waited for the launch. */
static void add_pairs(struct gemm_sums *sums, const struct timeline *t,
                      const struct arithmetic_calls *calls, i64 clock_error) {
  FOR_EACH(t->gemms->times, t->gemms->n_times, time) {
    const struct arithmetic *call = &t->arithmetic[time->call];
    if (!calls->analysed[time->call] || calls->first_start[time->call] != NS_UNKNOWN ||
        time->end < time->start)
      continue;
    struct cell *cell = &sums->cells[cell_of(t, call)];
    bool waited = time->start < call->end + clock_error;
    add_time(waited ? &cell->bounds : &cell->sample, time->end - time->start);
    sums->by_pairs = true;
    sums->one_in = MAX(time->one_in, sums->one_in);
  }
}

static void add_replays(struct gemm_sums *sums, const struct gemms *gemms,
                        const struct arithmetic_calls *calls) {
  for (u32 i = 0; i < gemms->n_contents; i++)
    FOR_EACH(gemms->contents[i].gemms, gemms->contents[i].n_gemms, gemm) {
      double made = (double)calls->replays[i] * gemm->calls;
      sums->cells[gemm->shape].replayed += made;
      add_flops(&sums->cells[gemm->shape].replayed_flops, gemm->flops, made);
    }
}

static double relative_variance(const struct moments *sample) {
  double mean = sample->sum / sample->n;
  double variance = (sample->squares - sample->n * mean * mean) / (sample->n - 1);
  return variance > 0 && mean > 0 ? variance / (mean * mean) : 0;
}

/* The scatter of single calls, for shapes of which only one call was timed; NAN if there are no
 * others.
 */
static double typical_variance(const struct gemm_sums *sums) {
  double weight =
      TOTAL(double, sums->cells, sums->n, one, one->sample.n < 2 ? 0 : one->sample.n - 1);
  double sum = TOTAL(double, sums->cells, sums->n, one,
                     one->sample.n < 2 ? 0 : (one->sample.n - 1) * relative_variance(&one->sample));
  return weight > 0 ? sum / weight : NAN;
}

static void estimate(struct cell *cell, bool replays_known, double usual) {
  const struct moments *sample = cell->sample.n ? &cell->sample : &cell->bounds;
  cell->bounded = sample == &cell->bounds;
  if (!sample->n)
    return;
  double mean = sample->sum / sample->n;
  double relative = sample->n > 1 ? relative_variance(sample) : usual;
  cell->estimated = cell->calls + (replays_known ? 0 : cell->replayed);
  cell->estimated_flops = cell->flops + (replays_known ? 0 : cell->replayed_flops);
  cell->time = cell->estimated * mean;
  double not_timed = 1 - sample->n / cell->estimated;
  cell->variance = not_timed > 0 ? cell->time * cell->time * not_timed * relative / sample->n : 0;
}

void gemms_rank(struct analysis *a, const struct timeline *timeline,
                const struct arithmetic_calls *calls) {
  struct gemm_sums *sums = &a->gemm_sums[timeline->rank];
  const struct gemms *gemms = timeline->gemms;
  const struct rank_flops *flops = &a->ranks[timeline->rank].flops;
  static const struct gemm_shape unknown = {.m = TSCOPE_UNKNOWN,
                                            .n = TSCOPE_UNKNOWN,
                                            .k = TSCOPE_UNKNOWN,
                                            .batch = TSCOPE_UNKNOWN,
                                            .precision = PRECISION_UNKNOWN};
  u32 n = (gemms ? gemms->n_shapes : 0) + 1;
  if (!flops->gemms)
    return;
  sums->cells = memory_zeroed(n, sizeof(*sums->cells));
  sums->n = n;
  for (u32 i = 0; i < n; i++) {
    sums->cells[i].rank = timeline->rank;
    sums->cells[i].shape = i + 1 < n ? gemms->shapes[i] : unknown;
  }
  add_calls(sums, timeline, calls);
  if (gemms) {
    add_pairs(sums, timeline, calls, (i64)a->model->ranks[timeline->rank].gpu_event_error_ns);
    add_replays(sums, gemms, calls);
  }
  double replayed = TOTAL(double, sums->cells, n, one, one->replayed_flops);
  sums->replays_known = replayed > 0 && flops->replayed_flops >= replayed * (1 - 1e-9);
  sums->replays_split = sums->replays_known && !flops->replayed_ns[PRECISION_UNKNOWN];
  double usual = typical_variance(sums);
  FOR_EACH_CHANGED(sums->cells, n, each)
    estimate(each, sums->replays_known, usual);
}

static void carry_sample(struct carrier *c, struct moments *sample) {
  CARRY_EACH(c, sample, n, sum, squares);
}

static void carry_cell(struct carrier *c, struct cell *cell) {
  CARRY_EACH(c, &cell->shape, m, n, k, batch, a, b, c, precision);
  CARRY_EACH(c, cell, calls, replayed, flops, replayed_flops, estimated, time, variance,
             estimated_flops);
  carry_sample(c, &cell->sample);
  carry_sample(c, &cell->bounds);
  CARRY(c, &cell->bounded);
  c->bad |= cell->shape.precision >= PRECISIONS;
}

void gemms_carry(struct analysis *a, u32 rank, struct carrier *c) {
  struct gemm_sums *sums = &a->gemm_sums[rank];
  u32 n = carry_count(c, sums->n, 120);
  if (c->reads && n)
    sums->cells = memory_zeroed(n, sizeof(*sums->cells));
  sums->n = n;
  FOR_EACH_CHANGED(sums->cells, n, cell) {
    carry_cell(c, cell);
    cell->rank = rank;
  }
  if (c->bad)
    sums->n = 0;
  CARRY_EACH(c, sums, one_in, by_kernels, by_pairs, replays_known, replays_split);
}

/* The divisor that makes a rank's figures a mean over ranks for one step. */
static double steps_of(const struct analysis *a, u32 rank, double ranks) {
  u32 steps = a->ranks[rank].flops.steps;
  return ranks * (a->whole_run || !steps ? 1 : steps);
}

static double mean_peak(const struct analysis *a, enum precision precision) {
  double sum = 0, n = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++)
    if (a->ranks[i].flops.gemms) {
      sum += rank_peak_tflops(a, i, precision);
      n++;
    }
  return n ? sum / n : NAN;
}

ORDER_POINTERS_BY(by_shape, struct cell,
                  UP(shape.m) UP(shape.n) UP(shape.k) UP(shape.batch) UP(shape.a) UP(shape.b)
                      UP(shape.c) UP(shape.precision))

static const char *type_name(u8 dtype) {
  const char *name = tscope_dtype_name(dtype);
  return name ? name : "unknown";
}

static void name_row(struct analysis *a, const struct gemm_shape *shape, struct gemm_row *row) {
  bool varied =
      shape->m == TSCOPE_UNKNOWN || shape->n == TSCOPE_UNKNOWN || shape->k == TSCOPE_UNKNOWN;
  row->shape = varied ? "varied" : say(a, "%u x %u x %u", shape->m, shape->n, shape->k);
  row->type = shape->a == shape->b ? type_name(shape->a)
                                   : say(a, "%s x %s", type_name(shape->a), type_name(shape->b));
  row->precision = precision_name((enum precision)shape->precision);
  row->batch = shape->batch == TSCOPE_UNKNOWN ? NAN : shape->batch;
}

/* The row of cells of one shape, one of each rank. */
static void make_row(struct analysis *a, struct cell *const *cells, u32 n, double ranks,
                     struct gemm_row *row) {
  struct cell all = {0};
  *row = unknown_gemm_row;
  row->calls = row->timed = 0;
  FOR_EACH(cells, n, item) {
    const struct cell *cell = *item;
    row->calls += (cell->calls + cell->replayed) / steps_of(a, cell->rank, ranks);
    row->timed += cell->sample.n + cell->bounds.n;
    ADD_EACH(&all, cell, estimated, time, variance, estimated_flops);
  }
  if (all.time > 0) {
    row->mean_us = all.time / all.estimated / 1e3;
    row->mean_error_us = sqrt(all.variance) / all.estimated / 1e3;
    row->ms = row->mean_us / 1e3 * row->calls;
    row->tflops = all.estimated_flops > 0 ? all.estimated_flops / all.time / 1e3 : NAN;
    row->utilisation = row->tflops / mean_peak(a, (enum precision)cells[0]->shape.precision);
  }
  name_row(a, &cells[0]->shape, row);
}

static double known_ms(const struct gemm_row *row) {
  return isnan(row->ms) ? -1 : row->ms;
}

ORDER_BY(most_time_first, struct gemm_row, DOWN_OF(known_ms) DOWN(calls) BY_TEXT(shape))

/* Pointers to all cells in which there is anything, sorted by shape. */
static struct cell **all_cells(const struct analysis *a, u32 *n) {
  u32 room = TOTAL(u32, a->gemm_sums, a->model->n_ranks, one, one->n);
  struct cell **cells = memory_array(size_sum(room, 1), sizeof(*cells));
  *n = 0;
  FOR_EACH(a->gemm_sums, a->model->n_ranks, gemm_sum)
    FOR_EACH_CHANGED(gemm_sum->cells, gemm_sum->n, cell)
      if (cell->calls + cell->replayed > 0)
        cells[(*n)++] = cell;
  SORT(cells, *n, by_shape);
  return cells;
}

static void list_rows(struct analysis *a, double ranks, double *total_ms) {
  struct gemms_result *out = &a->results->gemms;
  u32 n, made = 0;
  SCOPED struct cell **cells = all_cells(a, &n);
  SCOPED struct gemm_row *rows = memory_array(size_sum(n, 1), sizeof(*rows));
  for (u32 i = 0, same; i < n; i += same) {
    same = ROW_OF_EQUALS(&cells[i], n - i, first, one, by_shape(first, one) == 0);
    make_row(a, &cells[i], same, ranks, &rows[made++]);
  }
  SORT(rows, made, most_time_first);
  out->shapes = made;
  out->n_rows = MIN(made, LISTED);
  out->rows = arena_array(a->arena, out->n_rows, sizeof(*out->rows));
  *total_ms = TOTAL(double, rows, made, one, isnan(one->ms) ? 0 : one->ms);
  for (u32 i = 0; i < out->n_rows; i++) {
    out->rows[i] = rows[i];
    out->rows[i].share = *total_ms > 0 ? rows[i].ms / *total_ms : NAN;
  }
}

ORDER_BY(most_operations_first, struct precision_row, DOWN(flops))

/* Time and operations of what was timed in a precision. */
struct timed {
  double ns, flops;
  bool lacking; /* and some was not */
};

/* For one rank. If the kernels of its graphs do not distinguish precisions, replayed calls get the
 * time of other calls of their shape. */
static struct timed time_in_precision(const struct analysis *a, u32 rank,
                                      enum precision precision) {
  const struct gemm_sums *sums = &a->gemm_sums[rank];
  struct timed timed = {0};
  FOR_EACH(sums->cells, sums->n, cell) {
    if (cell->shape.precision != precision)
      continue;
    timed.ns += cell->time;
    timed.flops += cell->estimated_flops;
    timed.lacking |= !cell->estimated && cell->calls > 0;
    if (sums->replays_split) {
      timed.flops += cell->replayed_flops;
    } else if (sums->replays_known && cell->estimated) {
      timed.ns += cell->time / cell->estimated * cell->replayed;
      timed.flops += cell->replayed_flops;
    } else if (cell->replayed > 0 && !cell->estimated) {
      timed.lacking = true;
    }
  }
  if (sums->replays_split)
    timed.ns += (double)a->ranks[rank].flops.replayed_ns[precision];
  return timed;
}

static struct precision_row make_precision(const struct analysis *a, enum precision precision,
                                           double ranks, double all_flops) {
  struct timed all = {0};
  double sum = 0;
  struct precision_row row = {.precision = precision_name(precision),
                              .kind = precision,
                              .peak_tflops = mean_peak(a, precision),
                              .hfu = NAN};
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_flops *flops = &a->ranks[i].flops;
    if (!flops->gemms)
      continue;
    struct timed timed = time_in_precision(a, i, precision);
    row.flops += flops->by_precision[precision] * ranks / steps_of(a, i, ranks);
    sum += flops->by_precision[precision];
    row.ms += ns_to_ms(timed.ns) / steps_of(a, i, ranks);
    all.ns += timed.ns;
    all.flops += timed.flops;
    all.lacking |= timed.lacking;
  }
  row.share = all_flops > 0 ? sum / all_flops : NAN;
  if (!(all.ns > 0) || all.lacking)
    row.ms = NAN;
  row.tflops = all.ns > 0 && all.flops > 0 ? all.flops / all.ns / 1e3 : NAN;
  row.utilisation = row.tflops / row.peak_tflops;
  return row;
}

static void list_precisions(struct analysis *a, double ranks, double all_flops) {
  struct gemms_result *out = &a->results->gemms;
  out->precisions = arena_array(a->arena, PRECISIONS, sizeof(*out->precisions));
  for (u32 p = 0; p < PRECISIONS; p++) {
    struct precision_row row = make_precision(a, (enum precision)p, ranks, all_flops);
    if (row.flops > 0)
      out->precisions[out->n_precisions++] = row;
  }
  SORT(out->precisions, out->n_precisions, most_operations_first);
}

/* Time of all that was timed, and its error. */
static void fill_totals(struct analysis *a, double ranks, double all_flops) {
  struct gemms_result *out = &a->results->gemms;
  double time = 0, variance = 0, step_variance = 0, bounded = 0, flops = 0, ms = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct gemm_sums *sums = &a->gemm_sums[i];
    double steps = steps_of(a, i, ranks), of_rank = 0, of_rank_variance = 0;
    FOR_EACH(sums->cells, sums->n, cell) {
      of_rank += cell->time;
      of_rank_variance += cell->variance;
      bounded += cell->bounded ? cell->time : 0;
      flops += cell->estimated_flops + (sums->replays_known ? cell->replayed_flops : 0);
    }
    for (u32 p = 0; p < PRECISIONS && sums->replays_known; p++)
      of_rank += (double)a->ranks[i].flops.replayed_ns[p];
    time += of_rank;
    variance += of_rank_variance;
    ms += ns_to_ms(of_rank) / steps;
    step_variance += of_rank_variance / 1e12 / (steps * steps);
  }
  if (!(time > 0))
    return;
  out->ms = ms;
  out->ms_error = sqrt(step_variance);
  out->bounded = bounded / time;
  out->covered = all_flops > 0 ? flops / all_flops : NAN;
  out->tflops = flops > 0 ? flops / time / 1e3 : NAN;
  out->tflops_error = out->tflops * sqrt(variance) / time;
}

static void describe_method(struct analysis *a) {
  struct gemms_result *out = &a->results->gemms;
  bool by_kernels = false, by_pairs = false;
  u32 one_in = 0;
  out->calls = out->timed = 0;
  FOR_EACH(a->gemm_sums, a->model->n_ranks, sums) {
    by_kernels |= sums->by_kernels || sums->replays_known;
    by_pairs |= sums->by_pairs;
    one_in = MAX(sums->one_in, one_in);
    FOR_EACH(sums->cells, sums->n, cell) {
      out->calls += cell->calls + cell->replayed;
      out->timed += cell->sample.n + cell->bounds.n + (sums->replays_known ? cell->replayed : 0);
    }
  }
  out->sampled = by_pairs;
  out->one_in = by_pairs ? one_in : NAN;
  out->how = by_pairs && by_kernels ? "their kernels, and pairs of events around a sample"
             : by_pairs             ? "pairs of events around a sample"
             : by_kernels           ? "their kernels"
                                    : NULL;
}

/* Why nothing was timed, in the words of the source of GPU time. */
static const char *why_no_times(struct analysis *a) {
  const char *why = NULL;
  for (u32 i = 0; i < a->model->n_ranks && !why; i++)
    if (a->ranks[i].flops.gemms)
      why = a->model->ranks[i].gpu_clock_reason;
  return say(a, "WHEN GEMMS RAN IS NOT KNOWN%s", say_why(a, why));
}

/* Why no GEMM is listed: the list is made from calls, and kernels may be known without them. */
static const char *why_no_calls(struct analysis *a) {
  const struct kernel_category_result *seen = find_category(a->results, KERNEL_GEMM);
  return seen ? say(a, "%s of GEMMs seen, but no calls with their shapes",
                    plural(seen->count, "kernel").text)
              : "no GEMM was seen";
}

void gemms_summarise(struct analysis *a) {
  struct gemms_result *out = &a->results->gemms;
  double ranks = NUMBER_OF(a->ranks, a->model->n_ranks, one, one->flops.gemms), total_ms;
  *out = unknown_gemms_result;
  if (ranks == 0) {
    out->reason = why_no_calls(a);
    return;
  }
  double all_flops = flops_all(a, true).flops;
  describe_method(a);
  list_rows(a, ranks, &total_ms);
  list_precisions(a, ranks, all_flops);
  fill_totals(a, ranks, all_flops);
  if (!out->how)
    out->reason = why_no_times(a);
}
