/* SPDX-License-Identifier: MIT
 *
 * What had to wait for what, in samples of the steps: the input of critical_path.c and
 * path_replay.c.
 *
 * A sample is a few steps in a row. So what reaches from one step into the next (a host that runs
 * ahead of its device) counts as it does in the run. While a rank's timeline is loaded,
 * path_slice.c cuts the samples out of it; then path_graph.c joins the slices of all ranks at their
 * collectives.
 *
 * A node is a piece of work on one lane. The nodes of a lane are adjacent and in order. Host lanes
 * are flattened: nested phases become pieces of their own time (NODE_HOST), calls are nodes, and
 * the time between a call and the node before it belongs to `phase`.
 */
#pragma once

#include "analyses/analysis.h"
#include "analyses/path/path_replay.h"
#include "base/vector.h"

#define STEPS_IN_A_ROW 64u /* in a sample, where there are as many */
#define ROUNDED 1000       /* ns: recordings round begin and duration apart */

enum node_kind {
  NODE_HOST = 1, /* own time of a phase */
  NODE_LAUNCH,   /* a call that puts work on a stream */
  NODE_BLOCKED,  /* the host waits for the device or a collective */
  NODE_KERNEL,   /* from here on: on the device, or a gloo worker */
  NODE_MEMCPY,
  NODE_MEMSET,
  NODE_COLLECTIVE,
};
#define NODE_ON_DEVICE(kind) ((kind) >= NODE_KERNEL)

/* As a phase: the host captures a CUDA graph. What it does then launches nothing. */
#define PHASE_CAPTURING 7u

#define HOST_KEYS 8u /* keys below this are phases: own time and gaps of the host */

struct node {
  i64 start, end; /* cut to the sample */
  u32 key;        /* which work it is, the same number on all ranks */
  u32 label;      /* its name: see path_labels.h */
  u32 launch;     /* node that launched it, INDEX_NONE; of a batch that was waited for, the one with
                   * whose end its worker was set to work */
  union {
    u32 line;    /* NODE_BLOCKED: line_key() of where the program waits; 0 if not known */
    u32 arrival; /* NODE_COLLECTIVE: one of its calls, in model.arrivals; INDEX_NONE if not known */
  };
  u32 call;      /* NODE_COLLECTIVE: node that called it, also where it began with a wait for it;
                  * of a batch, its number in sample_graph.batches; of what was queued, a number
                  * that grows in the order of launches, INDEX_NONE if that is not known */
  u32 rank;      /* index into model.ranks */
  u32 first_dep; /* its dependencies end where the next node begins */
  u8 kind;
  u8 phase; /* NODE_HOST: its phase; other host nodes: phase of the gap before; 0 none */
  union {
    struct {
      bool is_batch : 1; /* NODE_HOST: the program takes input that other processes prepare */
      bool alone : 1;    /* nothing before it on its lane holds it up: it is the first there, or a
                            message of the host */
      bool cut : 1;      /* goes on after the sample */
      bool queued : 1;   /* on the device: launched before the sample began */
      bool inferred : 1; /* it waited for its latest dependency, but no event was recorded */
      bool late : 1;     /* on the device: nothing of this rank ran from when it could begin */
    };
    u8 marks; /* all of these */
  };
};
_Static_assert(sizeof(struct node) == 48, "a graph has millions of them");

/* The node that called a collective; INDEX_NONE. */
static inline u32 node_calling(const struct node *node) {
  return node->queued ? INDEX_NONE : node->call;
}

/* path_latency.c: ns from the end of a launch until its work begins, if nothing holds that up: the
 * median of some of nodes [from, to), 0 if there is none. And whether some time may be that. */
enum { LATENCIES_LOOKED_AT = 1000 };
i64 typical_latency(const struct node *nodes, u32 from, u32 to);

static inline bool may_be_latency(i64 ns, i64 typical) {
  return 2 * ns <= 3 * typical;
}

/* ns: a GPU takes 1 to 3 us from the end of work to the begin of the work that waited for it; less
 * than the other is not looked at. */
#define NEAR 5000
#define SHORTEST_WAIT 20000

/* Where a step ended: so long after this node of the rank, or before. */
struct step_end {
  u32 node;  /* of the slice; INDEX_NONE: nothing ended in it */
  u32 other; /* if that is the host's, the last on the device, and the other way round: in a replay
              * it may end later */
  i64 rest;
};

/* One rank's part of one sample. */
struct slice {
  struct node *nodes; /* n_nodes + 1; the last only closes first_dep */
  u32 *deps; /* nodes that must end before: event waits (device), what released it (host) */
  u32 n_nodes, n_deps;
  i64 begin, end;
  i64 host_end; /* where the host has finished the sample's steps: at the latest at its end */
  u32 last_host, last_device;    /* nodes of these steps that end last, INDEX_NONE */
  struct step_end *last_of_step; /* [n of the sample] */
  bool present, on_gpu;
  bool one_worker_is_busier; /* than all together, for certain */
  bool ends_on_gpu;          /* the host finished the sample before the device did */
  u32 workers;               /* that prepare batches; 0 until it is found out or taken to be 1 */
  double workers_busy;       /* share of their time in which they do; NAN: not known */
  double busiest_worker;     /* at most, of one of them */
  double workers_busy_most;  /* it may be, by so few looks */
  /* What is taken to be so of its loader, because nothing tells it, and matters. */
  bool workers_by_waits, workers_taken, ahead_taken;
};

/* PyTorch's loader asks each worker for so many batches ahead, unless it is told otherwise. */
#define BATCHES_ASKED_AHEAD 2u

/* Input that a worker prepares. Numbers of batches are INDEX_NONE where they are not in the sample.
 */
struct batch {
  u32 node;
  u32 same;  /* the worker begins when it has made this one, */
  u32 asked; /* and when the program has taken this one */
  bool awaited;
  i64 loads;         /* from then on, or from the begin of the sample, until it is ready */
  i64 ready, latest; /* it was so at the latest */
  i64 takes;         /* what the program needs to take it when it is ready */
};

/* Members in order of start: the collective's nodes; of messages on the host, the calls. */
struct collective_join {
  u32 first, n; /* in members */
  bool barrier; /* no member can end before all have started */
  i64 late;     /* barrier: after the last of these the last of those came that are not in the graph
                 */
};

/* All ranks' slices of one sample, joined. */
struct sample_graph {
  struct node *nodes; /* n + 1; by rank, then lane */
  u32 *deps;
  u32 n;
  u32 *base; /* [n_ranks + 1] first node of each rank */
  struct slice *slices;
  u32 n_ranks;
  struct collective_join *joins;
  u32 *members;      /* nodes */
  u32 *joined;       /* joins, of node i from first_joined[i] on; several in a group's kernel */
  u32 *first_joined; /* [n + 1] */
  u32 n_joins;
  struct batch *batches;
  u32 n_batches;
  u32 n_keys;
  u32 *node_of_key; /* [n_keys] one that has it; INDEX_NONE, and for phases */
  i64 begin, end;   /* earliest begin and latest end of the slices of all ranks */
  u32 last_rank;    /* whose slice ends last */
};

/* When a collective was called, as far as that is in the sample. */
static inline i64 node_called_at(const struct sample_graph *g, const struct node *node) {
  return node_calling(node) == INDEX_NONE ? node->start : g->nodes[node->call].start;
}

enum path_category {
  PATH_COMPUTE,
  PATH_COMMUNICATION,
  PATH_MEMCPY,
  PATH_LAUNCH,
  PATH_INPUT,
  PATH_HOST,
  PATH_GPU_AWAY, /* a GPU that has work and does none of this rank's */
  PATH_UNKNOWN,
  PATH_CATEGORIES
};

/* How one piece of the path leads to the next. */
enum path_edge {
  PATH_EDGE_NONE,
  PATH_EDGE_THREAD,     /* next on the same thread */
  PATH_EDGE_STREAM,     /* next on the same stream */
  PATH_EDGE_LAUNCH,     /* the host launches, the device begins */
  PATH_EDGE_EVENT,      /* a stream waits for an event of another */
  PATH_EDGE_INFERRED,   /* the same, but no event was recorded: only the times say so */
  PATH_EDGE_SYNC,       /* the host waits for the device */
  PATH_EDGE_HANDOVER,   /* a thread waits for another */
  PATH_EDGE_COLLECTIVE, /* a rank waits for the last to arrive */
  PATH_EDGE_BATCH,      /* other processes prepare one batch after the other */
  PATH_EDGES
};

struct path_segment {
  i64 start, end;
  u32 label, rank; /* rank: index into model.ranks */
  u8 category;     /* enum path_category */
  u8 edge;         /* enum path_edge: how the path comes to it */
};

/* Steps in a row. */
struct sample {
  u32 first, n;
};

/* What one sample gave. */
struct sample_outcome {
  bool valid;
  i64 length; /* of the path */
  i64 by_category[PATH_CATEGORIES];
  i64 *by_rank; /* [n_ranks] */
  i64 replayed; /* unedited, from the sample's begin */
  i64 measured;
  i64 on_gpus, not_launched; /* work of GPUs; of which it is not known what launched it */
  u64 contradictions;        /* dependencies that cannot all be true at once */
  VECTOR(struct path_segment) segments; /* of the path, the last first */
  u64 crossed[PATH_EDGES];
};

struct path_labels;

struct asked {
  struct cure cure; /* its changes are owned */
  struct saving saving;
};

struct graph {
  struct path_labels *labels;
  u32 n_samples;
  struct sample *samples; /* ascending */
  struct slice *slices;   /* [n_samples * n_ranks] */
  struct sample_outcome *outcomes;
  struct sample_graph *joined; /* [n_samples] of those that have a replay */
  struct replay **replays;     /* [n_samples] NULL: none */
  struct runs *runs;           /* [n_threads] in which the threads replay them */
  unsigned n_threads;
  /* [n_steps] set with the first question: weights of those that are in samples; and in which some
   * rank was not recorded. */
  double *weights;
  bool *lacks_ranks;
  u32 *no_more_from;          /* [n_ranks] set with it: a step, or INDEX_NONE */
  VECTOR(struct asked) asked; /* and what they gave: no cure is replayed twice */
  double *beside; /* [n_ranks] of graph_find_beside(); NULL until the first saving is asked for */
};

/* As gloo has them: it is under way from when both sides have called it. */
static inline bool collective_is_message_of_host(const struct model *model,
                                                 const struct collective *collective) {
  return op_is_message(collective->op) &&
         model->comms[collective->comm].backend != TSCOPE_BACKEND_NCCL;
}

/* path_slice.c: its nodes and dependencies; and what else it holds. */
void slice_free(struct slice *slice);
void slice_free_all(struct slice *slice);

/* path_batches.c: the batches of all ranks, and what each waited for. */
void sample_graph_find_batches(struct sample_graph *g);

/* path_shown.c: adds waits between streams that no record has and that other ranks show. */
void sample_graph_add_shown(struct sample_graph *g);

/* path_beside.c: share of each rank's compute that may run beside the rest of it. */
void graph_find_beside(const struct analysis *a);

/* What a rank's loader is taken to be, in a sentence; "" if nothing is that matters. */
const char *path_describe_loader(struct analysis *a, u32 rank);

/* path_graph.c: joins the slices of a sample and frees them. False if there are too many nodes. */
bool sample_graph_join(const struct analysis *a, u32 sample, struct sample_graph *graph);
void sample_graph_free(struct sample_graph *graph);

/* Sets when it begins and ends, and whose slice ends last. */
void sample_graph_find_limits(struct sample_graph *graph);

/* path_hosts.c: moves the nodes of hosts whose clocks are not known well enough. False if none
 * moved; else the joins must be made again. */
bool path_settle_hosts(const struct analysis *a, struct sample_graph *graph);

/* Whether a node is a collective with known members. */
static inline bool joins_others(const struct sample_graph *graph, u32 node) {
  return graph->first_joined[node] < graph->first_joined[node + 1];
}

/* Whether a member of a collective's join is a call, which has been made when the node could end.
 * It then came with the call's end, else with its start. */
bool comes_by_call(const struct sample_graph *graph, u32 node, u32 member);

/* The start of a collective's transfer, as this node saw it: when the last member came that it had
 * to wait for, and which member that was. */
i64 join_start(const struct sample_graph *graph, u32 node, u32 *last);

/* Whether a thread's node comes after one of another thread that it waited for: autograd's between
 * two backward passes. */
static inline bool follows_other_thread(const struct node *node) {
  return node->kind != NODE_BLOCKED && node->first_dep < node[1].first_dep;
}

/* The phase of the time between a host node and the one before it; 0 for none. A thread that was
 * called for a phase is in it from then on. */
static inline u8 phase_of_gap(const struct node *node) {
  bool by_phase = node->kind != NODE_HOST || node->phase == PHASE_CAPTURING;
  return by_phase || follows_other_thread(node) ? node->phase : 0;
}

/* The time of that: the thread's own, from where it did not wait for another thread any more. */
static inline i64 gap_ns(const struct sample_graph *graph, u32 n) {
  const struct node *node = &graph->nodes[n];
  i64 from = node->alone ? graph->slices[node->rank].begin : graph->nodes[n - 1].end;
  for (u32 i = node->first_dep; i < node[1].first_dep && follows_other_thread(node); i++)
    from = MAX(graph->nodes[graph->deps[i]].end, from);
  return node->start > from ? node->start - from : 0;
}

/* critical_path.c */
void critical_path_walk(const struct sample_graph *graph, struct sample_outcome *outcome);

/* what_if.c: why the replay promises nothing; NULL if it can be relied on. */
const char *what_if_unreliable(struct analysis *a);

/* Nothing tells when what a rank did was for the others if its clock is not aligned with theirs. */
static inline bool path_has_rank(const struct model *model, u32 rank) {
  return model->n_ranks == 1 || model->ranks[rank].clock.aligned;
}
