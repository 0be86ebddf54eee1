/* SPDX-License-Identifier: MIT
 *
 * A reader of traces for tests of the shim. It was written from docs/trace-format.md and shares no
 * code with the analyzer's reader, so that it finds mistakes that the shim and the analyzer have in
 * common.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/tscope_format.h"

struct trace {
  const u8 *bytes;
  size_t size;
  const struct tscope_file_header *header;
  u32 chunks; /* whole chunks in the file */
};

/* One record in the mapped file, its chunk and its time; a zeroed one is before the first. */
struct trace_record {
  const struct tscope_record *record;
  const struct tscope_chunk_header *chunk;
  u64 time;        /* absolute, in the chunk's clock units */
  u64 base;        /* the origin of times from here on */
  u64 in_chunk;    /* how many there are up to this one */
  u32 number;      /* of the chunk */
  bool unreadable; /* the walk ended at a chunk that is not valid */
};

/* False if the file is not a readable trace; prints the reason to stderr. */
static inline bool trace_open(struct trace *trace, const char *path) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool readable = fd >= 0 && fstat(fd, &info) == 0 && info.st_size >= (off_t)TSCOPE_HEADER_BYTES;
  void *map =
      readable ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (fd >= 0)
    close(fd);
  if (map == MAP_FAILED) {
    fprintf(stderr, "%s: cannot be read\n", path);
    return false;
  }
  trace->bytes = map;
  trace->size = (size_t)info.st_size;
  trace->header = map;
  if (memcmp(trace->header->magic, TSCOPE_MAGIC, 8) != 0 ||
      trace->header->version_major != TSCOPE_VERSION_MAJOR ||
      trace->header->byte_order_mark != TSCOPE_BYTE_ORDER_MARK) {
    fprintf(stderr, "%s: no trace of version %u\n", path, TSCOPE_VERSION_MAJOR);
    munmap(map, trace->size);
    return false;
  }
  trace->chunks = (u32)((trace->size - trace->header->header_bytes) / trace->header->chunk_bytes);
  if (trace->chunks > trace->header->chunks)
    trace->chunks = (u32)trace->header->chunks;
  return true;
}

static inline void trace_close(struct trace *trace) {
  munmap((void *)(uintptr_t)trace->bytes, trace->size);
}

static inline const struct tscope_chunk_header *trace_chunk(const struct trace *trace, u32 number) {
  return (const void *)(trace->bytes + trace->header->header_bytes +
                        (size_t)number * trace->header->chunk_bytes);
}

/* Records that were lost, wherever the process was killed. */
static inline u64 trace_all_lost(const struct trace *trace) {
  u64 lost = trace->header->lost_singly;
  for (u32 i = 0; i < trace->chunks; i++)
    lost += tscope_given_up(trace_chunk(trace, i));
  return lost;
}

static inline bool trace_is_valid(const struct trace *trace,
                                  const struct tscope_chunk_header *chunk) {
  return chunk->magic == TSCOPE_CHUNK_MAGIC &&
         chunk->header_bytes + (chunk->committed & UINT32_MAX) <= trace->header->chunk_bytes;
}

/* Moves to the next committed record, TIME records included, in the order of the file. False behind
 * the last one, and at a chunk that is not valid. */
static inline bool trace_next(const struct trace *trace, struct trace_record *at) {
  for (; at->number < trace->chunks; at->number++, at->record = NULL) {
    const struct tscope_chunk_header *chunk = at->chunk = trace_chunk(trace, at->number);
    if (chunk->magic == 0)
      continue;
    u64 committed = chunk->committed, end = committed & UINT32_MAX;
    const u8 *first = (const u8 *)chunk + chunk->header_bytes, *next = first;
    if (at->record) {
      next = (const u8 *)at->record + 8 * (u64)at->record->words;
    } else {
      at->base = chunk->base;
      at->in_chunk = 0;
    }
    i64 left = (i64)end - (next - first);
    bool valid = trace_is_valid(trace, chunk);
    if (valid && left == 0 && at->in_chunk == committed >> 32)
      continue;
    at->record = (const void *)next;
    if (!valid || left <= 0 || at->record->words == 0 || 8 * (i64)at->record->words > left) {
      fprintf(stderr, "chunk %u cannot be read\n", at->number);
      at->unreadable = true;
      return false;
    }
    if (at->record->type == TSCOPE_REC_TIME)
      at->base = ((const struct tscope_time_record *)(const void *)next)->base;
    at->time = at->base + at->record->time;
    at->in_chunk++;
    return true;
  }
  return false;
}

/* The next one of a type. */
static inline bool trace_next_of(const struct trace *trace, struct trace_record *at, u8 type) {
  while (trace_next(trace, at))
    if (at->record->type == type)
      return true;
  return false;
}

/* Calls `each` for every record. Returns their number, or -1. */
static inline long trace_walk(const struct trace *trace,
                              void (*each)(const struct trace_record *, void *), void *more) {
  long records = 0;
  struct trace_record at = {0};
  for (; trace_next(trace, &at); records++)
    if (each)
      each(&at, more);
  return at.unreadable ? -1 : records;
}

/* The text of string `number`, "" if it is not in the trace. Valid until trace_close(); not
 * null-terminated. */
struct trace_text {
  u32 number;
  u32 bytes;
  const char *text;
};

static inline struct trace_text trace_string(const struct trace *trace, u32 number) {
  for (struct trace_record at = {0}; trace_next_of(trace, &at, TSCOPE_REC_STRING);) {
    const struct tscope_string_record *string = (const void *)at.record;
    if (string->string == number)
      return (struct trace_text){number, string->bytes, (const char *)(string + 1)};
  }
  return (struct trace_text){.number = number, .text = ""};
}

/* Finds the traces in the run folders of `directory`. Returns their number, and the first `most`
 * paths in `paths`, which the caller frees. */
static inline int trace_find(const char *directory, char **paths, int most) {
  int found = 0;
  DIR *runs = opendir(directory);
  for (struct dirent *run; runs && (run = readdir(runs));) {
    char folder[1024];
    if (run->d_name[0] == '.')
      continue;
    snprintf(folder, sizeof(folder), "%s/%s", directory, run->d_name);
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));) {
      const char *suffix = strrchr(file->d_name, '.');
      if (!suffix || strcmp(suffix, TSCOPE_FILE_SUFFIX) != 0)
        continue;
      if (found < most && asprintf(&paths[found], "%s/%s", folder, file->d_name) < 0)
        paths[found] = NULL;
      found++;
    }
    if (files)
      closedir(files);
  }
  if (runs)
    closedir(runs);
  return found;
}
