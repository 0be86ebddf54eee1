/* SPDX-License-Identifier: MIT
 *
 * A file that is still being written: each look visits only what was committed since the last look,
 * and nothing that the writer may still change. Every byte is untrusted. The file is read with
 * pread(), never mapped: if it is cut meanwhile, a read is short and there is no signal.
 *
 * Retained records come complete and once. A span that was open (its duration pending) comes again
 * when it has ended. Of the ring only the share that the caller gives is read, newest first,
 * because a job writes there faster than a page can be read.
 */
#pragma once

#include "base/vector.h"
#include "import/tscope/files/visit.h"

/* A writer of chunks: its chunks come one after the other. */
struct followed_writer {
  u32 thread, newest; /* sequence of its newest chunk */
  u8 retention, clock;
};

/* What is known of one chunk. */
struct followed_chunk {
  u64 generation;
  u64 base; /* of the next record: the last TIME record's */
  u32 writer, sequence;
  u32 visited; /* bytes of records */
  u32 idle;    /* looks in a row that found nothing new */
  u8 state;    /* enum followed_state */
};

/* A record whose duration was pending: its chunk's header, whose base gives the record's time. */
struct followed_span {
  struct tscope_chunk_header header;
  u64 place;
  u32 bytes;
};

/* How much of the ring one look may read. */
struct ring_share {
  u32 chunks; /* newest chunks of GPU spans; 0: none */
  bool all;   /* every ring chunk, of either clock */
};

/* A file and the position in it. */
struct trace_follow {
  struct trace_file file;
  char *path;
  bool keep_open; /* between looks */
  VECTOR(struct followed_chunk) chunks;
  VECTOR(struct followed_writer) writers;
  VECTOR(u32) open; /* chunks that may still be written to */
  VECTOR(struct followed_span) pending;
  u32 oldest_ring; /* chunk that is likely to be recycled next */
  u32 sweep;       /* next of the chunks that are only read now and then */
  u64 read_bytes;  /* by all looks */
  u64 damaged;     /* chunks that contain something other than records */
  bool gap;        /* before the GPU spans of the last look there are some that were not read */
};

/* Opens the file and checks its header; nothing is read yet. 0, or negative errno with a reason in
 * `why`, to follow the file's name. */
int trace_follow_open(struct trace_follow *follow, const char *path, char *why, size_t why_bytes);
void trace_follow_close(struct trace_follow *follow);

/* One look: on_chunk gets what is new in each chunk. Thread 0's come before and after all others:
 * clock anchors are mostly known when a record needs them, and every string that a record names is
 * known at the end of the look. 0, or negative errno: -ESTALE if the file's header is no longer
 * that of this process, or the error of reading. */
int trace_follow_look(struct trace_follow *follow, struct ring_share ring, trace_on_chunk *on_chunk,
                      void *user);
