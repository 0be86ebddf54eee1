/* SPDX-License-Identifier: MIT
 *
 * What the model keeps of a trace for the whole analysis: steps, phases, collectives.
 *
 * A collective's kernel is the effect of a launch (by correlation id), and the launch was made
 * inside ranges that say which collective it was: record_param_comms with its arguments, or
 * nccl:all_reduce and the like. Newer traces repeat the arguments on the kernel itself. Calls that
 * are coalesced, such as those of batch_isend_irecv(), have one kernel, launched after their
 * ranges.
 */

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/sorting.h"
#include "format/dtypes.h"
#include "import/kineto/kineto.h"
#include "join/launch_rounds.h"

#define BUSY_BEFORE_NS                                                                             \
  1000000        /* launched work that begins later waited for something on the device */
#define NEAR 64u /* ranges that enclose a launch are among this many before it */

ORDER_BY(by_number, struct kineto_correlation, UP(number) UP(item))

kineto_calls kineto_calls_index(const struct kineto_trace *trace) {
  kineto_calls calls = {0};
  for (u32 i = 0; i < trace->items.n; i++)
    if (trace->items.at[i].kind == KINETO_ITEM_CALL && trace->items.at[i].correlation)
      VECTOR_PUSH(&calls, (struct kineto_correlation){trace->items.at[i].correlation, i});
  SORT(calls.at, calls.n, by_number);
  return calls;
}

u32 kineto_call_of(const kineto_calls *calls, u32 correlation) {
  if (correlation == 0)
    return INDEX_NONE;
  u32 found = SORTED_INDEX(calls->n, i, calls->at[i].number, correlation);
  return found == INDEX_NONE ? INDEX_NONE : calls->at[found].item;
}

struct building {
  const struct kineto_trace *trace;
  struct rank_events *events;
  kineto_calls calls;
  VECTOR(u32) ranges;  /* items that say which collective is called, in order of start */
  bool *explained;     /* [ranges.n] a kernel came of it */
  VECTOR(u32) streams; /* lanes of collectives whose group has no name, in order of first use */
  u32 world_size;      /* 0 if not known */
};

bool kineto_is_run(const struct kineto_trace *trace, const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_COLLECTIVE ||
         (item->kind == KINETO_ITEM_RANGE && kineto_item_name(trace, item)->comm_worker);
}

bool kineto_is_comm_call(const struct kineto_trace *trace, const struct kineto_item *item) {
  if (item->kind == KINETO_ITEM_COMMS)
    return item->what != INDEX_NONE;
  const struct kineto_name *name = kineto_item_name(trace, item);
  return item->kind == KINETO_ITEM_RANGE && name->comm_range && !name->comm_worker && name->op;
}

/* What a record says of a collective; NULL where nothing. */
static const struct kineto_comm_facts *facts_of(const struct building *b,
                                                const struct kineto_item *item) {
  return item->what == INDEX_NONE ? NULL : &b->trace->comms.at[item->what];
}

static void list_ranges(struct building *b) {
  for (u32 i = 0; i < b->trace->items.n; i++)
    if (kineto_is_comm_call(b->trace, &b->trace->items.at[i]))
      VECTOR_PUSH(&b->ranges, i);
  b->explained = memory_zeroed(b->ranges.n, sizeof(*b->explained));
}

/* Ranges around an instant of a lane: the outermost, and facts of the inner ones if the outer has
 * none. */
struct around {
  const struct kineto_item *outer;
  const struct kineto_comm_facts *facts;
  u8 op;
};

static struct around find_around(struct building *b, u16 lane, i64 at) {
  const struct kineto_trace *trace = b->trace;
  struct around found = {0};
  u32 first = FIRST_NOT(0, b->ranges.n, i, trace->items.at[b->ranges.at[i]].start <= at);
  for (u32 back = 0; back < NEAR && first > 0; back++) {
    const struct kineto_item *item = &trace->items.at[b->ranges.at[--first]];
    if (item->lane != lane || item->end < at)
      continue;
    b->explained[first] = true;
    found.outer = item;
    if (item->what != INDEX_NONE)
      found.facts = facts_of(b, item);
    else if (!found.op)
      found.op = kineto_item_name(trace, item)->op;
  }
  return found;
}

/* Communicator number of a named group, or of the stream that unnamed ones run on. The number is
 * the definition's index. */
static u32 comm_of(struct building *b, const struct kineto_comm_facts *facts, u16 lane) {
  if (facts && facts->group != INDEX_NONE)
    return facts->group;
  u32 known = INDEX_OF(b->streams.at, b->streams.n, one, *one == lane);
  if (known == INDEX_NONE)
    VECTOR_PUSH(&b->streams, lane);
  return b->trace->groups.n + (known == INDEX_NONE ? b->streams.n - 1 : known);
}

/* The count as NCCL's own calls mean it: one rank's part of a gathered or scattered array. Splits
 * of an all-to-all may differ from rank to rank, so it has only its mean size. */
static void fill_size(struct rank_call *call, const struct kineto_comm_facts *facts, u32 size) {
  i64 count = facts->in_count;
  if (call->op == TSCOPE_OP_REDUCE_SCATTER || call->op == TSCOPE_OP_SCATTER ||
      call->op == TSCOPE_OP_RECV)
    count = facts->out_count >= 0 ? facts->out_count : facts->in_count / MAX(size, 1);
  if (count < 0 || count > (1ll << 48) || call->op == TSCOPE_OP_BARRIER)
    return;
  call->count = (u64)count;
  call->bytes = call->count * tscope_dtype_bytes(call->dtype);
  if (call->op == TSCOPE_OP_ALLTOALL) {
    call->bytes = size ? call->bytes / size : 0;
    call->count = 0;
  }
}

static u32 size_of_group(const struct building *b, const struct kineto_comm_facts *facts) {
  const struct kineto_trace *trace = b->trace;
  return facts && facts->group != INDEX_NONE ? trace->groups.at[facts->group].size
         : facts && facts->size > 0 && facts->size < KINETO_MOST_RANKS ? (u32)facts->size
                                                                       : b->world_size;
}

static struct rank_call *add_call(struct building *b, const struct kineto_comm_facts *facts, u8 op,
                                  u32 comm, const struct kineto_item *host, u32 run, u16 stream) {
  struct rank_call call = {
      .start = host->start,
      .end = host->end,
      .launched = host->start,
      .comm = comm,
      .seq = facts && facts->seq >= 0 && facts->seq < UINT32_MAX ? (u32)facts->seq : TSCOPE_UNKNOWN,
      .peer = -1,
      .thread = host->lane,
      .run = run,
      .stream = stream,
      .op = op,
      .dtype = facts ? facts->dtype : TSCOPE_DTYPE_UNKNOWN};
  if (facts)
    fill_size(&call, facts, size_of_group(b, facts));
  if (op == TSCOPE_OP_SEND && facts && facts->target >= 0)
    call.peer = (i32)facts->target;
  if (op == TSCOPE_OP_RECV && facts && facts->source >= 0)
    call.peer = (i32)facts->source;
  VECTOR_PUSH(&b->events->calls, call);
  return &b->events->calls.at[b->events->calls.n - 1];
}

/* What was called on a lane before an instant, in one group after the other, and no kernel came of
 * it yet: the calls of a kernel of this kind that says nothing of them. How many those are. */
static u32 add_coalesced(struct building *b, const struct kineto_item *launch, u8 kernel, u32 run,
                         u16 stream) {
  const struct kineto_trace *trace = b->trace;
  u32 n = 0, passed = 0, group = INDEX_NONE;
  u32 i = FIRST_NOT(0, b->ranges.n, k, trace->items.at[b->ranges.at[k]].start < launch->start);
  while (i-- > 0 && passed < NEAR) {
    const struct kineto_item *item = &trace->items.at[b->ranges.at[i]];
    const struct kineto_comm_facts *facts = facts_of(b, item);
    passed += item->lane != launch->lane;
    if (item->lane != launch->lane)
      continue;
    if (b->explained[i] || !facts || facts->group == INDEX_NONE || (n && facts->group != group) ||
        (kernel && kernel_op(facts->op) != kernel))
      break;
    group = facts->group;
    b->explained[i] = true;
    struct rank_call *call = add_call(b, facts, facts->op, group, item, run, stream);
    call->launched = launch->start;
    call->group = run + 1;
    n++;
  }
  return n;
}

static void add_kernel(struct building *b, const struct kineto_item *item) {
  u32 call = kineto_call_of(&b->calls, item->correlation);
  const struct kineto_item *host = call == INDEX_NONE ? NULL : &b->trace->items.at[call];
  struct rank_kernel kernel = {.call_start = host ? host->start : NS_UNKNOWN,
                               .call_end = host ? host->end : NS_UNKNOWN,
                               .comm = INDEX_NONE,
                               .stream = item->lane,
                               .op = kineto_item_name(b->trace, item)->communication.op,
                               SAME(item, start, end, name, correlation)};
  VECTOR_PUSH(&b->events->kernels, kernel);
}

/* A collective as it ran: its run, and the call that caused it. */
static void add_run(struct building *b, const struct kineto_item *item) {
  const struct kineto_trace *trace = b->trace;
  const struct kineto_comm_facts *facts = facts_of(b, item);
  u32 call = kineto_call_of(&b->calls, item->correlation);
  const struct kineto_item *host = call == INDEX_NONE ? item : &trace->items.at[call];
  struct around around = {0};
  if (call != INDEX_NONE || item->kind != KINETO_ITEM_COLLECTIVE)
    around = find_around(b, host->lane, host->start);
  facts = facts ? facts : around.facts;
  bool device = item->kind == KINETO_ITEM_COLLECTIVE;
  const struct kineto_name *name = kineto_item_name(trace, item);
  u8 op = facts ? facts->op : around.op ? around.op : device ? name->communication.op : name->op;
  struct rank_run run = {.comm = TSCOPE_UNKNOWN,
                         .seq = TSCOPE_UNKNOWN,
                         .first_call = INDEX_NONE,
                         .thread = item->lane,
                         .stream = device ? item->lane : TSCOPE_NO_STREAM,
                         .op = op,
                         SAME(item, start, end, name, correlation)};
  VECTOR_PUSH(&b->events->runs, run);
  if (!facts && !around.op && device && call != INDEX_NONE &&
      add_coalesced(b, host, name->communication.op, b->events->runs.n - 1, run.stream))
    return;
  add_call(b, facts, op, comm_of(b, facts, device ? item->lane : 0),
           around.outer ? around.outer : host, b->events->runs.n - 1, run.stream);
}

/* Calls without a run: their kernels are outside the trace, or it has none. A group of one runs
 * nothing. */
static void add_calls_without_run(struct building *b) {
  const struct kineto_item *last = NULL;
  for (u32 i = 0; i < b->ranges.n; i++) {
    const struct kineto_item *item = &b->trace->items.at[b->ranges.at[i]];
    bool inside = last && last->lane == item->lane && item->start < last->end;
    if (!inside)
      last = item;
    const struct kineto_comm_facts *facts = facts_of(b, item);
    if (inside || b->explained[i] || size_of_group(b, facts) == 1)
      continue;
    u8 op = facts ? facts->op : kineto_item_name(b->trace, item)->op;
    add_call(b, facts, op, comm_of(b, facts, UINT16_MAX), item, INDEX_NONE, TSCOPE_NO_STREAM);
  }
}

static void add_phase(struct building *b, const struct kineto_item *item, u8 kind) {
  const struct kineto_name *name = kineto_item_name(b->trace, item);
  struct rank_events *events = b->events;
  if (name->backward && events->phases.n) {
    /* one after the other, nested as they come */
    for (u32 back = 1; back <= 4 && back <= events->phases.n; back++) {
      struct rank_phase *last = &events->phases.at[events->phases.n - back];
      if (last->thread != item->lane || last->kind != kind ||
          item->start > last->end + KINETO_BACKWARD_GAP_NS)
        continue;
      last->end = MAX(item->end, last->end);
      return;
    }
  }
  VECTOR_PUSH(&events->phases,
              (struct rank_phase){.name_hash = (u32)hash_text(HASH_SEED, name->text),
                                  .thread = item->lane,
                                  .kind = kind,
                                  SAME(item, start, end, name)});
}

/* ProfilerStep#, or the iterations of an inference engine where nobody calls step(): each begins a
 * step, the last one also ends. Most of one that another thread records too is in that; the next
 * one may begin a little before the end of the last, because begin and duration are rounded. */
static void add_step_mark(struct building *b, const struct kineto_item *item, i64 *end) {
  struct rank_events *events = b->events;
  const struct kineto_name *name = kineto_item_name(b->trace, item);
  i64 shared = item->start < *end ? *end - item->start : 0;
  if (2 * shared > item->end - item->start)
    return;
  struct rank_mark last = {.ends = true};
  if (events->marks.n)
    last = events->marks.at[events->marks.n - 1];
  if (!last.ends && name->is_step && name->step > last.step + 1 && item->start > *end)
    VECTOR_PUSH(&events->marks, (struct rank_mark){*end, last.step, true, last.kind});
  *end = item->end;
  VECTOR_PUSH(&events->marks,
              (struct rank_mark){item->start, name->is_step ? name->step : events->marks.n, false,
                                 name->is_step ? STEP_TRAINING : name->iteration});
}

static void define_comms(struct building *b, u32 rank) {
  const struct kineto_trace *trace = b->trace;
  u32 n = trace->groups.n + b->streams.n;
  struct comm_definition *comms = arena_array(&b->events->arena, n, sizeof(*comms));
  b->events->comms = comms;
  b->events->n_comms = n;
  for (u32 i = 0; i < n; i++) {
    struct comm_definition *comm = &comms[i];
    *comm = (struct comm_definition){
        .comm = i, .rank = rank, .size = b->world_size, .backend = TSCOPE_BACKEND_NCCL};
    if (i >= trace->groups.n) {
      comm->identity = KINETO_UNNAMED + i - trace->groups.n;
      comm->name = "unnamed group";
      continue;
    }
    const struct kineto_group *group = &trace->groups.at[i];
    comm->identity = hash_text(hash_text(HASH_SEED, group->name), group->ranks) | 1;
    comm->size = group->size;
    comm->rank = group->size == b->world_size ? rank : TSCOPE_UNKNOWN_RANK;
    for (u32 m = 0; m < group->n_members; m++)
      if (group->members[m] == rank)
        comm->rank = m;
    comm->name =
        *group->what ? group->what : arena_printf(&b->events->arena, "group %s", group->name);
    comm->parent = group->size == b->world_size ? 0 : 1;
  }
  if (trace->backend && strstr(trace->backend, "gloo") && !strstr(trace->backend, "nccl"))
    FOR_EACH_CHANGED(comms, n, one)
      one->backend = TSCOPE_BACKEND_GLOO;
}

/* In messages the group rank of the other end is a number within the group, not within the job. */
static void peers_in_groups(struct building *b) {
  FOR_EACH_CHANGED(b->events->calls.at, b->events->calls.n, call) {
    if (call->peer < 0 || call->comm >= b->trace->groups.n)
      continue;
    const struct kineto_group *group = &b->trace->groups.at[call->comm];
    u32 member = INDEX_OF(group->members, group->n_members, one, *one == (u32)call->peer);
    call->peer = member == INDEX_NONE ? call->peer : (i32)member;
  }
}

bool kineto_is_device_item(const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_KERNEL || item->kind == KINETO_ITEM_COLLECTIVE ||
         item->kind == KINETO_ITEM_COMM_KERNEL || item->kind == KINETO_ITEM_MEMCPY ||
         item->kind == KINETO_ITEM_MEMSET;
}

/* If the first work of a stream in the trace began long after its launch, and the device did next
 * to nothing until then, it had other work: launched before the recording began, and so not in the
 * trace. The end of that; NS_UNKNOWN if there was none. */
static i64 end_of_unseen_work(const struct building *b) {
  const struct kineto_trace *trace = b->trace;
  SCOPED bool *began = memory_zeroed(size_sum(trace->lanes.n, 1), sizeof(bool));
  i64 until = NS_UNKNOWN, busy = 0, last_end = INT64_MIN;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    if (!kineto_is_device_item(item))
      continue;
    u32 call = began[item->lane] ? INDEX_NONE : kineto_call_of(&b->calls, item->correlation);
    i64 launched = call == INDEX_NONE ? item->start : trace->items.at[call].end;
    i64 waited = item->start - launched;
    if (waited >= BUSY_BEFORE_NS && last_end <= launched && busy <= waited / 100)
      until = item->start;
    began[item->lane] = true;
    busy += item->end - item->start;
    last_end = MAX(item->end, last_end);
  }
  return until;
}

static void add_unseen_begin(struct building *b) {
  i64 until = end_of_unseen_work(b);
  if (until == NS_UNKNOWN)
    return;
  struct rank_gpu_state unseen = {.time = b->trace->begin,
                                  .reason = "what ran then was launched before the recording began",
                                  .clock = TSCOPE_GPU_CLOCK_NONE};
  struct rank_gpu_state seen = {.time = until, .clock = TSCOPE_GPU_CLOCK_CUPTI, .settled = true};
  VECTOR_PUSH(&b->events->gpu_states, unseen);
  VECTOR_PUSH(&b->events->gpu_states, seen);
}

/* Whether steps of training are marked: an engine's annotations are then only ranges. */
static bool has_profiler_steps(const struct kineto_trace *trace) {
  return ANY(trace->items.at, trace->items.n, one,
             one->kind == KINETO_ITEM_RANGE && kineto_item_name(trace, one)->is_step);
}

struct captures_on_lane {
  i64 since;
  u32 open; /* several streams at a time */
};

/* Captures begin and end on one thread. What the recording does not have of one lies before or
 * behind it. */
static void add_captures(struct building *b) {
  const struct kineto_trace *trace = b->trace;
  SCOPED struct captures_on_lane *lanes =
      memory_zeroed(size_sum(trace->lanes.n, 1), sizeof(*lanes));
  bool any = false;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    u8 call =
        item->kind == KINETO_ITEM_CALL ? kineto_item_name(trace, item)->call : KINETO_CALL_OTHER;
    struct captures_on_lane *lane = &lanes[item->lane];
    if (call == KINETO_CALL_INSTANTIATE)
      VECTOR_PUSH(&b->events->captures, (struct interval){item->start, item->end});
    if (call == KINETO_CALL_CAPTURE_BEGIN && !lane->open++)
      lane->since = item->start;
    if (call != KINETO_CALL_CAPTURE_END)
      continue;
    i64 since = lane->open || any ? lane->since : trace->begin;
    any = true;
    if (since && (!lane->open || !--lane->open))
      VECTOR_PUSH(&b->events->captures, (struct interval){since, item->end});
    lane->since = lane->open ? lane->since : 0;
  }
  FOR_EACH(lanes, trace->lanes.n, each)
    if (each->open)
      VECTOR_PUSH(&b->events->captures, (struct interval){each->since, trace->end});
}

static void add_items(struct building *b) {
  const struct kineto_trace *trace = b->trace;
  bool engine = !has_profiler_steps(trace);
  i64 step_end = INT64_MIN;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    const struct kineto_name *name = kineto_item_name(trace, item);
    if (kineto_is_run(trace, item))
      add_run(b, item);
    else if (item->kind == KINETO_ITEM_COMM_KERNEL)
      add_kernel(b, item);
    else if (item->kind == KINETO_ITEM_RANGE && (name->is_step || (engine && name->iteration)))
      add_step_mark(b, item, &step_end);
    else if ((item->kind == KINETO_ITEM_RANGE || item->kind == KINETO_ITEM_OP) && name->phase)
      add_phase(b, item, name->phase);
    b->events->launches += item->kind == KINETO_ITEM_CALL && name->call == KINETO_CALL_LAUNCH;
    b->events->gpu_kernels += item->kind == KINETO_ITEM_KERNEL ||
                              item->kind == KINETO_ITEM_COLLECTIVE ||
                              item->kind == KINETO_ITEM_COMM_KERNEL;
  }
  if (b->events->marks.n)
    VECTOR_PUSH(&b->events->marks, (struct rank_mark){step_end, 0, true});
  add_calls_without_run(b);
  add_unseen_begin(b);
}

/* What the host put on the device: what ran, at the time of its call. */
static void find_rounds(struct building *b) {
  const struct kineto_trace *trace = b->trace;
  SCOPED VECTOR(struct launched) launches = {0};
  u32 n = rank_needs_rounds(b->events) ? trace->items.n : 0;
  FOR_EACH(trace->items.at, n, item) {
    u32 call =
        kineto_is_device_item(item) ? kineto_call_of(&b->calls, item->correlation) : INDEX_NONE;
    if (call == INDEX_NONE)
      continue;
    const struct kineto_item *by = &trace->items.at[call];
    VECTOR_PUSH(&launches, (struct launched){by->start, by->end, item->name, item->name, by->lane});
  }
  find_launch_rounds(b->events, launches.at, launches.n);
}

static void count_pairs(struct rank_events *events) {
  SORT(events->calls.at, events->calls.n, by_i64);
  for (u32 i = events->calls.n; i-- > 0;) {
    u32 run = events->calls.at[i].run;
    events->unpaired_calls += run == INDEX_NONE;
    if (run != INDEX_NONE)
      events->runs.at[run].first_call = i;
  }
}

void kineto_events(const struct kineto_trace *trace, u32 rank, u32 world_size,
                   struct rank_events *events) {
  *events = (struct rank_events){.begin = trace->begin, .end = trace->end};
  struct building b = {.trace = trace, .events = events, .world_size = world_size};
  b.calls = kineto_calls_index(trace);
  list_ranges(&b);
  add_items(&b);
  define_comms(&b, rank);
  peers_in_groups(&b);
  count_pairs(events);
  find_rounds(&b);
  add_captures(&b);
  kineto_add_lost_stretches(trace, &b.calls, events);
  FREE_EACH(&b, calls.at, ranges.at, explained, streams.at);
}
