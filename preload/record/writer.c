/* SPDX-License-Identifier: MIT
 *
 * The slow side of recording: a writer's next chunk, and a new time base within one.
 */
#include <string.h>

#include "record/atomics.h"
#include "record/cancellation.h"
#include "record/carry.h"
#include "record/chunk_pool.h"
#include "record/process_trace.h"
#include "record/self_cost.h"
#include "record/thread.h"
#include "record/tick_clock.h"

/* A base leaves room for records that started before the one for which it is made: 4 s in ticks, 1
 * s in nanoseconds. */
static u64 base_for(u64 units) {
  const u64 room = 1u << 30;
  return units > room ? units - room : 0;
}

/* The index of this writer among the thread's writers, from 0. A writer in a family's memory is
 * remembered, so that its chunk is passed on when the thread ends. -1 if there is no room for
 * it. */
static int index_of(struct tscope_thread *thread, struct tscope_writer *writer) {
  if (writer == &thread->ring || writer == &thread->retained)
    return writer == &thread->retained;
  for (int i = 0; i < (int)LENGTH_OF(thread->more); i++) {
    if (!thread->more[i])
      thread->more[i] = writer;
    if (thread->more[i] == writer)
      return 2 + i;
  }
  return -1;
}

void tscope_writer_retire(struct tscope_writer *writer) {
  if (writer->chunk)
    tscope_carry_filled(tscope_trace_number(writer->chunk));
  if (writer->chunk && writer->retention == TSCOPE_RING)
    tscope_chunk_pool_release(writer->chunk);
  writer->chunk = NULL;
  writer->cursor = writer->limit = NULL;
}

/* Gives the writer a fresh chunk. The chunk's fields are complete before its magic is set. A reused
 * chunk already has its magic, and its committed is 0 from the moment when it was acquired. */
static bool next_chunk(struct tscope_thread *thread, struct tscope_writer *writer, u64 units) {
  enum tscope_loss loss = TSCOPE_LOSS_THREADS;
  struct tscope_chunk_header *chunk = NULL;
  tscope_writer_retire(writer);
  int index = index_of(thread, writer);
  if (index >= 0)
    chunk = tscope_chunk_pool_acquire(writer->retention,
                                      thread->number ? TSCOPE_EVENTS : TSCOPE_DEFINITIONS, &loss);
  if (!chunk) {
    tscope_count_lost(loss, 1);
    return false;
  }
  writer->base = base_for(units);
  writer->sequence = thread->chunks[writer->retention == TSCOPE_RING]++;
  tscope_carry_begun(tscope_trace_number(chunk));
  chunk->retention = writer->retention;
  chunk->clock = writer->clock;
  chunk->header_bytes = sizeof(*chunk);
  chunk->thread = thread->number;
  chunk->sequence = writer->sequence;
  chunk->base = writer->base;
  __atomic_store_n(&chunk->magic, TSCOPE_CHUNK_MAGIC, __ATOMIC_RELEASE);
  writer->chunk = chunk;
  __atomic_store_n(&thread->filling[index], 1 + tscope_trace_number(chunk), __ATOMIC_RELEASE);
  writer->committed = 0;
  writer->cursor = (u8 *)(chunk + 1);
  /* One word less than there is room for: tscope_commit_long() may need it. */
  writer->limit = (u8 *)chunk + TSCOPE_CHUNK_BYTES - 8;
  return true;
}

static void rebase(struct tscope_writer *writer, u64 units) {
  struct tscope_time_record *time = (struct tscope_time_record *)(void *)writer->cursor;
  writer->base = base_for(units);
  *time = (struct tscope_time_record){
      .header = {.type = TSCOPE_REC_TIME, .words = sizeof(*time) / 8}, .base = writer->base};
  tscope_commit(writer, sizeof(*time));
}

static void *reserve(struct tscope_thread *thread, struct tscope_writer *writer, u64 units, u8 type,
                     u16 tag, u32 bytes) {
  if (bytes > 8 * TSCOPE_MAX_RECORD_WORDS)
    return NULL;
  if (writer->limit - writer->cursor < (ptrdiff_t)(bytes + sizeof(struct tscope_time_record)) &&
      !next_chunk(thread, writer, units))
    return NULL;
  if (units - writer->base > UINT32_MAX)
    rebase(writer, units);
  struct tscope_record *record = (struct tscope_record *)(void *)writer->cursor;
  *record = (struct tscope_record){
      .type = type, .words = (u8)(bytes / 8), .tag = tag, .time = (u32)(units - writer->base)};
  return record;
}

void *tscope_reserve_slow(struct tscope_thread *thread, struct tscope_writer *writer, u64 units,
                          u8 type, u16 tag, u32 bytes) {
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  u64 start = tscope_ticks();
  void *record = reserve(thread, writer, units, type, tag, bytes);
  tscope_atomic_add(&tscope_slow_path_ticks, tscope_ticks() - start);
  return record;
}

static void *put_retained(struct tscope_thread *thread, u64 start, u8 type, u16 tag,
                          const void *record, u32 bytes) {
  struct tscope_record *place = tscope_reserve(thread, &thread->retained, start, type, tag, bytes);
  if (place)
    memcpy(place + 1, (const struct tscope_record *)record + 1, bytes - sizeof(*place));
  return place;
}

bool tscope_retain(struct tscope_thread *thread, u64 start, u8 type, u16 tag, void *record,
                   u32 bytes) {
  if (!put_retained(thread, start, type, tag, record, bytes))
    return false;
  tscope_commit(&thread->retained, bytes);
  return true;
}

u64 *tscope_span_open(struct tscope_thread *thread, u64 start, u8 type, u16 tag, void *record,
                      u32 bytes) {
  struct tscope_record *place = put_retained(thread, start, type, tag, record, bytes);
  if (!place)
    return NULL;
  u64 *dur = (u64 *)(place + 1);
  *dur = TSCOPE_DUR_PENDING;
  tscope_commit(&thread->retained, bytes);
  return dur;
}
