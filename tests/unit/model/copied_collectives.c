/* SPDX-License-Identifier: MIT
 *
 * Collectives that copy engines run are found by their copies; other copies are none. Written by
 * hand, after what NCCL does: a flag of 4 bytes to each peer, the data, and flags again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "import/tscope/gpu_runs/pair_runs.h"

enum { RANKS = 4, PEERS = RANKS - 1, STREAM = 7, BYTES = 4096 };

static const struct comm_definition comm = {.size = RANKS};

static struct rank_events events_with_call(u8 op, u64 bytes) {
  struct rank_events events = {.comms = &comm, .n_comms = 1};
  VECTOR_PUSH(&events.calls,
              ((struct rank_call){
                  .op = op, .bytes = bytes, .count = bytes, .stream = STREAM, .run = INDEX_NONE}));
  return events;
}

/* `n` copies of 10 ns, one after the other from `at`; the end of the last. */
static i64 copies(struct rank_events *events, i64 at, u32 n, u64 bytes, u16 stream) {
  for (u32 i = 0; i < n; i++, at += 10)
    VECTOR_PUSH(
        &events->copies,
        ((struct rank_copy){.start = at, .end = at + 10, .bytes = bytes, .stream = stream}));
  return at;
}

static i64 collective(struct rank_events *events, i64 at, u32 flags, u32 data) {
  at = copies(events, at, flags, 4, STREAM);
  at = copies(events, at + 100, data, BYTES, STREAM);
  return copies(events, at, flags, 4, STREAM);
}

static void a_run_is_from_the_first_flag_to_the_last(void **state) {
  (void)state;
  struct rank_events events = events_with_call(TSCOPE_OP_ALLGATHER, BYTES);
  i64 end[3];
  end[0] = collective(&events, 1000, PEERS, PEERS);
  end[1] = collective(&events, end[0], PEERS,
                      RANKS); /* at once, and not in place: a copy for itself, too */
  end[2] = collective(&events, 9000, PEERS, PEERS);
  runs_from_copies(&events);
  assert_int_equal(events.runs.n, 3);
  i64 begin[] = {1000, end[0], 9000};
  for (u32 i = 0; i < 3; i++) {
    assert_int_equal(events.runs.at[i].start, begin[i]);
    assert_int_equal(events.runs.at[i].end, end[i]);
    assert_int_equal(events.runs.at[i].op, TSCOPE_OP_ALLGATHER);
    assert_true(events.runs.at[i].copies);
  }
  assert_int_equal(events.copies.n, 0);
  rank_events_release(&events);
}

/* Where the ranks share a multicast address, one flag is for all peers. */
static void one_flag_may_be_for_all_peers(void **state) {
  (void)state;
  struct rank_events events = events_with_call(TSCOPE_OP_ALLTOALL, BYTES);
  i64 first = collective(&events, 1000, 1, RANKS), second = collective(&events, first, 1, RANKS);
  runs_from_copies(&events);
  assert_int_equal(events.runs.n, 2);
  assert_int_equal(events.runs.at[0].end, first);
  assert_int_equal(events.runs.at[1].start, first);
  assert_int_equal(events.runs.at[1].end, second);
  rank_events_release(&events);
}

static void other_copies_are_no_collective(void **state) {
  (void)state;
  struct rank_events events = events_with_call(TSCOPE_OP_ALLGATHER, BYTES);
  i64 at = copies(&events, 1000, PEERS, BYTES, STREAM); /* no flags */
  at = copies(&events, at, 1, 4, STREAM);               /* flags behind alone */
  at = copies(&events, at + 500, 2, 100, STREAM);       /* not what a call moves */
  at = copies(&events, at, 1, 4, STREAM);
  at = copies(&events, at + 500, 1, 4, STREAM + 1); /* nobody calls NCCL on this stream */
  at = copies(&events, at, PEERS, BYTES, STREAM + 1);
  copies(&events, at, 1, 4, STREAM + 1);
  runs_from_copies(&events);
  assert_int_equal(events.runs.n, 0);
  rank_events_release(&events);
}

/* On the default stream and in graphs a large collective stops after every eight copies, and once
 * more at its end if that makes the times even. */
static void flags_may_be_between_parts(void **state) {
  (void)state;
  enum { MANY = 20, ALL = MANY - 1 };
  const struct comm_definition large = {.size = MANY};
  for (u32 data = ALL; data <= MANY; data++)
    for (u32 flags = 1; flags <= ALL; flags += ALL - 1) /* by multicast, or to each */
      for (u32 once_more = 0; once_more < 2; once_more++) {
        struct rank_events events = events_with_call(TSCOPE_OP_ALLGATHER, BYTES);
        i64 at = 1000, end[2];
        events.comms = &large;
        for (u32 i = 0; i < 2; i++) { /* two in a row: 8, 4 and 7 or 8 copies, or 8 and 11 or 12 */
          at = copies(&events, at, flags, 4, STREAM);
          at = copies(&events, at + 100, 8, BYTES, STREAM);
          at = copies(&events, at, flags, 4, STREAM);
          if (!once_more) {
            at = copies(&events, at + 50, 4, BYTES, STREAM);
            at = copies(&events, at, flags, 4, STREAM);
          }
          at = copies(&events, at + 50, data - (once_more ? 8 : 12), BYTES, STREAM);
          end[i] = at = copies(&events, at, flags * (1 + once_more), 4, STREAM);
        }
        runs_from_copies(&events);
        assert_int_equal(events.runs.n, 2);
        assert_int_equal(events.runs.at[0].start, 1000);
        assert_int_equal(events.runs.at[0].end, end[0]);
        assert_int_equal(events.runs.at[1].start, end[0]);
        assert_int_equal(events.runs.at[1].end, end[1]);
        rank_events_release(&events);
      }
}

/* Each replay for itself, and only for calls of its graph. */
static void replays_of_graphs_have_runs(void **state) {
  (void)state;
  enum { GRAPH = 5 };
  struct rank_events events = events_with_call(TSCOPE_OP_ALLGATHER, BYTES);
  events.calls.at[0].replayed = true;
  events.calls.at[0].stream = STREAM + 1; /* of the launch: nodes may run on others */
  VECTOR_PUSH(&events.parts, ((struct rank_part){.gpu_graph = GRAPH}));
  for (u32 replay = 0; replay < 3; replay++) {
    u32 first = events.copies.n;
    collective(&events, 1000 * (replay + 1), PEERS, PEERS);
    for (u32 i = first; i < events.copies.n; i++) {
      events.copies.at[i].graph = replay < 2 ? GRAPH : GRAPH + 1;
      events.copies.at[i].correlation = 70 + replay;
    }
  }
  runs_from_copies(&events);
  assert_int_equal(events.runs.n, 2);
  for (u32 i = 0; i < 2; i++) {
    assert_int_equal(events.runs.at[i].start, 1000 * (i + 1));
    assert_int_equal(events.runs.at[i].graph, GRAPH);
    assert_int_equal(events.runs.at[i].correlation, 70 + i);
  }
  rank_events_release(&events);
}

/* 8 ranks on 2 nodes of 4, in place: to 3 peers the rank's own part, and, once the network has
 * brought it, that of the other node (src/ce_coll.cc of NCCL 2.31, ncclHierCeAllGather). With a
 * multicast address one flag and one copy are for all. */
static void nodes_copy_what_the_network_brings(void **state) {
  (void)state;
  const struct comm_definition two_nodes = {.size = 8};
  for (u32 multicast = 0; multicast < 2; multicast++) {
    struct rank_events events = events_with_call(TSCOPE_OP_ALLGATHER, BYTES);
    u32 each = multicast ? 1 : 3;
    events.comms = &two_nodes;
    i64 at = copies(&events, 1000, each, 4, STREAM);
    at = copies(&events, at + 30, each, BYTES, STREAM);
    at = copies(&events, at + 700, each, BYTES, STREAM);
    at = copies(&events, at, each, 4, STREAM);
    runs_from_copies(&events);
    assert_int_equal(events.runs.n, 1);
    assert_int_equal(events.runs.at[0].start, 1000);
    assert_int_equal(events.runs.at[0].end, at);
    rank_events_release(&events);
  }
}

/* All but the root of a scatter copy flags alone: here before, between and behind all-gathers. */
static void flags_alone_are_a_collective(void **state) {
  (void)state;
  for (u32 flags = 1; flags <= PEERS; flags += PEERS - 1) { /* by multicast, or to each */
    struct rank_events events = events_with_call(TSCOPE_OP_SCATTER, BYTES);
    struct rank_call scatter = events.calls.at[0], gather = scatter;
    gather.op = TSCOPE_OP_ALLGATHER;
    VECTOR_PUSH(&events.calls, gather);
    VECTOR_PUSH(&events.calls, scatter);
    VECTOR_PUSH(&events.calls, scatter);
    i64 begin[4], end[4], at = 1000;
    for (u32 i = 0; i < 4; i++) {
      begin[i] = at;
      at = end[i] =
          i == 1 ? collective(&events, at, flags, PEERS)
                 : copies(&events, copies(&events, at, flags, 4, STREAM) + 100, flags, 4, STREAM);
    }
    runs_from_copies(&events);
    assert_int_equal(events.runs.n, 4);
    for (u32 i = 0; i < 4; i++) {
      assert_int_equal(events.runs.at[i].start, begin[i]);
      assert_int_equal(events.runs.at[i].end, end[i]);
    }
    rank_events_release(&events);
    /* one more flag than the calls need: nobody can tell whose it is */
    events = events_with_call(TSCOPE_OP_SCATTER, BYTES);
    at = copies(&events, 1000, 2 * flags + 1, 4, STREAM);
    runs_from_copies(&events);
    assert_int_equal(events.runs.n, 0);
    rank_events_release(&events);
  }
}

/* Reductions need kernels. */
static void what_computes_is_not_copied(void **state) {
  (void)state;
  struct rank_events events = events_with_call(TSCOPE_OP_ALLREDUCE, BYTES);
  collective(&events, 1000, PEERS, PEERS);
  runs_from_copies(&events);
  assert_int_equal(events.runs.n, 0);
  rank_events_release(&events);
}

/* A trace that somebody made for this: its reading must end. */
static void any_copies_are_read_soon(void **state) {
  (void)state;
  enum { MANY_CALLS = 100 * 1000, MANY_COPIES = 200 * 1000 };
  struct rank_events events = events_with_call(TSCOPE_OP_ALLGATHER, BYTES);
  for (u32 i = 0; i < MANY_CALLS; i++) {
    struct rank_call call = events.calls.at[0];
    call.bytes = (1u << 30) + i;
    VECTOR_PUSH(&events.calls, call);
  }
  i64 at = collective(&events, 1000, PEERS, PEERS);
  for (u32 i = 0; i < MANY_COPIES / 2; i++) {
    at = copies(&events, at, 1, 4, STREAM + 1);
    at = copies(&events, at, 1, 1, STREAM + 1);
  }
  for (u32 i = 0; i < MANY_CALLS; i++) { /* on both streams */
    struct rank_call call = events.calls.at[i + 1];
    call.stream = STREAM + 1;
    VECTOR_PUSH(&events.calls, call);
  }
  runs_from_copies(&events);
  assert_int_equal(events.runs.n, 1);
  rank_events_release(&events);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_is_from_the_first_flag_to_the_last),
      cmocka_unit_test(one_flag_may_be_for_all_peers),
      cmocka_unit_test(other_copies_are_no_collective),
      cmocka_unit_test(flags_may_be_between_parts),
      cmocka_unit_test(replays_of_graphs_have_runs),
      cmocka_unit_test(nodes_copy_what_the_network_brings),
      cmocka_unit_test(flags_alone_are_a_collective),
      cmocka_unit_test(what_computes_is_not_copied),
      cmocka_unit_test(any_copies_are_read_soon),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
