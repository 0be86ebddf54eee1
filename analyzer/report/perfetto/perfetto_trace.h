/* SPDX-License-Identifier: MIT
 *
 * One Perfetto trace in the making: packets go into a buffer, and that to the file as it fills.
 *
 *   perfetto.c        the report: what is at the top, and the ranks below
 *   perfetto_trace.c  tracks, names and the file
 *   perfetto_rank.c   one rank as a process of the trace
 */
#pragma once

#include <stdio.h>

#include "base/vector.h"
#include "report/perfetto/perfetto_fields.h"
#include "report/perfetto/protobuf.h"
#include "report/timeline/shown.h"

/* What annotations are called; each is announced once a sequence. */
#define PERFETTO_ANNOTATIONS(A)                                                                    \
  A(STEP, "step")                                                                                  \
  A(WHOLE_NAME, "whole name")                                                                      \
  A(FLOPS, "floating-point operations")                                                            \
  A(TFLOPS, "TFLOP/s")                                                                             \
  A(SHAPE, "m x n x k")                                                                            \
  A(BYTES, "bytes")                                                                                \
  A(GBPS, "GB/s")                                                                                  \
  A(BUSBW, "bus bandwidth, GB/s")                                                                  \
  A(COMM, "communicator")                                                                          \
  A(SEQ, "sequence number")                                                                        \
  A(MEMBERS, "ranks")                                                                              \
  A(PEER, "other rank")                                                                            \
  A(DTYPE, "element type")                                                                         \
  A(ALGORITHM, "algorithm")                                                                        \
  A(PROTOCOL, "protocol")                                                                          \
  A(WAIT, "waited for the last rank, ns")                                                          \
  A(TRANSFER, "transfer, ns")                                                                      \
  A(SIZES, "sizes")                                                                                \
  A(WHERE, "called in")                                                                            \
  A(PLACE, "source line")                                                                          \
  A(RANK, "rank")                                                                                  \
  A(REACHED_BY, "the path comes to it by")                                                         \
  A(SEVERITY, "severity")                                                                          \
  A(SAVING, "saving, s")                                                                           \
  A(EVIDENCE, "evidence")                                                                          \
  A(ACTION, "what to do")                                                                          \
  A(ID, "finding")

enum perfetto_annotation {
  ANNOTATES_NOTHING,
#define A(ID, name) ANNOTATES_##ID,
  PERFETTO_ANNOTATIONS(A)
#undef A
};

struct perfetto_trace {
  FILE *out;
  struct zlib_writer *gzip; /* NULL: as it is */
  struct protobuf buffer;
  i64 origin;    /* times are written since this, so that none is negative */
  u64 written;   /* bytes before compression, the buffer's not counted */
  u64 next_uuid; /* of tracks */
  u32 next_sequence;
  i32 next_order;   /* of processes, and of the tracks above them */
  VECTOR(u32) pids; /* that are taken */
  u64 flows;        /* distinguishes runs: added to each flow's id */
  int error;        /* negative errno of the file */
};

/* `out` is the caller's. */
int perfetto_trace_begin(struct perfetto_trace *trace, FILE *out, bool gzip, i64 origin);

/* Writes what is left. 0, or the negative errno of the first error. */
int perfetto_trace_end(struct perfetto_trace *trace);

static inline u64 perfetto_trace_bytes(const struct perfetto_trace *trace) {
  return trace->written + trace->buffer.n;
}

struct perfetto_track {
  const char *name; /* as in the recording */
  const char *description;
  u64 parent;       /* uuid, 0 for none */
  i32 order;        /* among its siblings */
  const char *unit; /* of a counter; NULL: no counter */
  bool bytes;       /* the unit is bytes, which viewers know */
  u32 pid;          /* of a process, else 0 */
};

/* Returns its uuid. */
u64 perfetto_track(struct perfetto_trace *trace, u32 sequence, const struct perfetto_track *track);

/* Announces the names of annotations. Returns the sequence's number. */
u32 perfetto_sequence(struct perfetto_trace *trace);

/* Text as a trace can hold it: valid UTF-8, not endless. The caller frees. */
enum { PERFETTO_NAME_BYTES = 256, PERFETTO_TEXT_BYTES = 64 * 1024 };
char *perfetto_text(const char *text, size_t most);

/* Opens an event's packet and the event in it; both are closed by perfetto_event_end(). */
struct perfetto_event {
  size_t packet, event;
};
struct perfetto_event perfetto_event_begin(struct perfetto_trace *trace, u32 sequence, i64 time,
                                           u32 type, u64 track);
void perfetto_event_end(struct perfetto_trace *trace, struct perfetto_event event);

void perfetto_annotate_int(struct perfetto_trace *trace, enum perfetto_annotation what, i64 value);
void perfetto_annotate_double(struct perfetto_trace *trace, enum perfetto_annotation what,
                              double value); /* nothing for NAN */
void perfetto_annotate_text(struct perfetto_trace *trace, enum perfetto_annotation what,
                            const char *value); /* nothing for NULL */

/* A whole slice of its own name on a track, for tracks with few. `notes` adds annotations. */
void perfetto_end_slice(struct perfetto_trace *trace, u32 sequence, i64 time, u64 track);

/* perfetto_rank.c: a rank below everything that is there. 0, or negative errno. */
int perfetto_rank(struct perfetto_trace *trace, const struct shown_scope *scope,
                  const struct shown_rank *rank, const char *run);
