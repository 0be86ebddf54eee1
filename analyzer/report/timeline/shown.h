/* SPDX-License-Identifier: MIT
 *
 * What a picture of a run shows: some steps of some ranks, chosen so that they can be looked at,
 * with all that ran in them. The HTML page, the Perfetto trace and the database are written from
 * it.
 *
 *   choose.c         which steps and ranks, and what is left out; choose_recorded.c where there
 *                    are no timelines
 *   show.c           loads one rank after the other and hands each to the visitor
 *   rank_lanes.c     one rank's lanes and spans
 *   rank_counters.c  memory, queues and waiting of one rank
 *   rank_calls.c     ranks of which only calls are known (flight-recorder dumps)
 *
 * Times are int64 nanoseconds on the model's axis; they may be negative. Indices of ranks and steps
 * are those of struct model, unless a comment says "global". INDEX_NONE: none, or not known.
 */
#pragma once

#include "analyses/results/results.h"
#include "base/arena.h"

/* What the reader wants, and how much the output can hold. */
struct shown_request {
  const char *ranks;    /* --ranks: these only; NULL: as many as there is room for */
  bool steps_requested; /* --steps was given: all steps of the model */
  double all_steps;   /* without --steps: all of them too, if these are no more events; 0: never */
  u32 most_ranks;     /* where --ranks is not given; 0: no such limit */
  double most_events; /* of all ranks and steps together, by estimate; INFINITY: no limit */
  unsigned threads;   /* 0: one per core; so many ranks are in memory at a time */
};

/* Why a step is among those shown, in words for the reader. */
#define SHOWN_REASONS(R)                                                                           \
  R(ALL, "all")                                                                                    \
  R(REQUESTED, "requested")                                                                        \
  R(MEDIAN, "median")                                                                              \
  R(SLOWEST, "slowest")                                                                            \
  R(AFTER_CHANGE, "first after the run became slower")
enum shown_reason {
#define R(name, text) SHOWN_##name,
  SHOWN_REASONS(R)
#undef R
};
extern const char *const shown_reason_words[];

struct shown_step {
  u32 step;
  enum shown_reason why;
};

/* What there is to show. Recordings that come beside timelines on a clock of their own are left
 * out, and that is reported. */
enum shown_source {
  SHOWN_NOTHING,
  SHOWN_TIMELINES,
  SHOWN_RECORDED_CALLS, /* of the flight record: of ranks that hang only their calls are known */
  SHOWN_MEMORIES,       /* snapshots of allocators */
  SHOWN_SCALARS,        /* values of training by step, no times: a step takes SHOWN_STEP_NS */
};

#define SHOWN_STEP_NS 1000000

/* The choice. */
struct shown_scope {
  const struct results *results;
  enum shown_source source;
  struct shown_request request;
  struct shown_step *steps; /* ascending; none: the run as a whole, from begin to end */
  u32 n_steps;
  u32 *ranks; /* ascending; indices into model.ranks, or flight.ranks, or model.memories */
  u32 n_ranks;
  i64 begin, end;        /* of all that is shown, over all ranks; without steps, cut to this */
  const char **left_out; /* a sentence each, for the reader */
  u32 n_left_out;
  const char *path_reason; /* why no critical path is shown; NULL if one is */
  u32 path_steps;          /* it is shown of the first so many of `steps`; 1 of a whole run */
  u32 path_lead; /* so many steps before each are walked too: hosts that are ahead launch there */
  struct arena arena; /* of the above */
};

/* Release it in any case. */
void shown_choose(const struct results *results, const struct shown_request *request,
                  struct shown_scope *scope);
void shown_release(struct shown_scope *scope);

/* Of inputs without timelines: sets ranks, begin and end by scope->source; SHOWN_NOTHING where no
 * time is known. */
void choose_recorded(struct shown_scope *scope);

enum shown_lane_kind {
  SHOWN_STEPS,
  SHOWN_PHASES,      /* of one thread */
  SHOWN_CALLS,       /* of one thread: launches, waits, operators */
  SHOWN_STREAM,      /* kernels, memcpys and memsets of one GPU stream */
  SHOWN_COLLECTIVES, /* as they ran on one stream, or in one worker of a CPU backend */
  SHOWN_GROUP,       /* recorded calls of one group */
};

struct shown_lane {
  const char *name;
  u32 id; /* thread number, or stream index; 0 of steps */
  u8 kind;
  u8 rows; /* spans that overlap without nesting lie in rows of their own; at least 1 */
};

struct shown_name {
  const char *text;     /* for people, shortened */
  const char *whole;    /* demangled; often the same */
  const char *category; /* of a kernel of this name: what it does; NULL */
};

/* span.kind beside those of enum span_kind: a step, and a recorded call, from when it was made to
 * the end of the record if it was pending, else of no length: when it ended is not known */
enum { SHOWN_STEP = 0, SHOWN_CALL = 15 };

struct shown_span {
  i64 start, end;       /* whole, not cut to the steps */
  const char *category; /* "compute: gemm", "launch", "all_reduce", ...; equal texts are mostly
                           equal pointers */
  u32 name;             /* index into names */
  u32 lane;             /* index into lanes */
  u32 launch;           /* on the device: index into spans of the call that put it there */
  u32 arrival;          /* of a collective: index into model.arrivals */
  u32 arithmetic;       /* of a call, or of work it launched: index into timeline->arithmetic */
  u32 recorded;         /* index into flight.calls */
  u32 frame;   /* line of the program, of a call or of the call that launched it: index into
                  timeline->call_sites->frames */
  i32 step;    /* under way when it started, -1 outside or not known; a call's by its host,
                  work by its GPU */
  float bytes; /* of a memcpy or memset; 0: not known */
  u8 kind;     /* enum span_kind, SHOWN_STEP or SHOWN_CALL */
  u8 row;      /* in its lane */
};

struct shown_value {
  i64 time;
  double value; /* from then on */
};

/* What the values of a counter are of. */
#define SHOWN_UNITS(U)                                                                             \
  U(BYTES, "bytes") U(SPEED, "bytes/s") U(LAUNCHES, "launches") U(CALLS, "collectives")
enum shown_unit {
#define U(name, text) SHOWN_UNIT_##name,
  SHOWN_UNITS(U)
#undef U
};
extern const char *const shown_unit_words[];

struct shown_counter {
  const char *name; /* "memory allocated", "queue of stream 7", "copying, host to device" */
  enum shown_unit unit;
  struct shown_value *at; /* by time */
  u32 n;
  u32 lane; /* that it belongs to, or INDEX_NONE */
};

struct shown_rank {
  u32 rank;                  /* INDEX_NONE where the model has no such rank */
  u32 number;                /* global; INDEX_NONE: not known */
  const char *host, *device; /* NULL: not known */
  const char *why_empty;     /* what could not be read; NULL */
  struct shown_lane *lanes;  /* steps, phases, calls, streams, collectives: in the order to show */
  struct shown_name *names;
  struct shown_span *spans; /* by start; what encloses others at the same time comes first */
  struct shown_counter *counters;
  u32 n_lanes, n_names, n_spans, n_counters;
  const struct timeline *timeline; /* all of the rank's; NULL where there is none */
};

/* A collective as one rank saw it. Times in ns, NS_UNKNOWN; numbers NAN where not known. */
struct shown_collective {
  const char *op, *comm, *dtype;
  const char *algorithm, *protocol; /* NULL: not recorded */
  u32 collective;         /* index into model.collectives: the same for all members; INDEX_NONE */
  u32 comm_index;         /* in model.comms; INDEX_NONE */
  u32 seq, members, peer; /* peer: global rank at the other end of a message, INDEX_NONE */
  double bytes;
  i64 wait, transfer; /* until the last member came; from then on */
  double busbw_gbps;  /* 1e9 bytes per s */
};

struct shown_collective shown_collective(const struct shown_scope *scope, u32 arrival,
                                         struct arena *arena);

/* One stretch of the critical path. */
struct shown_stretch {
  i64 start, end;
  u32 rank;
  const char *name, *category;
  const char *reached_by; /* "thread", "launch", "collective", ...: how the path comes to it */
};

/* Of one step, or of the whole run. */
struct shown_path {
  i32 step;                              /* -1: the run */
  const struct shown_stretch *stretches; /* by time, without gaps */
  u32 n;
};

/* Each call returns 0, or a negative errno that ends the walk; NULL where not wanted. They come
 * from one thread at a time. What is handed over lives until the call returns. */
struct shown_visitor {
  int (*rank)(void *user, const struct shown_rank *rank); /* in order of their numbers */
  int (*path)(void *user, const struct shown_path *path); /* after all ranks, by time */
  void *user;
};

/* 0, or negative errno. */
int shown_walk(const struct shown_scope *scope, const struct shown_visitor *visitor);
