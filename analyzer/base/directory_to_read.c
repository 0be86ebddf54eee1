/* SPDX-License-Identifier: MIT */
#include "base/directory_to_read.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/default_directory.h"

const char *directory_to_read(const char *program) {
  static char path[TSCOPE_DEFAULT_DIRECTORY_BYTES];
  const char *set = getenv("TSCOPE_DIR");
  unsigned owner;
  if (set && *set)
    return set;
  if (tscope_directory_to_read(path, &owner))
    fprintf(stderr,
            "%s: %s belongs to another user (number %u), and you have no directory of your own "
            "there: what follows is from that user's files\n",
            program, path, owner);
  return path;
}
