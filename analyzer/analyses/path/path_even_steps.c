/* SPDX-License-Identifier: MIT
 *
 * Ranks that are equally fast, but have more work than others now in one step and now in another,
 * or now before one collective of a step and now before another: sequences of other lengths,
 * another rank that logs, experts that are in demand. Compared with what a rank does in the mean
 * step, its share of what lies between two collectives would be that of all ranks together. What is
 * taken away from some the others get instead: they may have more to do than those keep.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_run.h"
#include "base/by_key.h"
#include "base/checked_memory.h"
#include "base/sorting.h"

struct spread {
  struct even_steps *e;
  const struct sample_graph *g;
  u32 steps, rows;
  const double *of_key; /* [key * n_ranks + rank] in the whole sample */
  u32 *first, *end;     /* [n_ranks] its rows: some ranks lack steps */
  struct by_key by_row; /* nodes */
  /* Of one row: [n_keys] of all ranks; [group * n_ranks + rank] what each does, and its share. */
  double *total, *work, *share;
  VECTOR(u32) touched; /* keys in that row */
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
    for (u32 n = s->g->base[rank], step = 0; n < s->g->base[rank + 1]; n++) {
      step = FIRST_NOT_NEAR(step, 0, s->steps - 1, i, ends[i] < s->g->nodes[n].end);
      s->e->step_of_node[n] = (u8)step;
    }
  }
}

/* A collective at which all members wait for each other, as one rank came to it. */
struct gathering {
  i64 called, began; /* by the host, and on the device: what lies before it there */
  u32 node, key;
};

ORDER_BY(by_call, struct gathering, UP(called) UP(node))

struct gatherings {
  struct gathering *at;
  u32 n;
};

static bool is_gathering(const struct sample_graph *g, u32 n) {
  return g->nodes[n].kind == NODE_COLLECTIVE &&
         ANY_NUMBER(g->first_joined[n], g->first_joined[n + 1], i,
                    g->joins[g->joined[i]].barrier && g->joins[g->joined[i]].n > 1);
}

/* In the order in which the program called them, which is the same on all ranks; on the device one
 * may overtake another. */
static void list_gatherings(const struct sample_graph *g, u32 rank, struct gatherings *of) {
  of->n = 0;
  for (u32 n = g->base[rank]; n < g->base[rank + 1]; n++) {
    const struct node *node = &g->nodes[n];
    if (!is_gathering(g, n))
      continue;
    of->at[of->n++] = (struct gathering){node_called_at(g, node), node->start, n, node->key};
  }
  SORT(of->at, of->n, by_call);
  for (u32 i = 1; i < of->n; i++)
    of->at[i].began = MAX(of->at[i].began, of->at[i - 1].began);
}

static bool gather_alike(const struct gatherings *a, const struct gatherings *b) {
  return a->n == b->n && !ANY_NUMBER(0, a->n, i, a->at[i].key != b->at[i].key);
}

/* Only one that the rank waits for before it calls the next parts its work: what is done while
 * several are under way makes up for each other until then. */
static void note_awaited(const struct sample_graph *g, u32 rank, const struct gatherings *of,
                         u32 *place_of, bool *awaited) {
  for (u32 n = g->base[rank]; n < g->base[rank + 1]; n++)
    place_of[n] = INDEX_NONE;
  for (u32 i = 0; i < of->n; i++)
    place_of[of->at[i].node] = i;
  for (u32 n = g->base[rank]; n < g->base[rank + 1]; n++) {
    const struct node *node = &g->nodes[n];
    bool device = NODE_ON_DEVICE(node->kind), after = device && !node->alone && n > 0;
    for (u32 i = node->first_dep; i < node[1].first_dep + after; i++) {
      u32 place = place_of[i < node[1].first_dep ? g->deps[i] : n - 1];
      if (place == INDEX_NONE || node->kind == NODE_COLLECTIVE)
        continue;
      const struct gathering *next = place + 1 < of->n ? &of->at[place + 1] : NULL;
      awaited[place] |= !next || node->start < (device ? next->began : next->called);
    }
  }
}

static void put_into_rows(struct spread *s, u32 rank, const struct gatherings *of) {
  for (u32 n = s->g->base[rank], row = 0; n < s->g->base[rank + 1]; n++) {
    const struct node *node = &s->g->nodes[n];
    row = NODE_ON_DEVICE(node->kind)
              ? FIRST_NOT_NEAR(row, 0, of->n, i, of->at[i].began < node->end)
              : FIRST_NOT_NEAR(row, 0, of->n, i, of->at[i].called < node->start);
    s->e->row_of_node[n] = row;
  }
}

/* False if the ranks do not all call the same. */
static bool find_rows_by_collectives(struct spread *s) {
  const struct sample_graph *g = s->g;
  u32 most = MOST_OF(u32, g->base, g->n_ranks, first, first[1] - *first); /* nodes of a rank */
  SCOPED struct gatherings first = {memory_array(most, sizeof(*first.at)), 0};
  SCOPED struct gatherings of = {memory_array(most, sizeof(*of.at)), 0};
  SCOPED bool *awaited = memory_zeroed(most, sizeof(*awaited));
  u32 ranks = 0;
  bool alike = true;
  for (u32 rank = 0; rank < g->n_ranks && alike; rank++) {
    if (!g->slices[rank].present)
      continue;
    struct gatherings *now = ranks++ ? &of : &first;
    list_gatherings(g, rank, now);
    alike = gather_alike(&first, now);
    note_awaited(g, rank, now, s->e->row_of_node, awaited);
  }
  s->rows = 1;
  for (u32 rank = 0; rank < g->n_ranks && alike; rank++) {
    if (!g->slices[rank].present)
      continue;
    list_gatherings(g, rank, &of);
    of.n = LIST_WHERE(of.at, 0, of.n, i, awaited[i], of.at[i]);
    s->rows = of.n + 1;
    put_into_rows(s, rank, &of);
  }
  return s->rows > 1;
}

/* The batches of some ranks run out before those of others. */
static bool makes_step(const struct spread *s, u32 rank, u32 step) {
  const struct step_end *last = &s->g->slices[rank].last_of_step[step];
  return last->node != INDEX_NONE || last->other != INDEX_NONE;
}

/* A row is what lies between two collectives; a step, where ranks call different ones or none, or
 * make fewer steps than others. */
static void find_rows(struct spread *s) {
  bool all = !ANY_NUMBER(0, s->g->n_ranks, rank,
                         s->g->slices[rank].present && !makes_step(s, rank, s->steps - 1));
  if (all && find_rows_by_collectives(s))
    return;
  s->rows = s->steps;
  for (u32 n = 0; n < s->g->n; n++)
    s->e->row_of_node[n] = s->e->step_of_node[n];
}

/* A host that runs ahead of its device is in another step than this: its steps are not told
 * apart. */
static bool ends_on_device(const struct sample_graph *g, const struct node *node, u32 step) {
  const struct step_end *last = &g->slices[node->rank].last_of_step[step];
  return last->node != INDEX_NONE &&
         NODE_ON_DEVICE(g->nodes[g->base[node->rank] + last->node].kind);
}

/* Whether what a node stands for is known to belong to its row. */
static bool is_of_row(const struct spread *s, u32 n) {
  const struct node *node = &s->g->nodes[n];
  if (!makes_step(s, node->rank, s->e->step_of_node[n]))
    return false;
  return NODE_ON_DEVICE(node->kind) || !s->g->slices[node->rank].on_gpu ||
         !ends_on_device(s->g, node, s->e->step_of_node[n]);
}

/* And in which rows each rank has any. */
static void list_nodes_by_row(struct spread *s) {
  s->by_row = LISTED_BY_KEY(s->rows, 0, s->g->n, n, true, s->e->row_of_node[n]);
  for (u32 n = 0; n < s->g->n; n++) {
    u32 row = s->e->row_of_node[n], rank = s->g->nodes[n].rank;
    if (!makes_step(s, rank, s->e->step_of_node[n]))
      continue;
    s->first[rank] = s->end[rank] ? MIN(s->first[rank], row) : row;
    s->end[rank] = MAX(s->end[rank], row + 1);
  }
}

static void add_work(struct spread *s, u32 rank, u32 key, i64 ns) {
  s->work[(size_t)s->e->group_of_key[key] * s->g->n_ranks + rank] += (double)ns;
  if (s->total[key] == 0)
    VECTOR_PUSH(&s->touched, key);
  s->total[key] += (double)ns;
}

static void sum_work_of_row(struct spread *s, u32 row) {
  memset(s->work, 0, (size_t)WORK_GROUPS * s->g->n_ranks * sizeof(double));
  for (u32 i = s->by_row.begin[row]; i < s->by_row.begin[row + 1]; i++) {
    const struct node *node = &s->g->nodes[s->by_row.at[i]];
    if (!is_of_row(s, s->by_row.at[i]))
      continue;
    if (node->kind != NODE_BLOCKED && node->kind != NODE_COLLECTIVE && node->end > node->start)
      add_work(s, node->rank, node->key, node->end - node->start);
    i64 gap = NODE_ON_DEVICE(node->kind) ? 0 : gap_ns(s->g, s->by_row.at[i]);
    if (gap > 0)
      add_work(s, node->rank, phase_of_gap(node), gap);
  }
}

/* A rank's share of what all ranks do of a key in a row is that which it has of it in all. */
static void find_shares_of_row(struct spread *s, u32 row) {
  u32 n_ranks = s->g->n_ranks;
  memset(s->share, 0, (size_t)WORK_GROUPS * n_ranks * sizeof(double));
  FOR_EACH(s->touched.at, s->touched.n, key) {
    const double *of_ranks = &s->of_key[(size_t)*key * n_ranks];
    double *share = &s->share[(size_t)s->e->group_of_key[*key] * n_ranks], all = 0;
    for (u32 rank = 0; rank < n_ranks; rank++)
      all += row >= s->first[rank] && row < s->end[rank] ? of_ranks[rank] : 0;
    for (u32 rank = 0; rank < n_ranks && all > 0; rank++)
      share[rank] += s->total[*key] * of_ranks[rank] / all;
    s->total[*key] = 0;
  }
  s->touched.n = 0;
}

/* What a rank has more of a group than its share, or less. Nothing is known from less time in which
 * it may have waited, nor of what it would do where it does nothing. */
static double beyond_share(const struct spread *s, size_t at, u32 group) {
  double beyond = s->work[at] - s->share[at];
  return beyond < 0 && (s->e->may_be_waiting[group] || !(s->work[at] > 0)) ? 0 : beyond;
}

/* Of what a rank has more in a group, only as much goes as it has more in all; and it gets only as
 * much as it has less in all. */
static void even_rank(const struct spread *s, u32 rank, float *left) {
  double more = 0, less = 0;
  for (u32 group = 0; group < WORK_GROUPS; group++) {
    double beyond = beyond_share(s, (size_t)group * s->g->n_ranks + rank, group);
    more += fmax(0, beyond);
    less += fmax(0, -beyond);
  }
  double most = fmax(more, less), changes = most > 0 ? fabs(more - less) / most : 0;
  for (u32 group = 0; group < WORK_GROUPS; group++) {
    size_t at = (size_t)group * s->g->n_ranks + rank;
    double beyond = beyond_share(s, at, group);
    left[at] = beyond != 0 && (beyond > 0) == (more > less)
                   ? (float)(1 - changes * beyond / s->work[at])
                   : 1;
  }
}

static void find_groups(struct even_steps *e, const struct sample_graph *g) {
  e->group_of_key = memory_array(size_sum(g->n_keys, 1), 1);
  for (u32 key = 0; key < g->n_keys; key++) {
    enum work_class class = work_class_of(g, key);
    e->group_of_key[key] = (u8)(key < HOST_KEYS ? key : HOST_KEYS + class);
    e->may_be_waiting[e->group_of_key[key]] = class == CLASS_OPEN;
  }
}

void even_steps_new(struct even_steps *e, const struct sample_graph *g, u32 steps,
                    const double *of_key) {
  *e = (struct even_steps){0};
  if (steps < 2)
    return;
  struct spread s = {.e = e, .g = g, .steps = steps, .of_key = of_key};
  e->step_of_node = memory_zeroed(size_sum(g->n, 1), 1);
  find_steps_of_nodes(&s);
  if (g->n_ranks < 2) /* there is nobody to share with */
    return;
  e->row_of_node = memory_zeroed(size_sum(g->n, 1), sizeof(*e->row_of_node));
  find_groups(e, g);
  find_rows(&s);
  size_t of_row = size_product(WORK_GROUPS, g->n_ranks), all = size_product(of_row, s.rows);
  s.work = memory_array(size_sum(of_row, 1), sizeof(double));
  s.share = memory_array(size_sum(of_row, 1), sizeof(double));
  s.total = memory_zeroed(size_sum(g->n_keys, 1), sizeof(double));
  e->left = memory_array(size_sum(all, 1), sizeof(*e->left));
  s.first = memory_zeroed(size_sum(g->n_ranks, 1), sizeof(u32));
  s.end = memory_zeroed(size_sum(g->n_ranks, 1), sizeof(u32));
  list_nodes_by_row(&s);
  for (u32 row = 0; row < s.rows; row++) {
    sum_work_of_row(&s, row);
    find_shares_of_row(&s, row);
    for (u32 rank = 0; rank < g->n_ranks; rank++)
      even_rank(&s, rank, &e->left[row * of_row]);
  }
  FREE_EACH(&s, work, share, total, first, end, by_row.begin, by_row.at, touched.at);
}

void even_steps_free(struct even_steps *e) {
  FREE_EACH(e, step_of_node, row_of_node, group_of_key, left);
}
