/* SPDX-License-Identifier: MIT */
#include "scripts/launch/installed_files.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The first of `places`, which are relative to this program's folder and end with NULL, that has a
 * file `name` with the rights `mode` of access(2). */
static bool find_file(const char *const *places, const char *name, int mode, char path[PATH_MAX]) {
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length < 0)
    return false;
  self[length] = '\0';
  const char *folder = dirname(self);
  for (; *places; places++) {
    char candidate[2 * PATH_MAX];
    snprintf(candidate, sizeof(candidate), "%s/%s/%s", folder, *places, name);
    if (realpath(candidate, path) && access(path, mode) == 0)
      return true;
  }
  return false;
}

bool installed_program(const char *name, char path[PATH_MAX]) {
  static const char *const places[] = {".", "../analyzer", NULL}; /* installed; a build folder */
  return find_file(places, name, X_OK, path);
}

bool installed_library(char path[PATH_MAX]) {
  /* A build folder; the place where meson installs it; other usual prefixes; a wheel. */
  static const char *const places[] = {"../preload", "../" TSCOPE_LIBDIR, "../lib",
                                       "../lib64",   "../lib/tscope",     NULL};
  return find_file(places, "libtscope.so", R_OK, path);
}
