/* SPDX-License-Identifier: MIT
 *
 * When an event of a context happened, on the host's clock. CUDA gives the time between two events.
 * Anchors connect this to the host's clock: events that are recorded on an idle stream of tscope
 * between two readings of the host's clock. Only one thread at a time may call these functions.
 */
#pragma once

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
  bool refused;  /* the driver made no stream or event: it is not asked at each tick */
  u32 n_anchors; /* measured so far; the newest is anchors[(n_anchors - 1) % EVENT_ANCHORS] */
  struct event_anchor anchors[EVENT_ANCHORS];
  double rate;           /* host nanoseconds in a nanosecond between events */
  double rate_error;     /* of that */
  u64 first_ns, next_ns; /* when the first anchor was measured, and when another is due */
};

/* The clock of a context, which must be current; NULL if there are too many contexts or no stream
 * can be made. */
struct event_clock *event_clock_of(void *context);

/* The context's clock must not be used any more; NULL: this holds for all contexts. */
void event_clock_remove(void *context);

/* Measures an anchor if one is due, and writes it into the trace, with the error that times will
 * have until the next anchor. */
void event_clock_update(struct event_clock *clock, struct tscope_thread *thread);

/* When a completed event happened, CLOCK_MONOTONIC in nanoseconds; 0 if that is not known. */
u64 event_clock_ns(const struct event_clock *clock, void *event);
