/* SPDX-License-Identifier: MIT */
#include "facts/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_of(int parent, const char *name, int flags, bool or_roots) {
  int fd = openat(parent, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return -errno;
  struct statx info;
  int error = 0;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_UID | STATX_TYPE, &info) != 0)
    error = -errno;
  else if (info.stx_uid != geteuid() && !(or_roots && info.stx_uid == 0))
    error = -EPERM;
  else if (!(flags & O_DIRECTORY) && !S_ISREG(info.stx_mode))
    error = -EINVAL;
  if (!error)
    return fd;
  close(fd);
  return error;
}

int tscope_open_own(int parent, const char *name, int flags) {
  return open_of(parent, name, flags, false);
}

int tscope_open_own_or_roots(int parent, const char *name, int flags) {
  return open_of(parent, name, flags, true);
}
