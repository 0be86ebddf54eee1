/* SPDX-License-Identifier: MIT */
#include "base/terminal_color.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_set(const char *variable) {
  const char *value = getenv(variable);
  return value && *value;
}

bool terminal_wants_color(int fd) {
  if (is_set("NO_COLOR"))
    return false;
  if (is_set("FORCE_COLOR"))
    return strcmp(getenv("FORCE_COLOR"), "0") != 0;
  const char *terminal = getenv("TERM");
  return isatty(fd) && terminal && strcmp(terminal, "dumb") != 0;
}
