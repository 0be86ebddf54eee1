/* SPDX-License-Identifier: MIT
 *
 * A prepared sample and one replay of it: shared by path_replay.c, which replays, path_questions.c,
 * which asks, and path_cures.c and path_work.c, which use the answers.
 */
#pragma once

#include "analyses/path/path_graph.h"
#include "analyses/path/path_peers.h"

/* Whose the time before a node's start is: a phase's of the host, or, from here on, what held up
 * work on the device after all that it is known to have waited for. */
enum gap { HELD = HOST_KEYS, HELD_BY_LATENCY, HELD_BY_GPU_AWAY, GAPS };

/* From here on the time between a launch and its work is looked up. */
#define LONG_CALL ((1u << 28) - 1)

/* An event, and what the recorded run says of it. */
struct move {
  i64 wait; /* a start: so long after what it waited for last; a collective's end: its transfer */
  u32 event : 27;
  /* Of starts: as of a node; waits for `deps`; for its launch; ends as long after it as in
   * the run. Of what tells an end: the last on its lane of a device that the sample does not cut.
   */
  u32 alone : 1, waits : 1, launched : 1, plain : 1, last : 1;
  u32 call : 28, gap : 4; /* a launched start: so long after the call began; enum gap */
};

/* So long before a move its node is asked for, because memory answers later than that takes. */
#define MOVES_AHEAD 24u

/* Events that must be put in order. The start of node n is event n. Its end is event n too, unless
 * other events decide it: then it is V + n. Join m is 2V + m. */
struct replay {
  const struct analysis *a;
  const struct sample_graph *g;
  struct move *moves; /* in order, and MOVES_AHEAD more that do not count */
  u32 n_moves;
  struct peers peers;
  i64 behind;         /* typical: from the end of work on a device until the next begins */
  i64 batch_of_peers; /* how long the workers of the median rank take from one to the next */
  u32 n_steps;
  i64 *step_ends; /* [n_steps] without changes */
  i64 exposed;    /* communication of all ranks, without changes; -1: not yet known */
  u64 contradictions;
  i64 on_gpus, not_launched; /* as in struct sample_outcome */
};

/* What is known of a node, in one line of memory or two, comes by the time that its start needs it.
 * The other events find it there. */
static inline void ask_for_node(const struct sample_graph *g, u32 event) {
  if (event >= g->n)
    return;
  __builtin_prefetch(&g->nodes[event]);
  __builtin_prefetch(&g->nodes[event].marks);
}

/* So many cures are replayed side by side: what is found out about a node serves all of them. */
#define MOST_SIDE_BY_SIDE 4u

/* And so many where the times of a graph's nodes take more memory than this. */
#define LEAST_SIDE_BY_SIDE 2u
#define SIDE_BY_SIDE_BYTES (16u << 20)

static inline u32 side_by_side(const struct sample_graph *g) {
  return 2 * sizeof(i64) * MOST_SIDE_BY_SIDE * g->n <= SIDE_BY_SIDE_BYTES ? MOST_SIDE_BY_SIDE
                                                                          : LEAST_SIDE_BY_SIDE;
}

/* One replay with a cure. */
struct run {
  const struct replay *r;
  const struct cure *cure;
  const float *factor;     /* of the ranks that work as fast as others; NULL: none */
  bool even;               /* and an equal share of the work of each step */
  const bool *ranks;       /* which these are; NULL: all */
  const bool *late_in;     /* in which steps: like peers.late_in */
  float *uneven;           /* where some of these are slow only now and then: peers_uneven() */
  struct places *by_place; /* and where in a step their hosts are */
  float *own_factor;       /* if it was made for this cure */
  bool *own_late_in;       /* likewise */
  const double *awake;     /* [rank] what stays outside the phases; NULL: as `host_left` says */
  double launches_left, away_left;
  double kind_left[NODE_COLLECTIVE + 1], host_left[2][HOST_KEYS]; /* by kind; on a GPU, by phase */
  bool special;                                                   /* some changes depend on more */
  /* Times of nodes, joins and ranks. Those of runs side by side are next to each other, so from one
   * to the next it is `apart`. */
  i64 *times, *arrived;
  i64 *batch_ready;  /* of each batch */
  i64 *device_done;  /* when all of its device's work is done that the sample does not cut */
  double *name_left; /* of each key: what work with such names keeps */
  u32 apart;
};

/* A thread's runs, kept from question to question. */
struct runs {
  struct run at[MOST_SIDE_BY_SIDE];
  const struct run *each;       /* these, for a copy of this too */
  u32 n, apart;                 /* in use; there is room for */
  const struct sample_graph *g; /* that they are made for */
  i64 *times;                   /* of all of them */
  size_t room;                  /* [room] */
  /* Which of them change work of a kind in a phase, of a key, of a rank, or time before work: one
   * bit each. */
  u8 by_kind[NODE_COLLECTIVE + 1][HOST_KEYS], *by_key, *by_rank, by_gap[GAPS];
  bool of_ranks; /* any of by_rank */
  /* What they leave of a kind of work and of a key; of devices' that is all, but for `special`. */
  double kind_left[NODE_COLLECTIVE + 1][MOST_SIDE_BY_SIDE], *name_left;
  bool special;
};

/* At most side_by_side() replays, in runs->at. */
void runs_cure(struct runs *runs, u32 n, const struct replay *r, const struct cure *cures);
void runs_free(struct runs *runs);

static inline i64 *run_start_at(const struct run *run, u32 node) {
  return &run->times[2 * (size_t)node * run->apart];
}

static inline i64 *run_end_at(const struct run *run, u32 node) {
  return run_start_at(run, node) + run->apart;
}

static inline i64 run_start(const struct run *run, u32 node) {
  return *run_start_at(run, node);
}

static inline i64 run_end(const struct run *run, u32 node) {
  return *run_end_at(run, node);
}

/* Where each step of the sample ends, on the rank that is done last: [n_steps]. */
void run_step_ends(const struct run *run, i64 *ends);

/* Whether other events decide when a node ends. */
static inline bool ends_apart(const struct sample_graph *g, u32 n) {
  const struct node *node = &g->nodes[n];
  return node->kind == NODE_COLLECTIVE
             ? joins_others(g, n)
             : node->kind == NODE_BLOCKED && node->first_dep < node[1].first_dep;
}

/* When the call that launched a node had ended, or begun its work. */
static inline i64 launched_at(const struct sample_graph *g, const struct node *node) {
  const struct node *launch = &g->nodes[node->launch];
  return MIN(launch->end, node->start);
}

/* From its launch's begin until work on the device could begin. */
static inline i64 called_after(const struct sample_graph *g, const struct node *node) {
  return MAX(launched_at(g, node) - g->nodes[node->launch].start, 0);
}

/* When the last of the nodes that a node waits for ended; INT64_MIN if there is none. */
i64 latest_end(const struct sample_graph *g, u32 n);

/* path_moves.c: fills in the moves, and counts events that must come before themselves. */
void replay_plan(struct replay *r);

/* path_left.c: what cures leave. A replay asks it between two writes of times, of which it reads
 * none: with that said (pure), what the replay holds in registers stays there. */
#define CURE_ANSWER __attribute__((pure))

static inline i64 scaled_time(i64 ns, double factor) {
  return factor == 1 ? ns : (i64)((double)ns * factor);
}

/* Finds out what a cure changes; the run has room for its times already. */
void run_prepare(struct run *run, const struct replay *r, const struct cure *cure);

/* Notes the k-th run at all that it may change. */
void runs_note_changes(struct runs *runs, u32 k);

/* The share of its time that a node keeps; of a wait, only 0 means anything. */
CURE_ANSWER double run_left_of(const struct run *run, const struct node *node);

/* That of the host's own time in a phase. */
CURE_ANSWER double run_host_left(const struct run *run, u32 rank, u8 phase);

/* Of what is left, what the n-th node's rank keeps because it works as fast as others. */
CURE_ANSWER double run_left_with_rank(const struct run *run, double left, u32 key, u32 n);

/* How long a node takes instead of `ns`, and what is left of the time before it. */
CURE_ANSWER i64 run_edited_time(const struct run *run, const struct node *node, i64 ns);
CURE_ANSWER i64 run_edited_wait(const struct run *run, const struct move *move);

/* path_exposed.c: communication of all ranks that compute does not hide. */
i64 run_exposed_time(const struct run *run);

/* path_questions.c: what each of n cures saves, if nobody has asked before. */
enum asked_of { ASKED_OF_ALL, ASKED_OF_FIRST /* sample */, ASKED_WITH_EXPOSED /* of all */ };
void replay_ask(const struct analysis *a, const struct cure *cures, u32 n, enum asked_of what,
                struct saving *savings);
