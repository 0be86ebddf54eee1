/* SPDX-License-Identifier: MIT
 *
 * The folder of a target that reads files, in memory where that is possible; it is removed at the
 * end.
 */
#pragma once

#include <unistd.h>

#include "scratch.h"

static char directory[64];

static void remove_directory(void) {
  scratch_remove(directory);
}

static void make_directory(void) {
  if (directory[0])
    return;
  snprintf(directory, sizeof(directory), "%s/tscope-fuzz-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  scratch_make(directory);
  atexit(remove_directory);
}
