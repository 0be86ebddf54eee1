/* SPDX-License-Identifier: MIT
 *
 * The recordings in ../shared/testdata, beside the source: in the folder that the program is given.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "importing.h"

static char recordings[4096];

/* The file of a recording; until the next call. */
static inline const char *at(const char *name) {
  static char path[8192];
  snprintf(path, sizeof(path), "%s/%s", recordings, name);
  return path;
}

static inline bool are_there(int argc, char **argv) {
  bool there = argc > 1 && realpath(argv[1], recordings);
  if (!there)
    puts("skipped: there is no ../shared/testdata/kineto beside the source");
  return there;
}
