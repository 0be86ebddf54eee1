/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_WHOLE_FILE_H
#define TSCOPE_WHOLE_FILE_H

#include <stddef.h>

#include "format/tscope_format.h"

/* All bytes of a file, decompressed where it is gzip, with a zero behind them that `n` does not
 * count; for formats that cannot be read as they come. free() them. 0, or negative errno: -EBADMSG
 * where compressed data is damaged; nothing to free then. */
int whole_file_read(const char *path, u8 **bytes, size_t *n);

#endif
