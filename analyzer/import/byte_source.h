/* SPDX-License-Identifier: MIT
 *
 * The bytes of a file from its beginning to its end, decompressed where it is gzip.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

/* Reads from a place in a file, as far as it goes: fewer bytes than `bytes` mean that it ends, or
 * cannot be read. */
size_t file_read_at(int fd, void *to, size_t bytes, u64 offset);

struct byte_source;

/* Opens a file. 0, or negative errno. */
int byte_source_open(struct byte_source **source, const char *path);
void byte_source_close(struct byte_source *source);

bool byte_source_is_gzip(const struct byte_source *source);

/* Fills `buffer` as far as the file goes: fewer bytes than `bytes` mean that the file ends here.
 * Returns how many, or negative errno; -EBADMSG if compressed data is damaged or cut short, after
 * everything readable was returned; -EFBIG beyond the thread's budget. */
i64 byte_source_read(struct byte_source *source, u8 *buffer, size_t bytes);

/* Bytes of the file, as it is on disk, that have been read: for progress. */
u64 byte_source_position(const struct byte_source *source);
