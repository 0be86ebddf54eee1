/* SPDX-License-Identifier: MIT */
#include "import/tscope/gpu_runs/pair_runs.h"

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/gpu_runs/pairing.h"

/* What one kernel of a replay was for: a call, or those of a group on one communicator. */
struct replay_unit {
  u32 first, n; /* in replays.calls */
  u32 part, group, comm;
  u32 run; /* INDEX_NONE */
  u8 op;   /* as kernels are called; 0 when it mixes several */
};

/* A replay on either side: as it was launched, with its units; as it ran, with its runs. */
struct replay_side {
  i64 start;
  u32 first, n;  /* in replays.units or replays.runs */
  u32 gpu_graph; /* 0: unknown */
  u32 correlation;
  u32 session; /* stretch of time with the GPU clock source open */
};

struct replays {
  struct rank_events *events;
  bool *run_taken;
  u32 *calls; /* replayed ones, by replay, captured graph and order */
  u32 *runs;  /* of graphs, by replay and start */
  u32 n_calls, n_runs;
  VECTOR(struct replay_unit) units;
  VECTOR(struct replay_side) launched, ran;
};

/* Parts are numbered replay by replay. */
ORDER_INDICES_BY(by_part, struct rank_call, UP(part) UP(start))

static void list_units(struct replays *r) {
  const struct rank_events *events = r->events;
  for (u32 i = 0; i < r->n_calls; i++) {
    const struct rank_call *call = &events->calls.at[r->calls[i]];
    const struct rank_part *part = &events->parts.at[call->part];
    u8 op = kernel_op(call->op);
    struct replay_unit *last = r->units.n ? &r->units.at[r->units.n - 1] : NULL;
    bool fresh =
        i == 0 || events->parts.at[events->calls.at[r->calls[i - 1]].part].replay != part->replay;
    if (!fresh && last->part == call->part && call->group && last->group == call->group &&
        last->comm == call->comm) {
      last->n++;
      last->op = last->op == op ? op : 0;
      continue;
    }
    if (fresh) {
      VECTOR_PUSH(
          &r->launched,
          (struct replay_side){.start = part->start,
                               .first = r->units.n,
                               .gpu_graph = part->gpu_graph == TSCOPE_UNKNOWN ? 0 : part->gpu_graph,
                               .session = rank_cupti_session(events, part->start, false)});
    }
    VECTOR_PUSH(
        &r->units,
        (struct replay_unit){
            .first = i, .n = 1, .run = INDEX_NONE, .op = op, SAME(call, part, group, comm)});
    r->launched.at[r->launched.n - 1].n++;
  }
}

ORDER_INDICES_BY(by_replay_and_start, struct rank_run, UP(correlation) UP(start))
ORDER_INDICES_BY(by_node, struct rank_run, UP(node))

static void list_replays_run(struct replays *r) {
  const struct rank_events *events = r->events;
  for (u32 i = 0; i < r->n_runs; i++) {
    const struct rank_run *run = &events->runs.at[r->runs[i]];
    struct replay_side *last = r->ran.n ? &r->ran.at[r->ran.n - 1] : NULL;
    if (last && last->correlation == run->correlation)
      last->n++;
    else
      VECTOR_PUSH(&r->ran,
                  (struct replay_side){.start = run->start,
                                       .first = i,
                                       .n = 1,
                                       .gpu_graph = run->graph,
                                       .correlation = run->correlation,
                                       .session = rank_cupti_session(events, run->start, true)});
  }
}

/* Which kernel of a replay was which call. */

static void set_run(struct replays *r, struct replay_unit *unit, u32 run, bool known) {
  for (u32 i = unit->first; i < unit->first + unit->n; i++)
    r->events->calls.at[r->calls[i]].run = run;
  r->events->replayed_known += known ? unit->n : 0;
  r->run_taken[run] = true;
  unit->run = run;
}

static bool ops_match(u8 a, u8 b) {
  return a == b || a == 0 || b == 0;
}

/* Units of one captured graph beside runs of nodes of one graph, both in the order of capture. */
static bool unit_runs_match(const struct replays *r, const struct replay_unit *units, u32 n_units,
                            const u32 *runs, u32 n_runs) {
  bool fit = n_units == n_runs;
  for (u32 i = 0; i < n_units && fit; i++)
    fit = ops_match(units[i].op, r->events->runs.at[runs[i]].op) &&
          (i == 0 || r->events->runs.at[runs[i - 1]].node != r->events->runs.at[runs[i]].node);
  return fit;
}

static u32 count_units_of_part(const struct replay_unit *units, u32 n) {
  return ROW_OF_EQUALS(units, n, first, one, first->part == one->part);
}

static u32 runs_of_graph(const struct replays *r, const u32 *runs, u32 n) {
  const struct rank_run *all = r->events->runs.at;
  return ROW_OF_EQUALS(runs, n, first, one, all[*first].node >> 32 == all[*one].node >> 32);
}

/* The runs of the only graph that a part fits; NULL if there is none, or more than one. */
static const u32 *find_only_match(const struct replays *r, const struct replay_unit *units,
                                  u32 n_units, const u32 *runs, u32 n_runs) {
  const u32 *found = NULL;
  for (u32 first = 0, n; first < n_runs; first += n) {
    n = runs_of_graph(r, runs + first, n_runs - first);
    if (!unit_runs_match(r, units, n_units, runs + first, n))
      continue;
    if (found)
      return NULL;
    found = runs + first;
  }
  return found;
}

/* Whether other parts would fit the same runs. */
static bool is_only_part(const struct replays *r, const struct replay_unit *units, u32 n,
                         const u32 *runs, u32 n_runs) {
  u32 parts = 0;
  for (u32 first = 0, same; first < n; first += same) {
    same = count_units_of_part(units + first, n - first);
    parts += unit_runs_match(r, units + first, same, runs, n_runs);
  }
  return parts == 1;
}

/* By nodes, where the source reported them. `runs` is sorted by that. */
static void pair_by_nodes(struct replays *r, struct replay_unit *units, u32 n_units, u32 *runs,
                          u32 n_runs) {
  SORT_INDICES(runs, n_runs, r->events->runs.at, by_node);
  if (r->events->runs.at[runs[0]].node == 0)
    return;
  for (u32 first = 0, n; first < n_units; first += n) {
    n = count_units_of_part(units + first, n_units - first);
    const u32 *fit = find_only_match(r, units + first, n, runs, n_runs);
    if (fit && is_only_part(r, units, n_units, fit, n))
      for (u32 i = 0; i < n; i++)
        set_run(r, &units[first + i], fit[i], true);
  }
}

/* The next run that is not used yet, of a kind or, with 0, of any. */
static u32 next_run(const struct replays *r, const u32 *runs, u32 n, u8 op, u32 at) {
  while (at < n && (r->run_taken[runs[at]] || (op && r->events->runs.at[runs[at]].op != op)))
    at++;
  return at;
}

/* Pairs what is left by order of time, for each kind of kernel with as many runs as units. If units
 * mix kinds, no kind is left by itself. */
static void pair_by_order(struct replays *r, struct replay_unit *units, u32 n_units, u32 *runs,
                          u32 n_runs) {
  u32 called[256] = {0}, ran[256] = {0}, next[256] = {0}, left = 0, left_ran = 0;
  SORT_INDICES(runs, n_runs, r->events->runs.at, by_replay_and_start);
  FOR_EACH(units, n_units, item)
    if (item->run == INDEX_NONE)
      called[item->op]++, left++;
  FOR_EACH(runs, n_runs, one)
    if (!r->run_taken[*one])
      ran[r->events->runs.at[*one].op]++, left_ran++;
  bool mixed = called[0] || ran[0];
  if (!left || (mixed && left != left_ran))
    return;
  FOR_EACH_CHANGED(units, n_units, unit) {
    u8 op = mixed ? 0 : unit->op;
    if (unit->run != INDEX_NONE || (!mixed && called[op] != ran[op]))
      continue;
    next[op] = next_run(r, runs, n_runs, op, next[op]);
    set_run(r, unit, runs[next[op]], false);
  }
}

/* The graphs of a side, sorted, in `out` of n. */
static void list_graphs(const struct replay_side *sides, u32 n, u32 *out) {
  for (u32 i = 0; i < n; i++)
    out[i] = sides[i].gpu_graph;
  SORT(out, n, by_u32);
}

/* Only graphs that both sides name distinguish replays: those that one side alone names count as
 * unknown.
 */
static void clear_unshared_graphs(struct replay_side *sides, u32 n, const u32 *others,
                                  u32 n_others) {
  FOR_EACH_CHANGED(sides, n, each)
    if (!FIND_SORTED(others, n_others, &each->gpu_graph, by_u32))
      each->gpu_graph = 0;
}

static void match_graphs(struct replays *r) {
  SCOPED u32 *launched = memory_array(r->launched.n, sizeof(*launched));
  SCOPED u32 *ran = memory_array(r->ran.n, sizeof(*ran));
  list_graphs(r->launched.at, r->launched.n, launched);
  list_graphs(r->ran.at, r->ran.n, ran);
  clear_unshared_graphs(r->launched.at, r->launched.n, ran, r->ran.n);
  clear_unshared_graphs(r->ran.at, r->ran.n, launched, r->launched.n);
}

ORDER_BY(by_start, struct replay_side, UP(start))

static void pair_replay(void *user, u32 launch, u32 run) {
  struct replays *r = user;
  const struct replay_side *by = &r->launched.at[launch], *as = &r->ran.at[run];
  pair_by_nodes(r, &r->units.at[by->first], by->n, &r->runs[as->first], as->n);
  pair_by_order(r, &r->units.at[by->first], by->n, &r->runs[as->first], as->n);
}

static void pair_sides(struct replays *r) {
  struct pairable all = {0};
  for (u32 i = 0; i < r->launched.n; i++) {
    const struct replay_side *side = &r->launched.at[i];
    VECTOR_PUSH(&all.causes, (struct ordered){side->start, side->gpu_graph, side->session, i});
  }
  for (u32 i = 0; i < r->ran.n; i++) {
    const struct replay_side *side = &r->ran.at[i];
    VECTOR_PUSH(&all.effects, (struct ordered){side->start, side->gpu_graph, side->session, i});
  }
  pair_sessions(&all, r->events->end_lost, pair_replay, r);
  pairable_free(&all);
}

static void list_all(struct replays *r) {
  const struct rank_events *events = r->events;
  r->calls = memory_array(size_sum(events->calls.n, 1), sizeof(u32));
  r->runs = memory_array(size_sum(events->runs.n, 1), sizeof(u32));
  const struct rank_call *calls = events->calls.at;
  r->n_calls = LIST_WHERE(r->calls, 0, events->calls.n, i,
                          calls[i].replayed && launches_kernel(events, &calls[i]), i);
  r->n_runs =
      LIST_WHERE(r->runs, 0, events->runs.n, i, events->runs.at[i].graph && !r->run_taken[i], i);
  if (r->n_calls == 0 || r->n_runs == 0)
    return;
  SORT_INDICES(r->calls, r->n_calls, events->calls.at, by_part);
  SORT_INDICES(r->runs, r->n_runs, events->runs.at, by_replay_and_start);
  list_units(r);
  list_replays_run(r);
}

void pair_replays(struct rank_events *events, bool *run_taken) {
  struct replays r = {.events = events, .run_taken = run_taken};
  list_all(&r);
  if (r.ran.n) {
    match_graphs(&r);
    SORT(r.launched.at, r.launched.n, by_start);
    pair_sides(&r);
  }
  FREE_EACH(&r, calls, runs, units.at, launched.at, ran.at);
}
