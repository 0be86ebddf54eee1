/* SPDX-License-Identifier: MIT
 *
 * Writes one trace file straight in the on-disk format, without the shim, so that tests know the
 * truth of what the analyzer reads. The file is built in memory and saved in one go.
 */
#ifndef TSCOPE_TRACE_WRITER_H
#define TSCOPE_TRACE_WRITER_H

#include "format/tscope_format.h"

struct trace_writer;

/* Where a record goes: the chunks of one thread, retention and clock. */
struct trace_place {
  u32 thread;
  u8 retention; /* enum tscope_retention */
  u8 clock;     /* enum tscope_chunk_clock */
};

/* `facts` gives what the caller wants in the header; magic, versions and, where they are 0, the
 * sizes of header and chunks are filled in. Exits with a message when memory runs out: this is a
 * test tool. */
struct trace_writer *trace_writer_new(const struct tscope_file_header *facts);
void trace_writer_free(struct trace_writer *writer);

/* Texts that are written instead of those that a trace has, one after the other and round again.
 * They may hold any byte. */
struct trace_words {
  char **at;
  size_t *bytes;
  u32 n;
};

/* From now on each new string is one of `words`, but for numbers, which mean something. The caller
 * keeps them. */
void trace_writer_words(struct trace_writer *writer, const struct trace_words *words);

/* Appends and commits a record of `bytes` in all (a multiple of 8) that starts at `time`, in the
 * place's absolute clock units (ticks already shifted). The header is filled in, the rest is zero;
 * what is returned stays good until the next call. */
void *trace_add(struct trace_writer *writer, struct trace_place place, u64 time, u8 type, u16 tag,
                size_t bytes);

/* Number of an interned string, written to thread 0's retained the first time. 0 for NULL. */
u32 trace_string(struct trace_writer *writer, const char *text);

/* One fact about the process. */
void trace_info(struct trace_writer *writer, enum tscope_info key, const char *value,
                const char *detail);

struct tscope_file_header *trace_writer_header(struct trace_writer *writer);
u64 trace_writer_records(const struct trace_writer *writer); /* so far, definitions included */
const u8 *trace_writer_data(const struct trace_writer *writer, size_t *bytes);

/* Writes the first `cut` bytes of the file (all for SIZE_MAX) to `path`. 0, or negative errno. */
int trace_writer_save(const struct trace_writer *writer, const char *path, size_t cut);

#endif
