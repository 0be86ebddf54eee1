/* SPDX-License-Identifier: MIT
 *
 * Replays samples with other durations. What the recorded dependencies do not explain of a start is
 * kept as a delay. Collective g: S_g = latest start of those it waits for, each member's end = S_g
 * + its own transfer.
 *
 * The unedited replay must give the step back; where it does not, dependencies contradict each
 * other (clocks, missing events) and nothing is promised.
 */
#include "analyses/path/path_replay.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_run.h"
#include "base/checked_memory.h"
#include "base/robust.h"

/* What follows is done for all runs side by side: what is the same in them is found once. */

/* With a number of lanes that the compiler knows, a loop over runs is a few instructions; lanes
 * without a run have what was there before. */
#define FOR_RUNS(lanes, k) for (u32 k = 0; k < (lanes); k++)

/* Of `which`, one bit each, that of the k-th first. */
#define FOR_RUNS_OF(which, k)                                                                      \
  for (u32 left_ = (which), k = 0; left_ && (k = (u32)__builtin_ctz(left_), true);                 \
       left_ &= left_ - 1)

static i64 *starts_of(const struct runs *runs, u32 lanes, u32 n) {
  return &runs->at->times[2 * (size_t)n * lanes];
}

static i64 *ends_of(const struct runs *runs, u32 lanes, u32 n) {
  return starts_of(runs, lanes, n) + lanes;
}

/* Which runs may change how long a node takes, as far as one sees without run_left_of(). */
static u32 who_changes(const struct runs *runs, const struct node *node) {
  u32 which = runs->by_kind[node->kind][node->phase % HOST_KEYS] | runs->by_key[node->key];
  return runs->of_ranks ? which | runs->by_rank[node->rank] : which;
}

/* A node ends so long after `from`, but for what the kind and the name of its work leave of it. */
static void end_by_class(const struct runs *runs, u32 lanes, const struct node *node,
                         const i64 *from, i32 ns, i64 *ends) {
  const double *of_kind = runs->kind_left[node->kind],
               *of_name = &runs->name_left[(size_t)node->key * lanes];
  FOR_RUNS(lanes, k)
    ends[k] = from[k] + (i32)(ns * MIN(of_name[k], of_kind[k]));
}

/* A node ends so long after `from`, but for what a cure leaves of it. */
static void end_after(const struct runs *runs, u32 lanes, u32 n, const i64 *from, i64 ns) {
  const struct node *node = &runs->g->nodes[n];
  i64 *ends = ends_of(runs, lanes, n);
  u32 changes = who_changes(runs, node);
  if (changes && !runs->special && NODE_ON_DEVICE(node->kind) && ns == (i32)ns) {
    end_by_class(runs, lanes, node, from, (i32)ns, ends);
    return;
  }
  FOR_RUNS(lanes, k)
    ends[k] = from[k] + ns;
  FOR_RUNS_OF(changes, k)
    ends[k] += run_edited_time(&runs->each[k], node, ns) - ns;
}

/* On one lane of a device work ends in order, so the last that the sample does not cut says it. */
static void note_device_done(const struct runs *runs, u32 lanes, u32 n) {
  const i64 *ends = ends_of(runs, lanes, n);
  i64 *done = &runs->at->device_done[(size_t)runs->g->nodes[n].rank * lanes];
  FOR_RUNS(lanes, k)
    done[k] = MAX(done[k], ends[k]);
}

/* When the last of the nodes has ended that a node waits for by `deps`, if that is later. */
static void wait_for_deps(const struct runs *runs, u32 lanes, const struct node *node, i64 *now) {
  for (u32 i = node->first_dep; i < node[1].first_dep; i++) {
    const i64 *ends = ends_of(runs, lanes, runs->g->deps[i]);
    FOR_RUNS(lanes, k)
      now[k] = MAX(now[k], ends[k]);
  }
}

/* What was launched can begin so long after its call has begun, but not after that has ended: and
 * then `wait` later. */
static void wait_for_launch(const struct runs *runs, u32 lanes, const struct move *move,
                            const struct node *node, i64 wait, i64 *begins) {
  i64 call = move->call < LONG_CALL ? move->call : called_after(runs->g, node);
  const i64 *starts = starts_of(runs, lanes, node->launch),
            *ends = ends_of(runs, lanes, node->launch);
  FOR_RUNS(lanes, k) {
    i64 then = starts[k] + call;
    if (call > 0) /* else it began with the call, whose end may depend on it */
      then = MIN(then, ends[k]);
    begins[k] = MAX(begins[k], then + wait);
  }
}

/* When the first node of a lane may begin as far as its lane is concerned. What nothing is known of
 * begins when it did. */
static i64 lane_begin(const struct runs *runs, const struct move *move) {
  if (move->waits || move->launched)
    return INT64_MIN;
  return move->gap < HOST_KEYS ? runs->g->slices[runs->g->nodes[move->event].rank].begin : 0;
}

/* What its launch held up begins behind other work as soon as work does. */
static i64 wait_behind_work(const struct replay *r, const struct move *move, i64 wait) {
  return move->gap == HELD_BY_LATENCY ? MIN(r->behind, wait) : wait;
}

/* When all that a node waits for is done, and the time before it is over. */
static void find_starts(const struct runs *runs, u32 lanes, const struct move *move,
                        const struct node *node, i64 *starts) {
  i64 now[MOST_SIDE_BY_SIDE];
  if (move->alone) {
    i64 begin = lane_begin(runs, move);
    FOR_RUNS(lanes, k)
      now[k] = begin;
  } else {
    const i64 *ends = starts - lanes; /* of the node before on its lane */
    FOR_RUNS(lanes, k)
      now[k] = ends[k];
  }
  if (move->waits)
    wait_for_deps(runs, lanes, node, now);
  i64 wait = move->wait, behind = wait_behind_work(runs->each->r, move, wait);
  FOR_RUNS(lanes, k)
    starts[k] = now[k] + behind;
  if (move->launched)
    wait_for_launch(runs, lanes, move, node, wait, starts);
  if (wait == 0)
    return;
  u32 changes = runs->by_gap[move->gap];
  if (runs->of_ranks && move->gap < HOST_KEYS)
    changes |= runs->by_rank[node->rank];
  FOR_RUNS_OF(changes, k) {
    i64 edited = run_edited_wait(&runs->each[k], move);
    starts[k] =
        MAX(starts[k] - wait + edited, now[k] + wait_behind_work(runs->each->r, move, edited));
  }
}

/* What its worker needs for a batch; of a rank whose loader works as fast as others, as long as
 * they do. */
static i64 loading_time(const struct run *run, const struct batch *batch) {
  const struct node *node = &run->r->g->nodes[batch->node];
  double left = run_host_left(run, node->rank, node->phase);
  i64 loads = scaled_time(batch->loads, left),
      of_peers = run->r->batch_of_peers * run->r->g->slices[node->rank].workers;
  return loads > of_peers && run_left_with_rank(run, 1, node->key, batch->node) < 1 ? of_peers
                                                                                    : loads;
}

/* The processes that prepare batches do not work faster because the program does: one begins when
 * it has made the last, and when it is asked for another because one was taken. Without any wait,
 * batches are always ready. */
static i64 batch_end(const struct run *run, u32 n) {
  const struct sample_graph *g = run->r->g;
  const struct batch *batch = &g->batches[g->nodes[n].call];
  i64 *ready = &run->batch_ready[(size_t)g->nodes[n].call * run->apart],
      begin = g->slices[g->nodes[n].rank].begin, start = run_start(run, n);
  if (batch->same != INDEX_NONE)
    begin = run->batch_ready[(size_t)batch->same * run->apart];
  if (batch->asked != INDEX_NONE)
    begin = MAX(begin, run_end(run, g->batches[batch->asked].node));
  *ready = begin + loading_time(run, batch);
  if (run_host_left(run, g->nodes[n].rank, g->nodes[n].phase) == 0)
    return start;
  return MAX(start, *ready) + batch->takes;
}

static void replay_start(struct runs *runs, u32 lanes, const struct move *move) {
  u32 n = move->event;
  const struct node *node = &runs->g->nodes[n];
  i64 *starts = starts_of(runs, lanes, n);
  find_starts(runs, lanes, move, node, starts);
  if (move->plain)
    end_after(runs, lanes, n, starts, node->end - node->start);
  else if (node->is_batch)
    FOR_RUNS(runs->n, k)
      *run_end_at(&runs->each[k], n) = batch_end(&runs->each[k], n);
  if (move->last)
    note_device_done(runs, lanes, n);
}

static void replay_blocked_end(const struct runs *runs, u32 lanes, u32 n) {
  const struct node *node = &runs->g->nodes[n];
  const i64 *starts = starts_of(runs, lanes, n);
  i64 *ends = ends_of(runs, lanes, n);
  FOR_RUNS(lanes, k)
    ends[k] = INT64_MIN;
  wait_for_deps(runs, lanes, node, ends);
  i64 was = latest_end(runs->g, n);
  /* If everything that it waited for had ended before, it took its own time. */
  i64 own = was < node->start ? node->end - node->start : 0;
  i64 more = was >= node->start && node->end > was ? node->end - was : 0;
  FOR_RUNS(lanes, k)
    ends[k] = MAX(starts[k] + own, ends[k] + more);
  FOR_RUNS_OF(who_changes(runs, node), k)
    if (run_left_of(&runs->each[k], node) == 0)
      ends[k] = starts[k];
}

/* When the last member has come that the collective of a node waits for. */
static void last_members(const struct runs *runs, u32 lanes, u32 n, i64 *now) {
  const struct sample_graph *g = runs->g;
  for (u32 i = g->first_joined[n]; i < g->first_joined[n + 1]; i++) {
    const struct collective_join *join = &g->joins[g->joined[i]];
    const i64 *arrived = &runs->at->arrived[(size_t)g->joined[i] * lanes];
    for (u32 k = 0; k < (join->barrier ? 1 : join->n); k++) {
      u32 member = g->members[join->first + k];
      if (!join->barrier && g->nodes[member].start > g->nodes[n].end)
        continue;
      const i64 *came = join->barrier                 ? arrived
                        : comes_by_call(g, n, member) ? ends_of(runs, lanes, member)
                                                      : starts_of(runs, lanes, member);
      FOR_RUNS(lanes, one)
        now[one] = MAX(now[one], came[one]);
    }
  }
}

static void replay_collective_end(const struct runs *runs, u32 lanes, const struct move *move) {
  u32 n = move->event - runs->g->n;
  const i64 *starts = starts_of(runs, lanes, n);
  i64 now[MOST_SIDE_BY_SIDE];
  FOR_RUNS(lanes, k)
    now[k] = starts[k];
  last_members(runs, lanes, n, now);
  end_after(runs, lanes, n, now, move->wait);
  if (move->last)
    note_device_done(runs, lanes, n);
}

/* A rank is done when its host and all of its streams are done, whichever is later: what a cure
 * does not change still takes its time. What the host did after its last node here is host time
 * like any other. */
static i64 rank_end(const struct run *run, u32 rank) {
  const struct sample_graph *g = run->r->g;
  const struct slice *slice = &g->slices[rank];
  i64 end = slice->begin;
  if (slice->last_host != INDEX_NONE) {
    i64 rest = slice->host_end - g->nodes[slice->last_host].end;
    bool changed = slice->on_gpu && rest > 0;
    end = run_end(run, slice->last_host) + (changed ? scaled_time(rest, run->launches_left) : rest);
  }
  end = MAX(end, run->device_done[(size_t)rank * run->apart]);
  if (slice->last_device == INDEX_NONE)
    return slice->last_host == INDEX_NONE ? slice->end : end;
  if (slice->ends_on_gpu || slice->last_host == INDEX_NONE)
    end =
        MAX(end, run_end(run, slice->last_device) + slice->end - g->nodes[slice->last_device].end);
  return end;
}

static void replay_join(const struct runs *runs, u32 lanes, u32 join) {
  const struct sample_graph *g = runs->g;
  i64 *arrived = &runs->at->arrived[(size_t)join * lanes];
  FOR_RUNS(lanes, k)
    arrived[k] = INT64_MIN;
  for (u32 i = 0; i < g->joins[join].n; i++) {
    const i64 *starts = starts_of(runs, lanes, g->members[g->joins[join].first + i]);
    FOR_RUNS(lanes, k)
      arrived[k] = MAX(arrived[k], starts[k]);
  }
  FOR_RUNS(lanes, k)
    arrived[k] += g->joins[join].late;
}

static void replay_events(struct runs *of, u32 lanes) {
  /* A copy that nothing points to: what is in it need not be read again after each time written. */
  struct runs copy = *of, *runs = &copy;
  runs->each = of->at;
  const struct sample_graph graph = *of->g, *g = runs->g = &graph;
  const struct replay *r = runs->at->r;
  FOR_EACH(r->moves, r->n_moves, move) {
    u32 event = move->event, ahead = move[MOVES_AHEAD].event;
    ask_for_node(g, ahead);
    if (ahead < g->n)
      __builtin_prefetch(starts_of(runs, lanes, ahead), 1);
    if (event < g->n)
      replay_start(runs, lanes, move);
    else if (event >= 2 * g->n)
      replay_join(runs, lanes, event - 2 * g->n);
    else if (g->nodes[event - g->n].kind == NODE_COLLECTIVE)
      replay_collective_end(runs, lanes, move);
    else
      replay_blocked_end(runs, lanes, event - g->n);
  }
}

__attribute__((flatten)) static void replay_most(struct runs *runs) {
  replay_events(runs, MOST_SIDE_BY_SIDE);
}

__attribute__((flatten)) static void replay_least(struct runs *runs) {
  replay_events(runs, LEAST_SIDE_BY_SIDE);
}

void run_step_ends(const struct run *run, i64 *ends) {
  const struct replay *r = run->r;
  const struct sample_graph *g = r->g;
  FILL(ends, r->n_steps, INT64_MIN);
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    const struct slice *slice = &g->slices[rank];
    for (u32 i = 0; slice->present && i + 1 < r->n_steps; i++) {
      const struct step_end *last = &slice->last_of_step[i];
      if (last->node != INDEX_NONE)
        ends[i] = MAX(ends[i], run_end(run, last->node + g->base[rank]) + last->rest);
      if (last->other != INDEX_NONE)
        ends[i] = MAX(ends[i], run_end(run, last->other + g->base[rank]));
    }
    if (slice->present)
      ends[r->n_steps - 1] = MAX(ends[r->n_steps - 1], rank_end(run, rank));
  }
}

static size_t times_of(const struct sample_graph *g) {
  return 2 * (size_t)g->n + g->n_joins + g->n_ranks + g->n_batches;
}

/* A processor reads lines of memory, and the times of one node are to be in one. */
#define TIMES_OF_A_LINE (64 / sizeof(i64))

static i64 *first_of_line(i64 *times) {
  size_t beyond = (uintptr_t)times / sizeof(i64) % TIMES_OF_A_LINE;
  return beyond ? times + TIMES_OF_A_LINE - beyond : times;
}

/* Room for the times of the largest graph, which the others fit into: new memory costs as much as a
 * replay, and so does clearing it. */
static void make_room(struct runs *runs, const struct replay *r, size_t lanes) {
  const struct sample_graph *g = r->g;
  const struct graph *graph = r->a->graph;
  size_t nodes = 2 * (size_t)g->n * lanes, joins = g->n_joins * lanes,
         batches = g->n_batches * lanes;
  if (times_of(g) * lanes > runs->room) {
    free(runs->times);
    runs->room =
        MOST_OF(size_t, graph->joined, graph->n_samples, one, times_of(one) * side_by_side(one));
    runs->times = memory_zeroed(size_sum(runs->room, TIMES_OF_A_LINE), sizeof(i64));
  }
  FREE_EACH(runs, by_key, by_rank, name_left);
  runs->name_left = memory_array(size_product(size_sum(g->n_keys, 1), lanes), sizeof(double));
  runs->by_key = memory_array(size_sum(g->n_keys, 1), 1);
  runs->by_rank = memory_array(size_sum(g->n_ranks, 1), 1);
  runs->g = g;
  runs->apart = (u32)lanes;
  for (u32 i = 0; i < lanes; i++) {
    i64 *times = first_of_line(runs->times) + i, *arrived = times + nodes, *ready = arrived + joins;
    runs->at[i] = (struct run){.times = times,
                               .arrived = arrived,
                               .batch_ready = ready,
                               .device_done = ready + batches,
                               .name_left = runs->name_left + i,
                               .apart = (u32)lanes};
  }
}

/* Where dependencies contradict each other, events come before some that they wait for, and find
 * these where they were: not where another run left them. */
static void begin_as_recorded(struct runs *runs) {
  const struct sample_graph *g = runs->g;
  FOR_EACH_CHANGED(runs->at, runs->apart, run) {
    for (u32 n = 0; n < g->n; n++) {
      *run_start_at(run, n) = g->nodes[n].start;
      *run_end_at(run, n) = g->nodes[n].end;
    }
    for (u32 i = 0; i < g->n_joins; i++) {
      i64 *arrived = &run->arrived[(size_t)i * run->apart];
      *arrived = INT64_MIN;
      for (u32 m = 0; m < g->joins[i].n; m++)
        *arrived = MAX(*arrived, g->nodes[g->members[g->joins[i].first + m]].start);
    }
    for (u32 i = 0; i < g->n_batches; i++)
      run->batch_ready[(size_t)i * run->apart] = g->batches[i].ready;
  }
}

void runs_cure(struct runs *runs, u32 n, const struct replay *r, const struct cure *cures) {
  u32 lanes = n <= LEAST_SIDE_BY_SIDE ? LEAST_SIDE_BY_SIDE : side_by_side(r->g);
  if (runs->g != r->g || runs->apart != lanes)
    make_room(runs, r, lanes);
  runs->n = n;
  if (r->contradictions)
    begin_as_recorded(runs);
  FILL(runs->at->device_done, r->g->n_ranks * runs->apart, INT64_MIN);
  FILL(runs->name_left, r->g->n_keys * runs->apart, 1);
  for (u32 kind = 0; kind <= NODE_COLLECTIVE; kind++)
    for (u32 k = 0; k < MOST_SIDE_BY_SIDE; k++)
      runs->kind_left[kind][k] = 1;
  memset(runs->by_kind, 0, sizeof(runs->by_kind));
  memset(runs->by_key, 0, r->g->n_keys);
  memset(runs->by_rank, 0, r->g->n_ranks);
  memset(runs->by_gap, 0, sizeof(runs->by_gap));
  runs->of_ranks = runs->special = false;
  for (u32 i = 0; i < n; i++) {
    run_prepare(&runs->at[i], r, &cures[i]);
    runs_note_changes(runs, i);
  }
  (runs->apart == MOST_SIDE_BY_SIDE ? replay_most : replay_least)(runs);
  for (u32 i = 0; i < n; i++) {
    FREE_EACH(&runs->at[i], uneven, by_place, own_factor, own_late_in);
    free((void *)(uintptr_t)runs->at[i].ranks);
  }
}

void runs_free(struct runs *runs) {
  FREE_EACH(runs, times, by_key, by_rank, name_left);
}

/* The loaders of the faster half of the ranks have a batch so often, if all of their workers are at
 * work. */
static i64 find_batch_of_peers(const struct replay *r) {
  const struct sample_graph *g = r->g;
  SCOPED double *sums = memory_zeroed(size_sum(g->n_ranks, 1), sizeof(double));
  SCOPED double *numbers = memory_zeroed(size_sum(g->n_ranks, 1), sizeof(double));
  FOR_EACH(g->batches, g->n_batches, batch) {
    u32 rank = g->nodes[batch->node].rank;
    sums[rank] += (double)batch->loads / g->slices[rank].workers;
    numbers[rank]++;
  }
  u32 n = LIST_KNOWN(sums, 0, g->n_ranks, rank, sums[rank] / numbers[rank]);
  return (i64)lower_median(sums, n);
}

void replay_new(const struct analysis *a, u32 sample, const struct sample_graph *g,
                struct runs *runs, struct sample_outcome *out, struct replay **replay) {
  struct replay *r = *replay = memory_zeroed(1, sizeof(*r));
  const struct cure none = {0};
  *r = (struct replay){.a = a, .g = g, .n_steps = a->graph->samples[sample].n, .exposed = -1};
  r->batch_of_peers = find_batch_of_peers(r);
  r->step_ends = memory_zeroed(size_sum(r->n_steps, 1), sizeof(i64));
  replay_plan(r);
  peers_compare(&r->peers, g, a, &a->graph->samples[sample]);
  runs_cure(runs, 1, r, &none);
  run_step_ends(runs->at, r->step_ends);
  out->replayed = r->step_ends[r->n_steps - 1] - g->begin;
  out->measured = g->end - g->begin;
  out->contradictions = r->contradictions;
  out->on_gpus = r->on_gpus;
  out->not_launched = r->not_launched;
}

void replay_free(struct replay *r) {
  if (!r)
    return;
  FREE_EACH(r, moves, step_ends);
  peers_free(&r->peers);
  free(r);
}
