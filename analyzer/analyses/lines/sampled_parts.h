/* SPDX-License-Identifier: MIT
 *
 * For how long the host of a rank was in each part of the program, from samples, by slices of the
 * run: so that a part can be compared over ranks in any stretch of steps, and over steps. A slice
 * is some neighbouring steps of training, at best one; or all steps of one kind of other work.
 */
#pragma once

#include <math.h>

#include "analyses/analysis.h"
#include "base/persistence.h"
#include "model/span_call_sites.h"

enum { TRAINING_SLICES = 240, SLICES = TRAINING_SLICES + 16, PATHS = 8, PATH_FRAMES = 4 };

enum part_kind {
  OWN_LINE,     /* innermost of the user's own, while a thread that trains does not wait */
  WAIT_LINE,    /* the same while it waits for peers or for the GPU */
  WORKER_LINE,  /* of data loader workers */
  BESIDE_LINE,  /* of another thread while one that trains waits for a lock or sleeps */
  OWN_FUNCTION, /* with all that it calls, while a thread that trains does not wait */
  CALLING_LINE, /* likewise a line, of those that are in less than half of the steps */
  OWN_ACTIVITY, /* what the kernel says of that thread, at any line */
  PART_KINDS
};
enum { ACTIVITIES = 16 }; /* enum tscope_activity */

struct part_time {
  u32 slice, steps; /* in how many of its steps there was a sample */
  i64 ns;
};

/* The callers of a line of the user's own, innermost first, and how long it was called so. */
struct sampled_path {
  struct call_frame *frames;
  u32 n;
  i64 ns;
};

struct sampled_part {
  u64 key; /* the same on all ranks */
  enum part_kind kind;
  const char *file, *function;
  u32 line;                    /* of an activity: which */
  i64 activity_ns[ACTIVITIES]; /* of all its time */
  i64 gil_ns, compiling_ns;    /* while it held the GIL; inside of torch.compile */
  struct part_time *times;     /* by slice in order of time */
  u32 n_times;
  struct sampled_path *paths; /* those that took most, the first most; none where it took little */
  u32 n_paths;
};

/* In how much of its time the thread was ready and had no core; NAN where what it did is unknown.
 */
static inline double no_core_share(const struct sampled_part *part) {
  i64 all = TOTAL(i64, part->activity_ns, ACTIVITIES, one, *one);
  return all ? (double)part->activity_ns[TSCOPE_ACTIVITY_NO_CORE] / (double)all : (double)NAN;
}

struct rank_parts {
  struct sampled_part *at; /* of those that were always seen together the innermost is first */
  u32 n, steps[SLICES];    /* steps of each slice that the rank has */
  double sample_ns;        /* what a sample stands for, mean; NAN without any */
};

/* How a rank's time in a part in one slice of training follows from that in the one before, but for
 * the slices in `without` (NULL: none); added to `to`, or with `sign` -1 taken away again. */
void part_persistence(const struct rank_parts *parts, const struct sampled_part *part,
                      const bool *without, double sign, struct persistence *to);

/* The slice of an analysed step (index into model.steps). */
u32 slice_of_step(const struct analysis *a, u32 step);

/* A sample of the rank in an analysed step. */
struct part_sample {
  u32 stack, step, line; /* `line`: frame */
  i64 ns;
  enum part_kind kind;
  u8 activity;
  bool holds_gil;
};

/* Whether what takes `ms` is called by the other: it takes less, or as long if the other does
 * nothing else. Both are parts of one rank, and functions or calling lines. */
bool part_is_inside(const struct sampled_part *part, double ms, const struct sampled_part *other,
                    double other_ms);

struct part_collector;

struct part_collector *parts_collect_new(const struct call_sites *sites, struct arena *scratch);
void parts_collect(struct part_collector *c, const struct analysis *a, struct part_sample sample);
/* Copies what was collected for the rank. */
void parts_collect_end(struct part_collector *c, const struct analysis *a, u32 rank,
                       struct arena *arena, struct rank_parts *out);
