/* SPDX-License-Identifier: MIT
 *
 * When, on the host's clock, an event of a context happened. CUDA tells the time between two
 * events; the way to the host's clock are anchors: events recorded on an idle stream of tscope's
 * own between two looks at the clock. One thread at a time calls these.
 */
#ifndef TSCOPE_EVENT_CLOCK_H
#define TSCOPE_EVENT_CLOCK_H

#include "record/hook.h"

enum { EVENT_ANCHORS = 8 };

struct event_anchor {
  void *event;
  u64 host_ns;    /* CLOCK_MONOTONIC, the middle of the bracket */
  u64 bracket_ns; /* its width */
};

struct event_clock {
  void *context;
  void *stream;
  int device;
  u32 n_anchors; /* taken so far; the newest is anchors[(n_anchors - 1) % EVENT_ANCHORS] */
  struct event_anchor anchors[EVENT_ANCHORS];
  double rate;           /* host nanoseconds in a nanosecond between events */
  double rate_error;     /* of that */
  u64 first_ns, next_ns; /* when the first anchor was taken, and when another is due */
};

/* The clock of a context, which is current; NULL when there are too many or its stream cannot be
 * had. */
struct event_clock *event_clock_of(void *context);

/* The context's clock is not to be used any more; NULL: none is. */
void event_clock_forget(void *context);

/* Takes an anchor if one is due, and writes it into the trace with the error that times given until
 * the next will have. */
void event_clock_keep(struct event_clock *clock, struct tscope_thread *thread);

/* When an event that is done happened, CLOCK_MONOTONIC in nanoseconds; 0 if that is not known. */
u64 event_clock_ns(const struct event_clock *clock, void *event);

#endif
