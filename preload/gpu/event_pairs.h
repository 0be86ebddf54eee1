/* SPDX-License-Identifier: MIT
 *
 * Pairs of events around work that is being put on a stream, for a process without CUPTI. Each
 * stream has its own pool, made at its first use, which never grows. So a stream that hangs
 * does not affect the others: when its pool is used up, further work is dropped and counted.
 * Nothing is recorded on a stream that is being captured, where it would become part of the graph.
 *
 *   event_pair_ticket pair = event_pair_begin(stream, default_stream, index);
 *   result = real(...);                               // puts the work on the stream
 *   event_pair_end(pair, result == ok ? &subject : NULL);
 */
#pragma once

#include "streams/stream_numbers.h"

/* One use of a pair, 0 for none. A pair that is not ended while its pool has to begin 256 others is
 * taken away, and counted; the ticket then ends nothing. */
typedef u64 event_pair_ticket;

/* What the work is: a collective, or a function of which one call in so many is timed. */
struct event_subject {
  const char *name; /* lives for ever */
  u32 comm;         /* of a collective */
  u32 seq;          /* of a collective; for a sampled call, the number that is also in its record */
  u32 one_in;       /* 0: a collective */
};

extern u8 event_pairs_wanted;

TSCOPE_NOINLINE event_pair_ticket event_pair_open(cudaStream_t stream,
                                                  enum tscope_default_stream default_stream,
                                                  u16 index);
TSCOPE_NOINLINE void event_pair_close(event_pair_ticket ticket,
                                      const struct event_subject *subject);

/* 0 if events are not the source, or no pair is free. `index` is the stream's number. */
static inline event_pair_ticket
event_pair_begin(cudaStream_t stream, enum tscope_default_stream default_stream, u16 index) {
  if (TSCOPE_LIKELY(!__atomic_load_n(&event_pairs_wanted, __ATOMIC_RELAXED)))
    return 0;
  return event_pair_open(stream, default_stream, index);
}

/* `subject` NULL: the work was not put on the stream after all. */
static inline void event_pair_end(event_pair_ticket ticket, const struct event_subject *subject) {
  if (TSCOPE_UNLIKELY(ticket != 0))
    event_pair_close(ticket, subject);
}

/* The stream is about to be destroyed: its number and its pairs are released. */
void event_pairs_stream_destroy(cudaStream_t stream);

/* Only the pairs of the stream with this number. */
void event_pairs_release(u16 index);

/* A context is about to be destroyed, or the calling thread's device is about to be reset (NULL: it
 * is not known which contexts that ends, so all are meant). Its events are destroyed with it: they
 * are not queried or recorded any more. */
void event_pairs_context_destroy(void *context);

/* No event is queried between the two: a call in between may end a context, and only then it is
 * known whether it did. True if they are held, for the second. */
bool event_pairs_hold(void);
void event_pairs_let_go(bool held);
