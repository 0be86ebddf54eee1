/* SPDX-License-Identifier: MIT
 *
 * What a cure leaves: of how long each node of a sample takes, and of the time before it.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/path/path_run.h"
#include "base/checked_memory.h"
#include "model/phase_times.h"

/* What is left of work of a key, or of the time before it, if its rank is as fast as others. */
static double as_others(const struct run *run, u32 key, u32 n) {
  const struct sample_graph *g = run->r->g;
  u32 rank = g->nodes[n].rank;
  const struct places *places = run->by_place ? &run->by_place[rank] : NULL;
  u32 place =
      places && places->n && key < HOST_KEYS ? places->of_node[n - g->base[rank]] : NO_PLACE;
  if (place != NO_PLACE)
    return places->left[key * places->n + place];
  bool uneven = run->uneven && key == g->nodes[n].key && run->uneven[n] >= 0;
  return uneven ? run->uneven[n] : run->factor[(size_t)key * g->n_ranks + rank];
}

/* How much of its time work of a node, or before it, keeps because its rank works as fast as
 * others, and in each step has no more of it. A loader prepares batches in one step and the program
 * waits for them in another: in which the rank is late says nothing of which it was slow with. */
static double rank_factor(const struct run *run, u32 key, u32 n) {
  const struct sample_graph *g = run->r->g;
  u32 rank = g->nodes[n].rank;
  if (run->ranks && !run->ranks[rank])
    return 1;
  bool late = g->nodes[n].is_batch || peers_late_in(&run->r->peers, run->late_in, n, rank);
  if (!run->even && !late)
    return 1;
  double left = as_others(run, key, n);
  return run->even ? left * even_steps_left(&run->r->peers.even, g, n, key) : left;
}

double run_left_with_rank(const struct run *run, double left, u32 key, u32 n) {
  return run->factor ? left * rank_factor(run, key, n) : left;
}

static bool is_outside(u8 phase) {
  return phase == 0 || phase == TSCOPE_PHASE_USER;
}

/* Whether a change is about the host's own time in a phase, 0 for none. */
static bool is_host_time(const struct cure_change *change, bool on_gpu, u8 phase) {
  switch (change->kind) {
  case CHANGE_INPUT:
    return phase == TSCOPE_PHASE_DATA;
  case CHANGE_OUTSIDE:
    return is_outside(phase);
  case CHANGE_LAUNCHES:
    return on_gpu && phase != TSCOPE_PHASE_DATA && phase != PHASE_CAPTURING;
  case CHANGE_COMPUTE:
    return !on_gpu && phase_computes(phase);
  case CHANGE_PHASE:
    return phase == change->which;
  default:
    return false;
  }
}

/* Whether work on the device was launched in a phase. */
static bool launched_in(const struct sample_graph *g, const struct node *node, u32 phase) {
  return node->launch != INDEX_NONE && g->nodes[node->launch].phase == phase;
}

static bool is_between(const struct cure_change *change, u32 sender, u32 receiver) {
  return (change->from[sender] && change->to[receiver]) ||
         (change->both_ways && change->from[receiver] && change->to[sender]);
}

static bool is_transfer_of(const struct run *run, const struct node *node,
                           const struct cure_change *change) {
  const struct model *model = run->r->a->model;
  u32 of = node->arrival == INDEX_NONE ? INDEX_NONE : model->arrivals[node->arrival].collective;
  const struct collective *met = of == INDEX_NONE ? NULL : &model->collectives[of];
  if (!met || met->comm != change->which || met->op != change->of)
    return false;
  const struct arrival *pair = members_of(model, met);
  return !change->from || (met->n_arrivals == 2 && is_between(change, pair[0].rank, pair[1].rank));
}

/* Whether a change is about all work of a kind on devices. */
static bool is_kind(const struct cure_change *change, u8 kind) {
  switch (change->kind) {
  case CHANGE_COMMUNICATION:
    return kind == NODE_COLLECTIVE;
  case CHANGE_COPIES:
    return kind == NODE_MEMCPY || kind == NODE_MEMSET;
  case CHANGE_FILLS:
    return kind == NODE_MEMSET;
  case CHANGE_COMPUTE:
    return kind == NODE_KERNEL;
  default:
    return false;
  }
}

/* Changes that depend on more of a node than its kind and phase. */
static bool is_special(const struct run *run, const struct node *node,
                       const struct cure_change *change) {
  switch (change->kind) {
  case CHANGE_LINE:
    return node->kind == NODE_BLOCKED && node->line == change->which;
  case CHANGE_TRANSFERS:
    return node->kind == NODE_COLLECTIVE && is_transfer_of(run, node, change);
  case CHANGE_PHASE:
    return NODE_ON_DEVICE(node->kind) && node->kind != NODE_COLLECTIVE &&
           launched_in(run->r->g, node, change->which);
  default:
    return false;
  }
}

/* What is left by kind and phase, once for all nodes. */
static void prepare_shares(struct run *run) {
  for (u32 kind = 0; kind <= NODE_COLLECTIVE; kind++)
    run->kind_left[kind] = 1;
  for (u32 phase = 0; phase < HOST_KEYS; phase++)
    run->host_left[0][phase] = run->host_left[1][phase] = 1;
  FOR_EACH(run->cure->changes, run->cure->n, change) {
    if (change->kind == CHANGE_ASLEEP)
      run->awake = change->left_of;
    run->special |= change->kind == CHANGE_LINE || change->kind == CHANGE_TRANSFERS ||
                    change->kind == CHANGE_PHASE;
    for (u8 kind = 0; kind <= NODE_COLLECTIVE; kind++)
      if (is_kind(change, kind))
        run->kind_left[kind] = fmin(run->kind_left[kind], change->left);
    for (u32 gpu = 0; gpu < 2; gpu++)
      for (u8 phase = 0; phase < HOST_KEYS; phase++)
        if (is_host_time(change, gpu, phase))
          run->host_left[gpu][phase] = fmin(run->host_left[gpu][phase], change->left);
  }
}

double run_host_left(const struct run *run, u32 rank, u8 phase) {
  if (phase >= HOST_KEYS)
    return 1;
  double left = run->host_left[run->r->g->slices[rank].on_gpu][phase];
  return run->awake && is_outside(phase) ? fmin(left, run->awake[rank]) : left;
}

static bool is_host_work(u32 kind) {
  return kind == NODE_HOST || kind == NODE_LAUNCH;
}

/* Of what is left by kind, phase and name: what changes leave that depend on more. Few do, and the
 * others shall not save registers for it. */
__attribute__((noinline)) static double left_by_more(const struct run *run, const struct node *node,
                                                     double left) {
  for (u32 i = 0; run->special && i < run->cure->n; i++)
    if (is_special(run, node, &run->cure->changes[i]))
      left = fmin(left, run->cure->changes[i].left);
  if (node->kind == NODE_BLOCKED || node->kind == NODE_COLLECTIVE)
    return left;
  return run_left_with_rank(run, left, node->key, (u32)(node - run->r->g->nodes));
}

/* A call by which the host communicates itself is no work of the program's outside the phases. */
static bool host_communicates(const struct run *run, const struct node *node) {
  return node->kind == NODE_LAUNCH && is_outside(node->phase) &&
         !run->r->g->slices[node->rank].on_gpu;
}

double run_left_of(const struct run *run, const struct node *node) {
  double left = !is_host_work(node->kind)      ? run->kind_left[node->kind]
                : host_communicates(run, node) ? 1
                                               : run_host_left(run, node->rank, node->phase);
  double of_name = run->name_left[(size_t)node->key * run->apart];
  left = MIN(of_name, left);
  return run->special || run->factor ? left_by_more(run, node, left) : left;
}

/* Host time before a node: its phase's. */
static i64 edited_gap(const struct run *run, u32 n, i64 gap) {
  const struct node *node = &run->r->g->nodes[n];
  u8 phase = phase_of_gap(node);
  return scaled_time(gap, run_left_with_rank(run, run_host_left(run, node->rank, phase), phase, n));
}

i64 run_edited_time(const struct run *run, const struct node *node, i64 ns) {
  return scaled_time(ns, run_left_of(run, node));
}

i64 run_edited_wait(const struct run *run, const struct move *move) {
  if (move->gap < HOST_KEYS)
    return edited_gap(run, move->event, move->wait);
  return scaled_time(move->wait,
                     move->gap == HELD_BY_LATENCY ? run->launches_left : run->away_left);
}

/* Which ranks work as fast as which others. */
static void prepare_ranks(struct run *run) {
  const struct replay *r = run->r;
  u32 n_ranks = r->g->n_ranks;
  bool *together = NULL;
  SCOPED u32 *since = NULL;
  FOR_EACH(run->cure->changes, run->cure->n, change) {
    if (change->kind == CHANGE_LAUNCHES)
      run->launches_left = fmin(run->launches_left, change->left);
    if (change->kind == CHANGE_GPU_AWAY)
      run->away_left = fmin(run->away_left, change->left);
    if (change->kind == CHANGE_EVERY_RANK) {
      free(together);
      run->factor = r->peers.as_median;
      run->even = true;
      return;
    }
    if (change->kind != CHANGE_RANKS)
      continue;
    if (!together) {
      together = memory_zeroed(size_sum(n_ranks, 1), sizeof(bool));
      since = memory_zeroed(size_sum(n_ranks, 1), sizeof(u32));
    }
    for (u32 rank = 0; rank < n_ranks; rank++)
      if (change->ranks[rank]) {
        since[rank] = together[rank] ? MIN(since[rank], change->since) : change->since;
        together[rank] = true;
      }
  }
  u32 n = NUMBER_OF(together, together ? n_ranks : 0, one, *one);
  bool changed = ANY(since, n ? n_ranks : 0, one, *one > r->peers.sample.first);
  if (changed)
    run->late_in = run->own_late_in = peers_late_since(&r->peers, n_ranks, since);
  if (n > 1 || (n == 1 && (changed || !r->peers.alike || !r->peers.call_alike)))
    run->factor = run->own_factor = peers_compare_group(&r->peers, r->g, together, run->late_in);
  else if (n == 1)
    run->factor = r->peers.as_peers;
  if (n) {
    run->uneven = peers_uneven(&r->peers, r->g, together, run->late_in, run->factor);
    run->by_place = peers_by_place(&r->peers, r->g, together, run->late_in, run->factor);
  }
  run->ranks = together;
}

/* Work of one key has one name. */
static void prepare_names(struct run *run) {
  const struct sample_graph *g = run->r->g;
  FOR_EACH(run->cure->changes, run->cure->n, change)
    for (u32 key = 0; change->kind == CHANGE_NAME && key < g->n_keys; key++) {
      double *left = &run->name_left[(size_t)key * run->apart];
      u32 one = g->node_of_key[key];
      if (one != INDEX_NONE && g->nodes[one].label == change->which &&
          g->nodes[one].kind == change->of)
        *left = fmin(*left, (float)change->left);
    }
}

void run_prepare(struct run *run, const struct replay *r, const struct cure *cure) {
  *run = (struct run){.r = r,
                      .cure = cure,
                      .late_in = r->peers.late_in,
                      .launches_left = 1,
                      .away_left = 1,
                      SAME(run, times, arrived, batch_ready, device_done, name_left, apart)};
  prepare_shares(run);
  prepare_ranks(run);
  prepare_names(run);
}

/* Whether a run may change the host's time in a phase, but for what it does to ranks. */
static bool changes_host(const struct run *run, u8 phase) {
  return run->host_left[0][phase] < 1 || run->host_left[1][phase] < 1 ||
         (run->awake && is_outside(phase));
}

void runs_note_changes(struct runs *runs, u32 k) {
  const struct run *run = &runs->at[k];
  const struct sample_graph *g = runs->g;
  u8 bit = (u8)(1u << k);
  for (u8 phase = 0; phase < HOST_KEYS; phase++) {
    bool of_host = changes_host(run, phase);
    runs->by_gap[phase] |= of_host ? bit : 0;
    for (u32 kind = 0; kind <= NODE_COLLECTIVE; kind++)
      if (run->special || run->kind_left[kind] < 1 || (of_host && is_host_work(kind)))
        runs->by_kind[kind][phase] |= bit;
  }
  for (u32 key = 0; key < g->n_keys; key++)
    runs->by_key[key] |= run->name_left[(size_t)key * run->apart] < 1 ? bit : 0;
  for (u32 kind = 0; kind <= NODE_COLLECTIVE; kind++)
    runs->kind_left[kind][k] = run->kind_left[kind];
  runs->special |= run->special || run->factor;
  for (u32 rank = 0; run->factor && rank < g->n_ranks; rank++)
    runs->by_rank[rank] |= !run->ranks || run->ranks[rank] ? bit : 0;
  runs->of_ranks |= run->factor != NULL;
  runs->by_gap[HELD_BY_LATENCY] |= run->launches_left < 1 ? bit : 0;
  runs->by_gap[HELD_BY_GPU_AWAY] |= run->away_left < 1 ? bit : 0;
}
