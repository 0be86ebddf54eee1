/* SPDX-License-Identifier: MIT
 *
 * Messages of a running job. A send and its receive are found by their order between two ranks
 * (join/messages.h), and only the last ones are kept: on each side those are left out that
 * the other side does not have any more.
 */
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "kernels/communication.h"
#include "live/live_view.h"
#include "model/building.h"

/* What one rank sends to another, or receives from it. */
struct live_side {
  u64 comm; /* identity */
  u32 source, target;
  u32 rank, channel; /* of that process */
  u32 made, kept;
  u32 leave_out; /* of those that are kept, the first */
};

ORDER_BY(by_message, struct live_side, UP(comm) UP(source) UP(target))

static struct live_side side_of(const struct live_process *process, u32 rank, u32 number) {
  const struct live_channel *channel = &process->channels.at[number];
  const struct comm_definition *comm = &process->called.comms[channel->comm];
  bool sends = channel->op == TSCOPE_OP_SEND;
  return (struct live_side){.comm = comm->identity,
                            .source = sends ? comm->rank : channel->peer,
                            .target = sends ? channel->peer : comm->rank,
                            .rank = rank,
                            .channel = number,
                            .made = channel->made};
}

/* INDEX_NONE for other calls, and in a damaged trace, in which a message became another. */
static u32 channel_of(const struct live_process *process, const struct rank_call *call) {
  return op_is_message(call->op) ? live_channel_of(process, call) : INDEX_NONE;
}

static void count_kept(const struct live_process *process, const struct rank_events *events,
                       struct live_side *sides) {
  FOR_EACH(events->calls.at, events->calls.n, call) {
    u32 found = channel_of(process, call);
    if (found != INDEX_NONE)
      sides[found].kept++;
  }
}

/* Both sides of what one rank sends to another. */
static void align_sides(struct live_side *sides, u32 n) {
  u32 first = MOST_OF(u32, sides, n, side, side->made - side->kept);
  FOR_EACH_CHANGED(sides, n, side) {
    u32 beyond = first - (side->made - side->kept);
    side->leave_out = MIN(beyond, side->kept);
  }
}

static void leave_out(const struct live_process *process, struct rank_events *events,
                      u32 *leave_out) {
  u32 kept = 0;
  FOR_EACH(events->calls.at, events->calls.n, call) {
    u32 found = channel_of(process, call);
    if (found != INDEX_NONE && leave_out[found])
      leave_out[found]--;
    else
      events->calls.at[kept++] = *call;
  }
  events->calls.n = kept;
}

void live_align_messages(const struct live_view *view, struct model *model) {
  SCOPED VECTOR(struct live_side) sides = {0};
  SCOPED u32 *first = memory_array(size_sum(view->n_ranks, 1), sizeof(*first));
  for (u32 r = 0; r < view->n_ranks; r++) {
    const struct live_process *process = view->ranks[r].process;
    first[r] = sides.n;
    for (u32 i = 0; i < process->channels.n; i++)
      VECTOR_PUSH(&sides, side_of(process, r, i));
    if (process->channels.n)
      count_kept(process, model_events(model, r), &sides.at[first[r]]);
  }
  SCOPED u32 *out = memory_zeroed(size_sum(sides.n, 1), sizeof(*out));
  SORT(sides.at, sides.n, by_message);
  for (u32 i = 0, n; i < sides.n; i += n) {
    n = ROW_OF_EQUALS(&sides.at[i], sides.n - i, a, b, by_message(a, b) == 0);
    align_sides(&sides.at[i], n);
  }
  FOR_EACH(sides.at, sides.n, side) {
    out[first[side->rank] + side->channel] = side->leave_out;
  }
  for (u32 r = 0; r < view->n_ranks; r++)
    if (view->ranks[r].process->channels.n)
      leave_out(view->ranks[r].process, model_events(model, r), &out[first[r]]);
}
