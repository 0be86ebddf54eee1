/* SPDX-License-Identifier: MIT */
#include "analyses/steps/series.h"
#include "analyses/analyses.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/statistics.h"

/* Sums over ranks of one kept step; integers, so that the order of threads does not matter. */
struct point_sum {
  struct step_parts parts;
  u32 ranks, ranks_with_input;
};

struct series_sums {
  u32 *point_step, *column_step; /* index into model.steps */
  u32 *point_of, *column_of;     /* [steps.n] INDEX_NONE: not kept */
  u32 n_points, per_point, n_columns, per_column;
  struct point_sum *sums; /* [n_points] */
  float *cells;           /* [n_ranks][n_columns][SERIES_COUNT] */
  pthread_mutex_t lock;   /* of the cells' memory, which devices of one rank share */
};

struct series_result series_result_unknown(void) {
  return (struct series_result){
      .steps_per_point = NAN, .steps_per_column = NAN, .ranks_joined = NAN};
}

static float *cell_at(const struct series_sums *g, u32 rank, u32 column) {
  return g->cells + ((size_t)rank * g->n_columns + column) * SERIES_COUNT;
}

/* The longest time that any rank took for a step, as far as it is known; -1 if it is known of none.
 */
static i64 longest_wall(const struct analysis *a, u32 step) {
  i64 most = -1;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    i64 length = analysis_step_length(a, rank, step);
    most = MAX(length, most);
  }
  return most;
}

/* Of every `per` steps from `first` on the slowest. Returns how many. */
static u32 choose_slowest(const i64 *length, u32 first, u32 n, u32 per, u32 *chosen,
                          u32 *index_of) {
  u32 kept = 0;
  for (u32 from = first; from < n; from += per) {
    u32 slowest =
        NUMBER_OF_LARGEST(from, n - from < per ? n : from + per, step, (double)length[step]);
    index_of[slowest] = kept;
    chosen[kept++] = slowest;
  }
  return kept;
}

void series_prepare(struct analysis *a) {
  u32 n = a->model->steps.n, ranks = a->model->n_ranks;
  if (a->whole_run || !n)
    return;
  struct series_sums *g = arena_alloc(a->arena, sizeof(*g));
  SCOPED i64 *length = memory_array(n, sizeof(*length));
  u32 rows = CLAMP(ranks, 1, SERIES_ROWS);
  u32 columns = MIN(SERIES_CELLS / rows, SERIES_STEPS);
  g->per_point = (n + SERIES_STEPS - 1) / SERIES_STEPS;
  g->per_column = MAX((a->n_steps + columns - 1) / columns, 1);
  g->point_step = arena_array(a->arena, n, sizeof(u32));
  g->column_step = arena_array(a->arena, n, sizeof(u32));
  g->point_of = arena_array(a->arena, n, sizeof(u32));
  g->column_of = arena_array(a->arena, n, sizeof(u32));
  for (u32 step = 0; step < n; step++) {
    length[step] = longest_wall(a, step);
    g->point_of[step] = g->column_of[step] = INDEX_NONE;
  }
  g->n_points = choose_slowest(length, 0, n, g->per_point, g->point_step, g->point_of);
  g->n_columns =
      choose_slowest(length, a->first_step, n, g->per_column, g->column_step, g->column_of);
  g->sums = arena_array(a->arena, g->n_points, sizeof(*g->sums));
  size_t cells = (size_t)ranks * g->n_columns * SERIES_COUNT;
  g->cells = memory_array(size_sum(cells, 1), sizeof(float));
  FILL(g->cells, cells, NAN);
  pthread_mutex_init(&g->lock, NULL);
  a->series = g;
}

void series_free(struct analysis *a) {
  if (!a->series)
    return;
  free(a->series->cells);
  pthread_mutex_destroy(&a->series->lock);
  a->series = NULL;
}

static double part_ms(const struct step_parts *parts, u32 measure) {
  bool of_exposed = measure == SERIES_WAIT || measure == SERIES_TRANSFER;
  bool split = wait_is_known(parts->exposed, parts->wait, parts->transfer);
  return of_exposed && !split ? NAN : ns_to_ms(parts->of[measure]);
}

static void add_to_point(struct point_sum *sum, const struct step_parts *parts, bool input) {
  for (u32 m = SERIES_COMPUTE; m < SERIES_INPUT + (u32)input; m++)
    __atomic_fetch_add(&sum->parts.of[m], parts->of[m], __ATOMIC_RELAXED);
  __atomic_fetch_add(&sum->ranks, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&sum->ranks_with_input, input, __ATOMIC_RELAXED);
}

void series_add_rank(struct analysis *a, u32 rank, const struct window *windows,
                     const struct step_parts *parts, u32 n) {
  struct series_sums *g = a->series;
  const struct rank_summary *sum = &a->ranks[rank];
  if (!g || !sum->has_compute || !sum->has_comm)
    return;
  for (u32 i = 0; i < n; i++) {
    u32 point = g->point_of[windows[i].step], column = g->column_of[windows[i].step];
    if (point != INDEX_NONE)
      add_to_point(&g->sums[point], &parts[i], sum->has_input);
    for (u32 m = SERIES_COMPUTE; column != INDEX_NONE && m < SERIES_INPUT + (u32)sum->has_input;
         m++)
      cell_at(g, rank, column)[m] = (float)part_ms(&parts[i], m);
  }
}

void series_add_lateness(struct analysis *a, u32 rank, i32 step, double ms) {
  struct series_sums *g = a->series;
  if (!g || step < 0 || g->column_of[step] == INDEX_NONE)
    return;
  float *late = &cell_at(g, rank, g->column_of[step])[SERIES_LATE];
  *late = fmaxf(*late, (float)ms); /* NAN gives way */
}

void series_add_memory(struct analysis *a, double global_rank, const double *bytes, u32 n_steps) {
  struct series_sums *g = a->series;
  if (!g || n_steps != a->model->steps.n || !bytes)
    return;
  const struct rank *rank = FIND(a->model->ranks, a->model->n_ranks, one, one->rank == global_rank);
  if (!rank)
    return;
  pthread_mutex_lock(&g->lock);
  for (u32 column = 0; column < g->n_columns; column++) {
    float *most = &cell_at(g, (u32)(rank - a->model->ranks), column)[SERIES_MEMORY];
    *most = fmaxf(*most, (float)bytes[g->column_step[column]]);
  }
  pthread_mutex_unlock(&g->lock);
}

static void make_point_arrays(struct analysis *a, u32 n) {
  struct series_result *out = &a->results->series;
  double **const arrays[] = {&out->step,         &out->wall_ms,      &out->wall_least_ms,
                             &out->wall_most_ms, &out->slowest_rank, &out->compute_ms,
                             &out->exposed_ms,   &out->wait_ms,      &out->transfer_ms,
                             &out->memcpy_ms,    &out->idle_ms,      &out->input_ms};
  FOR_EACH(arrays, LENGTH_OF(arrays), array)
    **array = arena_array(a->arena, n, sizeof(double));
}

static void fill_point_walls(struct analysis *a, u32 step, u32 point) {
  struct series_result *out = &a->results->series;
  out->wall_ms[point] = a->results->step_ms[step];
  out->wall_least_ms[point] = out->wall_most_ms[point] = out->slowest_rank[point] = NAN;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    double ms = ms_if_known(analysis_step_length(a, rank, step));
    if (isnan(ms))
      continue;
    out->wall_least_ms[point] = fmin(out->wall_least_ms[point], ms);
    if (!(ms <= out->wall_most_ms[point])) {
      out->wall_most_ms[point] = ms;
      out->slowest_rank[point] = a->model->ranks[rank].rank;
    }
  }
}

static void fill_point_parts(struct analysis *a, const struct point_sum *sum, u32 point) {
  struct series_result *out = &a->results->series;
  double *const to[] = {out->compute_ms, out->exposed_ms, out->wait_ms, out->transfer_ms,
                        out->memcpy_ms,  out->idle_ms,    out->input_ms};
  for (u32 m = SERIES_COMPUTE; m <= SERIES_INPUT; m++) {
    u32 n = m == SERIES_INPUT ? sum->ranks_with_input : sum->ranks;
    to[m - SERIES_COMPUTE][point] = part_ms(&sum->parts, m) / (n ? n : (double)NAN);
  }
}

static void fill_points(struct analysis *a) {
  const struct series_sums *g = a->series;
  struct series_result *out = &a->results->series;
  make_point_arrays(a, g->n_points);
  bool unseen = communication_unseen(a);
  out->steps_per_point = g->per_point;
  out->n_points = g->n_points;
  for (u32 point = 0; point < g->n_points; point++) {
    static const struct point_sum nothing;
    out->step[point] = a->model->steps.first + g->point_step[point];
    fill_point_walls(a, g->point_step[point], point);
    fill_point_parts(a, unseen ? &nothing : &g->sums[point], point);
  }
}

static void fill_phases(struct analysis *a) {
  const struct series_sums *g = a->series;
  static const u32 phases[][2] = {{SERIES_FORWARD, TSCOPE_PHASE_FORWARD},
                                  {SERIES_BACKWARD, TSCOPE_PHASE_BACKWARD},
                                  {SERIES_OPTIMIZER, TSCOPE_PHASE_OPTIMIZER}};
  for (u32 rank = 0; rank < a->model->n_ranks && a->model->phases; rank++)
    for (u32 column = 0; column < g->n_columns; column++)
      for (u32 i = 0; i < LENGTH_OF(phases); i++)
        cell_at(g, rank, column)[phases[i][0]] =
            (float)phase_ms(a->model, rank, g->column_step[column], phases[i][1]);
}

/* Walls are known also of ranks whose parts are not. */
static void fill_walls(struct analysis *a) {
  const struct series_sums *g = a->series;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++)
    for (u32 column = 0; column < g->n_columns; column++) {
      i64 length = analysis_step_length(a, rank, g->column_step[column]);
      cell_at(g, rank, column)[SERIES_WALL] = (float)ms_if_known(length);
    }
  if (!communication_unseen(a))
    return;
  for (size_t i = 0; i < (size_t)a->model->n_ranks * g->n_columns; i++)
    for (u32 m = SERIES_COMPUTE; m <= SERIES_IDLE; m++)
      g->cells[i * SERIES_COUNT + m] = NAN;
}

/* One measure of a rank over its steps, and in its worst one; 0 where it is not known. */
static void find_levels(const struct series_sums *g, u32 rank, u32 measure, double *mean,
                        double *most) {
  *mean = MEAN_KNOWN(0, g->n_columns, column, cell_at(g, rank, column)[measure]);
  *mean = isnan(*mean) ? 0 : *mean;
  *most = 0;
  for (u32 column = 0; column < g->n_columns; column++) {
    double value = cell_at(g, rank, column)[measure]; /* fmax() here ends GCC 12 for aarch64 */
    *most = MAX(value, *most);                        /* NAN gives way */
  }
}

/* Adds to each rank's score how many spreads its value is above the median rank's. */
static void add_scores(double *scores, double *values, double *scratch, u32 n) {
  memcpy(scratch, values, n * sizeof(double));
  double middle = median_of(scratch, n);
  for (u32 i = 0; i < n; i++)
    scratch[i] = fabs(values[i] - middle);
  double spread = median_of(scratch, n) + 0.01 * fabs(middle) + 1e-9;
  for (u32 i = 0; i < n; i++)
    scores[i] = fmax(scores[i], (values[i] - middle) / spread);
}

/* Marks the ranks that get a row of their own: stragglers, and those that differ most. */
static void choose_worst(struct analysis *a, bool *own, u32 wanted) {
  static const u8 measures[] = {SERIES_WALL,  SERIES_COMPUTE, SERIES_WAIT,
                                SERIES_INPUT, SERIES_LATE,    SERIES_MEMORY};
  u32 n = a->model->n_ranks;
  SCOPED double *scores = memory_zeroed(size_product(n, 4), sizeof(double));
  double *mean = scores + n, *most = mean + n, *scratch = most + n;
  FOR_EACH(measures, sizeof(measures), measure) {
    for (u32 rank = 0; rank < n; rank++)
      find_levels(a->series, rank, *measure, &mean[rank], &most[rank]);
    add_scores(scores, mean, scratch, n);
    add_scores(scores, most, scratch, n);
  }
  for (u32 rank = 0; rank < a->results->n_ranks; rank++)
    if (a->results->ranks[rank].straggler)
      scores[rank] = INFINITY;
  for (u32 k = 0; k < wanted; k++) {
    u32 worst = NUMBER_OF_LARGEST(0, n, rank, scores[rank]);
    own[worst] = true;
    scores[worst] = -1;
  }
}

/* Mean over the ranks from `first` to `last`. */
static void add_row(struct analysis *a, u32 first, u32 last) {
  const struct series_sums *g = a->series;
  struct series_result *out = &a->results->series;
  struct series_row *row = &out->rows[out->n_rows++];
  row->rank = a->model->ranks[first].rank;
  row->last_rank = a->model->ranks[last].rank;
  row->host = a->model->ranks[first].host;
  row->ranks = last - first + 1;
  for (u32 m = 0; m < SERIES_COUNT; m++) {
    double *values = arena_array(a->arena, g->n_columns, sizeof(double));
    bool any = false;
    for (u32 column = 0; column < g->n_columns; column++) {
      values[column] = MEAN_KNOWN(first, last + 1, rank, cell_at(g, rank, column)[m]);
      any |= !isnan(values[column]);
    }
    row->values[m] = any ? values : NULL;
    row->n_values[m] = any ? g->n_columns : 0;
  }
}

/* Rows of joined ranks have about equally many ranks. No row spans a rank with a row of its own, so
 * that rows are in the order of ranks. */
static void fill_rows(struct analysis *a, const bool *own, u32 n_own) {
  u32 n = a->model->n_ranks;
  u32 each = n_own == n ? 1 : MAX((n - n_own + SERIES_ROWS / 2 - 1) / (SERIES_ROWS / 2), 1);
  struct series_result *out = &a->results->series;
  out->rows = arena_array(a->arena, size_sum(size_sum(size_product(2, n_own), n / each), 2),
                          sizeof(*out->rows));
  for (u32 first = 0, last; first < n; first = last + 1) {
    last = first;
    while (!own[first] && last + 1 < n && last + 1 - first < each && !own[last + 1])
      last++;
    add_row(a, first, last);
  }
}

static void fill_ranks(struct analysis *a) {
  const struct series_sums *g = a->series;
  struct series_result *out = &a->results->series;
  u32 n = a->model->n_ranks, n_own = n <= SERIES_ROWS ? n : SERIES_ROWS / 4;
  SCOPED bool *own = memory_zeroed(size_sum(n, 1), sizeof(*own));
  out->column_step = arena_array(a->arena, g->n_columns, sizeof(double));
  out->steps_per_column = g->per_column;
  for (u32 column = 0; column < g->n_columns; column++)
    out->column_step[column] = a->model->steps.first + g->column_step[column];
  out->n_columns = g->n_columns;
  out->ranks_joined = n - n_own;
  fill_walls(a);
  fill_phases(a);

  if (n_own < n)
    choose_worst(a, own, n_own);
  else
    memset(own, 1, n);
  fill_rows(a, own, n_own);
}

void series_summarise(struct analysis *a) {
  a->results->series = series_result_unknown();
  if (!a->series)
    return;
  fill_points(a);
  fill_ranks(a);
}
