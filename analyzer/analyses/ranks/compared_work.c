/* SPDX-License-Identifier: MIT
 *
 * How much each rank has to do beside its peers: compute, input, idle time. It says how uneven the
 * work is, and why a straggler is late.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/queries.h"
#include "analyses/ranks/straggler_test.h"
#include "analyses/thresholds.h"
#include "base/sorting.h"
#include "base/statistics.h"

static double median_compute_ms(const struct results *r, u32 rank) {
  return rank == INDEX_NONE ? NAN : r->ranks[rank].median_compute_ms;
}

/* Median compute time of each rank, and its ratio to the median of its peers in the communicator in
 * which it differs most (all ranks, if it was tested in none). If steps end on the host, because
 * their ends on the GPU are not known, and the host runs far ahead, the device does nothing in some
 * steps and the work of several in others. If that is so in most steps, the median says nothing. */
void work_compare(struct straggler_test *c) {
  struct analysis *a = c->a;
  struct results *r = a->results;
  u32 n_ranks = a->model->n_ranks;
  double *steps = arena_array(&c->scratch, a->n_steps, sizeof(double));
  double *peers = arena_array(&c->scratch, n_ranks, sizeof(double));
  for (u32 rank = 0; rank < n_ranks; rank++) {
    const float *compute_ms = &a->compute_ms[(size_t)rank * a->n_steps];
    u32 n = LIST_KNOWN(steps, 0, a->n_steps, step, compute_ms[step]);
    r->ranks[rank].mean_compute_ms = mean_of(steps, n);
    r->ranks[rank].median_compute_ms = median_of(steps, n);
  }
  u32 sorted_for = INDEX_NONE - 1, n = 0;
  for (u32 rank = 0; rank < n_ranks; rank++) {
    u32 comm = c->best_comm[rank];
    if (comm != sorted_for) {
      const u32 *members = comm == INDEX_NONE ? NULL : a->model->comms[comm].members;
      n = LIST_KNOWN(peers, 0, members ? a->model->comms[comm].size : n_ranks, i,
                     median_compute_ms(r, members ? members[i] : i));
      SORT(peers, n, by_double);
      sorted_for = comm;
    }
    double own = r->ranks[rank].median_compute_ms;
    double others = isnan(own) ? NAN : median_of_others(peers, n, own);
    bool bunched = own == 0 && r->ranks[rank].mean_compute_ms > 0;
    r->ranks[rank].rel_slowdown = others > 0 && !bunched ? own / others - 1 : NAN;
  }
}

static double compute_figure(const struct analysis *a, u32 rank) {
  return median_compute_ms(a->results, rank);
}

static double input_figure(const struct analysis *a, u32 rank) {
  const struct rank_summary *sum = &a->ranks[rank];
  if (!sum->steps || !sum->has_input)
    return NAN;
  return ns_to_ms(sum->on_gpu ? sum->data_stall : sum->data) / sum->steps;
}

static double idle_figure(const struct analysis *a, u32 rank) {
  return a->ranks[rank].on_gpu ? a->results->ranks[rank].idle_ms : NAN;
}

double exposed_copies_ms(const struct analysis *a, u32 rank) {
  const struct rank_summary *sum = &a->ranks[rank];
  return sum->steps && sum->on_gpu ? ns_to_ms(sum->exposed_memcpy) / sum->steps : NAN;
}

enum { INPUT, COMPUTE, COPIES, IDLE, FIGURES };
static double (*const figures[FIGURES])(const struct analysis *, u32) = {
    input_figure, compute_figure, exposed_copies_ms, idle_figure};

struct reasons {
  struct analysis *a;
  struct arena scratch;
  double *steps;         /* [n_steps] scratch */
  struct figure_of_all { /* something that ranks have per step, in order */
    double *sorted;
    u32 n;
  } all[FIGURES];
};

static void sort_figure(struct reasons *c, u32 figure) {
  u32 n_ranks = c->a->model->n_ranks;
  struct figure_of_all *all = &c->all[figure];
  all->sorted = arena_array(&c->scratch, n_ranks, sizeof(double));
  all->n = LIST_KNOWN(all->sorted, 0, n_ranks, i, figures[figure](c->a, i));
  SORT(all->sorted, all->n, by_double);
}

/* Whether a rank has so much more of something per step than the median of the others. */
static bool exceeds(const struct reasons *c, u32 rank, u32 figure, double enough) {
  double own = figures[figure](c->a, rank);
  return !isnan(own) &&
         own - median_of_others(c->all[figure].sorted, c->all[figure].n, own) >= enough;
}

/* What a rank computes in one of the steps in which another is late; median, ms. */
static double compute_in_late_steps(struct reasons *c, u32 rank, const struct rank_result *late) {
  const struct analysis *a = c->a;
  u32 n = LIST_KNOWN(c->steps, 0, a->n_steps, i,
                     straggler_is_late_in(late, (double)a->model->steps.first + a->first_step + i)
                         ? a->compute_ms[(size_t)rank * a->n_steps + i]
                         : (double)NAN);
  return median_of(c->steps, n);
}

/* Whether a rank that is late in some steps only computes so much longer in these. */
static bool computes_longer_when_late(struct reasons *c, u32 rank, double enough) {
  const struct rank_result *late = &c->a->results->ranks[rank];
  if (!late->n_late)
    return false;
  double *others = arena_array(&c->scratch, c->a->model->n_ranks, sizeof(double));
  u32 n = LIST_KNOWN(others, 0, c->a->model->n_ranks, i,
                     i == rank ? (double)NAN : compute_in_late_steps(c, i, late));
  return compute_in_late_steps(c, rank, late) - median_of(others, n) >= enough;
}

static enum straggler_reason reason_of(struct reasons *c, u32 rank) {
  double enough = REASON_SHARE * c->a->results->ranks[rank].late_a_step_ms;
  return c->a->results->ranks[rank].longer_compute_steps > 0 ? STRAGGLER_SLOW_COMPUTE
         : exceeds(c, rank, INPUT, enough)                   ? STRAGGLER_SLOW_INPUT
         : exceeds(c, rank, COMPUTE, enough)                 ? STRAGGLER_SLOW_COMPUTE
         : computes_longer_when_late(c, rank, enough)        ? STRAGGLER_SLOW_COMPUTE
         : exceeds(c, rank, COPIES, enough)                  ? STRAGGLER_SLOW_COPIES
         : exceeds(c, rank, IDLE, enough)                    ? STRAGGLER_LATE_LAUNCH
                                                             : STRAGGLER_NOT_SEEN;
}

void straggler_reasons_fill(struct analysis *a) {
  struct results *r = a->results;
  struct reasons c = {.a = a};
  c.steps = arena_array(&c.scratch, a->n_steps, sizeof(double));
  bool any = ANY(r->ranks, r->n_ranks, one, one->straggler);
  for (u32 figure = 0; figure < FIGURES && any; figure++)
    sort_figure(&c, figure);
  for (u32 i = 0; i < r->n_ranks; i++)
    if (r->ranks[i].straggler)
      r->ranks[i].reason = reason_of(&c, i);
  arena_release(&c.scratch);
}

/* Coefficient of variation of compute over ranks, and what the slowest costs beyond the mean. */
void imbalance_fill(struct straggler_test *c) {
  struct analysis *a = c->a;
  struct results *r = a->results;
  double variation = 0, lost = 0;
  u32 steps = 0, varied = 0;
  for (u32 step = 0; step < a->n_steps; step++) {
    double wall = a->whole_run ? NAN : r->step_ms[a->first_step + step];
    u32 n = LIST_KNOWN(c->values, 0, a->model->n_ranks, rank,
                       a->compute_ms[(size_t)rank * a->n_steps + step]);
    if (n < 2 || isnan(wall))
      continue;
    double cv = variation_of(c->values, n), most = *LARGEST(c->values, n, one, true, *one);
    steps++;
    lost += (fmax(most, 0) - mean_of(c->values, n)) / wall;
    if (!isnan(cv)) {
      variation += cv;
      varied++;
    }
  }
  r->imbalance_cv = varied ? variation / varied : NAN;
  r->wall_frac_lost_to_imbalance = steps ? lost / steps : NAN;
}
