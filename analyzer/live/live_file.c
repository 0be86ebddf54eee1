/* SPDX-License-Identifier: MIT */
#include "live/live_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked_memory.h"

/* Unused chunks in a row after which no later one is expected to be in use: threads claim
 * them in order, but two may do so at once. */
enum { UNUSED_POLLED = 4 };
/* After this many polls without news, a chunk that has a successor is read only now and then. */
enum { IDLE_POLLS = 3, SWEPT_EACH_POLL = 4 };
enum { PENDING_MAX = 4096 };

enum live_chunk_state {
  CHUNK_UNUSED,  /* no thread has it yet */
  CHUNK_OPEN,    /* may grow */
  CHUNK_SETTLED, /* its writer went on to another chunk; a ring chunk may be used again */
  CHUNK_DAMAGED,
};

struct poll {
  struct live_file *file;
  const struct live_reader *reader;
  struct live_ring_share ring;
  u8 *buffer; /* of one chunk */
  bool gap;   /* reported in this poll */
};

static size_t read_at(struct live_file *file, u64 offset, void *buffer, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    ssize_t got = pread(file->fd, (u8 *)buffer + done, bytes - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    done += (size_t)got;
  }
  file->read_bytes += done;
  return done;
}

static u64 chunk_offset(const struct live_file *file, u32 index) {
  return file->header.header_bytes + (u64)index * file->header.chunk_bytes;
}

/* --- The file --- */

static int open_again(struct live_file *file) {
  struct stat status;
  if (file->fd < 0)
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file->fd < 0 || fstat(file->fd, &status) < 0)
    return -errno;
  if (file->inode && (status.st_ino != file->inode || status.st_dev != file->device))
    return -ESTALE;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  file->shrunk |=
      (u64)status.st_size < file->bytes && file->bytes > 0 && file->header.closed_realtime_ns == 0;
  file->bytes = (u64)status.st_size;
  return 0;
}

static void close_descriptor(struct live_file *file) {
  if (file->fd >= 0)
    close(file->fd);
  file->fd = -1;
}

int live_file_open(struct live_file *file, const char *path, char *why, size_t why_bytes) {
  struct trace_file first;
  int error = trace_file_open(&first, path, why, why_bytes);
  *file = (struct live_file){.fd = -1};
  if (error)
    return error;
  *file = (struct live_file){
      .path = strdup(path), .fd = first.fd, .keep_open = true, .header = first.header};
  error = file->path ? open_again(file) : -ENOMEM;
  if (error) {
    snprintf(why, why_bytes, "%s", strerror(-error));
    live_file_close(file);
  }
  return error;
}

void live_file_close(struct live_file *file) {
  close_descriptor(file);
  free(file->path);
  free(file->chunks.at);
  free(file->writers.at);
  free(file->open.at);
  free(file->pending.at);
  *file = (struct live_file){.fd = -1};
}

/* Reads the counters of the header again. The header of another process means that another file is
 * in its place. */
static int read_header(struct live_file *file) {
  struct tscope_file_header header;
  size_t got = read_at(file, 0, &header, sizeof(header));
  if (got < sizeof(header))
    return got ? -ENODATA : -EIO;
  const struct tscope_file_header *known = &file->header;
  if (memcmp(header.magic, known->magic, sizeof(header.magic)) != 0 || header.pid != known->pid ||
      header.start_ticks != known->start_ticks || header.chunk_bytes != known->chunk_bytes ||
      header.header_bytes != known->header_bytes)
    return -ESTALE;
  header.host[sizeof(header.host) - 1] = 0;
  header.run[sizeof(header.run) - 1] = 0;
  file->header = header;
  return 0;
}

/* --- Records --- */

/* Records whose first field is a u64 duration that is pending while they last. */
static bool may_be_pending(u8 type) {
  switch (type) {
  case TSCOPE_REC_COLLECTIVE:
  case TSCOPE_REC_COLLECTIVE_RUN:
  case TSCOPE_REC_COLLECTIVE_INSIDE:
  case TSCOPE_REC_COMM_WAIT:
  case TSCOPE_REC_GRAPH_REPLAY:
  case TSCOPE_REC_GROUP:
  case TSCOPE_REC_ONE_SIDED:
  case TSCOPE_REC_PHASE:
  case TSCOPE_REC_STEP_RANGE:
    return true;
  default:
    return false;
  }
}

static bool is_pending(const struct tscope_record *record) {
  u64 dur;
  memcpy(&dur, record + 1, sizeof(dur));
  return dur == TSCOPE_DUR_PENDING;
}

static void deliver_record(struct poll *poll, const struct live_record *record) {
  poll->file->records += !record->again;
  poll->reader->on_record(poll->reader->user, record);
}

/* Delivers the records in `bytes` bytes at the buffer's start, which follow those delivered before.
 * False when something is not a record: the chunk is not read any further. */
static bool deliver_records(struct poll *poll, struct live_chunk *chunk, u64 offset, u32 bytes) {
  struct live_file *file = poll->file;
  const struct live_writer *writer = &file->writers.at[chunk->writer];
  struct trace_cursor cursor = {
      .at = poll->buffer, .end = poll->buffer + bytes, .base = chunk->base};
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    struct live_record shown = {.record = record,
                                .time = trace_time(&cursor, record),
                                .place = offset + (u64)((const u8 *)record - poll->buffer),
                                .thread = writer->thread,
                                .clock = writer->clock,
                                .retention = writer->retention};
    if (writer->retention == TSCOPE_RETAINED && may_be_pending(record->type) &&
        is_pending(record)) {
      if (file->pending.n >= PENDING_MAX)
        file->pending.at[0] = file->pending.at[--file->pending.n];
      if (!VECTOR_PUSH(&file->pending, (struct live_pending){.place = shown.place,
                                                             .time = shown.time,
                                                             .thread = writer->thread,
                                                             .bytes = 8u * record->words,
                                                             .clock = writer->clock}))
        return false;
    }
    deliver_record(poll, &shown);
  }
  chunk->base = cursor.base;
  chunk->delivered += bytes;
  return !cursor.damaged;
}

/* Spans that were open at an earlier poll, and have ended since. */
static void poll_pending(struct poll *poll) {
  struct live_file *file = poll->file;
  u32 kept = 0;
  for (u32 i = 0; i < file->pending.n; i++) {
    struct live_pending *pending = &file->pending.at[i];
    const struct tscope_record *record = (const void *)poll->buffer;
    size_t got = read_at(file, pending->place, poll->buffer, pending->bytes);
    if (got < pending->bytes || is_pending(record)) {
      file->pending.at[kept++] = *pending;
      continue;
    }
    deliver_record(poll, &(struct live_record){.record = record,
                                               .time = pending->time,
                                               .place = pending->place,
                                               .thread = pending->thread,
                                               .clock = pending->clock,
                                               .retention = TSCOPE_RETAINED,
                                               .again = true});
  }
  file->pending.n = kept;
}

/* --- Chunks --- */

static bool is_sane(const struct live_file *file, const struct tscope_chunk_header *header) {
  u32 bytes = (u32)header->committed;
  return (header->retention == TSCOPE_RETAINED || header->retention == TSCOPE_RING) &&
         (header->clock == TSCOPE_CLOCK_TICKS || header->clock == TSCOPE_CLOCK_MONOTONIC) &&
         header->header_bytes >= sizeof(*header) && header->header_bytes % 8 == 0 &&
         header->header_bytes <= file->header.chunk_bytes && bytes % 8 == 0 &&
         bytes <= file->header.chunk_bytes - header->header_bytes;
}

/* The chunk's header as it is now. False while the chunk has nothing that may be read. */
static bool read_chunk_header(struct poll *poll, u32 index, struct tscope_chunk_header *header) {
  struct live_file *file = poll->file;
  struct live_chunk *chunk = &file->chunks.at[index];
  if (read_at(file, chunk_offset(file, index), header, sizeof(*header)) < sizeof(*header) ||
      header->magic == 0)
    return false;
  if (header->magic != TSCOPE_CHUNK_MAGIC || (header->committed && !is_sane(file, header))) {
    file->damaged += chunk->state != CHUNK_DAMAGED;
    chunk->state = CHUNK_DAMAGED;
    return false;
  }
  return header->committed != 0;
}

/* The writer of a chunk; keeps its newest chunk. UINT32_MAX without memory. */
static u32 find_writer(struct live_file *file, const struct tscope_chunk_header *header) {
  u32 i = 0;
  for (; i < file->writers.n; i++) {
    const struct live_writer *writer = &file->writers.at[i];
    if (writer->thread == header->thread && writer->retention == header->retention &&
        writer->clock == header->clock)
      break;
  }
  if (i == file->writers.n &&
      !VECTOR_PUSH(&file->writers, (struct live_writer){.thread = header->thread,
                                                        .newest = header->sequence,
                                                        .retention = header->retention,
                                                        .clock = header->clock}))
    return UINT32_MAX;
  if (header->sequence > file->writers.at[i].newest)
    file->writers.at[i].newest = header->sequence;
  return i;
}

/* A chunk found for the first time, or used again since. */
static bool begin_chunk(struct live_file *file, struct live_chunk *chunk,
                        const struct tscope_chunk_header *header) {
  u32 writer = find_writer(file, header);
  if (writer == UINT32_MAX)
    return false;
  *chunk = (struct live_chunk){.generation = header->generation,
                               .base = header->base,
                               .writer = writer,
                               .sequence = header->sequence,
                               .state = CHUNK_OPEN};
  return true;
}

static const struct live_writer *writer_at(const struct live_file *file, u32 index) {
  return &file->writers.at[file->chunks.at[index].writer];
}

static bool is_ring(const struct live_file *file, u32 index) {
  return writer_at(file, index)->retention == TSCOPE_RING;
}

static bool is_wanted(const struct poll *poll, u32 index) {
  return !is_ring(poll->file, index) || poll->ring.all ||
         (poll->ring.chunks && writer_at(poll->file, index)->clock == TSCOPE_CLOCK_MONOTONIC);
}

static void report_gap(struct poll *poll) {
  if (!poll->gap && poll->reader->on_ring_gap)
    poll->reader->on_ring_gap(poll->reader->user);
  poll->gap = true;
}

/* Whether a ring chunk was used again while it was read: it is emptied first and gets the next
 * generation, and only then is written to. */
static bool is_torn(struct poll *poll, u32 index, const struct tscope_chunk_header *before) {
  struct tscope_chunk_header now;
  if (before->retention != TSCOPE_RING)
    return false;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return read_at(poll->file, chunk_offset(poll->file, index), &now, sizeof(now)) < sizeof(now) ||
         now.generation != before->generation || now.committed < before->committed;
}

/* Reads what is new in a chunk. Returns whether anything was. */
static bool read_chunk(struct poll *poll, u32 index, const struct tscope_chunk_header *header) {
  struct live_file *file = poll->file;
  struct live_chunk *chunk = &file->chunks.at[index];
  if (chunk->generation != header->generation) { /* used again while it was open */
    report_gap(poll);
    if (!begin_chunk(file, chunk, header))
      return false;
  }
  u32 bytes = (u32)header->committed;
  if (bytes <= chunk->delivered)
    return false;
  u64 offset = chunk_offset(file, index) + header->header_bytes + chunk->delivered;
  size_t got = read_at(file, offset, poll->buffer, bytes - chunk->delivered);
  if (is_torn(poll, index, header))
    return false;
  /* The rest of a file that ends too early may come later: only complete records are delivered. */
  u32 whole = 0, left = (u32)got;
  while (got < bytes - chunk->delivered && left - whole >= sizeof(struct tscope_record)) {
    u32 words = ((const struct tscope_record *)(const void *)(poll->buffer + whole))->words;
    if (words == 0 || 8 * words > left - whole)
      break;
    whole += 8 * words;
  }
  if (got == bytes - chunk->delivered)
    whole = left;
  if (!deliver_records(poll, chunk, offset, whole)) {
    chunk->state = CHUNK_DAMAGED;
    file->damaged++;
  }
  return whole > 0;
}

/* Chunks that a thread claimed since the last poll. */
static int find_new_chunks(struct poll *poll) {
  struct live_file *file = poll->file;
  u64 body = file->bytes > file->header.header_bytes ? file->bytes - file->header.header_bytes : 0;
  u64 n = (body + file->header.chunk_bytes - 1) / file->header.chunk_bytes;
  if (n > UINT32_MAX / 2)
    n = UINT32_MAX / 2;
  if (n > 0 && !VECTOR_REACH(&file->chunks, (u32)n - 1))
    return -ENOMEM;
  u32 unused = 0, first = 0;
  while (first < file->chunks.n && file->chunks.at[first].state != CHUNK_UNUSED)
    first++;
  for (u32 i = first; i < file->chunks.n && unused < UNUSED_POLLED; i++) {
    struct tscope_chunk_header header;
    if (file->chunks.at[i].state != CHUNK_UNUSED)
      continue;
    if (!read_chunk_header(poll, i, &header)) {
      unused += file->chunks.at[i].state == CHUNK_UNUSED;
      continue;
    }
    unused = 0;
    if (!begin_chunk(file, &file->chunks.at[i], &header) || !VECTOR_PUSH(&file->open, i))
      return -ENOMEM;
  }
  return 0;
}

/* How many chunks its writer has begun since; the other clock may have as many among them. */
static u32 count_later_chunks(const struct live_file *file, u32 index) {
  return writer_at(file, index)->newest - file->chunks.at[index].sequence;
}

/* Reads an open chunk; it stays open for as long as it may be written to. */
static void poll_chunk(struct poll *poll, u32 index) {
  struct live_file *file = poll->file;
  struct live_chunk *chunk = &file->chunks.at[index];
  struct tscope_chunk_header header;
  u32 later = count_later_chunks(file, index); /* before it is read for the last time */
  bool wanted = is_wanted(poll, index);
  if (!wanted || (is_ring(file, index) && !poll->ring.all && later >= poll->ring.chunks)) {
    if (wanted)
      report_gap(poll);
    if (later)
      chunk->state = CHUNK_SETTLED;
    return;
  }
  bool news = read_chunk_header(poll, index, &header) && read_chunk(poll, index, &header);
  chunk->idle = news ? 0 : chunk->idle + 1;
  if (chunk->state == CHUNK_OPEN && later && chunk->idle >= IDLE_POLLS)
    chunk->state = CHUNK_SETTLED;
}

static void poll_chunks(struct poll *poll, bool definitions) {
  struct live_file *file = poll->file;
  u32 kept = 0;
  for (u32 i = 0; i < file->open.n; i++)
    if ((writer_at(file, file->open.at[i])->thread == 0) == definitions)
      poll_chunk(poll, file->open.at[i]);
  for (u32 i = 0; i < file->open.n; i++)
    if (file->chunks.at[file->open.at[i]].state == CHUNK_OPEN)
      file->open.at[kept++] = file->open.at[i];
  file->open.n = kept;
}

/* A settled chunk that is no longer as it was is open again. Whether it is. */
static bool reopen(struct poll *poll, u32 index) {
  struct live_file *file = poll->file;
  struct live_chunk *chunk = &file->chunks.at[index];
  struct tscope_chunk_header header;
  if (chunk->state != CHUNK_SETTLED || !read_chunk_header(poll, index, &header))
    return false;
  bool again = header.generation != chunk->generation;
  bool grown = (u32)header.committed > chunk->delivered && !is_ring(file, index);
  if ((!again && !grown) || (again && !begin_chunk(file, chunk, &header)) ||
      !VECTOR_PUSH(&file->open, index))
    return false;
  chunk->state = CHUNK_OPEN;
  return true;
}

/* Ring chunks are used again in the order in which they were filled, which is about the order of
 * their numbers; reading a few others at each poll makes up for the difference. */
static void poll_recycled(struct poll *poll) {
  struct live_file *file = poll->file;
  u32 n = file->chunks.n;
  if (n == 0 || file->header.closed_realtime_ns)
    return;
  for (u32 looked = 0; looked < n && file->header.lost[TSCOPE_LOSS_RING]; looked++) {
    u32 at = file->oldest_ring % n;
    bool settled_ring = file->chunks.at[at].state == CHUNK_SETTLED && is_ring(file, at);
    if (settled_ring && !reopen(poll, at))
      break; /* it is the next to be used again */
    file->oldest_ring = at + 1;
  }
  for (u32 i = 0; i < SWEPT_EACH_POLL; i++)
    reopen(poll, file->sweep++ % n);
}

static int poll_file(struct poll *poll) {
  int error = read_header(poll->file);
  if (error)
    return error;
  poll_pending(poll);
  poll_recycled(poll);
  error = find_new_chunks(poll);
  if (error)
    return error;
  poll_chunks(poll, true);
  poll_chunks(poll, false);
  poll_chunks(poll, true);
  return 0;
}

int live_file_poll(struct live_file *file, struct live_ring_share ring,
                   const struct live_reader *reader) {
  int error = open_again(file);
  if (error)
    return error;
  struct poll poll = {.file = file, .reader = reader, .ring = ring};
  poll.buffer = memory_array(file->header.chunk_bytes, 1);
  error = poll.buffer ? poll_file(&poll) : -ENOMEM;
  free(poll.buffer);
  if (!file->keep_open)
    close_descriptor(file);
  return error;
}
