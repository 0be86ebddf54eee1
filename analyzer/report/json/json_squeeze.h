/* SPDX-License-Identifier: MIT
 *
 * Indented JSON with each array of numbers on one line: a thousand step times are a line and not a
 * thousand lines.
 */
#ifndef TSCOPE_JSON_SQUEEZE_H
#define TSCOPE_JSON_SQUEEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct json_squeeze {
  FILE *out;
  char *buffered; /* from a '[' on, as long as it may be an array of numbers */
  size_t n, room;
  bool buffering, in_string, escaped;
};

/* For json_dump_callback(), with a struct json_squeeze as its data. 0, or -1 without memory;
 * errors of `out` are the caller's to find with ferror(). */
int json_squeeze(const char *text, size_t bytes, void *data);

/* Frees the buffer. 0, or -1 if anything had to be left out. */
int json_squeeze_end(struct json_squeeze *squeeze);

#endif
