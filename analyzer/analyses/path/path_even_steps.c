/* SPDX-License-Identifier: MIT
 *
 * Ranks that are equally fast, but have more work than others now in one step and now in another:
 * sequences of other lengths, another rank that logs. Compared with what a rank does in the mean
 * step, its share of a step's work would be that of all ranks together. Work is only ever taken
 * away: what the others would get instead they can do while they wait.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/path/path_peers.h"
#include "base/sorting.h"

struct spread {
  struct even_steps *e;
  const struct sample_graph *g;
  u32 steps;
  double *work;               /* [(step * WORK_GROUPS + group) * n_ranks + rank] ns */
  double *usual;              /* [group * n_ranks + rank] in the mean step */
  double factor[WORK_GROUPS]; /* by which all ranks together have more than usual, in one step */
};

/* Where the steps of a slice end. A step that ends with nothing of the rank ends with the one
 * before. */
static void list_step_ends(const struct sample_graph *g, u32 rank, u32 steps, i64 *ends) {
  const struct slice *slice = &g->slices[rank];
  for (u32 i = 0; i < steps; i++) {
    const struct step_end *last = &slice->last_of_step[i];
    ends[i] = i ? ends[i - 1] : slice->begin;
    if (last->node != INDEX_NONE)
      ends[i] = g->nodes[g->base[rank] + last->node].end + last->rest;
  }
}

static void find_steps_of_nodes(struct spread *s) {
  SCOPED i64 *ends = memory_array(size_sum(s->steps, 1), sizeof(*ends));
  for (u32 rank = 0; rank < s->g->n_ranks; rank++) {
    if (!s->g->slices[rank].present)
      continue;
    list_step_ends(s->g, rank, s->steps, ends);
    for (u32 n = s->g->base[rank]; n < s->g->base[rank + 1]; n++)
      s->e->step_of_node[n] = (u8)FIRST_NOT(0, s->steps - 1, i, ends[i] < s->g->nodes[n].end);
  }
}

static double *work_at(const struct spread *s, u32 n, u32 key) {
  size_t row = (size_t)s->e->step_of_node[n] * WORK_GROUPS + s->e->group_of_key[key];
  return &s->work[row * s->g->n_ranks + s->g->nodes[n].rank];
}

/* A host that runs ahead of its device is in another step than this: its steps are not told
 * apart. */
static bool ends_on_device(const struct sample_graph *g, const struct node *node, u32 step) {
  const struct step_end *last = &g->slices[node->rank].last_of_step[step];
  return last->node != INDEX_NONE &&
         NODE_ON_DEVICE(g->nodes[g->base[node->rank] + last->node].kind);
}

static void sum_work_of_steps(struct spread *s) {
  for (u32 n = 0; n < s->g->n; n++) {
    const struct node *node = &s->g->nodes[n];
    bool device = NODE_ON_DEVICE(node->kind);
    if (!device && s->g->slices[node->rank].on_gpu &&
        ends_on_device(s->g, node, s->e->step_of_node[n]))
      continue;
    if (node->kind != NODE_BLOCKED && node->kind != NODE_COLLECTIVE)
      *work_at(s, n, node->key) += (double)(node->end - node->start);
    if (!device)
      *work_at(s, n, phase_of_gap(node)) += (double)gap_ns(s->g, n);
  }
}

static void find_usual_work(struct spread *s) {
  size_t of_step = (size_t)WORK_GROUPS * s->g->n_ranks;
  for (size_t i = 0; i < of_step; i++) {
    for (u32 step = 0; step < s->steps; step++)
      s->usual[i] += s->work[step * of_step + i];
    s->usual[i] /= s->steps;
  }
}

static void find_factors_of_step(struct spread *s, const double *work) {
  for (u32 group = 0; group < WORK_GROUPS; group++) {
    double now = 0, usual = 0;
    for (u32 rank = 0; rank < s->g->n_ranks; rank++) {
      now += work[(size_t)group * s->g->n_ranks + rank];
      usual += s->usual[(size_t)group * s->g->n_ranks + rank];
    }
    s->factor[group] = usual > 0 ? now / usual : 1;
  }
}

/* Of what a rank has more in a group, only as much goes as it has more in all. Nothing is known
 * from less time in which it may have waited. */
static void even_rank(struct spread *s, const double *work, u32 rank, float *left) {
  double net = 0, more = 0;
  for (u32 group = 0; group < WORK_GROUPS; group++) {
    size_t at = (size_t)group * s->g->n_ranks + rank;
    double beyond = work[at] - s->usual[at] * s->factor[group];
    net += s->e->may_be_waiting[group] ? fmax(0, beyond) : beyond;
    more += fmax(0, beyond);
  }
  double goes = more > 0 ? fmax(0, net) / more : 0;
  for (u32 group = 0; group < WORK_GROUPS; group++) {
    size_t at = (size_t)group * s->g->n_ranks + rank;
    double beyond = work[at] - s->usual[at] * s->factor[group];
    left[at] = beyond > 0 ? (float)(1 - goes * beyond / work[at]) : 1;
  }
}

void even_steps_new(struct even_steps *e, const struct sample_graph *g, u32 steps) {
  *e = (struct even_steps){0};
  if (steps < 2)
    return;
  size_t of_step = size_product(WORK_GROUPS, g->n_ranks), all = size_product(of_step, steps);
  struct spread s = {.e = e,
                     .g = g,
                     .steps = steps,
                     .work = memory_zeroed(size_sum(all, 1), sizeof(double)),
                     .usual = memory_zeroed(size_sum(of_step, 1), sizeof(double))};
  e->step_of_node = memory_zeroed(size_sum(g->n, 1), 1);
  e->group_of_key = memory_array(size_sum(g->n_keys, 1), 1);
  e->left = memory_array(size_sum(all, 1), sizeof(*e->left));
  for (u32 key = 0; key < g->n_keys; key++) {
    enum work_class class = work_class_of(g, key);
    e->group_of_key[key] = (u8)(key < HOST_KEYS ? key : HOST_KEYS + class);
    e->may_be_waiting[e->group_of_key[key]] = class == CLASS_OPEN;
  }
  find_steps_of_nodes(&s);
  sum_work_of_steps(&s);
  find_usual_work(&s);
  for (u32 step = 0; step < steps; step++) {
    find_factors_of_step(&s, &s.work[step * of_step]);
    for (u32 rank = 0; rank < g->n_ranks; rank++)
      even_rank(&s, &s.work[step * of_step], rank, &e->left[step * of_step]);
  }
  FREE_EACH(&s, work, usual);
}

void even_steps_free(struct even_steps *e) {
  FREE_EACH(e, step_of_node, group_of_key, left);
}
