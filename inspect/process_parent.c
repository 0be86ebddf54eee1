/* SPDX-License-Identifier: MIT */
#include "inspect/process_parent.h"

#include <stdio.h>
#include <string.h>

/* "PID (name) S PARENT ...": a name may hold anything, parentheses too. */
pid_t process_parent(pid_t pid) {
  char path[32], text[512];
  int parent = 0;
  snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
  FILE *stat = fopen(path, "re");
  size_t got = stat ? fread(text, 1, sizeof(text) - 1, stat) : 0;
  text[got] = '\0';
  const char *name_end = strrchr(text, ')');
  if (!name_end || sscanf(name_end + 1, " %*c %d", &parent) != 1)
    parent = 0;
  if (stat)
    fclose(stat);
  return parent;
}
