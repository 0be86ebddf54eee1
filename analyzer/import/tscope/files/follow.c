/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/follow.h"

#include <stdlib.h>

#include "import/tscope/files/chunk_read.h"

/* Unused chunks in a row after which no later one is expected to be in use: threads claim
 * them in order, but two may do so at once. */
enum { UNUSED_READ = 4 };
/* After this many looks without news, a chunk that has a successor is read only now and then. */
enum { IDLE_LOOKS = 3, SWEPT_EACH_LOOK = 4 };
enum { MOST_PENDING = 4096 };

enum followed_state {
  CHUNK_UNUSED,  /* no thread has it yet */
  CHUNK_OPEN,    /* may grow */
  CHUNK_SETTLED, /* its writer went on to another chunk; a ring chunk may be used again */
  CHUNK_DAMAGED,
};

struct look {
  struct trace_follow *follow;
  struct ring_share ring;
  trace_on_chunk *on_chunk;
  void *user;
  u8 *buffer; /* of one chunk */
};

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
  return trace_whole_dur(record) == TSCOPE_DUR_PENDING;
}

/* Keeps what is still open in the chunk, and the time that the next record's is relative to. False
 * when something is not a record: the chunk is not read any further. */
static bool keep_position(struct look *look, struct followed_chunk *known,
                          const struct trace_chunk *chunk) {
  struct trace_follow *follow = look->follow;
  struct trace_cursor cursor = trace_records(chunk);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    if (chunk->header.retention != TSCOPE_RETAINED || !may_be_pending(record->type) ||
        !is_pending(record))
      continue;
    struct followed_span span = {.header = chunk->header,
                                 .place = chunk->place + (u64)((const u8 *)record - chunk->records),
                                 .bytes = 8u * record->words};
    span.header.base = cursor.base;
    if (follow->pending.n >= MOST_PENDING)
      follow->pending.at[0] = follow->pending.at[--follow->pending.n];
    VECTOR_PUSH(&follow->pending, span);
  }
  known->base = cursor.base;
  known->visited += chunk->bytes;
  return !cursor.damaged;
}

/* Spans that were open at an earlier look, and have ended since. */
static void look_at_pending(struct look *look) {
  struct trace_follow *follow = look->follow;
  u32 kept = 0;
  for (u32 i = 0; i < follow->pending.n; i++) {
    struct followed_span span = follow->pending.at[i];
    size_t got = trace_file_read(&follow->file, span.place, look->buffer, span.bytes);
    follow->read_bytes += got;
    if (got < span.bytes || is_pending((const void *)look->buffer))
      follow->pending.at[kept++] = span;
    else
      look->on_chunk(look->user, &(struct trace_chunk){.records = look->buffer,
                                                       .count = 1,
                                                       .again = true,
                                                       SAME(&span, header, place, bytes)});
  }
  follow->pending.n = kept;
}

/* The chunk's header as it is now. False while the chunk has nothing that may be read. */
static bool peek(struct look *look, u32 index, struct trace_chunk *chunk) {
  struct trace_follow *follow = look->follow;
  struct followed_chunk *known = &follow->chunks.at[index];
  enum trace_chunk_state state = trace_chunk_peek(&follow->file, index, chunk);
  follow->read_bytes += sizeof(chunk->header);
  if (state == TRACE_CHUNK_DAMAGED) {
    follow->damaged += known->state != CHUNK_DAMAGED;
    known->state = CHUNK_DAMAGED;
  }
  return state == TRACE_CHUNK_READ;
}

/* The writer of a chunk; keeps its newest chunk. */
static u32 find_writer(struct trace_follow *follow, const struct tscope_chunk_header *header) {
  u32 i = 0;
  for (; i < follow->writers.n; i++) {
    const struct followed_writer *writer = &follow->writers.at[i];
    if (writer->thread == header->thread && writer->retention == header->retention &&
        writer->clock == header->clock)
      break;
  }
  if (i == follow->writers.n)
    VECTOR_PUSH(&follow->writers, (struct followed_writer){.newest = header->sequence,
                                                           SAME(header, thread, retention, clock)});
  follow->writers.at[i].newest = MAX(header->sequence, follow->writers.at[i].newest);
  return i;
}

/* A chunk found for the first time, or used again since. */
static void begin_chunk(struct trace_follow *follow, struct followed_chunk *known,
                        const struct tscope_chunk_header *header) {
  *known = (struct followed_chunk){.writer = find_writer(follow, header),
                                   .state = CHUNK_OPEN,
                                   SAME(header, generation, base, sequence)};
}

static const struct followed_writer *writer_at(const struct trace_follow *follow, u32 index) {
  return &follow->writers.at[follow->chunks.at[index].writer];
}

static bool is_ring(const struct trace_follow *follow, u32 index) {
  return writer_at(follow, index)->retention == TSCOPE_RING;
}

static bool is_wanted(const struct look *look, u32 index) {
  return !is_ring(look->follow, index) || look->ring.all ||
         (look->ring.chunks && writer_at(look->follow, index)->clock == TSCOPE_CLOCK_MONOTONIC);
}

/* Visits what is new in a chunk. Returns whether anything was. */
static bool look_at_news(struct look *look, u32 index, struct trace_chunk *chunk) {
  struct trace_follow *follow = look->follow;
  struct followed_chunk *known = &follow->chunks.at[index];
  if (known->generation != chunk->header.generation) { /* used again while it was open */
    follow->gap = true;
    begin_chunk(follow, known, &chunk->header);
  }
  if (chunk->bytes <= known->visited || trace_chunk_load(&follow->file, index, known->visited,
                                                         look->buffer, chunk) != TRACE_CHUNK_READ)
    return false;
  follow->read_bytes += chunk->bytes;
  chunk->header.base = known->base;
  if (!keep_position(look, known, chunk)) {
    known->state = CHUNK_DAMAGED;
    follow->damaged++;
  }
  if (chunk->bytes)
    look->on_chunk(look->user, chunk);
  return chunk->bytes > 0;
}

/* Chunks that a thread claimed since the last look. */
static void find_new_chunks(struct look *look) {
  struct trace_follow *follow = look->follow;
  struct trace_chunk chunk;
  u32 n = follow->file.n_chunks, unused = 0, first = 0;
  if (n > 0)
    VECTOR_REACH(&follow->chunks, n - 1);
  while (first < n && follow->chunks.at[first].state != CHUNK_UNUSED)
    first++;
  for (u32 i = first; i < n && unused < UNUSED_READ; i++) {
    if (follow->chunks.at[i].state != CHUNK_UNUSED)
      continue;
    if (!peek(look, i, &chunk)) {
      unused += follow->chunks.at[i].state == CHUNK_UNUSED;
      continue;
    }
    unused = 0;
    begin_chunk(follow, &follow->chunks.at[i], &chunk.header);
    VECTOR_PUSH(&follow->open, i);
  }
}

/* How many chunks its writer has begun since; the other clock may have as many among them. */
static u32 count_later_chunks(const struct trace_follow *follow, u32 index) {
  return writer_at(follow, index)->newest - follow->chunks.at[index].sequence;
}

/* Reads an open chunk; it stays open for as long as it may be written to. */
static void look_at_chunk(struct look *look, u32 index) {
  struct trace_follow *follow = look->follow;
  struct followed_chunk *known = &follow->chunks.at[index];
  struct trace_chunk chunk;
  u32 later = count_later_chunks(follow, index); /* before it is read for the last time */
  bool wanted = is_wanted(look, index);
  if (!wanted || (is_ring(follow, index) && !look->ring.all && later >= look->ring.chunks)) {
    follow->gap |= wanted;
    if (later)
      known->state = CHUNK_SETTLED;
    return;
  }
  bool news = peek(look, index, &chunk) && look_at_news(look, index, &chunk);
  known->idle = news ? 0 : known->idle + 1;
  if (known->state == CHUNK_OPEN && later && known->idle >= IDLE_LOOKS)
    known->state = CHUNK_SETTLED;
}

static void look_at_chunks(struct look *look, bool definitions) {
  struct trace_follow *follow = look->follow;
  FOR_EACH(follow->open.at, follow->open.n, each)
    if ((writer_at(follow, *each)->thread == 0) == definitions)
      look_at_chunk(look, *each);
  follow->open.n =
      KEEP_WHERE(follow->open.at, follow->open.n, one, follow->chunks.at[*one].state == CHUNK_OPEN);
}

/* A settled chunk that is no longer as it was is open again. Whether it is. */
static bool reopen(struct look *look, u32 index) {
  struct trace_follow *follow = look->follow;
  struct followed_chunk *known = &follow->chunks.at[index];
  struct trace_chunk chunk;
  if (known->state != CHUNK_SETTLED || !peek(look, index, &chunk))
    return false;
  bool again = chunk.header.generation != known->generation;
  bool grown = chunk.bytes > known->visited && !is_ring(follow, index);
  if (!again && !grown)
    return false;
  if (again)
    begin_chunk(follow, known, &chunk.header);
  VECTOR_PUSH(&follow->open, index);
  known->state = CHUNK_OPEN;
  return true;
}

/* Ring chunks are used again in the order in which they were filled, which is about the order of
 * their numbers; reading a few others at each look makes up for the difference. */
static void look_at_recycled(struct look *look) {
  struct trace_follow *follow = look->follow;
  u32 n = follow->chunks.n;
  if (n == 0 || follow->file.header.closed_realtime_ns)
    return;
  for (u32 looked = 0; looked < n && follow->file.header.lost[TSCOPE_LOSS_RING]; looked++) {
    u32 at = follow->oldest_ring % n;
    bool settled_ring = follow->chunks.at[at].state == CHUNK_SETTLED && is_ring(follow, at);
    if (settled_ring && !reopen(look, at))
      break; /* it is the next to be used again */
    follow->oldest_ring = at + 1;
  }
  for (u32 i = 0; i < SWEPT_EACH_LOOK; i++)
    reopen(look, follow->sweep++ % n);
}

static void look_at_file(struct look *look) {
  look_at_pending(look);
  look_at_recycled(look);
  find_new_chunks(look);
  look_at_chunks(look, true);
  look_at_chunks(look, false);
  look_at_chunks(look, true);
}

int trace_follow_open(struct trace_follow *follow, const char *path, char *why, size_t why_bytes) {
  *follow = (struct trace_follow){.keep_open = true};
  int error = trace_file_open(&follow->file, path, why, why_bytes);
  if (!error)
    follow->path = memory_text(path);
  return error;
}

void trace_follow_close(struct trace_follow *follow) {
  trace_file_close(&follow->file);
  FREE_EACH(follow, path, chunks.at, writers.at, open.at, pending.at);
  *follow = (struct trace_follow){.file.fd = -1};
}

int trace_follow_look(struct trace_follow *follow, struct ring_share ring, trace_on_chunk *on_chunk,
                      void *user) {
  int error = trace_file_refresh(&follow->file, follow->path);
  follow->read_bytes += sizeof(follow->file.header);
  if (error)
    return error;
  struct look look = {.follow = follow, .ring = ring, .on_chunk = on_chunk, .user = user};
  look.buffer = memory_array(follow->file.header.chunk_bytes, 1);
  follow->gap = false;
  look_at_file(&look);
  free(look.buffer);
  if (!follow->keep_open)
    trace_file_close(&follow->file);
  return 0;
}
