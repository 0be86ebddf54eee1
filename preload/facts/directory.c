/* SPDX-License-Identifier: MIT */
#include "facts/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts/own_file.h"
#include "record/error_text.h"

/* All of this runs on the helper's stack. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

/* Makes the folders above the last component of `path`. */
static int make_parents(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    int failed = mkdir(path, 0700) != 0 && errno != EEXIST && access(path, F_OK) != 0;
    *slash = '/';
    if (failed)
      return -errno;
  }
  return 0;
}

/* Opens our own folder `name` in `parent`, making it if it is missing. `shown` is its full name. */
static int open_own(int parent, const char *name, const char *shown, bool for_group, char *why,
                    size_t bytes) {
  bool made = mkdirat(parent, name, 0700) == 0;
  if (!made && errno != EEXIST) {
    int error = errno;
    snprintf(why, bytes, "cannot make %s (%s); set TSCOPE_DIR to a directory you can write to",
             shown, tscope_error_text(error));
    return -error;
  }
  int fd = tscope_open_own(parent, name, O_RDONLY | O_DIRECTORY);
  if (fd == -EPERM) {
    snprintf(why, bytes, "%s belongs to another user; set TSCOPE_DIR to a directory of your own",
             shown);
  } else if (fd == -ENOTDIR || fd == -ELOOP) {
    snprintf(why, bytes,
             "%s is a file or a symbolic link, not a directory; set TSCOPE_DIR to another place",
             shown);
  } else if (fd < 0) {
    snprintf(why, bytes, "cannot open %s (%s)", shown, tscope_error_text(-fd));
  }
  if (fd < 0)
    return fd;
  if (made && for_group) /* files made in it inherit the group; not limited by the umask */
    fchmod(fd, 02750);
  return fd;
}

int tscope_directory_open(const char *directory, const char *run, bool for_group, char *why,
                          size_t bytes) {
  char path[PATH_MAX], shown[PATH_MAX];
  size_t length = strlen(directory);
  while (length > 1 && directory[length - 1] == '/')
    length--;
  snprintf(path, sizeof(path), "%.*s", (int)length, directory);
  char name[NAME_MAX + 1], *last = strrchr(path, '/');
  if (length < 2 || directory[0] != '/' || length + strlen(run) + 2 > sizeof(path) ||
      strlen(++last) >= sizeof(name)) {
    snprintf(why, bytes, "%.200s cannot be used as TSCOPE_DIR", directory);
    return -EINVAL;
  }
  int error = make_parents(path);
  if (error) {
    snprintf(why, bytes, "cannot make the folders above %.200s (%s)", path,
             tscope_error_text(-error));
    return error;
  }
  strcpy(name, last);
  strcpy(shown, path);
  *last = '\0';
  int parent = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0) {
    error = -errno;
    snprintf(why, bytes, "cannot open %.200s (%s)", path, tscope_error_text(-error));
    return error;
  }
  int home = open_own(parent, name, shown, for_group, why, bytes);
  close(parent);
  if (home < 0)
    return home;
  snprintf(path, sizeof(path), "%.*s/%s", (int)length, shown, run);
  int fd = open_own(home, run, path, for_group, why, bytes);
  close(home);
  return fd;
}
