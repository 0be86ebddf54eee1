/* SPDX-License-Identifier: MIT
 *
 * Preloaded: a disk that does not answer. Whoever opens, lists or looks at something below the
 * folder FROZEN_DISK waits as long as the file FROZEN_DISK.frozen exists.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void wait_for_disk(const char *path) {
  const char *disk = getenv("FROZEN_DISK");
  char frozen[4096];
  if (!disk || strncmp(path, disk, strlen(disk)) != 0)
    return;
  snprintf(frozen, sizeof(frozen), "%s.frozen", disk);
  while (syscall(SYS_faccessat, AT_FDCWD, frozen, F_OK) == 0)
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

EXPORT int openat(int folder, const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = flags & O_CREAT ? va_arg(more, int) : 0;
  va_end(more);
  wait_for_disk(path);
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

EXPORT DIR *opendir(const char *path) {
  int fd = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? NULL : fdopendir(fd);
}

EXPORT int lstat(const char *path, struct stat *facts) {
  wait_for_disk(path);
  return fstatat(AT_FDCWD, path, facts, AT_SYMLINK_NOFOLLOW);
}
