/* SPDX-License-Identifier: MIT */
#include "base/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/checked_memory.h"

/* Some file systems do not say what is a folder. */
static bool is_folder(DIR *in, const struct dirent *item) {
  struct stat facts;
  return item->d_type != DT_UNKNOWN
             ? item->d_type == DT_DIR
             : fstatat(dirfd(in), item->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISDIR(facts.st_mode);
}

char *folder_of(struct arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? arena_copy(arena, path, (size_t)MAX(slash - path, 1)) : arena_text(arena, ".");
}

int folder_visit(const char *path, unsigned depth, on_path *each, void *user) {
  DIR *folder = opendir(path);
  if (!folder)
    return -errno;
  for (struct dirent *item; (item = readdir(folder));) {
    if (item->d_name[0] == '.')
      continue;
    SCOPED char *inner = memory_printf("%s/%s", path, item->d_name);
    if (!is_folder(folder, item))
      each(user, inner);
    else if (depth > 0)
      folder_visit(inner, depth - 1, each, user);
  }
  closedir(folder);
  return 0;
}

const char *folder_for_a_time(void) {
  const char *named = getenv("TMPDIR");
  return named && *named ? named : "/tmp";
}

void folder_remove(const char *path) {
  DIR *folder = opendir(path);
  for (struct dirent *item; folder && (item = readdir(folder));) {
    struct stat facts;
    if (fstatat(dirfd(folder), item->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        (S_ISREG(facts.st_mode) || S_ISSOCK(facts.st_mode)))
      unlinkat(dirfd(folder), item->d_name, 0);
  }
  if (folder)
    closedir(folder);
  rmdir(path);
}
