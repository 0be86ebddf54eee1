/* SPDX-License-Identifier: MIT */
#include "facts/cgroups.h"

#include <stdio.h>
#include <string.h>

#include "format/text_parts.h"
#include "format/values.h"
#include "inspect/small_file.h"

bool tscope_cgroup_read(const struct tscope_cgroup *group, const char *file, char *text,
                        size_t bytes) {
  char path[TSCOPE_CGROUP_BYTES + 32];
  snprintf(path, sizeof(path), "%s/%s", group->folder, file);
  return small_file_read(path, text, bytes) > 0;
}

bool tscope_cgroup_value(const char *text, const char *name, uint64_t *value) {
  size_t bytes = strlen(name);
  for (const char *at = text; at && *at; at = strchr(at, '\n')) {
    at += *at == '\n';
    if (!tscope_begins_with(at, name) || at[bytes] != ' ')
      continue;
    *value = leading_number(at + bytes + 1, UINT64_MAX, NULL);
    return true;
  }
  return false;
}

struct cgroup_search {
  const char *root, *controller;
  void (*visit)(const struct tscope_cgroup *group, void *with);
  void *with;
};

static void visit_up(const struct cgroup_search *search, const char *mount, const char *path,
                     bool version_2) {
  struct tscope_cgroup group = {.version_2 = version_2};
  size_t floor = strlen(search->root) + strlen(mount);
  if ((size_t)snprintf(group.folder, sizeof(group.folder), "%s%s%s", search->root, mount, path) >=
      sizeof(group.folder))
    return;
  for (;;) {
    group.path = group.folder[floor] ? group.folder + floor : "/";
    search->visit(&group, search->with);
    char *slash = strrchr(group.folder, '/');
    if (strlen(group.folder) <= floor || !slash)
      return;
    *MAX(slash, group.folder + floor) = '\0';
  }
}

/* "ID:CONTROLLERS:PATH"; in version 2 the field CONTROLLERS is empty. */
static void visit_line(const struct cgroup_search *search, char *line) {
  char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL, mount[64];
  if (!path)
    return;
  *path++ = '\0';
  names++;
  if (!*names) {
    visit_up(search, "/sys/fs/cgroup", path, true);
    visit_up(search, "/sys/fs/cgroup/unified", path, true);
  } else if (tscope_has_word(names, ",", search->controller)) {
    snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", search->controller);
    visit_up(search, mount, path, false);
    snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", names);
    if (strcmp(names, search->controller) != 0)
      visit_up(search, mount, path, false);
  }
}

void tscope_cgroups_visit(const char *root, const char *controller,
                          void (*visit)(const struct tscope_cgroup *group, void *with),
                          void *with) {
  const struct cgroup_search search = {root, controller, visit, with};
  char path[TSCOPE_CGROUP_BYTES], text[1024], *rest = text;
  snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
  if (small_file_read(path, text, sizeof(text)) <= 0)
    return;
  for (char *line; (line = strsep(&rest, "\n"));)
    visit_line(&search, line);
}
