/* SPDX-License-Identifier: MIT */

#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/sorting.h"
#include "format/dtypes.h"
#include "join/joining.h"
#include "join/messages.h"
#include "kernels/communication.h"

/* Room in the table for the sequence numbers of one communicator, which are close together. */
struct seq_range {
  u32 first, last, calls;
  u32 slots;
  u64 at; /* first slot */
};

struct slot {
  u32 collective; /* INDEX_NONE while no call has used it */
  u32 last_rank;
};

struct matcher {
  struct model *model;
  struct seq_range *ranges; /* [n_comms] */
  struct slot *slots;
  VECTOR(struct collective) collectives; /* n_arrivals counted, first_arrival not yet */
};

/* Bytes in the sense of bus bandwidth (nccl-tests PERFORMANCE.md): the whole array, of which an
 * all-gather's or reduce-scatter's count is one rank's part. */
static u64 full_bytes(const struct rank_call *call, u32 size) {
  u64 element = tscope_dtype_bytes(call->dtype);
  u64 bytes = element && call->count ? call->count * element : call->bytes;
  switch (call->op) {
  case TSCOPE_OP_ALLGATHER:
  case TSCOPE_OP_REDUCE_SCATTER:
  case TSCOPE_OP_ALLTOALL:
  case TSCOPE_OP_GATHER:
  case TSCOPE_OP_SCATTER:
    return bytes * MAX(size, 1);
  default:
    return bytes;
  }
}

static struct collective collective_of(const struct model *model, u32 comm, u32 seq,
                                       const struct rank_call *call) {
  return (struct collective){.comm = comm,
                             .seq = seq,
                             .bytes = full_bytes(call, model->comms[comm].size),
                             .last_start = NS_UNKNOWN,
                             .step = -1,
                             .root = call->peer,
                             SAME(call, count, op, dtype, redop)};
}

static void extend_range(struct seq_range *range, u32 seq) {
  if (range->calls++ == 0)
    range->first = range->last = seq;
  range->first = MIN(seq, range->first);
  range->last = MAX(seq, range->last);
}

static void plan_slots(struct matcher *matcher) {
  struct model *model = matcher->model;
  matcher->ranges = memory_zeroed(size_sum(model->n_comms, 1), sizeof(*matcher->ranges));
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = model_events(matcher->model, r);
    FOR_EACH(events->calls.at, events->calls.n, call) {
      u32 comm = model_comm_of(matcher->model, r, call->comm);
      if (comm == INDEX_NONE || op_is_message(call->op))
        continue;
      extend_range(&matcher->ranges[comm], call->seq);
    }
    FOR_EACH(events->kernels.at, events->kernels.n, kernel)
      if (comm_op_like(kernel->op))
        extend_range(&matcher->ranges[model_comm_of(matcher->model, r, kernel->comm)], kernel->seq);
  }
  u64 slots = 0;
  FOR_EACH_CHANGED(matcher->ranges, model->n_comms, range) {
    u64 wanted = (u64)range->last - range->first + 1, most = 4ull * range->calls + 1024;
    range->slots = range->calls == 0 ? 0 : (u32)MIN(wanted, most);
    range->at = slots;
    slots += range->slots;
  }
  matcher->slots = memory_array(size_sum(slots, 1), sizeof(*matcher->slots));
  FOR_EACH_CHANGED(matcher->slots, slots, slot)
    *slot = (struct slot){INDEX_NONE, INDEX_NONE};
}

/* Each member of an all-to-all may give and take another number of elements, as experts do: its
 * size is then that of the largest part. */
static void add_signature(struct collective *collective, const struct rank_call *call, u32 size) {
  bool uneven = call->op == TSCOPE_OP_ALLTOALL && collective->count != call->count;
  collective->mismatched |= collective->op != call->op ||
                            (!uneven && collective->count != call->count) ||
                            collective->dtype != call->dtype;
  if (uneven && call->count > collective->count) {
    collective->count = call->count;
    collective->bytes = full_bytes(call, size);
  }
}

/* Puts a rank's part into the collective of its number; `call` describes it. A second one of the
 * same rank with the same number (a restarted communicator) stays unmatched. */
static void match_part(struct matcher *matcher, u32 rank, u32 comm, const struct rank_call *call,
                       u32 *number) {
  const struct seq_range *range = &matcher->ranges[comm];
  if (call->seq - range->first >= range->slots)
    return;
  struct slot *slot = &matcher->slots[range->at + (call->seq - range->first)];
  if (slot->last_rank == rank)
    return;
  slot->last_rank = rank;
  if (slot->collective == INDEX_NONE) {
    slot->collective = matcher->collectives.n;
    VECTOR_PUSH(&matcher->collectives, collective_of(matcher->model, comm, call->seq, call));
  }
  struct collective *collective = &matcher->collectives.at[slot->collective];
  *number = slot->collective;
  collective->n_arrivals++;
  add_signature(collective, call, matcher->model->comms[comm].size);
}

static void match_call(struct matcher *matcher, u32 rank, struct rank_call *call) {
  u32 comm = model_comm_of(matcher->model, rank, call->comm);
  call->collective = INDEX_NONE;
  if (comm == INDEX_NONE || op_is_message(call->op) || call->failed)
    return;
  match_part(matcher, rank, comm, call, &call->collective);
}

/* Only operations whose members wait for each other have a number in common. */
static void match_kernel(struct matcher *matcher, u32 rank, struct rank_kernel *kernel) {
  const struct rank_call as_call = {
      .seq = kernel->seq, .op = kernel->op, .dtype = TSCOPE_DTYPE_UNKNOWN};
  kernel->collective = INDEX_NONE;
  if (!comm_op_like(kernel->op))
    return;
  match_part(matcher, rank, model_comm_of(matcher->model, rank, kernel->comm), &as_call,
             &kernel->collective);
}

static struct rank_call *call_at(const struct matcher *matcher, const struct message_side *side) {
  return &model_events(matcher->model, side->rank)->calls.at[side->call];
}

static void match_pair(void *user, const struct message_side *at, u32 n_sends, u32 n) {
  struct matcher *matcher = user;
  u32 n_receives = n - n_sends, most = MAX(n_sends, n_receives);
  for (u32 i = 0; i < most; i++) {
    struct rank_call *send = i < n_sends ? call_at(matcher, &at[i]) : NULL;
    struct rank_call *receive = i < n_receives ? call_at(matcher, &at[n_sends + i]) : NULL;
    struct collective collective =
        collective_of(matcher->model, at[0].comm, i, send ? send : receive);
    collective.op = TSCOPE_OP_SEND;
    collective.n_arrivals = send && receive ? 2 : 1;
    collective.mismatched =
        send && receive && (send->count != receive->count || send->dtype != receive->dtype);
    if (send)
      send->collective = matcher->collectives.n;
    if (receive)
      receive->collective = matcher->collectives.n;
    VECTOR_PUSH(&matcher->collectives, collective);
  }
}

static void match_messages(struct matcher *matcher) {
  SCOPED message_sides sides = {0};
  struct message_side side;
  for (u32 r = 0; r < matcher->model->n_ranks; r++)
    for (u32 i = 0; i < model_events(matcher->model, r)->calls.n; i++)
      if (message_side_of(matcher->model, r, i, &side))
        VECTOR_PUSH(&sides, side);
  message_sides_sort(&sides);
  message_sides_visit(&sides, match_pair, matcher);
}

static struct arrival arrival_of(const struct rank_events *events, u32 rank,
                                 const struct rank_call *call) {
  const struct rank_run *run = call->run == INDEX_NONE ? NULL : &events->runs.at[call->run];
  return (struct arrival){.call_start = call->start,
                          .call_end = call->end,
                          .start = run ? run->start : NS_UNKNOWN,
                          .end = run ? run->end : NS_UNKNOWN,
                          .rank = rank,
                          .step = -1,
                          SAME(call, collective, group, stream, op, times)};
}

static struct arrival arrival_of_kernel(u32 rank, const struct rank_kernel *kernel) {
  bool launched = kernel->call_start != NS_UNKNOWN;
  return (struct arrival){.call_start = launched ? kernel->call_start : kernel->start,
                          .call_end = launched ? kernel->call_end : kernel->start,
                          .rank = rank,
                          .step = -1,
                          SAME(kernel, start, end, collective, stream, op)};
}

/* What the ranks' calls and kernels are: all new memory, whose pages take longer than the copying.
 */
static void fill_arrivals(void *user, u32 rank, unsigned worker) {
  struct model *model = user;
  const struct rank_events *events = model_events(model, rank);
  (void)worker;
  FOR_EACH(events->calls.at, events->calls.n, call)
    model->arrivals[call->arrival] = arrival_of(events, rank, call);
  FOR_EACH(events->kernels.at, events->kernels.n, kernel)
    model->arrivals[kernel->arrival] = arrival_of_kernel(rank, kernel);
}

/* Arranges the arrivals: those of one collective next to each other, by rank (sender before
 * receiver); those without a collective last. */
static void lay_out_arrivals(struct matcher *matcher, unsigned threads) {
  struct model *model = matcher->model;
  u64 total = 0, matched = 0;
  for (u32 r = 0; r < model->n_ranks; r++)
    total += model_events(model, r)->calls.n + model_events(model, r)->kernels.n;
  model->arrivals = arena_array(model_arena(model), total, sizeof(*model->arrivals));
  SCOPED u32 *filled = memory_zeroed(size_sum(model->n_collectives, 1), sizeof(*filled));
  if (total >= INDEX_NONE)
    memory_is_short(total, sizeof(*model->arrivals));
  FOR_EACH_CHANGED(model->collectives, model->n_collectives, item) {
    item->first_arrival = (u32)matched;
    matched += item->n_arrivals;
  }
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = model_events(matcher->model, r);
    FOR_EACH_CHANGED(events->calls.at, events->calls.n, call) {
      u32 c = call->collective;
      if (c == INDEX_NONE) {
        call->arrival = (u32)matched++;
      } else {
        const struct collective *collective = &model->collectives[c];
        bool both = op_is_message(collective->op) && collective->n_arrivals == 2;
        u32 place = both ? call->op == TSCOPE_OP_RECV : filled[c]++;
        call->arrival = collective->first_arrival + place;
      }
    }
    FOR_EACH_CHANGED(events->kernels.at, events->kernels.n, kernel) {
      u32 c = kernel->collective;
      kernel->arrival =
          c == INDEX_NONE ? (u32)matched++ : model->collectives[c].first_arrival + filled[c]++;
    }
  }
  parallel_for(model->n_ranks, threads, fill_arrivals, model);
  model->n_arrivals = (u32)total;
}

/* All members run a collective in the same way: one member's answer is enough. */
static void read_choices(struct matcher *matcher) {
  for (u32 r = 0; r < matcher->model->n_ranks; r++) {
    const struct rank_events *events = model_events(matcher->model, r);
    FOR_EACH(events->insides.at, events->insides.n, inside) {
      u32 c = inside->call == INDEX_NONE ? INDEX_NONE : events->calls.at[inside->call].collective;
      if (c == INDEX_NONE)
        continue;
      struct collective *collective = &matcher->model->collectives[c];
      collective->algorithm = inside->algorithm ? inside->algorithm : collective->algorithm;
      collective->protocol = inside->protocol ? inside->protocol : collective->protocol;
      collective->asked = inside->asked ? inside->asked : collective->asked;
      collective->user_tag = inside->user_tag ? inside->user_tag : collective->user_tag;
      collective->channels = inside->channels ? inside->channels : collective->channels;
    }
  }
}

ORDER_BY(by_number, struct sparse_collective, UP(comm) UP(seq))

static u32 expected_arrivals(const struct model *model, const struct collective *collective) {
  const struct model_internal *internal = internal_of(model);
  if (op_is_message(collective->op))
    return 2;
  struct sparse_collective wanted = {.comm = collective->comm, .seq = collective->seq};
  const struct sparse_collective *sparse =
      FIND_SORTED(internal->sparse.at, internal->sparse.n, &wanted, by_number);
  return sparse ? sparse->members : model->comms[collective->comm].size;
}

void match_collectives(struct model *model, unsigned threads) {
  struct matcher matcher = {.model = model};
  plan_slots(&matcher);
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct rank_events *events = model_events(model, r);
    FOR_EACH_CHANGED(events->calls.at, events->calls.n, call)
      match_call(&matcher, r, call);
    FOR_EACH_CHANGED(events->kernels.at, events->kernels.n, kernel)
      match_kernel(&matcher, r, kernel);
  }
  match_messages(&matcher);
  model->n_collectives = matcher.collectives.n;
  model->collectives = VECTOR_KEPT(&matcher.collectives, model_arena(model));
  lay_out_arrivals(&matcher, threads);
  read_choices(&matcher);
  FOR_EACH_CHANGED(model->collectives, model->n_collectives, collective) {
    u32 expected = expected_arrivals(model, collective);
    collective->complete = expected > 0 && collective->n_arrivals >= expected;
  }
  FREE_EACH(&matcher, collectives.at, slots, ranges);
}
