/* SPDX-License-Identifier: MIT
 *
 * The trace file of this process: its header page and its chunks, mapped in one piece. The greatest
 * possible size is mapped at once; the part beyond the end of the file is never touched. The file
 * grows only by allocated blocks, since a store into a hole of a full disk would end the job by
 * SIGBUS. No descriptor is kept where the job could close it or reuse its number.
 *
 * Where a store into the file could fail although its blocks are allocated, memory with the same
 * layout is mapped instead, and carry.h brings its content to the file
 * (docs/decisions/mapped-file.md).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "record/hook.h"

#pragma GCC visibility push(hidden)

struct tscope_trace {
  struct tscope_file_header *header;
  u32 chunks_max; /* what the mapping has room for */
  u32 chunks;     /* what is in the file; may be touched after reading this with acquire order */
  bool full;      /* the last attempt to grow failed */
  bool carried;   /* the mapping is memory, and not the file */
  bool told;      /* a line on stderr says that it cannot be written: one is enough */
  bool broken;    /* the file could not hold a store; memory has taken its place */
  size_t bytes;   /* of the mapping */
  bool in_memory; /* its chunks stay in memory: it is carried, or on tmpfs */
  u64 disk_free;  /* bytes to leave on the disk */
  /* Whether the process may have `bytes` of trace in memory, `more` of them new. */
  bool (*memory_allows)(u64 bytes, u64 more);
  u64 device, inode;
  char path[2048];
};
extern struct tscope_trace tscope_trace;

/* Whether the process has begun to end, or is off: then nothing more is looked at. */
static inline bool tscope_trace_has_ended(void) {
  return !tscope_is_live() ||
         __atomic_load_n(&tscope_trace.header->end_ticks, __ATOMIC_RELAXED) != 0;
}

/* Makes `directory`/`name` (directory_fd is that directory) from `header`, with room for the
 * header page alone, and maps it. 0 or a negative errno. */
int tscope_trace_create(int directory_fd, const char *directory, const char *name,
                        const struct tscope_file_header *header, u32 chunks_max);

/* Whether this is the process of the trace, and records: not a child that still shares its memory,
 * as after vfork(), whose end, for example, is not its parent's. */
bool tscope_trace_is_ours(void);

/* The two below are for one thread at a time.
 *
 * Appends up to `wanted` chunks of zeros, which can be written without a page fault. Returns how
 * many; *first gets the number of the first one. `for_job`: on a thread of the job, which opens no
 * file, and does not touch one that is carried, since its server may not answer. */
u32 tscope_trace_grow(u32 wanted, u32 *first, bool for_job);

/* Makes [from, to) of a chunk writable again without a page fault, after the kernel has written it
 * to the disk and watches for the next store. Does not change its content. From one thread at a
 * time. */
void tscope_trace_touch(u32 chunk, u32 from, u32 to);

/* Opens the file by its name; only if the name still belongs to our file. A descriptor, or a
 * negative errno: -ENOENT if there is another file. A thread that has the job's descriptors opens
 * no file that is mapped: the functions here then use its name. */
int tscope_trace_open(void);
void tscope_trace_close(int fd);

/* 0 with the length of the file at `fd`, or if that is negative, of what has its name; -ENOENT if
 * that is another file or was removed, another negative errno if it cannot be told. */
int tscope_trace_look(int fd, u64 *bytes);

/* The calling thread has a table of descriptors of its own: from here on it keeps the file open. So
 * it can write it when the name leads nowhere any more, or when the process has become another
 * user. After a failure it opens the file by its name again: a server may have forgotten it. */
void tscope_trace_keep_open(void);
void tscope_trace_renew(void);

/* Whether the file may become so long: beyond its limit the kernel sends a signal that ends the
 * job. errno is EFBIG if not. */
bool tscope_trace_may_reach(u64 bytes);

/* Writes all of it at `at`; false with errno if that cannot be done. */
bool tscope_trace_put(int fd, const void *from, size_t bytes, u64 at);

/* Where a chunk begins in the file, in bytes. */
u64 tscope_trace_offset(u32 chunk);

/* Removes the chunks from number `chunks` on from the end of the file. No thread may use them. */
void tscope_trace_cut(u32 chunks);

/* While a call of the job's is about all that is mapped, only the chunks that there are stay
 * mapped. Nobody may make chunks in between. The second function also unlocks what the call has
 * locked. */
void tscope_trace_leave_reserve(void);
void tscope_trace_take_reserve(void);

/* From here on there are at most so many chunks; what is reserved for more is not mapped any more.
 * Nothing changes if there are more already. */
void tscope_trace_limit(u32 chunks_max);

static inline struct tscope_chunk_header *tscope_trace_chunk(u32 number) {
  return (struct tscope_chunk_header *)(void *)((u8 *)tscope_trace.header + TSCOPE_HEADER_BYTES +
                                                (size_t)number * TSCOPE_CHUNK_BYTES);
}

static inline u32 tscope_trace_number(const struct tscope_chunk_header *chunk) {
  return (
      u32)(((size_t)((const u8 *)chunk - (const u8 *)tscope_trace.header) - TSCOPE_HEADER_BYTES) /
           TSCOPE_CHUNK_BYTES);
}

#pragma GCC visibility pop
