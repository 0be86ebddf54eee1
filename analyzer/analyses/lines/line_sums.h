/* SPDX-License-Identifier: MIT
 *
 * What each line of the program cost on one rank: shared by lines.c and sampled_lines.c.
 */
#pragma once

#include "analyses/analysis.h"
#include "analyses/lines/sampled_parts.h"
#include "model/span_call_sites.h"

struct line_sum {
  const char *file, *function;
  u32 line;
  u64 samples, calls, of_backward;
  i64 wait_ns, idle_ns, input_ns, comm_ns, exposed_ns;
  double waits, collectives, launches, gpu_ns, backward_gpu_ns;
  /* sampled: of the first thread; the part of it in the data phase, in no phase, and while the GPU
   * had nothing to do for want of it; of data loader workers */
  i64 host_ns, host_input_ns, host_outside_ns, host_launching_ns, host_capturing_ns, worker_ns;
};

/* Kinds of a host's time in samples, while its thread does not wait, and of its workers. */
enum host_time {
  HOST_WORKERS,
  HOST_INPUT,
  HOST_OUTSIDE, /* of all phases and of what trains */
  HOST_LAUNCHING,
  HOST_CAPTURING,
  HOST_TIMES
};

struct host_times {
  i64 all, training, of[HOST_TIMES];
};

/* In which at least half of a kind is, with all that it calls; `frame` is NULL if there is none. */
struct host_function {
  struct call_frame *frame;
  i64 ns;
};

/* Of one rank, in an arena of its own; ranks are analysed in parallel. */
struct line_sums {
  struct arena arena;
  struct line_sum *at;
  u32 n;
  u64 sites, samples;
  bool of_functions, of_operators;
  bool calls_unknown;  /* the ring has those of no step from begin to end */
  bool idle_unknown;   /* the GPU was not watched after any of its waits */
  i64 input_ns;        /* of the data phase in samples, at any line */
  i64 input_waits_ns;  /* of it waiting for another thread or process */
  i64 outside_ns;      /* of no phase in samples, but not waiting */
  i64 launching_ns;    /* in samples, while the GPU had nothing to do for want of it */
  i64 capturing_ns;    /* in samples, while it captured a CUDA graph */
  i64 training_ns;     /* of no phase in samples, but inside a function that is training */
  i64 worker_ns;       /* likewise of workers while they were at a line of the user's */
  i64 worker_ready_ns; /* of it with a core or in need of one */
  i64 workers_ns, workers_busy_ns; /* of workers in samples; of it at a line of the user's */
  u32 worker_looks;                /* in how many samples */
  u32 n_workers;                   /* most that were at such a line in the same time */
  bool one_worker_is_busier;       /* than all together, for certain */
  double busiest_worker;           /* of its time it is at most so at such a line; 1: not known */
  struct rank_parts parts;
  struct fewer_looks fewer;
  struct call_frame *last; /* where the first thread was last seen; NULL */
  bool last_ends;          /* where a thread, the first or another, ended the process by _exit() */
  struct call_frame *loop; /* the own line in which a library trains; NULL */
  struct host_function functions[HOST_TIMES];
};

/* Steps of the rank that sums are divided by. */
double line_steps_of(const struct analysis *a, u32 rank);

/* For SORT(): by file, line and function. */
int line_sums_by_line(const void *left, const void *right);

struct stack_cost;

/* sampled_lines.c: adds what was sampled on the rank of the timeline to `sums` [frames], of which
 * line_of_stack[] says the one of each stack, and to `costs` [stacks]. */
void sampled_lines_rank(struct analysis *a, const struct timeline *timeline,
                        const u32 *line_of_stack, struct line_sum *sums, struct stack_cost *costs,
                        struct arena *scratch, struct line_sums *out);

/* busiest_function.c: from the times of each stack; but for functions that train, as main() does.
 */
void busiest_functions(const struct call_sites *sites, const struct host_times *of_stack,
                       struct line_sums *out);

/* Fills in the samples of the ranks' results. */
void sampled_lines_summarise(struct analysis *a);

struct sampled_line;

/* part_lines.c: a part in words, without its times. */
struct sampled_line *line_of_part(struct analysis *a, const struct sampled_part *part);

/* A function, with all that it calls. */
struct sampled_line *line_of_function(struct analysis *a, const struct call_frame *frame);

/* Of a part that takes longer than it should: by which of its paths (NULL: it has none). */
void line_set_path(struct analysis *a, const struct sampled_part *part,
                   const struct sampled_path *path, struct sampled_line *line);

/* If the thread waits in that part for another one most of the time: that one is at `beside`
 * (NULL: not known) meanwhile. */
void line_set_beside(struct analysis *a, const struct sampled_part *part,
                     const struct sampled_part *beside, struct sampled_line *line);

/* slow_parts.c: for each rank, the part of the program that takes longer there than on its peers;
 * of a straggler, one that explains why it is late. */
void slow_parts_summarise(struct analysis *a);
