/* SPDX-License-Identifier: MIT */
#include "inspect/small_file.h"

#include <fcntl.h>
#include <unistd.h>

ssize_t small_file_read(const char *path, char *text, size_t bytes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
  if (fd >= 0)
    close(fd);
  text[got > 0 ? got : 0] = '\0';
  return got;
}
