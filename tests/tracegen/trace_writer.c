/* SPDX-License-Identifier: MIT */
#include "trace_writer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LANES 64

/* The chunk that is being filled for one thread, retention and clock. */
struct lane {
  struct trace_place place;
  size_t chunk; /* offset in the file */
  u64 base;
  u32 sequence;
};

struct trace_writer {
  u8 *data;
  size_t bytes, capacity;
  struct lane lanes[MAX_LANES];
  u32 n_lanes;
  char **strings;
  u32 n_strings, string_capacity;
  const struct trace_words *words; /* NULL: strings are not replaced */
};

static void *check_memory(void *memory) {
  if (!memory) {
    fputs("trace_writer: out of memory\n", stderr);
    exit(2);
  }
  return memory;
}

struct tscope_file_header *trace_writer_header(struct trace_writer *writer) {
  return (struct tscope_file_header *)writer->data;
}

struct trace_writer *trace_writer_new(const struct tscope_file_header *facts) {
  struct trace_writer *writer = check_memory(calloc(1, sizeof(*writer)));
  writer->capacity = TSCOPE_HEADER_BYTES + 16 * TSCOPE_CHUNK_BYTES;
  writer->data = check_memory(calloc(1, writer->capacity));
  struct tscope_file_header *header = trace_writer_header(writer);
  *header = *facts;
  if (header->header_bytes == 0)
    header->header_bytes = TSCOPE_HEADER_BYTES;
  if (header->chunk_bytes == 0)
    header->chunk_bytes = TSCOPE_CHUNK_BYTES;
  memcpy(header->magic, TSCOPE_MAGIC, sizeof(header->magic));
  header->version_major = TSCOPE_VERSION_MAJOR;
  header->version_minor = TSCOPE_VERSION_MINOR;
  header->byte_order_mark = TSCOPE_BYTE_ORDER_MARK;
  writer->bytes = header->header_bytes;
  return writer;
}

void trace_writer_free(struct trace_writer *writer) {
  if (!writer)
    return;
  for (u32 i = 0; i < writer->n_strings; i++)
    free(writer->strings[i]);
  free(writer->strings);
  free(writer->data);
  free(writer);
}

static struct tscope_chunk_header *chunk_of(struct trace_writer *writer, const struct lane *lane) {
  return (struct tscope_chunk_header *)(writer->data + lane->chunk);
}

static size_t chunk_bytes(const struct trace_writer *writer) {
  return ((const struct tscope_file_header *)writer->data)->chunk_bytes;
}

static void start_chunk(struct trace_writer *writer, struct lane *lane, u64 time) {
  if (writer->bytes + chunk_bytes(writer) > writer->capacity) {
    size_t capacity = writer->capacity * 2;
    writer->data = check_memory(realloc(writer->data, capacity));
    memset(writer->data + writer->capacity, 0, capacity - writer->capacity);
    writer->capacity = capacity;
  }
  lane->chunk = writer->bytes;
  lane->base = time;
  writer->bytes += chunk_bytes(writer);
  trace_writer_header(writer)->chunks++;
  *chunk_of(writer, lane) =
      (struct tscope_chunk_header){.magic = TSCOPE_CHUNK_MAGIC,
                                   .retention = lane->place.retention,
                                   .clock = lane->place.clock,
                                   .header_bytes = sizeof(struct tscope_chunk_header),
                                   .thread = lane->place.thread,
                                   .sequence = lane->sequence++,
                                   .base = time};
}

static struct lane *find_lane(struct trace_writer *writer, struct trace_place place, u64 time) {
  for (u32 i = 0; i < writer->n_lanes; i++) {
    struct lane *lane = &writer->lanes[i];
    if (lane->place.thread == place.thread && lane->place.retention == place.retention &&
        lane->place.clock == place.clock)
      return lane;
  }
  if (writer->n_lanes == MAX_LANES) {
    fputs("trace_writer: too many threads\n", stderr);
    exit(2);
  }
  struct lane *lane = &writer->lanes[writer->n_lanes++];
  *lane = (struct lane){.place = place};
  start_chunk(writer, lane, time);
  return lane;
}

/* Appends one record to the lane's current chunk; its header is set and committed. */
static void *append(struct trace_writer *writer, struct lane *lane, u32 time, u8 type, u16 tag,
                    size_t bytes) {
  struct tscope_chunk_header *chunk = chunk_of(writer, lane);
  u64 used = chunk->committed & UINT32_MAX;
  struct tscope_record *record = (struct tscope_record *)((u8 *)chunk + chunk->header_bytes + used);
  *record =
      (struct tscope_record){.type = type, .words = (u8)(bytes / 8), .tag = tag, .time = time};
  chunk->committed += (1ull << 32) + bytes;
  return record;
}

static size_t space_left(struct trace_writer *writer, const struct lane *lane) {
  const struct tscope_chunk_header *chunk = chunk_of(writer, lane);
  return chunk_bytes(writer) - chunk->header_bytes - (chunk->committed & UINT32_MAX);
}

void *trace_add(struct trace_writer *writer, struct trace_place place, u64 time, u8 type, u16 tag,
                size_t bytes) {
  struct lane *lane = find_lane(writer, place, time);
  if (space_left(writer, lane) < bytes + sizeof(struct tscope_time_record))
    start_chunk(writer, lane, time);
  if (time < lane->base || time - lane->base > UINT32_MAX) {
    struct tscope_time_record *base =
        append(writer, lane, 0, TSCOPE_REC_TIME, 0, sizeof(struct tscope_time_record));
    base->base = lane->base = time;
  }
  return append(writer, lane, (u32)(time - lane->base), type, tag, bytes);
}

static u32 known_string(const struct trace_writer *writer, const char *text) {
  for (u32 i = 0; i < writer->n_strings; i++)
    if (strcmp(writer->strings[i], text) == 0)
      return i + 1;
  return 0;
}

void trace_writer_words(struct trace_writer *writer, const struct trace_words *words) {
  writer->words = words;
}

u32 trace_string(struct trace_writer *writer, const char *text) {
  if (!text)
    return 0;
  u32 number = known_string(writer, text);
  if (number)
    return number;
  if (writer->n_strings == writer->string_capacity) {
    writer->string_capacity = writer->string_capacity ? writer->string_capacity * 2 : 64;
    writer->strings =
        check_memory(realloc(writer->strings, writer->string_capacity * sizeof(*writer->strings)));
  }
  writer->strings[writer->n_strings++] = check_memory(strdup(text));
  size_t length = strlen(text);
  if (writer->words && !isdigit((unsigned char)*text)) {
    u32 word = writer->n_strings % writer->words->n;
    text = writer->words->at[word];
    length = writer->words->bytes[word];
  }
  size_t bytes = (sizeof(struct tscope_string_record) + length + 7) & ~(size_t)7;
  struct trace_place retained = {
      .thread = 0, .retention = TSCOPE_RETAINED, .clock = TSCOPE_CLOCK_TICKS};
  struct tscope_string_record *record =
      trace_add(writer, retained,
                trace_writer_header(writer)->start_ticks >> trace_writer_header(writer)->tick_shift,
                TSCOPE_REC_STRING, 0, bytes);
  record->string = writer->n_strings;
  record->bytes = (u32)length;
  memcpy(record + 1, text, length);
  return writer->n_strings;
}

void trace_info(struct trace_writer *writer, enum tscope_info key, const char *value,
                const char *detail) {
  u32 value_number = trace_string(writer, value), detail_number = trace_string(writer, detail);
  const struct tscope_file_header *header = trace_writer_header(writer);
  struct trace_place retained = {
      .thread = 0, .retention = TSCOPE_RETAINED, .clock = TSCOPE_CLOCK_TICKS};
  struct tscope_info_record *record =
      trace_add(writer, retained, header->start_ticks >> header->tick_shift, TSCOPE_REC_INFO,
                (u16)key, sizeof(*record));
  record->value = value_number;
  record->detail = detail_number;
}

u64 trace_writer_records(const struct trace_writer *writer) {
  const struct tscope_file_header *header = (const void *)writer->data;
  u64 records = 0;
  for (size_t at = header->header_bytes; at < writer->bytes; at += header->chunk_bytes)
    records += ((const struct tscope_chunk_header *)(writer->data + at))->committed >> 32;
  return records;
}

const u8 *trace_writer_data(const struct trace_writer *writer, size_t *bytes) {
  *bytes = writer->bytes;
  return writer->data;
}

int trace_writer_save(const struct trace_writer *writer, const char *path, size_t cut) {
  size_t bytes = MIN(cut, writer->bytes);
  FILE *file = fopen(path, "wb");
  if (!file)
    return -errno;
  int result = fwrite(writer->data, 1, bytes, file) == bytes ? 0 : -EIO;
  if (fclose(file) != 0 && result == 0)
    result = -errno;
  return result;
}
