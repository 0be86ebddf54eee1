/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/byte_source.h"
#include "import/tscope/files/chunk_read.h"

#define LEAST_CHUNK_BYTES 1024u
#define MOST_CHUNK_BYTES (64u << 20)
#define MOST_COMPRESSED 32u /* by a file system that compresses */

const u16 trace_record_bytes[256] = {
#define X(NAME, name, id, home, doc) [id] = sizeof(struct tscope_##name##_record),
    TSCOPE_RECORDS(X)
#undef X
};

size_t trace_file_read(const struct trace_file *file, u64 offset, void *buffer, size_t bytes) {
  if (offset >= file->bytes)
    return 0;
  if (bytes > file->bytes - offset)
    bytes = (size_t)(file->bytes - offset);
  if (file->memory) {
    memcpy(buffer, file->memory + offset, bytes);
    return bytes;
  }
  return file_read_at(file->fd, buffer, bytes, offset);
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

/* Of a damaged file they may not end. */
static void end_texts(struct tscope_file_header *header) {
#define END(text) header->text[sizeof(header->text) - 1] = '\0'
  END(host), END(run), END(memory_events), END(exception), END(exception_place), END(last_line);
#undef END
}

static int check_header(struct trace_file *file, size_t got, char *why, size_t why_bytes) {
  struct tscope_file_header *header = &file->header;
  if (got == 0)
    return refuse(why, why_bytes, ENODATA, "is empty");
  size_t magic = MIN(got, sizeof(header->magic));
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
  end_texts(header);
  return check_sizes(header, why, why_bytes);
}

static void count_chunks(struct trace_file *file) {
  u64 body = file->bytes > file->header.header_bytes ? file->bytes - file->header.header_bytes : 0;
  u64 chunks = (body + file->header.chunk_bytes - 1) / file->header.chunk_bytes;
  chunks = MIN(file->header.chunks, chunks);
  file->n_chunks = chunks < UINT32_MAX ? (u32)chunks : UINT32_MAX;
}

static int read_file_header(struct trace_file *file, char *why, size_t why_bytes) {
  size_t got = trace_file_read(file, 0, &file->header, sizeof(file->header));
  int result = check_header(file, got, why, why_bytes);
  if (result < 0)
    return result;
  count_chunks(file);
  return 0;
}

int trace_file_open_memory(struct trace_file *file, const u8 *data, size_t bytes, char *why,
                           size_t why_bytes) {
  *file = (struct trace_file){.fd = -1, .memory = data, .bytes = bytes, .stored = bytes};
  return read_file_header(file, why, why_bytes);
}

static void set_size(struct trace_file *file, const struct stat *status) {
  u64 blocks = (u64)status->st_blocks * 512;
  file->device = status->st_dev;
  file->inode = status->st_ino;
  file->bytes = (u64)status->st_size;
  file->sparse = blocks < file->bytes;
  file->stored = blocks < file->bytes / MOST_COMPRESSED ? blocks * MOST_COMPRESSED : file->bytes;
}

static int open_to_read(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

int trace_file_open(struct trace_file *file, const char *path, char *why, size_t why_bytes) {
  struct stat status;
  *file = (struct trace_file){.fd = open_to_read(path)};
  if (file->fd < 0 || fstat(file->fd, &status) < 0) {
    int error = errno;
    trace_file_close(file);
    return refuse(why, why_bytes, error, strerror(error));
  }
  if (!S_ISREG(status.st_mode)) {
    trace_file_close(file);
    return refuse(why, why_bytes, EINVAL, "is not a regular file");
  }
  set_size(file, &status);
  int result = read_file_header(file, why, why_bytes);
  if (result < 0)
    trace_file_close(file);
  return result;
}

int trace_file_refresh(struct trace_file *file, const char *path) {
  const struct tscope_file_header *known = &file->header;
  struct tscope_file_header header;
  struct stat status;
  if (file->fd < 0)
    file->fd = open_to_read(path);
  if (file->fd < 0 || fstat(file->fd, &status) < 0)
    return -errno;
  if (status.st_ino != file->inode || status.st_dev != file->device)
    return -ESTALE;
  set_size(file, &status);
  size_t got = trace_file_read(file, 0, &header, sizeof(header));
  if (got < sizeof(header))
    return got ? -ENODATA : -EIO;
  if (memcmp(header.magic, known->magic, sizeof(header.magic)) != 0 || header.pid != known->pid ||
      header.start_ticks != known->start_ticks || header.chunk_bytes != known->chunk_bytes ||
      header.header_bytes != known->header_bytes)
    return -ESTALE;
  end_texts(&header);
  file->header = header;
  count_chunks(file);
  return 0;
}

void trace_file_close(struct trace_file *file) {
  if (file->fd >= 0)
    close(file->fd);
  file->fd = -1;
}
