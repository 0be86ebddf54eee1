/* SPDX-License-Identifier: MIT
 *
 * Folders for what a test writes, and files in them. A test that cannot have them ends.
 */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static inline void scratch_fail(const char *path) {
  perror(path);
  abort();
}

/* Makes a folder of its own; the name ends in XXXXXX, which it replaces. */
static inline void scratch_make(char *folder) {
  if (!mkdtemp(folder))
    scratch_fail(folder);
}

static inline void scratch_write(const char *folder, const char *name, const void *data,
                                 size_t bytes) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
    scratch_fail(path);
}

static inline void scratch_text(const char *folder, const char *name, const char *text) {
  scratch_write(folder, name, text, strlen(text));
}

static inline int scratch_remove_one(const char *path, const struct stat *status, int kind,
                                     struct FTW *where) {
  (void)status;
  (void)kind;
  (void)where;
  return remove(path);
}

/* With all that is in it. */
static inline void scratch_remove(const char *folder) {
  if (nftw(folder, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
    scratch_fail(folder);
}

/* Defines set-up and tear-down of a group of tests that share such a folder. */
#define SCRATCH_OF_GROUP(folder)                                                                   \
  static int make_folder(void **state) {                                                           \
    (void)state;                                                                                   \
    scratch_make(folder);                                                                          \
    return 0;                                                                                      \
  }                                                                                                \
  static int remove_folder(void **state) {                                                         \
    (void)state;                                                                                   \
    scratch_remove(folder);                                                                        \
    return 0;                                                                                      \
  }
