/* SPDX-License-Identifier: MIT
 *
 * One rank's events, decoded: everything that is kept for the whole of the analysis. Times are
 * nanoseconds of the rank's own CLOCK_MONOTONIC until align/ has put all ranks on one axis.
 */
#pragma once

#include "base/arena.h"
#include "base/vector.h"
#include "model/model.h"

/* A communicator as this rank knows it. */
struct comm_definition {
  u64 identity, parent;
  u32 comm; /* the number this process's records use */
  u32 rank, size;
  const char *name;
  u8 backend;
  u8 library; /* see struct comm */
};

struct rank_call {
  i64 start, end; /* end NS_UNKNOWN if it never returned */
  i64 launched;   /* when its work was put on the stream: group end, or the call itself */
  u64 count, bytes;
  u32 comm; /* index into events.comms, INDEX_NONE if not announced */
  u32 seq, group;
  i32 peer;
  u32 thread;
  u32 run;        /* index into events.runs: where it really ran; INDEX_NONE */
  u32 collective; /* set by matching; INDEX_NONE */
  u32 arrival;    /* set by matching: index into model.arrivals */
  u32 part;       /* of a replayed call: an index into events.parts */
  u16 stream;
  u8 op, dtype, redop;
  u8 times;      /* enum kept_times; if left out, its step's begin is its start and end */
  bool failed;   /* the call returned an error */
  bool replayed; /* made by the launch of a graph; that launch is its start and end */
};

struct rank_run {
  i64 start, end;
  u64 node;      /* in the replay of a graph: its node, according to the source; else 0 */
  u32 graph;     /* the source's id of the graph in whose replay it was, 0 if in none */
  u32 comm, seq; /* as recorded: the process's own communicator number; TSCOPE_UNKNOWN */
  u32 name;      /* string number in the file */
  u32 correlation;
  u32 first_call; /* index into events.calls of the first that ran in it; INDEX_NONE */
  u32 thread;
  u16 stream;
  u8 op;       /* read from the name: an enum tscope_op, 0 for any */
  bool copies; /* by copy engines: it is made of copies that the file has one by one */
};

/* A copy on a GPU that may be part of a collective. */
struct rank_copy {
  i64 start, end;
  u64 bytes;
  u32 graph, correlation; /* as in struct rank_run */
  u16 stream;
};

/* A kernel that communicates without a call that is recorded: not NCCL's. */
struct rank_kernel {
  i64 start, end;
  i64 call_start, call_end; /* of its launch; NS_UNKNOWN */
  u32 name;                 /* string number in the file */
  u32 correlation;
  u32 graph; /* as in struct rank_run */
  u32 comm;  /* index into events.comms; INDEX_NONE until join/ has set it */
  u32 seq;
  u32 collective; /* set by matching; INDEX_NONE */
  u32 arrival;    /* set by matching: index into model.arrivals */
  u16 stream;
  u8 op; /* enum comm_op */
};

/* A graph that was made ready for launching. */
struct rank_graph {
  u32 graph;
  u32 captured;  /* number of the captured graph from which it was made, 0 if that was not seen */
  u32 gpu_graph; /* the GPU clock source's id for it, TSCOPE_UNKNOWN; 0 in old traces */
};

/* The calls of one captured graph in one replay: of the graph itself, or of a graph inside it. */
struct rank_part {
  i64 start;  /* of the launch */
  u32 replay; /* number of the replay */
  u32 gpu_graph;
};

/* A collective as NCCL itself reported it, or what the program asked NCCL for it. */
struct rank_inside {
  i64 start, end; /* when it was put on its stream; when the host saw it done, NS_UNKNOWN */
  u64 gpu_start, gpu_stop; /* by the GPU's own timer; 0 if not known */
  u32 comm, seq;           /* as recorded */
  u32 call;                /* index into events.calls; INDEX_NONE */
  u16 channels;            /* 0 if not known */
  u8 op;
  const char *algorithm, *protocol; /* NULL if not known */
  const char *asked;                /* what the program asked for; NULL */
  u64 user_tag;                     /* that the program gave the call; 0 */
};

struct rank_group {
  i64 start, end;
  u32 group, thread;
  bool failed; /* its calls were not launched: an error, or it was only simulated */
};

struct rank_wait {
  i64 start, end;
  u32 comm, seq; /* as recorded */
  u32 call;      /* index into events.calls of what is waited for; INDEX_NONE */
  u32 thread;
};

/* Whether its `seq` is that of a message to be received, and the number without saying so. */
static inline bool waits_for_message(u32 seq) {
  return seq != TSCOPE_UNKNOWN && seq & TSCOPE_TRANSFER;
}

static inline u32 number_waited_for(u32 seq) {
  return waits_for_message(seq) ? seq & ~TSCOPE_TRANSFER : seq;
}

/* CPU time that a thread had used by then. */
struct rank_cpu {
  i64 time;
  u64 cpu_ns;
  u32 thread;
};

struct rank_phase {
  i64 start, end; /* end NS_UNKNOWN while it is open */
  u32 name;       /* string number in the file */
  u32 name_hash;  /* of its text */
  u32 thread;
  u8 kind; /* enum tscope_phase */
};

/* The place from which this thread made its call at this time. */
struct rank_site {
  i64 start, end; /* the same */
  u64 stack;
  u32 thread;
  u16 tag;
};

/* The stack of a thread, or of the first thread of a forked child. */
struct rank_line_sample {
  i64 start, end; /* the same */
  u64 stack;
  u32 represented_us; /* of the time until then */
  u32 interval_us;    /* from one look at a thread to the next, as far as known; 0 */
  u32 tid;            /* 0: of the rank's first thread; of a child: its process id */
  u16 tag;            /* of its LINE_SAMPLE */
};

/* How threads were sampled. */
struct rank_line_sampling {
  u64 samples, unreadable, cpu_ns;
  u32 first_us, interval_us, slowest_us; /* from one look to the next: the first, the last, the
                                            longest; 0: unknown */
  i64 at;                                /* of the last record */
  double looks, missed; /* as many as the first interval gives until then, and those not made */
};

struct rank_mark {
  i64 time;
  u64 step;
  bool ends; /* the last step ends here and no other begins */
  u8 kind;   /* enum step_kind */
};

struct rank_step_range {
  i64 start, end; /* end NS_UNKNOWN while it is open */
  u32 number;     /* the program's own; TSCOPE_UNKNOWN */
  u32 thread;
};

/* What the rank put on the GPU again and again, where nothing else tells its steps
 * (join/launch_rounds.h). */
struct rank_round {
  i64 start, end; /* of the host; one ends where the next begins */
  double match;   /* share of its launches that are those of a usual round */
};

/* Where a step begins, or the last one ends, as find_steps.h finds them by names. */
struct rank_step_bound {
  i64 behind; /* how much later that is on the GPU, as far as collectives show it; NS_UNKNOWN */
  u8 times;   /* enum kept_times of the step */
};

struct rank_scalar {
  i64 time;
  double value;
  u64 step;
  const char *name;
};

/* The source of GPU time from here on. */
struct rank_gpu_state {
  i64 time;
  const char *reason;
  u32 reason_string; /* its number in the file */
  u32 sessions;      /* how often CUPTI was opened until then */
  u8 clock;          /* enum tscope_gpu_clock */
  bool settled;      /* all work launched before is over */
};

struct definitions;
struct communication; /* kernels/communication.h */

/* The lists of a rank, L(list, element). In order of time those of what has a start and an end,
 * and those of what has one instant. */
#define RANK_SPANS(L)                                                                              \
  L(calls, struct rank_call)                                                                       \
  L(runs, struct rank_run)                                                                         \
  L(kernels, struct rank_kernel)                                                                   \
  L(insides, struct rank_inside)                                                                   \
  L(groups, struct rank_group)                                                                     \
  L(waits, struct rank_wait)                                                                       \
  L(phases, struct rank_phase)                                                                     \
  L(sites, struct rank_site)                                                                       \
  L(line_samples, struct rank_line_sample)                                                         \
  L(step_ranges, struct rank_step_range)                                                           \
  L(rounds, struct rank_round)                                                                     \
  L(meetings, struct rank_meeting)
#define RANK_INSTANTS(L)                                                                           \
  L(cpu_times, struct rank_cpu)                                                                    \
  L(marks, struct rank_mark)                                                                       \
  L(scalars, struct rank_scalar)                                                                   \
  L(gpu_states, struct rank_gpu_state) /* each unlike the one before */                            \
  L(looks, struct rank_look)
#define RANK_OTHERS(L)                                                                             \
  L(copies, struct rank_copy)  /* until pair_runs() */                                             \
  L(graphs, struct rank_graph) /* by number */                                                     \
  L(graph_bodies, u32)         /* graphs with a part that runs as often as the GPU decides */      \
  L(captures, struct interval) /* of graphs: the host's calls launch nothing meanwhile */          \
  L(parts, struct rank_part)                                                                       \
  L(step_bounds, struct rank_step_bound) /* none: all times are kept */                            \
  L(memory_devices, u16) /* tags of TENSOR records: devices whose memory is recorded */
#define RANK_EVENT_LISTS(L) RANK_SPANS(L) RANK_INSTANTS(L) RANK_OTHERS(L)

/* Those of which the rank's events may have less than the trace, and the trace's own. */
#define RANK_WHOLE_LISTS(L)                                                                        \
  L(calls, struct rank_call)                                                                       \
  L(runs, struct rank_run)                                                                         \
  L(waits, struct rank_wait)                                                                       \
  L(insides, struct rank_inside)
#define L(list, element) VECTOR(element) list;
struct rank_whole {
  RANK_WHOLE_LISTS(L)
};

struct rank_events {
  struct arena arena;
  const struct comm_definition *comms;
  u32 n_comms;
  i64 realtime_minus_monotonic;
  u64 anchor_error_ns; /* of that difference */
  i64 last_anchor;     /* when the process is last known to have been alive; 0: not known */
  struct definitions *definitions; /* import/tscope: what else a trace of ours defines, its text
                                      apart; NULL */
  u32 *groups_before; /* [n_comms] groups of messages before the first of calls; NULL: none */
  RANK_EVENT_LISTS(L)
  struct communication *communications; /* by string number, of the kernels in the file; NULL */
  struct rank_line_sampling line_sampling;
  i64 begin, end; /* first and last instant in the file; NS_UNKNOWN if it has none */
  struct {
    const char *what; /* NULL: none did */
    i64 time;
    i32 result;
    u8 whose;                /* enum tscope_failed_call */
  } failed;                  /* the last call that failed */
  u64 launches, gpu_kernels; /* calls, and their runs: a replay of a graph is one of each */
  u64 named_ranges;
  bool cut_short; /* the process did not end normally */
  bool end_lost;  /* this happened, or it ended with a status, or the room for retained records was
                     full: the last calls and runs are incomplete */
  u32 unpaired_calls, unpaired_runs; /* see pair_runs() */
  u32 idle_calls;                    /* see rank_call_is_idle() */
  const u32 *merged_into; /* [n_unmerged] where join/ has put each of the calls; NULL: all are as
                             they were */
  u32 n_unmerged;
  u32 replayed_runs,
      replayed_known;    /* calls in graphs with their run; of those, identified by its node */
  bool names_gpu_graphs; /* the trace says which runs were in graphs */
  u64 gpu_overhead_ns, gpu_event_error_ns;
  i64 inside_error_ns;      /* largest error of runs_from_inside(); 0 if it added none */
  struct rank_whole *whole; /* NULL: this is all there is */
};
#undef L

/* All that the trace has, for who looks at single spans; the lists are of either. */
struct rank_events rank_events_whole(const struct rank_events *events);

/* Nothing is added any more: what the lists have in reserve is given back. */
void rank_events_complete(struct rank_events *events);

void rank_events_release(struct rank_events *events);

/* Whether a call puts no collective on the GPU: NCCL copies for a communicator of one rank, and
 * does nothing for no elements (enqueue.cc, "empty collectives can be discarded"). */
bool rank_call_is_idle(const struct rank_events *events, const struct rank_call *call);
/* Whether it puts work on the GPU, seen there or not. */
bool rank_call_is_on_gpu(const struct rank_events *events, const struct rank_call *call);

/* Index into events.comms of a communicator by its number; INDEX_NONE. */
u32 rank_comm_index(const struct rank_events *events, u32 number);

/* The number, from 0, of the period of open CUPTI to which work belongs. The work is launched at
 * `time`, or, if `runs`, starts then. INDEX_NONE if work launched then is not seen. Always 0 if the
 * trace does not say. */
u32 rank_cupti_session(const struct rank_events *events, i64 time, bool runs);

/* Training phases of one kind, united over threads. `out` lives in the arena. */
void unite_phases(const struct rank_events *events, u8 kind, struct arena *arena,
                  struct intervals *out);
