/* SPDX-License-Identifier: MIT
 *
 * What cures save. No cure is replayed twice, and none saves more than leaves time for the work
 * that it does not change.
 */
#include "analyses/path/path_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_run.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"

static bool same_ranks(const bool *x, const bool *y, u32 n_ranks) {
  return x == y || (x && y && memcmp(x, y, n_ranks * sizeof(bool)) == 0);
}

static bool same_change(const struct cure_change *x, const struct cure_change *y, u32 n_ranks) {
  return x->kind == y->kind && x->which == y->which && x->of == y->of && x->left == y->left &&
         x->left_of == y->left_of && x->both_ways == y->both_ways && x->since == y->since &&
         same_ranks(x->ranks, y->ranks, n_ranks) && same_ranks(x->from, y->from, n_ranks) &&
         same_ranks(x->to, y->to, n_ranks);
}

static bool same_cure(const struct cure *x, const struct cure *y, u32 n_ranks) {
  return x->n == y->n &&
         !ANY_NUMBER(0, x->n, i, !same_change(&x->changes[i], &y->changes[i], n_ranks));
}

struct cure cure_by(const struct analysis *a, struct cure_change change) {
  return (struct cure){arena_elements(a->arena, &change, 1, sizeof(change)), 1};
}

bool cure_has(const struct analysis *a, const struct cure *cure, const struct cure_change *change) {
  return ANY(cure->changes, cure->n, one, same_change(one, change, a->model->n_ranks));
}

static const struct asked *asked_before(const struct analysis *a, const struct cure *cure,
                                        bool exposed) {
  const struct graph *graph = a->graph;
  return FIND(graph->asked.at, graph->asked.n, one,
              same_cure(&one->cure, cure, a->model->n_ranks) &&
                  (!exposed || !isnan(one->saving.hidden_ms)));
}

static void remember(const struct analysis *a, const struct cure *cure, struct saving saving) {
  struct cure_change *changes = memory_array(cure->n, sizeof(*changes));
  for (u32 i = 0; i < cure->n; i++)
    changes[i] = cure->changes[i];
  VECTOR_PUSH(&a->graph->asked, ((struct asked){{changes, cure->n}, saving}));
}

/* How much of a rank's compute a change leaves, and of its copies. */
struct left {
  double compute, copies;
};

static struct left left_by(const struct cure_change *change, u32 rank, bool on_gpu) {
  const struct left all = {1, 1}, none = {0, 0};
  switch (change->kind) {
  case CHANGE_COMMUNICATION:
  case CHANGE_TRANSFERS:
  case CHANGE_INPUT:
  case CHANGE_LINE:
  case CHANGE_ASLEEP:
    return all;
  case CHANGE_GPU_AWAY:
  case CHANGE_LAUNCHES:
  case CHANGE_OUTSIDE:
    return on_gpu ? all : none;
  case CHANGE_COPIES:
  case CHANGE_FILLS:
    return (struct left){1, change->left};
  case CHANGE_COMPUTE:
    return on_gpu ? (struct left){change->left, 1} : none;
  case CHANGE_NAME:
    return change->of == NODE_COLLECTIVE || (on_gpu && !NODE_ON_DEVICE(change->of)) ? all : none;
  case CHANGE_RANKS:
    return change->ranks[rank] ? none : all;
  case CHANGE_EVERY_RANK: /* of which least_ms() knows more */
    return all;
  case CHANGE_PHASE:
  case CHANGE_LONG_STEPS:
    break;
  }
  return none;
}

/* Compute of a rank, ns a step, less what may run side by side with the rest of it when nothing
 * waits any more. */
static double least_compute(const struct analysis *a, u32 rank) {
  const struct rank_summary *sum = &a->ranks[rank];
  double beside = sum->on_gpu ? a->graph->beside[rank] : 0;
  return (1 - beside) * (double)sum->compute / sum->steps;
}

/* The least time that a step takes: compute and copies that the cure leaves. Work of two streams
 * that only met in a replay would not run as fast, unless such work is seen to run side by side;
 * and the steps that are replayed may be shorter than the others. Where every rank gets as fast as
 * the median, none is faster than the fastest. */
static double least_ms(const struct analysis *a, const struct cure *cure) {
  bool every = ANY(cure->changes, cure->n, one, one->kind == CHANGE_EVERY_RANK);
  double most = 0, fastest = INFINITY;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    struct left left = {1, 1};
    if (!rank->steps || !rank->has_compute)
      continue;
    FOR_EACH(cure->changes, cure->n, change) {
      struct left one = left_by(change, i, rank->on_gpu);
      left = (struct left){left.compute * one.compute, left.copies * one.copies};
    }
    double compute = left.compute * least_compute(a, i) / 1e6;
    most = fmax(most, compute + left.copies * ns_to_ms(rank->exposed_memcpy) / rank->steps);
    if (left.compute > 0)
      fastest = fmin(fastest, compute);
  }
  return !every ? most : isinf(fastest) ? 0 : fastest;
}

static bool is_among(const struct analysis *a, const struct cure *cures, u32 n,
                     const struct cure *cure) {
  return ANY(cures, n, one, same_cure(one, cure, a->model->n_ranks));
}

void replay_savings(const struct analysis *a, const struct cure *cures, u32 n, bool exposed,
                    struct saving *savings) {
  bool replays = a->graph && a->graph->replays && !a->results->what_if_reason;
  double now_ms = analysis_length_ms(a);
  u32 n_unknown = 0;
  SCOPED struct cure *unknown = memory_array(n, sizeof(*unknown));
  SCOPED struct saving *found = memory_array(n, sizeof(*found));
  for (u32 i = 0; i < n && replays; i++)
    if (cures[i].n && !asked_before(a, &cures[i], exposed) &&
        !is_among(a, unknown, n_unknown, &cures[i]))
      unknown[n_unknown++] = cures[i];
  if (n_unknown && !a->graph->beside)
    graph_find_beside(a);
  if (n_unknown)
    replay_ask(a, unknown, n_unknown, exposed ? ASKED_WITH_EXPOSED : ASKED_OF_ALL, found);
  for (u32 i = 0; i < n_unknown; i++) {
    double most_ms = isnan(found[i].ms) ? NAN : fmax(0, now_ms - least_ms(a, &unknown[i]));
    found[i].error_ms *= found[i].ms > most_ms ? most_ms / found[i].ms : 1;
    found[i].ms = fmin(found[i].ms, most_ms);
    found[i].low_ms = fmin(found[i].low_ms, most_ms);
    found[i].high_ms = fmin(found[i].high_ms, most_ms);
    found[i].hidden_ms = exposed ? found[i].hidden_ms : NAN;
    remember(a, &unknown[i], found[i]);
  }
  for (u32 i = 0; i < n; i++) {
    const struct asked *asked = replays && cures[i].n ? asked_before(a, &cures[i], exposed) : NULL;
    double nothing = replays && !cures[i].n ? 0 : NAN;
    savings[i] = asked ? asked->saving
                       : (struct saving){nothing, nothing, nothing, 0, exposed ? nothing : NAN};
  }
}

bool saving_pays(const struct saving *saving, double step_ms) {
  return saving->ms >= fmax(REPLAY_TOLERANCE * step_ms, saving->error_ms);
}

void replay_many_savings(const struct analysis *a, const struct cure *cures, u32 n, double visits,
                         struct saving *savings) {
  double nodes =
      TOTAL(double, a->graph->replays, a->graph->n_samples, one, *one ? (*one)->g->n : 0);
  if (nodes * n <= visits)
    replay_savings(a, cures, n, false, savings);
  else if (n)
    replay_ask(a, cures, n, ASKED_OF_FIRST, savings);
}
