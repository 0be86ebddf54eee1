/* SPDX-License-Identifier: MIT */

#include "import/tscope/gpu_runs/pair_runs.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/events/named_calls.h"
#include "import/tscope/events/read_events.h"
#include "import/tscope/gpu_runs/pairing.h"
#include "kernels/communication.h"

/* A wait for a gloo transfer that takes longer was blocked. */
#define TRANSFER_WAIT 20000

static struct named_calls index_calls(const struct rank_events *events) {
  bool wanted = ANY(events->runs.at, events->runs.n, one, names_a_call(one->comm, one->seq)) ||
                ANY(events->waits.at, events->waits.n, one, names_a_call(one->comm, one->seq)) ||
                ANY(events->insides.at, events->insides.n, one, names_a_call(one->comm, one->seq));
  return wanted ? named_calls_make(events) : (struct named_calls){0};
}

/* `p2p` says which numbering to try first: names do not distinguish an all-to-all from sends. */
static u32 find_call(const struct named_calls *index, u32 comm, u32 seq, bool p2p) {
  u32 call = named_calls_find(index, comm, seq, p2p);
  return call != INDEX_NONE ? call : named_calls_find(index, comm, seq, !p2p);
}

static u32 find_waited_call(const struct named_calls *index, const struct rank_wait *wait) {
  return named_calls_find(index, wait->comm, number_waited_for(wait->seq),
                          waits_for_message(wait->seq));
}

/* A run named after a call of a group is that of all the group's calls on its communicator and
 * stream, which lie close to each other. */
static void set_run_of_group(struct rank_events *events, u32 call, u32 run) {
  const struct rank_call *named = &events->calls.at[call];
  events->calls.at[call].run = run;
  for (u32 i = call + 1; named->group && i < events->calls.n; i++) {
    struct rank_call *other = &events->calls.at[i];
    if (other->thread == named->thread && other->group != named->group)
      return;
    if (other->group == named->group && other->comm == named->comm &&
        other->stream == named->stream && other->run == INDEX_NONE && !other->failed)
      other->run = run;
  }
}

/* Runs and waits that say which collective they belong to. */
static void pair_named(struct rank_events *events, bool *run_taken) {
  struct named_calls index = index_calls(events);
  for (u32 i = 0; i < events->runs.n; i++) {
    const struct rank_run *run = &events->runs.at[i];
    u32 call = find_call(&index, run->comm, run->seq, run->op == TSCOPE_OP_SEND);
    run_taken[i] = call != INDEX_NONE;
    if (call == INDEX_NONE)
      continue;
    set_run_of_group(events, call, i);
    if (events->runs.at[i].stream == TSCOPE_NO_STREAM) /* NCCL's own record does not say */
      events->runs.at[i].stream = events->calls.at[call].stream;
  }
  FOR_EACH_CHANGED(events->insides.at, events->insides.n, inside)
    inside->call = find_call(&index, inside->comm, inside->seq, op_is_message(inside->op));
  FOR_EACH_CHANGED(events->waits.at, events->waits.n, wait)
    wait->call = find_waited_call(&index, wait);
  free(index.at);
}

/* One launch: a call outside any group, or all of a group's calls on one communicator and stream,
 * which NCCL launches together when the outermost group ends. */
struct unit {
  i64 launched;
  u32 first_call, last_call; /* its calls are among these: same group, communicator and stream */
  u32 group, comm;
  u32 session; /* period in which the GPU clock source was open */
  u16 stream;
  u8 op; /* 0 when it mixes several */
};

typedef VECTOR(struct unit) unit_list;

ORDER_BY(by_group, struct rank_group, UP(group))

/* Sets calls.launched to the end of their group, and calls.failed where that launched nothing. */
static void find_launches(struct rank_events *events) {
  u32 n = events->groups.n;
  if (n == 0)
    return;
  SCOPED struct rank_group *groups = memory_array(n, sizeof(*groups));
  memcpy(groups, events->groups.at, n * sizeof(*groups));
  SORT(groups, n, by_group);
  FOR_EACH_CHANGED(events->calls.at, events->calls.n, call) {
    struct rank_group wanted = {.group = call->group};
    struct rank_group *group = call->group ? FIND_SORTED(groups, n, &wanted, by_group) : NULL;
    if (group && group->start > call->launched)
      call->launched = group->start;
    if (group && group->failed)
      call->failed = true;
  }
}

bool launches_kernel(const struct rank_events *events, const struct rank_call *call) {
  return call->run == INDEX_NONE && rank_call_is_on_gpu(events, call);
}

#define GROUP_REACH 64u /* units of one group lie close to each other */

static struct unit *unit_of(unit_list *units, const struct rank_call *call) {
  if (call->group == 0)
    return NULL;
  for (u32 back = 1; back <= units->n && back <= GROUP_REACH; back++) {
    struct unit *unit = &units->at[units->n - back];
    if (unit->group == call->group && unit->comm == call->comm && unit->stream == call->stream)
      return unit;
  }
  return NULL;
}

static void make_units(struct rank_events *events, unit_list *units) {
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    bool here = launches_kernel(events, call) && !(call->replayed && events->names_gpu_graphs);
    u32 session = here ? rank_cupti_session(events, call->launched, false) : INDEX_NONE;
    if (session == INDEX_NONE)
      continue;
    struct unit *unit = unit_of(units, call);
    if (unit) {
      unit->last_call = i;
      unit->op = unit->op == kernel_op(call->op) ? unit->op : 0;
    } else
      VECTOR_PUSH(units, (struct unit){.first_call = i,
                                       .last_call = i,
                                       .session = session,
                                       .op = kernel_op(call->op),
                                       SAME(call, launched, group, comm, stream)});
  }
}

static void set_run_of_unit(struct rank_events *events, const struct unit *unit, u32 run) {
  for (u32 i = unit->first_call; i <= unit->last_call; i++) {
    struct rank_call *call = &events->calls.at[i];
    if (call->group == unit->group && call->comm == unit->comm && call->stream == unit->stream &&
        launches_kernel(events, call))
      call->run = run;
  }
}

ORDER_BY(by_ordered_time, struct unit, UP(launched))

/* What pairing the units of streams needs. */
struct pairing {
  struct rank_events *events;
  const unit_list *units;
  bool *run_taken;
  u32 *sessions; /* [runs] of events.runs */
  struct pairable of_stream;
};

static void pair_unit(void *user, u32 unit, u32 run) {
  struct pairing *p = user;
  set_run_of_unit(p->events, &p->units->at[unit], run);
  p->run_taken[run] = true;
}

/* Pairs the launch units of one stream with the runs seen on it. */
static void pair_stream(struct pairing *p, u16 stream) {
  struct pairable *all = &p->of_stream;
  all->causes.n = all->effects.n = 0;
  for (u32 i = 0; i < p->units->n; i++) {
    const struct unit *unit = &p->units->at[i];
    if (unit->stream == stream)
      VECTOR_PUSH(&all->causes, (struct ordered){unit->launched, unit->op, unit->session, i});
  }
  for (u32 i = 0; i < p->events->runs.n; i++) {
    const struct rank_run *run = &p->events->runs.at[i];
    if (run->stream == stream && !run->graph && !p->run_taken[i])
      VECTOR_PUSH(&all->effects, (struct ordered){run->start, run->op, p->sessions[i], i});
  }
  pair_sessions(all, p->events->end_lost, pair_unit, p);
}

static void pair_streams(struct rank_events *events, const unit_list *units, bool *run_taken) {
  u32 n = units->n, m = events->runs.n;
  u32 streams = MOST_OF(u32, units->at, n, one, one->stream + 1u);
  struct pairing p = {.events = events,
                      .units = units,
                      .run_taken = run_taken,
                      .sessions = memory_array(m, sizeof(u32))};
  SCOPED bool *done = memory_zeroed(streams, 1);
  for (u32 i = 0; i < m; i++)
    p.sessions[i] = rank_cupti_session(events, events->runs.at[i].start, true);
  FOR_EACH(units->at, n, unit) {
    u16 stream = unit->stream;
    if (!done[stream])
      pair_stream(&p, stream);
    done[stream] = true;
  }
  pairable_free(&p.of_stream);
  free(p.sessions);
}

static bool is_transfer_on_host(const struct rank_call *call) {
  return op_is_message(call->op) && call->stream == TSCOPE_NO_STREAM && !call->replayed &&
         !call->failed && call->run == INDEX_NONE && call->end != NS_UNKNOWN;
}

void add_transfer_run(struct rank_events *events, u32 call, const struct rank_wait *wait) {
  struct rank_call *of = &events->calls.at[call];
  if (!is_transfer_on_host(of))
    return;
  struct interval run = {of->start, of->end};
  bool blocked = wait && wait->end - wait->start >= TRANSFER_WAIT;
  if (of->op == TSCOPE_OP_RECV || (blocked && wait->start - of->end > TRANSFER_WAIT))
    run.start = wait->start;
  if (of->op == TSCOPE_OP_RECV || blocked)
    run.end = wait->end;
  of->run = events->runs.n;
  VECTOR_PUSH(&events->runs, ((struct rank_run){.start = run.start,
                                                .end = run.end,
                                                .comm = TSCOPE_UNKNOWN,
                                                .seq = TSCOPE_UNKNOWN,
                                                .first_call = call,
                                                .thread = of->thread,
                                                .stream = TSCOPE_NO_STREAM,
                                                .op = of->op}));
}

void add_transfer_runs(struct rank_events *events) {
  SCOPED bool *pending = memory_zeroed(size_sum(events->calls.n, 1), 1);
  FOR_EACH(events->waits.at, events->waits.n, wait) {
    if (wait->call == INDEX_NONE)
      continue;
    if (wait->end == NS_UNKNOWN)
      pending[wait->call] = true;
    else
      add_transfer_run(events, wait->call, wait);
  }
  for (u32 i = 0; i < events->calls.n; i++)
    if (events->calls.at[i].op == TSCOPE_OP_SEND && !pending[i])
      add_transfer_run(events, i, NULL);
}

void pair_runs(struct rank_events *events) {
  runs_from_copies(events);
  u32 n_recorded = events->runs.n;
  unit_list units = {0};
  SCOPED bool *run_taken = memory_zeroed(size_sum(events->runs.n, 1), 1);
  find_launches(events);
  pair_named(events, run_taken);
  pair_replays(events, run_taken);
  make_units(events, &units);
  SORT(units.at, units.n, by_ordered_time);
  pair_streams(events, &units, run_taken);

  add_transfer_runs(events);
  for (u32 i = events->calls.n; i-- > 0;) {
    u32 run = events->calls.at[i].run;
    bool idle = run == INDEX_NONE && rank_call_is_idle(events, &events->calls.at[i]);
    events->idle_calls += idle;
    events->unpaired_calls += run == INDEX_NONE && !idle;
    events->replayed_runs += run != INDEX_NONE && events->calls.at[i].replayed;
    if (run != INDEX_NONE)
      events->runs.at[run].first_call = i;
  }
  FOR_EACH(run_taken, n_recorded, one)
    events->unpaired_runs += !*one;
  free(units.at);
}
