/* SPDX-License-Identifier: MIT */
#include "live/live_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Unused chunks in a row after which nobody is expected to have taken a later one: threads take
 * them in order, but two may be at it at once. */
enum { UNUSED_LOOKED_AT = 4 };
/* After this many looks without news, a chunk that has a successor is read only now and then. */
enum { IDLE_LOOKS = 3, SWEPT_EACH_LOOK = 4 };
enum { PENDING_MAX = 4096 };

enum live_chunk_state {
  CHUNK_UNUSED,  /* nobody has it yet */
  CHUNK_OPEN,    /* may grow */
  CHUNK_SETTLED, /* its writer went on to another chunk; a ring chunk may be used again */
  CHUNK_DAMAGED,
};

struct look {
  struct live_file *file;
  const struct live_reader *reader;
  struct live_ring_share ring;
  u8 *buffer; /* of one chunk */
  bool gap;   /* told for this look */
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

static void let_go(struct live_file *file) {
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
  let_go(file);
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

static void hand_record_over(struct look *look, const struct live_record *record) {
  look->file->records += !record->again;
  look->reader->take(look->reader->user, record);
}

/* Delivers the records in `bytes` bytes at the buffer's start, which follow those taken before.
 * False when something is not a record: the chunk is not read any further. */
static bool tell_records(struct look *look, struct live_chunk *chunk, u64 offset, u32 bytes) {
  struct live_file *file = look->file;
  const struct live_writer *writer = &file->writers.at[chunk->writer];
  struct trace_cursor cursor = {
      .at = look->buffer, .end = look->buffer + bytes, .base = chunk->base};
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    struct live_record shown = {.record = record,
                                .time = trace_time(&cursor, record),
                                .place = offset + (u64)((const u8 *)record - look->buffer),
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
    hand_record_over(look, &shown);
  }
  chunk->base = cursor.base;
  chunk->taken += bytes;
  return !cursor.damaged;
}

/* Spans that were open at an earlier look, and have ended since. */
static void look_at_pending(struct look *look) {
  struct live_file *file = look->file;
  u32 kept = 0;
  for (u32 i = 0; i < file->pending.n; i++) {
    struct live_pending *pending = &file->pending.at[i];
    const struct tscope_record *record = (const void *)look->buffer;
    size_t got = read_at(file, pending->place, look->buffer, pending->bytes);
    if (got < pending->bytes || is_pending(record)) {
      file->pending.at[kept++] = *pending;
      continue;
    }
    hand_record_over(look, &(struct live_record){.record = record,
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
static bool read_chunk_header(struct look *look, u32 index, struct tscope_chunk_header *header) {
  struct live_file *file = look->file;
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
static u32 writer_of(struct live_file *file, const struct tscope_chunk_header *header) {
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

/* A chunk met for the first time, or used again since. */
static bool begin_chunk(struct live_file *file, struct live_chunk *chunk,
                        const struct tscope_chunk_header *header) {
  u32 writer = writer_of(file, header);
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

static bool wants(const struct look *look, u32 index) {
  return !is_ring(look->file, index) || look->ring.all ||
         (look->ring.chunks && writer_at(look->file, index)->clock == TSCOPE_CLOCK_MONOTONIC);
}

static void tell_gap(struct look *look) {
  if (!look->gap && look->reader->ring_gap)
    look->reader->ring_gap(look->reader->user);
  look->gap = true;
}

/* Whether a ring chunk was used again while it was read: it is emptied first and gets the next
 * generation, and only then is written to. */
static bool is_torn(struct look *look, u32 index, const struct tscope_chunk_header *before) {
  struct tscope_chunk_header now;
  if (before->retention != TSCOPE_RING)
    return false;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return read_at(look->file, chunk_offset(look->file, index), &now, sizeof(now)) < sizeof(now) ||
         now.generation != before->generation || now.committed < before->committed;
}

/* Takes what is new in a chunk. Whether anything was. */
static bool take_chunk(struct look *look, u32 index, const struct tscope_chunk_header *header) {
  struct live_file *file = look->file;
  struct live_chunk *chunk = &file->chunks.at[index];
  if (chunk->generation != header->generation) { /* used again while it was open */
    tell_gap(look);
    if (!begin_chunk(file, chunk, header))
      return false;
  }
  u32 bytes = (u32)header->committed;
  if (bytes <= chunk->taken)
    return false;
  u64 offset = chunk_offset(file, index) + header->header_bytes + chunk->taken;
  size_t got = read_at(file, offset, look->buffer, bytes - chunk->taken);
  if (is_torn(look, index, header))
    return false;
  /* The rest of a file that ends too early may come later: only complete records are taken. */
  u32 whole = 0, left = (u32)got;
  while (got < bytes - chunk->taken && left - whole >= sizeof(struct tscope_record)) {
    u32 words = ((const struct tscope_record *)(const void *)(look->buffer + whole))->words;
    if (words == 0 || 8 * words > left - whole)
      break;
    whole += 8 * words;
  }
  if (got == bytes - chunk->taken)
    whole = left;
  if (!tell_records(look, chunk, offset, whole)) {
    chunk->state = CHUNK_DAMAGED;
    file->damaged++;
  }
  return whole > 0;
}

/* Chunks that somebody took since the last look. */
static int find_new_chunks(struct look *look) {
  struct live_file *file = look->file;
  u64 body = file->bytes > file->header.header_bytes ? file->bytes - file->header.header_bytes : 0;
  u64 n = (body + file->header.chunk_bytes - 1) / file->header.chunk_bytes;
  if (n > UINT32_MAX / 2)
    n = UINT32_MAX / 2;
  if (n > 0 && !VECTOR_REACH(&file->chunks, (u32)n - 1))
    return -ENOMEM;
  u32 unused = 0, first = 0;
  while (first < file->chunks.n && file->chunks.at[first].state != CHUNK_UNUSED)
    first++;
  for (u32 i = first; i < file->chunks.n && unused < UNUSED_LOOKED_AT; i++) {
    struct tscope_chunk_header header;
    if (file->chunks.at[i].state != CHUNK_UNUSED)
      continue;
    if (!read_chunk_header(look, i, &header)) {
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
static u32 successors(const struct live_file *file, u32 index) {
  return writer_at(file, index)->newest - file->chunks.at[index].sequence;
}

/* Looks at an open chunk; it stays open for as long as it may be written to. */
static void look_at_open(struct look *look, u32 index) {
  struct live_file *file = look->file;
  struct live_chunk *chunk = &file->chunks.at[index];
  struct tscope_chunk_header header;
  u32 later = successors(file, index); /* before it is read for the last time */
  bool wanted = wants(look, index);
  if (!wanted || (is_ring(file, index) && !look->ring.all && later >= look->ring.chunks)) {
    if (wanted)
      tell_gap(look);
    if (later)
      chunk->state = CHUNK_SETTLED;
    return;
  }
  bool news = read_chunk_header(look, index, &header) && take_chunk(look, index, &header);
  chunk->idle = news ? 0 : chunk->idle + 1;
  if (chunk->state == CHUNK_OPEN && later && chunk->idle >= IDLE_LOOKS)
    chunk->state = CHUNK_SETTLED;
}

static void look_at_chunks(struct look *look, bool definitions) {
  struct live_file *file = look->file;
  u32 kept = 0;
  for (u32 i = 0; i < file->open.n; i++)
    if ((writer_at(file, file->open.at[i])->thread == 0) == definitions)
      look_at_open(look, file->open.at[i]);
  for (u32 i = 0; i < file->open.n; i++)
    if (file->chunks.at[file->open.at[i]].state == CHUNK_OPEN)
      file->open.at[kept++] = file->open.at[i];
  file->open.n = kept;
}

/* A settled chunk that is no longer as it was is open again. Whether it is. */
static bool reopen(struct look *look, u32 index) {
  struct live_file *file = look->file;
  struct live_chunk *chunk = &file->chunks.at[index];
  struct tscope_chunk_header header;
  if (chunk->state != CHUNK_SETTLED || !read_chunk_header(look, index, &header))
    return false;
  bool again = header.generation != chunk->generation;
  bool grown = (u32)header.committed > chunk->taken && !is_ring(file, index);
  if ((!again && !grown) || (again && !begin_chunk(file, chunk, &header)) ||
      !VECTOR_PUSH(&file->open, index))
    return false;
  chunk->state = CHUNK_OPEN;
  return true;
}

/* Ring chunks are used again in the order in which they were filled, which is about the order of
 * their numbers; reading a few others at each look makes up for the difference. */
static void look_for_recycled(struct look *look) {
  struct live_file *file = look->file;
  u32 n = file->chunks.n;
  if (n == 0 || file->header.closed_realtime_ns)
    return;
  for (u32 looked = 0; looked < n && file->header.lost[TSCOPE_LOSS_RING]; looked++) {
    u32 at = file->oldest_ring % n;
    bool settled_ring = file->chunks.at[at].state == CHUNK_SETTLED && is_ring(file, at);
    if (settled_ring && !reopen(look, at))
      break; /* it is the next to be used again */
    file->oldest_ring = at + 1;
  }
  for (u32 i = 0; i < SWEPT_EACH_LOOK; i++)
    reopen(look, file->sweep++ % n);
}

static int look_at_file(struct look *look) {
  int error = read_header(look->file);
  if (error)
    return error;
  look_at_pending(look);
  look_for_recycled(look);
  error = find_new_chunks(look);
  if (error)
    return error;
  look_at_chunks(look, true);
  look_at_chunks(look, false);
  look_at_chunks(look, true);
  return 0;
}

int live_file_look(struct live_file *file, struct live_ring_share ring,
                   const struct live_reader *reader) {
  int error = open_again(file);
  if (error)
    return error;
  struct look look = {.file = file, .reader = reader, .ring = ring};
  look.buffer = malloc(file->header.chunk_bytes);
  error = look.buffer ? look_at_file(&look) : -ENOMEM;
  free(look.buffer);
  if (!file->keep_open)
    let_go(file);
  return error;
}
