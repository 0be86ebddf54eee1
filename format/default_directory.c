/* SPDX-License-Identifier: MIT */
#include "format/default_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is at `path`, which may be a symbolic link. False if there is nothing. */
static bool look_up(const char *path, struct statx *info) {
  *info = (struct statx){0};
  return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, info) == 0;
}

static bool is_own(const struct statx *info) {
  return S_ISDIR(info->stx_mode) && info->stx_uid == geteuid();
}

static void directory_of_user(char path[TSCOPE_DEFAULT_DIRECTORY_BYTES]) {
  snprintf(path, TSCOPE_DEFAULT_DIRECTORY_BYTES, TSCOPE_DEFAULT_DIRECTORY "-%u",
           (unsigned)geteuid());
}

void tscope_directory_to_write(char path[TSCOPE_DEFAULT_DIRECTORY_BYTES]) {
  struct statx info;
  int saved = errno;
  strcpy(path, TSCOPE_DEFAULT_DIRECTORY);
  if (look_up(path, &info) && !is_own(&info))
    directory_of_user(path);
  errno = saved;
}

static bool is_newer(const struct statx_timestamp *a, const struct statx_timestamp *b) {
  return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

bool tscope_directory_to_read(char path[TSCOPE_DEFAULT_DIRECTORY_BYTES], unsigned *owner) {
  struct statx shared, own;
  bool exists = look_up(TSCOPE_DEFAULT_DIRECTORY, &shared);
  directory_of_user(path);
  if (look_up(path, &own) && is_own(&own) &&
      (!is_own(&shared) || is_newer(&own.stx_mtime, &shared.stx_mtime)))
    return false;
  strcpy(path, TSCOPE_DEFAULT_DIRECTORY);
  *owner = shared.stx_uid;
  return exists && shared.stx_uid != geteuid();
}
