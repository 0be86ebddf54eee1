/* SPDX-License-Identifier: MIT
 *
 * Pairs of events around work that is being put on a stream, for a process without CUPTI. Each
 * stream has its own pool, made at its first use, which never grows. So a stream that hangs
 * does not affect the others: when its pool is used up, further work is dropped and counted.
 * Nothing is recorded on a stream that is being captured, where it would become part of the graph.
 *
 *   struct event_pair *pair = event_pair_begin(thread, stream, default_stream, index);
 *   result = real(...);                               // puts the work on the stream
 *   event_pair_end(pair, result == ok ? &subject : NULL);
 */
#ifndef TSCOPE_EVENT_PAIRS_H
#define TSCOPE_EVENT_PAIRS_H

#include "streams/stream_numbers.h"

struct event_pair;

/* What the work is: a collective, or a function of which one call in so many is timed. */
struct event_subject {
  const char *name; /* lives for ever */
  u32 comm;         /* of a collective */
  u32 seq;          /* of a collective; for a sampled call, the number that is also in its record */
  u32 one_in;       /* 0: a collective */
};

extern u8 event_pairs_wanted;

TSCOPE_NOINLINE struct event_pair *
event_pair_open(cudaStream_t stream, enum tscope_default_stream default_stream, u16 index);
TSCOPE_NOINLINE void event_pair_close(struct event_pair *pair, const struct event_subject *subject);

/* NULL if events are not the source, or no pair is free. `index` is the stream's number. */
static inline struct event_pair *
event_pair_begin(cudaStream_t stream, enum tscope_default_stream default_stream, u16 index) {
  if (TSCOPE_LIKELY(!__atomic_load_n(&event_pairs_wanted, __ATOMIC_RELAXED)))
    return NULL;
  return event_pair_open(stream, default_stream, index);
}

/* `subject` NULL: the work was not put on the stream after all. */
static inline void event_pair_end(struct event_pair *pair, const struct event_subject *subject) {
  if (TSCOPE_UNLIKELY(pair != NULL))
    event_pair_close(pair, subject);
}

/* The stream is about to be destroyed: its number and its pairs are released. */
void event_pairs_stream_destroy(cudaStream_t stream);

/* Only the pairs of the stream with this number. */
void event_pairs_release(u16 index);

/* A context is about to be destroyed, or the calling thread's device is about to be reset (NULL: it
 * is not known which contexts that ends, so all are meant). Its events are destroyed with it: they
 * are not queried or recorded any more. */
void event_pairs_context_destroy(void *context);

#endif
