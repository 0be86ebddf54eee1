/* SPDX-License-Identifier: MIT
 *
 * One trace file that is still being written: each poll reads only what was committed since the
 * last poll, and nothing that the writer may still change. Every byte is untrusted. The file is
 * read with pread(), never mapped: if it is cut meanwhile, a read is short and there is no signal.
 *
 * Retained records come complete and once. A span that was open (its duration pending) comes again
 * when it has ended. Of the ring only the share that the caller gives is read, newest first,
 * because a job writes there faster than a page can be read.
 */
#ifndef TSCOPE_LIVE_FILE_H
#define TSCOPE_LIVE_FILE_H

#include <sys/types.h>

#include "base/vector.h"
#include "import/tscope/files/trace_file.h"

/* A record as it was at one poll. */
struct live_record {
  const struct tscope_record *record; /* good until the function returns */
  u64 time;                           /* absolute, in the chunk's clock units */
  u64 place;                          /* of the record in the file: the same when it comes again */
  u32 thread;
  u8 clock;     /* enum tscope_chunk_clock */
  u8 retention; /* enum tscope_retention */
  bool again;   /* it came before, with its duration pending */
};

/* The functions that get the records. Thread 0's come before and after all others of a poll: clock
 * anchors are mostly known when a record needs them, and every string that a record names is known
 * at the end of the poll. */
struct live_reader {
  void (*on_record)(void *user, const struct live_record *record);
  /* Between the GPU spans of earlier polls and those of this poll there are some that were not
   * read. */
  void (*on_ring_gap)(void *user);
  void *user;
};

/* A writer of chunks: its chunks come one after the other. */
struct live_writer {
  u32 thread, newest; /* sequence of its newest chunk */
  u8 retention, clock;
};

/* What is known of one chunk. */
struct live_chunk {
  u64 generation;
  u64 base; /* of the next record: the last TIME record's */
  u32 writer, sequence;
  u32 delivered; /* bytes of records */
  u32 idle;      /* polls in a row that found nothing new */
  u8 state;      /* enum live_chunk_state */
};

/* A record whose duration was pending. */
struct live_pending {
  u64 place, time;
  u32 thread, bytes;
  u8 clock;
};

struct live_file {
  char *path;
  int fd; /* -1 while it is not open */
  bool keep_open;
  dev_t device;
  ino_t inode;
  u64 bytes; /* at the last poll */
  struct tscope_file_header header;
  VECTOR(struct live_chunk) chunks;
  VECTOR(struct live_writer) writers;
  VECTOR(u32) open; /* chunks that may still be written to */
  VECTOR(struct live_pending) pending;
  u32 oldest_ring; /* chunk that is likely to be recycled next */
  u32 sweep;       /* next of the chunks that are only read now and then */
  u64 read_bytes;  /* by all polls */
  u64 records;     /* delivered so far */
  u64 damaged;     /* chunks that contain something other than records */
  bool shrunk;     /* it was cut shorter than what had been read */
};

/* How much of the ring one poll may read. */
struct live_ring_share {
  u32 chunks; /* newest chunks of GPU spans; 0: none */
  bool all;   /* every ring chunk, of either clock (tests) */
};

/* Opens the file and checks its header; nothing is read yet. 0, or negative errno with a reason in
 * `why`, to follow the file's name. */
int live_file_open(struct live_file *file, const char *path, char *why, size_t why_bytes);
void live_file_close(struct live_file *file);

/* One poll. 0, or negative errno: -ESTALE if the file's header is no longer that of this process,
 * -ENOMEM, or the error of reading. What was delivered before stays valid. */
int live_file_poll(struct live_file *file, struct live_ring_share ring,
                   const struct live_reader *reader);

#endif
