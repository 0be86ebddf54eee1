/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked_memory.h"

#define LEAST_CHUNK_BYTES 1024u
#define MOST_CHUNK_BYTES (64u << 20)
#define MOST_COMPRESSED 32u /* by a file system that compresses */

const u16 trace_record_bytes[256] = {
#define X(NAME, name, id, home, doc) [id] = sizeof(struct tscope_##name##_record),
    TSCOPE_RECORDS(X)
#undef X
};

/* Reads up to `bytes` at `offset`; how many there were. */
static size_t read_at(const struct trace_file *file, u64 offset, void *buffer, size_t bytes) {
  if (offset >= file->bytes)
    return 0;
  if (bytes > file->bytes - offset)
    bytes = (size_t)(file->bytes - offset);
  if (file->memory) {
    memcpy(buffer, file->memory + offset, bytes);
    return bytes;
  }
  size_t done = 0;
  while (done < bytes) {
    ssize_t got = pread(file->fd, (u8 *)buffer + done, bytes - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    done += (size_t)got;
  }
  return done;
}

static int refuse(char *why, size_t why_bytes, int error, const char *reason) {
  snprintf(why, why_bytes, "%s", reason);
  return -error;
}

static int check_sizes(const struct tscope_file_header *header, char *why, size_t why_bytes) {
  bool sane = header->header_bytes >= sizeof(*header) && header->header_bytes % 8 == 0 &&
              header->header_bytes <= MOST_CHUNK_BYTES &&
              header->chunk_bytes >= LEAST_CHUNK_BYTES && header->chunk_bytes <= MOST_CHUNK_BYTES &&
              header->chunk_bytes % 8 == 0 && header->tick_shift < 32;
  return sane ? 0 : refuse(why, why_bytes, EBADMSG, "has a damaged header");
}

static int check_header(struct trace_file *file, size_t got, char *why, size_t why_bytes) {
  struct tscope_file_header *header = &file->header;
  if (got == 0)
    return refuse(why, why_bytes, ENODATA, "is empty");
  size_t magic = got < sizeof(header->magic) ? got : sizeof(header->magic);
  if (memcmp(header->magic, TSCOPE_MAGIC, magic) != 0)
    return refuse(why, why_bytes, EBADMSG, "is not a tscope trace");
  if (got < sizeof(*header))
    return refuse(why, why_bytes, ENODATA, "is cut inside its header");
  if (header->byte_order_mark != TSCOPE_BYTE_ORDER_MARK)
    return refuse(why, why_bytes, EBADMSG, "has the other byte order, or is damaged");
  if (header->version_major != TSCOPE_VERSION_MAJOR) {
    snprintf(why, why_bytes, "has format version %u.%u; this tscope-report reads %u.x",
             header->version_major, header->version_minor, TSCOPE_VERSION_MAJOR);
    return -EPROTONOSUPPORT;
  }
  if (header->features & UINT32_MAX)
    return refuse(why, why_bytes, EPROTONOSUPPORT,
                  "needs features that this tscope-report does not have");
  header->host[sizeof(header->host) - 1] = 0;
  header->run[sizeof(header->run) - 1] = 0;
  return check_sizes(header, why, why_bytes);
}

static int read_file_header(struct trace_file *file, char *why, size_t why_bytes) {
  size_t got = read_at(file, 0, &file->header, sizeof(file->header));
  int result = check_header(file, got, why, why_bytes);
  if (result < 0)
    return result;
  u64 body = file->bytes > file->header.header_bytes ? file->bytes - file->header.header_bytes : 0;
  u64 chunks = (body + file->header.chunk_bytes - 1) / file->header.chunk_bytes;
  if (chunks > file->header.chunks)
    chunks = file->header.chunks;
  file->n_chunks = chunks < UINT32_MAX ? (u32)chunks : UINT32_MAX;
  return 0;
}

int trace_file_open_memory(struct trace_file *file, const u8 *data, size_t bytes, char *why,
                           size_t why_bytes) {
  *file = (struct trace_file){.fd = -1, .memory = data, .bytes = bytes, .stored = bytes};
  return read_file_header(file, why, why_bytes);
}

int trace_file_open(struct trace_file *file, const char *path, char *why, size_t why_bytes) {
  struct stat status;
  *file = (struct trace_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (file->fd < 0 || fstat(file->fd, &status) < 0) {
    int error = errno;
    trace_file_close(file);
    return refuse(why, why_bytes, error, strerror(error));
  }
  if (!S_ISREG(status.st_mode)) {
    trace_file_close(file);
    return refuse(why, why_bytes, EINVAL, "is not a regular file");
  }
  u64 blocks = (u64)status.st_blocks * 512;
  file->bytes = (u64)status.st_size;
  file->sparse = blocks < file->bytes;
  file->stored = blocks < file->bytes / MOST_COMPRESSED ? blocks * MOST_COMPRESSED : file->bytes;
  int result = read_file_header(file, why, why_bytes);
  if (result < 0)
    trace_file_close(file);
  return result;
}

void trace_file_close(struct trace_file *file) {
  if (file->fd >= 0)
    close(file->fd);
  file->fd = -1;
}

static u64 chunk_offset(const struct trace_file *file, u32 index) {
  return file->header.header_bytes + (u64)index * file->header.chunk_bytes;
}

u32 trace_chunk_from(const struct trace_file *file, u32 index) {
  if (!file->sparse || index >= file->n_chunks)
    return index;
  u64 offset = chunk_offset(file, index);
  off_t data = lseek(file->fd, (off_t)offset, SEEK_DATA);
  if (data < 0)
    return errno == ENXIO ? file->n_chunks : index;
  u64 next = index + ((u64)data - offset) / file->header.chunk_bytes;
  return next < file->n_chunks ? (u32)next : file->n_chunks;
}

u8 *trace_chunk_buffer(const struct trace_file *file) {
  return memory_array(
      file->bytes < file->header.chunk_bytes ? file->bytes : file->header.chunk_bytes, 1);
}

/* Up to the next hole: what is in a hole are no records. */
static u64 bytes_before_hole(const struct trace_file *file, u64 offset, u64 bytes) {
  off_t hole = file->sparse ? lseek(file->fd, (off_t)offset, SEEK_HOLE) : -1;
  return hole >= 0 && (u64)hole - offset < bytes ? (u64)hole - offset : bytes;
}

/* `committed` is read once, from the copy that was read: the writer may change it meanwhile. */
static enum trace_chunk_state check_chunk(const struct trace_file *file, size_t got,
                                          struct trace_chunk *chunk) {
  const struct tscope_chunk_header *header = &chunk->header;
  if (got < sizeof(header->magic) || header->magic == 0)
    return TRACE_CHUNK_EMPTY;
  if (header->magic != TSCOPE_CHUNK_MAGIC)
    return TRACE_CHUNK_DAMAGED;
  if (got < sizeof(*header) || header->committed == 0)
    return TRACE_CHUNK_EMPTY;
  bool known = (header->retention == TSCOPE_RETAINED || header->retention == TSCOPE_RING) &&
               (header->clock == TSCOPE_CLOCK_TICKS || header->clock == TSCOPE_CLOCK_MONOTONIC);
  chunk->count = (u32)(header->committed >> 32);
  chunk->bytes = (u32)header->committed;
  if (!known || header->header_bytes < sizeof(*header) || header->header_bytes % 8 != 0 ||
      header->header_bytes > file->header.chunk_bytes || chunk->bytes % 8 != 0 ||
      chunk->bytes > file->header.chunk_bytes - header->header_bytes)
    return TRACE_CHUNK_DAMAGED;
  return TRACE_CHUNK_READ;
}

enum trace_chunk_state trace_chunk_peek(const struct trace_file *file, u32 index,
                                        struct trace_chunk *chunk) {
  *chunk = (struct trace_chunk){0};
  size_t got = read_at(file, chunk_offset(file, index), &chunk->header, sizeof(chunk->header));
  return check_chunk(file, got, chunk);
}

/* Whether a ring chunk of a run that still goes on was recycled while it was read: it is first
 * emptied, then gets the next generation, and only then is written to. */
static bool is_recycled(const struct trace_file *file, u32 index, const struct trace_chunk *chunk) {
  if (file->header.closed_realtime_ns || chunk->header.retention != TSCOPE_RING)
    return false;
  struct trace_chunk again;
  __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the records were read before this */
  return trace_chunk_peek(file, index, &again) != TRACE_CHUNK_READ ||
         again.header.generation != chunk->header.generation ||
         again.header.committed < chunk->header.committed;
}

enum trace_chunk_state trace_chunk_read(const struct trace_file *file, u32 index, u8 *buffer,
                                        struct trace_chunk *chunk) {
  enum trace_chunk_state state = trace_chunk_peek(file, index, chunk);
  if (state != TRACE_CHUNK_READ)
    return state;
  u64 offset = chunk_offset(file, index) + chunk->header.header_bytes;
  size_t got = read_at(file, offset, buffer, bytes_before_hole(file, offset, chunk->bytes));
  chunk->cut = got < chunk->bytes;
  if (chunk->cut)
    chunk->bytes = (u32)got & ~7u;
  chunk->records = buffer;
  return is_recycled(file, index, chunk) ? TRACE_CHUNK_EMPTY : TRACE_CHUNK_READ;
}
