/* SPDX-License-Identifier: MIT
 *
 * What a frame means: its file, function and line.
 */
#pragma once

#include "inspect/python_frames.h"

enum { PYTHON_FILE_BYTES = 1024, PYTHON_NAME_BYTES = 256 };

struct python_location {
  char file[PYTHON_FILE_BYTES];     /* UTF-8; of a longer one its end, after "..." */
  char function[PYTHON_NAME_BYTES]; /* qualified where the version knows that; likewise */
  u32 line;                         /* 0: the instruction is of no line */
  u32 first_line;                   /* of the function */
};

/* False when it cannot be read; nothing is then known. */
bool python_location_of(const struct python *python, python_read *read, const void *context,
                        const struct python_frame *frame, struct python_location *place);

/* A text object as UTF-8, its end where it is too long; false when it is none, or not to be read.
 */
bool python_text(const struct python *python, python_read *read, const void *context, u64 text,
                 char *to, size_t bytes);
