/* SPDX-License-Identifier: MIT */
#include "import/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/checked_memory.h"
#include "import/file_budget.h"

#define INPUT_BYTES (256u << 10)

struct byte_source {
  z_stream inflater;
  u8 *compressed;
  u64 position;
  int fd;
  bool gzip;
  bool file_ended;
  bool member_ended; /* between the members of a gzip file */
  int failed;        /* negative errno to return once everything readable was returned */
};

static ssize_t read_fully(int fd, u8 *buffer, size_t bytes) {
  size_t filled = 0;
  while (filled < bytes) {
    ssize_t got = read(fd, buffer + filled, bytes - filled);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return filled ? (ssize_t)filled : -errno;
    if (got == 0)
      break;
    filled += (size_t)got;
  }
  return (ssize_t)filled;
}

size_t file_read_at(int fd, void *to, size_t bytes, u64 offset) {
  size_t done = 0;
  while (done < bytes && offset + done <= INT64_MAX) {
    ssize_t got = pread(fd, (u8 *)to + done, bytes - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    done += (size_t)got;
  }
  return done;
}

int byte_source_open(struct byte_source **out, const char *path) {
  struct byte_source *source = memory_zeroed(1, sizeof(*source));
  *out = NULL;
  source->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (source->fd < 0) {
    int error = -errno;
    free(source);
    return error;
  }
  u8 magic[2];
  ssize_t got = pread(source->fd, magic, sizeof(magic), 0);
  int error = got < 0 ? -errno : 0;
  source->gzip = got == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (!error && source->gzip) {
    source->compressed = memory_array(INPUT_BYTES, 1);
    if (inflateInit2(&source->inflater, 15 + 16) != Z_OK)
      memory_is_short(1u << 16, 1); /* about */
  }
  if (error) {
    byte_source_close(source);
    return error;
  }
  *out = source;
  return 0;
}

void byte_source_close(struct byte_source *source) {
  if (!source)
    return;
  if (source->gzip)
    inflateEnd(&source->inflater);
  free(source->compressed);
  close(source->fd);
  free(source);
}

bool byte_source_is_gzip(const struct byte_source *source) {
  return source->gzip;
}

u64 byte_source_position(const struct byte_source *source) {
  return source->position;
}

static i64 read_plain(struct byte_source *source, u8 *buffer, size_t bytes) {
  ssize_t got = read_fully(source->fd, buffer, bytes);
  source->position += got > 0 ? (u64)got : 0;
  return got;
}

/* More compressed bytes; false at the end of the file. */
static bool refill(struct byte_source *source) {
  if (source->inflater.avail_in || source->file_ended)
    return source->inflater.avail_in > 0;
  ssize_t got = read_fully(source->fd, source->compressed, INPUT_BYTES);
  if (got < 0)
    source->failed = (int)got;
  if (got < (ssize_t)INPUT_BYTES)
    source->file_ended = true;
  source->inflater.next_in = source->compressed;
  source->inflater.avail_in = got > 0 ? (uInt)got : 0;
  source->position += got > 0 ? (u64)got : 0;
  return got > 0;
}

static i64 read_gzip(struct byte_source *source, u8 *buffer, size_t bytes) {
  z_stream *inflater = &source->inflater;
  inflater->next_out = buffer;
  inflater->avail_out = bytes < UINT32_MAX ? (uInt)bytes : UINT32_MAX;
  uInt wanted = inflater->avail_out;
  while (inflater->avail_out && !source->failed) {
    if (!refill(source)) {
      if (!source->failed && !source->member_ended)
        source->failed = -EBADMSG;
      break;
    }
    /* what follows a member and is not a member is padding */
    if (source->member_ended && (*inflater->next_in != 0x1f || inflateReset(inflater) != Z_OK))
      break;
    source->member_ended = false;
    int status = inflate(inflater, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR)
      memory_is_short(1u << 15, 1); /* the window */
    if (status == Z_STREAM_END)
      source->member_ended = true;
    else if (status != Z_OK && status != Z_BUF_ERROR)
      source->failed = -EBADMSG;
  }
  i64 got = wanted - inflater->avail_out;
  if (!budget_inflate((u64)got))
    return source->failed = -EFBIG;
  return got == 0 && source->failed ? source->failed : got;
}

i64 byte_source_read(struct byte_source *source, u8 *buffer, size_t bytes) {
  return source->gzip ? read_gzip(source, buffer, bytes) : read_plain(source, buffer, bytes);
}
