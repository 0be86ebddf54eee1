/* SPDX-License-Identifier: MIT
 *
 * A run at one instant, with its ranks joined: the source of every page, document and metric. Times
 * are in seconds, NAN if not known. Texts belong to the run and are valid until its next poll.
 */
#pragma once

#include "analyses/stalls/stack_tree.h"
#include "base/arena.h"
#include "live/live_run.h"

enum live_state {
  LIVE_RUNNING,
  LIVE_SILENT,  /* no sign of life for a while, for an unknown reason */
  LIVE_STOPPED, /* by a signal or a debugger; also frozen, if a trace says so */
  LIVE_GONE,    /* its end was not recorded, and the process no longer exists */
  LIVE_KILLED,  /* by a signal, as its launcher saw */
  LIVE_FAILED,  /* it ended with a status other than 0 */
  LIVE_ENDED,
  LIVE_UNCERTAIN, /* the trace's version has no signs of life */
};

/* Which arrival times of ranks a lateness was measured by. */
enum live_arrival { LIVE_ARRIVAL_NONE, LIVE_ARRIVAL_RUN, LIVE_ARRIVAL_CALL };

struct live_rank {
  const struct live_entry *entry;
  struct live_process *process;
  u32 rank, host; /* host is an index into view.hosts */
  enum live_state state;
  char what[160];  /* the state in words */
  double silent_s; /* since its last sign of life */
  double quiet_s;  /* since it last recorded anything of the job, as of its last sign of life */
  i64 seen_ns;     /* its own clock, up to which its trace was written */
  struct live_steps steps;
  double step_s;       /* length of its last step */
  double usual_s;      /* median of the last ones */
  double since_step_s; /* since its last step ended */
  const char *phase;   /* it is in now, NULL if none is known */
  double phase_s;
  const char *op; /* last collective or message, NULL before the first */
  const char *group;
  double called_s;  /* since it was called */
  bool in_call;     /* it has not returned */
  double in_wait_s; /* how long the host has been waiting for a collective; NAN if it is not */
  const char *stalled_in;         /* where it stalls, as its watchdog says; NULL */
  const struct rank_stall *stall; /* its threads then; NULL */
  double stalled_s;
  const char *nccl_error; /* of a communicator of it, as NCCL says it meanwhile; NULL */
  double late_s;          /* behind the median rank at a step's collectives, where it is latest */
  enum live_arrival late_by;
  const char *late_at;  /* the line that makes it late, "train.py:88 (load)"; NULL */
  const char *late_why; /* of a late rank without such a line: why it has none; NULL */
  double late_more_s;   /* how much longer than its peers it is there, in a step */
  i32 waits_for;        /* rank that it waits for, -1 none or several */
  u32 n_waits_for;      /* ranks that it waits for */
  double waits_s;
  const char *waits_in; /* "all_reduce of GROUP"; NULL */
  double gpu;           /* share of time in which kernels other than collectives' ran */
  double memory, peak, reserved, gpu_memory; /* bytes */
  u64 lost, overwritten;                     /* records */
};

/* A collective in which ranks wait, as the report's check of collectives finds it. */
struct live_wait {
  const char *group, *op;
  u32 seq;
  u32 *absent, *waiting; /* indices into view.ranks: those that it waits for, and those in it */
  u32 n_absent, n_waiting;
  bool called;         /* one of `absent` has called it, and its end was not recorded */
  bool message, sends; /* of a message: the one that waits sends it */
  u32 no_trace;        /* members without a trace that it waits for */
  double since_s;      /* that the first of those there waits */
};

/* Ranks called different things where all should have called the same. */
struct live_mismatch {
  const char *group, *op, *call;
  const char *state, *detail; /* "type mismatch"; which ranks called what */
  u32 seq;
};

struct live_host {
  const char *name, *clock; /* clock: TSCOPE_INFO_CLOCK; NULL */
  u32 ranks;
  bool here;                               /* this machine, since its last boot */
  const struct tscope_file_header *header; /* of one of its processes */
  double error_s;  /* of its clock on the axis of all, at most; NAN if it is not on that */
  u32 ends;        /* that tie it to that axis */
  double behind_s; /* how far what can be read here is behind; NAN if not known */
};

struct live_view {
  struct arena arena;
  const struct live_run *run;
  struct live_rank *ranks;          /* by rank */
  struct model *model;              /* their last calls, see live_model_make() */
  u32 n_ranks, world;               /* world: 0 if not known */
  u32 n_running, n_trouble, n_over; /* ranks by state: fine, not, and ended normally */
  u32 left_out, unreadable;
  u32 numbered; /* ranks that the traces do not tell */
  struct live_host *hosts;
  u32 n_hosts;
  double since_start_s;
  u64 now_realtime_ns;
  const char *step_method; /* NULL: no steps are known */
  const struct live_rank
      *reference; /* the rank whose steps represent the job's; NULL if no rank has any */
  double step_s, rate, since_step_s;
  struct live_wait *waits;
  u32 n_waits;
  struct live_mismatch *mismatches;
  u32 n_mismatches;
  struct stack_tree stalls; /* stacks of the ranks that stall, merged */
  u32 n_stalled;
  u64 lost[TSCOPE_LOSS_REASONS];
  u64 damaged;
  double threshold_s; /* from which on waiting is worth words */
};

/* live_messages.c: of two ranks that exchange messages, what is kept begins with the same one. */
void live_align_messages(const struct live_view *view, struct model *model);

/* Makes the view of a run that was just polled. */
void live_view_make(struct live_view *view, struct live_run *run);
void live_view_release(struct live_view *view);

const char *live_state_name(enum live_state state);

/* As far as is known. What was last measured of a rank that does not run is no news of it. */
bool live_is_running(const struct live_rank *rank);
bool live_is_in_trouble(const struct live_rank *rank); /* it does not run, and has not ended */

/* A communicator's name for people; in the view's arena. */
const char *live_group_name(struct live_view *view, const struct comm_definition *comm);

/* live_state.c: the rank's state, its silence, and up to when its trace was written; now is on our
 * clocks. */
void live_find_state(struct live_view *view, struct live_rank *rank, i64 realtime, i64 monotonic);

/* Seconds from one instant to a later one of the same clock; NAN where either is not known. */
double live_seconds_between(i64 from, i64 to);

/* live_steps.c: the steps of all ranks. `hint`: the period of a rank's calls, 0 for none; what was
 * found is left there. */
void live_find_steps(struct live_view *view, u32 *hint);

/* live_stalls.c: where the rank stalls, if it does. */
void live_describe_stall(struct live_view *view, struct live_rank *rank);
/* The stacks of all that do, as one tree. */
void live_merge_stalls(struct live_view *view);

/* live_join.c: what is known of the clocks of hosts; lateness. */
void live_join(struct live_view *view);

/* live_lines.c: the lines that make ranks late. */
void live_find_late_lines(struct live_view *view);

/* live_model.c: the last calls of all ranks as the report's model, for questions that the report's
 * own functions answer: one rank of it for each of view.ranks, in the same order, joined up to
 * collectives on one axis. `pending`: those that are pending are wanted too. What it refers to is
 * good until the next poll; model_free(). */
struct model *live_model_make(const struct live_view *view, bool pending);

/* live_waits.c: who waits for whom, and calls that differ; whether it is worth asking. */
bool live_waits_matter(const struct live_view *view);
void live_find_waits(struct live_view *view);
