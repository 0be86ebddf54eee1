/* SPDX-License-Identifier: MIT */
#include "process/out_of_memory_kills.h"

#include <stdio.h>

#include "facts/cgroups.h"
#include "inspect/small_file.h"

struct found {
  char *path;
  size_t bytes;
};

static void take_first(const struct tscope_cgroup *group, void *with) {
  const struct found *found = with;
  if (found->path[0])
    return;
  snprintf(found->path, found->bytes, "%s/%s", group->folder,
           group->version_2 ? "memory.events" : "memory.oom_control");
  if (tscope_oom_kills(found->path) == UINT64_MAX)
    found->path[0] = '\0';
}

void tscope_memory_events_file(char *path, size_t bytes) {
  struct found found = {path, bytes};
  path[0] = '\0';
  tscope_cgroups_visit("", "memory", take_first, &found);
}

u64 tscope_oom_kills(const char *path) {
  char text[512];
  u64 kills;
  bool known = *path && small_file_read(path, text, sizeof(text)) > 0 &&
               tscope_cgroup_value(text, "oom_kill", &kills);
  return known ? kills : UINT64_MAX;
}
