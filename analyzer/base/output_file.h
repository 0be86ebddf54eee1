/* SPDX-License-Identifier: MIT
 *
 * What is written whole: to standard output, or as a file that is built beside its place and moved
 * there when it is whole, so that nobody ever reads half of one.
 */
#pragma once

#include <stdio.h>

struct output_file {
  char *path;      /* as given; NULL: standard output */
  char *temporary; /* built there; NULL: written in place, as a pipe or a device is */
  FILE *out;
};

/* 0, or negative errno. */
int output_file_open(struct output_file *file, const char *path);

/* Where it is built; NULL for standard output. */
static inline const char *output_file_path(const struct output_file *file) {
  return file->temporary ? file->temporary : file->path;
}

/* Moves it into place if `error` is 0, else removes what is there. Returns `error`, or the negative
 * errno of what went wrong now. */
int output_file_close(struct output_file *file, int error);
