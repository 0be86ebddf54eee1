/* SPDX-License-Identifier: MIT
 *
 * Writes a trace file directly in the on-disk format, without the shim, so that tests know the
 * truth of what the analyzer reads. The file is built in memory and saved at the end.
 */
#pragma once

#include "format/tscope_format.h"

struct trace_writer;

/* The chunks that a record goes to: those of one thread, retention and clock. */
struct trace_place {
  u32 thread;
  u8 retention; /* enum tscope_retention */
  u8 clock;     /* enum tscope_chunk_clock */
};

/* `facts` is the header; magic, versions and, where they are 0, the sizes of header and chunks are
 * set here. This is a test tool: without memory it exits with a message. */
struct trace_writer *trace_writer_new(const struct tscope_file_header *facts);
void trace_writer_free(struct trace_writer *writer);

/* Texts that replace the strings of a trace, one after the other and then from the first again.
 * They may contain any byte. */
struct trace_words {
  char **at;
  size_t *bytes;
  u32 n;
};

/* From now on, `words` replace new strings, except for numbers, which have a meaning. The caller
 * keeps the memory. */
void trace_writer_words(struct trace_writer *writer, const struct trace_words *words);

/* Appends and commits a record of `bytes` in total (a multiple of 8) that starts at `time`, in
 * absolute units of the place's clock (ticks already shifted). Its header is set, the rest is zero.
 * The pointer is valid until the next call. */
void *trace_add(struct trace_writer *writer, struct trace_place place, u64 time, u8 type, u16 tag,
                size_t bytes);

/* The number of an interned string, which is written to thread 0's retained chunks the first time.
 * 0 for NULL. */
u32 trace_string(struct trace_writer *writer, const char *text);

/* One fact about the process. */
void trace_info(struct trace_writer *writer, enum tscope_info key, const char *value,
                const char *detail);

struct tscope_file_header *trace_writer_header(struct trace_writer *writer);
u64 trace_writer_records(const struct trace_writer *writer); /* until now, with definitions */
const u8 *trace_writer_data(const struct trace_writer *writer, size_t *bytes);

/* Writes the first `cut` bytes of the file (all for SIZE_MAX) to `path`. Returns 0 or negative
 * errno. */
int trace_writer_save(const struct trace_writer *writer, const char *path, size_t cut);
