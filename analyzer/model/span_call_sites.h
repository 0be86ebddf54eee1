/* SPDX-License-Identifier: MIT
 *
 * From which lines of the program calls came. Part of a rank's timeline, where the trace has it.
 */
#ifndef TSCOPE_MODEL_CALL_SITES_H
#define TSCOPE_MODEL_CALL_SITES_H

#include "model/model.h"

/* Texts are NULL where the frame could not be read. */
struct call_frame {
  const char *file, *function;
  u32 line; /* 0 if none */
  u32 first_line;
  bool others;         /* known not to be the user's, whatever the file */
  const char *library; /* of a frame of C or C++: the file that its code is in; NULL: Python's */
};

/* Innermost first; `cut`: there were further ones outside of all. */
struct call_stack {
  const u32 *frames; /* index into call_sites.frames */
  u32 n;
  bool cut;
};

struct call_site {
  i64 time; /* the start of the call */
  u32 stack;
  u32 weight; /* how many calls it stands for */
  u16 lane;
  bool of_backward; /* the stack is that of backward(), or of the forward, on another thread */
  bool of_forward;  /* it is that of the operator whose backward made the call */
};

/* A moment at which the first thread was looked at. */
struct line_sample {
  i64 time;
  i64 stands_ns; /* of the time until then it stands for so much */
  u32 stack;
  u32 child; /* process id of the child that it is about, 0: the rank itself */
};

struct call_sites {
  struct call_frame *frames;
  struct call_stack *stacks;
  struct call_site *sites;
  u32 *of_span;                /* [n_spans] of the timeline: index into sites, INDEX_NONE */
  struct line_sample *samples; /* sorted by time */
  u32 n_frames, n_stacks, n_sites, n_samples;
  bool of_functions; /* a line is the one where its function begins */
};

/* Whether a file is the user's own code: not Python's library, not an installed package, not made
 * up by a program. */
bool call_frame_is_users(const struct call_frame *frame);

/* The innermost frame of the user's own code, else the innermost of all that has a name;
 * INDEX_NONE.
 */
u32 call_stack_line(const struct call_sites *sites, const struct call_stack *stack);

#endif
