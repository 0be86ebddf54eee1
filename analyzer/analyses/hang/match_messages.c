/* SPDX-License-Identifier: MIT
 *
 * Sends and receives. Each rank numbers its own messages, so a send and its receive are found by
 * order: between two ranks of a group, messages are received in the order in which they were sent;
 * between different peers there is no order. If the records do not go back to the first message,
 * the oldest pending send belongs to the oldest pending receive.
 */
#include <stdlib.h>
#include <string.h>

#include "analyses/hang/verdict.h"
#include "base/sorting.h"

struct side {
  u32 group, from, to;
  bool recv;
  u64 order;
  u32 call;
  bool pending;
};

ORDER_BY(by_channel, struct side, UP(group) UP(from) UP(to) UP(recv) UP(order))

typedef VECTOR(struct side) side_list;

/* A message whose other side is not known has a channel of its own while it is pending. */
static void collect_sides(const struct call_index *index, side_list *all, channel_list *out) {
  const struct flight_record *flight = index->flight;
  for (u32 i = 0; i < flight->n_calls; i++) {
    const struct flight_call *call = &flight->calls[i];
    if (!call->message)
      continue;
    if (call->peer == INDEX_NONE) {
      struct channel alone = {.group = call->group,
                              .from = call->sends ? call->rank : INDEX_NONE,
                              .to = call->sends ? INDEX_NONE : call->rank,
                              .send = call->sends ? i : INDEX_NONE,
                              .recv = call->sends ? INDEX_NONE : i};
      if (flight_call_is_pending(call))
        VECTOR_PUSH(out, alone);
      continue;
    }
    struct side side = {.group = call->group,
                        .from = call->sends ? call->rank : call->peer,
                        .to = call->sends ? call->peer : call->rank,
                        .recv = !call->sends,
                        .order = call->order,
                        .call = i,
                        .pending = flight_call_is_pending(call)};
    VECTOR_PUSH(all, side);
  }
  SORT(all->at, all->n, by_channel);
}

static void add_message_mismatch(struct call_index *index, struct matching *matching,
                                 enum match_state state, const struct side *side, u32 *ranks, u32 n,
                                 char *detail) {
  const struct flight_call *call = &index->flight->calls[side->call];
  struct mismatch mismatch = {.state = state,
                              .group = side->group,
                              .seq = call->seq,
                              .pending = side->pending,
                              .message = true,
                              .ranks = ranks,
                              .n_ranks = n,
                              .detail = detail,
                              .op = call->op};
  matching->mismatched_of[side->group]++;
  VECTOR_PUSH(&matching->mismatches, mismatch);
}

static void add_missing(struct call_index *index, struct matching *matching,
                        const struct side *side) {
  u32 *ranks = arena_array(index->arena, 1, sizeof(u32));
  u32 here = side->recv ? side->to : side->from, there = side->recv ? side->from : side->to;
  ranks[0] = there;
  char *detail = say(index, "rank %u %s rank %u, which does not %s",
                     index->flight->ranks[here].rank, side->recv ? "receives from" : "sends to",
                     index->flight->ranks[there].rank, side->recv ? "send" : "receive");
  add_message_mismatch(index, matching, MATCH_MISSING, side, ranks, 1, detail);
}

static bool differ(const char *a, const char *b) {
  return a && b && strcmp(a, b) != 0;
}

/* What is sent must agree with what is received. */
static void check_pair(struct call_index *index, struct matching *matching, const struct side *send,
                       const struct side *recv) {
  const struct flight_call *out = &index->flight->calls[send->call];
  const struct flight_call *in = &index->flight->calls[recv->call];
  bool sizes = differ(out->in, in->out), types = differ(out->in_type, in->out_type);
  if (!sizes && !types)
    return;
  u32 *ranks = arena_array(index->arena, 2, sizeof(u32));
  ranks[0] = send->from;
  ranks[1] = send->to;

  char *detail = say(index, "rank %u sends %s to rank %u, which receives %s",
                     index->flight->ranks[send->from].rank, sizes ? out->in : out->in_type,
                     index->flight->ranks[send->to].rank, sizes ? in->out : in->out_type);
  add_message_mismatch(index, matching, sizes ? MATCH_SIZE : MATCH_DTYPE, send, ranks, 2, detail);
}

static u32 first_pending(const struct side *sides, u32 n) {
  const struct side *first = FIND(sides, n, one, one->pending);
  return first ? (u32)(first - sides) : n;
}

/* One channel: its sends, then its receives. */
static void match_channel(struct call_index *index, struct matching *matching,
                          const struct side *sends, u32 n_sends, const struct side *recvs,
                          u32 n_recvs, channel_list *out) {
  const struct side *any = n_sends ? sends : recvs;
  const struct flight_rank *from = &index->flight->ranks[any->from],
                           *to = &index->flight->ranks[any->to];
  bool whole = from->seen && to->seen && from->kept_all && to->kept_all;
  u32 s = first_pending(sends, n_sends), r = first_pending(recvs, n_recvs);
  struct channel channel = {.send = s < n_sends ? sends[s].call : INDEX_NONE,
                            .recv = r < n_recvs ? recvs[r].call : INDEX_NONE,
                            SAME(any, group, from, to)};
  u32 pairs = 0;
  u32 a = whole ? 0 : s, b = whole ? 0 : r;
  for (; a < n_sends && b < n_recvs; a++, b++, pairs++)
    check_pair(index, matching, &sends[a], &recvs[b]);
  matching->matched += pairs;
  matching->calls += pairs;
  /* If both records are complete, a pending call whose counterpart is there and finished waits for
   * nobody. */
  bool send_alone = s < n_sends && (whole ? s >= n_recvs : r >= n_recvs);
  bool recv_alone = r < n_recvs && (whole ? r >= n_sends : s >= n_sends);
  if (send_alone && to->seen)
    add_missing(index, matching, &sends[s]);
  if (recv_alone && from->seen)
    add_missing(index, matching, &recvs[r]);
  if (channel.send == INDEX_NONE && channel.recv == INDEX_NONE)
    return;
  channel.send_alone = send_alone;
  channel.recv_alone = recv_alone;
  VECTOR_PUSH(out, channel);
}

void messages_match(struct call_index *index, struct matching *matching, channel_list *out) {
  side_list all = {0};
  collect_sides(index, &all, out);
  for (u32 i = 0; i < all.n;) {
    const struct side *sends = &all.at[i];
    u32 n = ROW_OF_EQUALS(sends, all.n - i, first, one,
                          one->group == first->group && one->from == first->from &&
                              one->to == first->to);
    u32 n_sends = NUMBER_OF(sends, n, one, !one->recv);
    match_channel(index, matching, sends, n_sends, sends + n_sends, n - n_sends, out);
    i += n;
  }
  free(all.at);
}
