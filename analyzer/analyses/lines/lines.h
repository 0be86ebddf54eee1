/* SPDX-License-Identifier: MIT
 *
 * lines.c        what each line of the program cost
 * line_stacks.c  and each stack of lines
 * step_lines.c   what some steps run that the others do not
 * lone_line.c    what one rank alone runs
 * last_ranks_line.c  what the rank runs that comes last in a step, now one and now another
 */
#pragma once

#include "analyses/analysis.h"

/* A part of the program on a rank, from samples: a line, or a function if it is no one line, or a
 * phase; in the results' arena. */
struct sampled_line {
  const char *place, *function; /* of a function, its file; of a phase, its name, and NULL */
  const char *where;     /* "at train.py:88", "in load() of data.py", "in the forward phase" */
  const char *path;      /* "train.py:40 > data.py:12": its callers; NULL if it has none */
  bool called_elsewhere; /* others call it too: these are those from which it takes longer */
  double ms, peers_ms;   /* per step, of the rank and mean over its peers */
  double error_ms;       /* standard error of the difference, as samples show it */
  double more_ms, more_error_ms; /* the difference, also by what else shows it, and its error */
  double share;                  /* of what was sampled of its kind */
  const char
      *activity; /* "sleeping": what the thread does there most of the time; NULL: not known */
  double activity_share, no_core_share; /* of that; of the time without a core; NAN: not known */
  const char *beside; /* where another thread is while this one waits for it; NULL */
  bool beside_has_gil;
  const struct sampled_line *next; /* another line that takes longer by enough, or where this one
                                      does not explain the whole delay; NULL */
  double next_ms;                  /* how much longer than on the peers */
  double compiling_share;          /* of the time there, inside of torch.compile; NAN: not known */
  const struct sampled_line
      *inside; /* of a function with all that it calls: the line that takes most, less than half */
  bool in_workers; /* data loader workers are at it */
  bool waits;      /* the thread waits there for another thread or process most of the time */
  bool is_line;
};

/* What some steps run that the others do not. */
struct step_line {
  const struct sampled_line
      *line;          /* `ms` and `peers_ms`: in these steps, and in the others; NULL */
  u32 steps, at_line; /* of `line`: how many steps these are, and in how many of them it is */
  bool calls;         /* `line` is told with all that it calls: no line alone explains half */
  const struct sampled_line *inside; /* the one of these lines that takes most; NULL */
  u32 inside_rank;                   /* index of the rank that is there */
  const struct sampled_line *waits;  /* where the other ranks wait meanwhile; NULL */
  u32 rank;                          /* index of the rank that runs it; INDEX_NONE: several do */
  double more_steps; /* without a line: until samples would show one that takes half of the time by
                        which these steps are longer; 0: they would already; NAN: not known */
};

/* How much of the time that a job spends in none of its phases is training that it does not mark:
 * by samples, inside calls of modules, or a framework's own backward pass or step. 0 without
 * samples. */
double lines_unmarked_training(const struct analysis *a);

/* The same of a kind of other work (index into results.other_work). */
void step_line_of_work(struct analysis *a, u32 kind, struct step_line *found);

/* The same of steps of training (by step of the model, of those analysed); nothing is found where
 * the run has so many steps that several are sampled as one. */
void step_line_of_long_steps(struct analysis *a, const bool *is_long, double ms,
                             struct step_line *found);

/* Of the time that samples see data loader workers of a rank (by index) at work, in how much they
 * have a core or need one. Where looks see no workers, in how much of its input the rank waits for
 * another thread or process: what that does is not known. */
double workers_ready_share(const struct analysis *a, u32 rank);

/* A line at which one rank alone is, in some steps of training or in all. */
struct lone_line {
  const struct sampled_line *line;
  const char *when;     /* "every 7th step", "steps 1 to 20", "58 of 60 steps" */
  u32 seen, peers_seen; /* in how many steps the rank was seen there, and its peers in all */
  double ms, run_ns;    /* in such a step, and in all */
  double chance;        /* that any rank, and not its peers, was seen at any line so often */
};

/* Of each rank (by index) the one that takes most of its time; `line` stays NULL if there is none.
 * Where the run has so many steps that several are sampled as one, only lines of all steps are
 * found. They are looked for once. */
const struct lone_line *lone_lines(struct analysis *a);

/* The line at which the rank that comes last in a step is longer than the others, in the same
 * steps, by at least half of what these wait for it; NULL if there is none that chance does not
 * explain. `ms` and `peers_ms`: in such a step. Nothing is found where the run has so many steps
 * that several are sampled as one. In the results' arena. */
const struct sampled_line *last_ranks_line_find(struct analysis *a);

/* The line whose launches take most more time on the GPU of a rank (by index) than on the median of
 * its peers, and how much a step; NULL if that is less than `least_ms`. In the results' arena. */
const char *line_of_longer_gpu_work(struct analysis *a, u32 rank, double least_ms, double *more_ms);

/* Distinguishes a line from others, the same on all ranks; never 0. */
u32 line_key(const char *file, u32 line, const char *function);

/* line_key() of where the program waits in a span of a timeline; 0 if it does not or is not known.
 */
u32 line_of_span(const struct timeline *timeline, const struct span *span);

/* call_frame_place() of a line, with the function where there is no line. In the results' arena. */
char *line_place(struct analysis *a, const char *file, u32 line, const char *function);
