/* SPDX-License-Identifier: MIT
 *
 * Moments in which a rank's process stalled, and what its threads were doing, according to its
 * trace.
 */
#pragma once

#include "model/span_call_sites.h"

/* Texts are NULL where not known. */
struct stalled_thread {
  u32 tid;          /* 0 if not known */
  u32 number;       /* as its recorded calls have it; INDEX_NONE if it has none */
  char state;       /* the kernel's letter: R, S, D, T, ...; 0 if not known */
  u8 waits_for;     /* enum tscope_activity, but for the GIL; 0 if nobody said it */
  const char *name; /* as the kernel has it */
  const char *wait; /* the kernel's function that it sleeps in */
  const char *call; /* system call that it is in */
  const char *file; /* what that is about */
  bool main;        /* the process's first thread */
  bool python;      /* Python knows it */
  bool holds_gil;
  bool moved;                       /* its frames changed while they were read, so it runs */
  bool cut;                         /* there were further frames outside of all */
  const struct call_frame **frames; /* innermost first */
  u32 n_frames;
};

/* Another process of the same parent, whose first thread does not just sleep: stopped (T, t),
 * waiting for a device (D), or ended (Z, X). */
struct stalled_peer {
  u32 pid;
  char state;
  const char *wait, *call, *file; /* as of a thread */
};

/* What NCCL reported about a communicator meanwhile. */
struct stalled_comm {
  u32 comm;         /* the process's own number */
  const char *name; /* what people call it, or its size */
  i32 result;       /* its asynchronous error, 0 for none: see nccl_error_text() */
  bool heard;       /* the job had queried it, not tscope */
};

struct rank_stall {
  u8 what;                        /* enum tscope_stall */
  i64 begin;                      /* something last moved */
  i64 looked;                     /* the threads were read */
  i64 end;                        /* it went on; NS_UNKNOWN: not as far as the trace goes */
  double limit_s;                 /* it is a stall after so long */
  double step_s;                  /* median step until then; NAN */
  u32 all_threads;                /* of the process; there may be fewer below */
  const char *no_python;          /* why there are no Python frames; NULL */
  const char *folder;             /* in which the process was started; NULL if not known */
  struct stalled_thread *threads; /* the first one first */
  u32 n_threads;
  struct stalled_peer *peers;
  u32 n_peers;
  struct stalled_comm *comms; /* those of which it is known, each once */
  u32 n_comms;
};

/* Without threads yet, all else not known. */
struct rank_stall rank_stall_empty(void);

/* Its thread of this number; NULL if it has none, or the number is 0. */
struct stalled_thread *rank_stall_thread(const struct rank_stall *stall, u32 tid);

/* NCCL's own words for an error. */
const char *nccl_error_text(i32 result);

struct rank_clock;
struct rank;

/* The time in which a process did not run, if it ended in the same moment in which it was let go:
 * what it did in that moment does not tell when it stopped. `alive`: its last sign of life. NULL if
 * there is none. */
const struct rank_stall *rank_last_pause(const struct rank *rank, i64 alive);

/* Puts the instants of stalls on the model's axis. */
void rank_stalls_place(struct rank_stall *stalls, u32 n, const struct rank_clock *clock);
