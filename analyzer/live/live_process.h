/* SPDX-License-Identifier: MIT
 *
 * What one process of a running job is doing, as far as its trace goes. All times are nanoseconds
 * of its own host's CLOCK_MONOTONIC; NS_UNKNOWN if not known.
 */
#pragma once

#include "base/hash_index.h"
#include "base/intervals.h"
#include "import/tscope/events/follow_definitions.h"
#include "import/tscope/files/follow.h"
#include "model/rank_events.h"

enum {
  LIVE_RECENT_CALLS = 32, /* of each communicator that are over; */
  LIVE_MOST_CALLS = 512,  /* and that are not, as the GPU's times may come late */
  LIVE_STEP_ENDS = 128,
  LIVE_PHASES = 4096, /* step ranges, or marks: with more, earlier steps are forgotten */
  LIVE_TOKENS = 1024,
  LIVE_OPEN = 16, /* spans of one kind that are open at once */
  LIVE_DEVICES = 16,
  LIVE_WINDOWS = 8,
  LIVE_LOOKS = 1024,
};

/* What was called on a communicator, that of the same index in definitions.now.comms. */
struct live_comm {
  bool ended;
  u32 newest;     /* seq of collectives, INDEX_NONE before the first */
  bool exchanges; /* of its messages some may be an all-to-all (join/exchanges.h) */
  u32 groups;     /* of messages, so far; */
  u32 group;      /* the last, */
  u32 sends;      /* and what was sent in it */
};

/* Messages of one process to or from one other. */
struct live_channel {
  u32 comm, peer, op; /* comm is an index into definitions.now.comms */
  u32 made;
};

/* A span that has not ended. */
struct live_open {
  u64 place;
  i64 start;
  u32 thread, name, comm, seq; /* comm is an index into definitions.now.comms */
  u8 kind;                     /* phase or op */
};
struct live_opens {
  struct live_open at[LIVE_OPEN];
  u32 n;
};

/* The latest calls, for processes that do not mark their steps. */
struct live_tokens {
  i64 start[LIVE_TOKENS];
  float pause[LIVE_TOKENS]; /* nanoseconds since the call before */
  u32 token[LIVE_TOKENS];
  u64 n;
  u64 tried;  /* n when the period was last looked for */
  u32 period; /* calls a step; 0: none found */
};

struct live_memory {
  u32 device;
  u64 allocated, reserved, peak;
};

/* A stretch in which every kernel of the GPU was seen, and how long some kernel that does not
 * communicate ran in it. */
struct live_window {
  i64 from, to;
  i64 busy;
};

struct live_last_call {
  i64 start;
  u64 place;
  u32 comm, seq; /* comm is an index into definitions.now.comms, INDEX_NONE if not known */
  u8 op;         /* 0: none yet, or of a graph */
  bool any, open;
};

/* Where a thread that trains was, for so long, the oldest overwritten. */
struct live_look {
  i64 at; /* the end of it */
  i64 ns;
  u64 stack; /* its hash */
};
struct live_looks {
  struct live_look at[LIVE_LOOKS];
  u64 n; /* of all times */
};

struct live_process {
  struct trace_follow trace;
  u64 records; /* so far */
  u32 rank;    /* TSCOPE_UNKNOWN_RANK if not known */
  struct followed_definitions definitions;
  struct kernel_names *kernel_names; /* of all processes, or NULL */
  VECTOR(u8) communicates;           /* by string, as far as kernels have that name */
  VECTOR(struct live_comm) comms;
  HASHED(struct live_channel) channels;
  u64 messages;
  struct rank_events called;         /* communicators, their last calls, and where these ran; in a
                                        CUDA graph the first of a replay, with op 0 */
  u32 calls_kept;                    /* when earlier ones were last forgotten */
  VECTOR(struct rank_run) runs;      /* whose calls are not known yet */
  VECTOR(struct rank_wait) received; /* over, of messages of the host; likewise */
  struct rank_events seen; /* marks, step ranges and phases that are over, of the last steps */
  u64 steps_before;        /* these */
  struct live_tokens tokens;
  u64 mark;         /* number of the last step mark */
  u32 range_number; /* of the last step range, INDEX_NONE if it has none */
  struct live_opens phases, waits;
  i64 last_call_end;
  i64 longest_ns; /* that a call, its run, or a wait for one took which is over */
  struct live_last_call last;
  u8 phase; /* enum tscope_phase that ended last; 0: none yet */
  struct live_memory memory[LIVE_DEVICES];
  u32 n_memory;
  u32 out_of_memory;             /* refusals */
  VECTOR(struct interval) spans; /* of this poll, without kernels that communicate */
  i64 spans_to;                  /* how far the GPU's kernels were seen; NS_UNKNOWN after a gap */
  struct live_window windows[LIVE_WINDOWS];
  u32 n_windows; /* of all times */
  struct live_looks looks;
  i64 newest;      /* of any record */
  u32 failed_call; /* string */
  i32 failed_result;
};

/* 0, or negative errno with a reason in `why`, to follow the file's name. */
int live_process_open(struct live_process *process, const char *path, char *why, size_t why_bytes);
void live_process_close(struct live_process *process);

/* Reads what was written since the last time. As trace_follow_look(). */
int live_process_poll(struct live_process *process, struct ring_share ring);

/* NULL for a number that is not known. */
static inline const char *live_string(const struct live_process *process, u32 number) {
  return definition_string(&process->definitions.now, number);
}

struct live_steps {
  const char *method; /* as the report calls it; NULL: none are known */
  bool counted;       /* else `count` is only of those that are known, by a period of calls */
  u64 count;          /* steps seen, or the program's own number of the last one */
  u32 n;              /* lengths known */
  i64 last;           /* when the last one ended */
  double lengths[LIVE_STEP_ENDS]; /* seconds, oldest first */
};

/* live_steps.c: of what is kept to tell steps, only that of later ones from now on. */
void live_forget_steps(struct live_process *process);

/* live_gpu.c: share of time in which some kernel that does not communicate ran, over the newest
 * second or so of what was seen; NAN if not known. *until: how far it was seen. */
void live_gpu_window(struct live_process *process);
double live_gpu_share(const struct live_process *process, i64 *until);

/* live_pairing.c: which call a collective kernel belongs to, and when messages of the host ran. */
void live_pair_runs(struct live_process *process);

/* Which calls to copy. */
struct live_wanted {
  u32 open;          /* so many of those that are not over; */
  u32 messages;      /* about so many messages of each communicator: whole groups; */
  bool all_messages; /* and not only where they may be an all-to-all */
};

/* live_calls.c: adds to `to` the last calls of each communicator that are over, those since then
 * that are wanted, and their runs. */
void live_copy_calls(const struct live_process *process, struct live_wanted wanted,
                     struct rank_events *to);
void live_forget_calls(struct live_process *process);

/* The newest collective, or message, of that number, by index; INDEX_NONE. For one call, which is
 * among the last: who looks for many makes named_calls. `comm`: index into called.comms. */
u32 live_find_call(const struct rank_events *called, u32 comm, u32 seq, bool message);

/* The channel of a message; INDEX_NONE. */
u32 live_channel_of(const struct live_process *process, const struct rank_call *call);
