/* SPDX-License-Identifier: MIT
 *
 * The recordings in ../shared/testdata, beside the source: in the folder that the program is given.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <stdio.h>

#include "figures.h"
#include "import/import.h"

static char recordings[4096];

/* The file of a recording; until the next call. */
static inline const char *at(const char *name) {
  static char path[8192];
  snprintf(path, sizeof(path), "%s/%s", recordings, name);
  return path;
}

static inline struct model *load(const char *path) {
  char why[512] = "";
  struct model *model = NULL;
  if (import_load(&path, 1, NULL, &model, why, sizeof(why)) != 0)
    fail_msg("%s: %s", path, why);
  return model;
}

static inline bool are_there(int argc, char **argv) {
  bool there = argc > 1 && realpath(argv[1], recordings);
  if (!there)
    puts("skipped: there is no ../shared/testdata/kineto beside the source");
  return there;
}
