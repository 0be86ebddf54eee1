/* SPDX-License-Identifier: MIT */
#include "process/out_of_memory_kills.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "inspect/small_file.h"

/* /proc/self/cgroup has "0::/path" for version 2, and "N:memory:/path" for version 1. In a
 * container the path may be a path of the host: then the group at the mount point is the
 * container's own. */
void tscope_memory_events_file(char *path, size_t bytes) {
  char text[1024];
  small_file_read("/proc/self/cgroup", text, sizeof(text));
  for (char *next, *entry = text; entry && *entry; entry = next) {
    next = strchr(entry, '\n');
    if (next)
      *next++ = '\0';
    const char *folder = strchr(entry, ':');
    folder = folder ? strchr(folder + 1, ':') : NULL;
    bool first = strstr(entry, ":memory:") != NULL;
    if (!folder || (!first && strncmp(entry, "0::", 3) != 0))
      continue;
    const char *root = first ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const char *file = first ? "memory.oom_control" : "memory.events";
    const char *places[] = {folder + 1, ""};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
      snprintf(path, bytes, "%s%s/%s", root, places[i], file);
      if (tscope_oom_kills(path) != UINT64_MAX)
        return;
    }
  }
  path[0] = '\0';
}

u64 tscope_oom_kills(const char *path) {
  char text[512];
  if (!*path || small_file_read(path, text, sizeof(text)) <= 0)
    return UINT64_MAX;
  const char *at = strstr(text, "oom_kill ");
  if (!at)
    return UINT64_MAX;
  u64 kills = 0;
  for (at += strlen("oom_kill "); *at >= '0' && *at <= '9'; at++)
    kills = kills * 10 + (u64)(*at - '0');
  return kills;
}
