/* SPDX-License-Identifier: MIT */
#include "inspect/small_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

ssize_t small_file_read(const char *path, char *text, size_t bytes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
  if (fd >= 0)
    close(fd);
  text[got > 0 ? got : 0] = '\0';
  return got;
}

const char *stat_field(const char *text, int number) {
  const char *at = strrchr(text, ')');
  for (int field = 2; at && field < number; field++)
    at = strchr(at + 1, ' ');
  return at ? at + 1 : NULL;
}

bool file_lines_visit(const char *path, char *room, size_t bytes,
                      bool (*each)(const char *line, void *with), void *with) {
  size_t n = 0;
  ssize_t more;
  bool found = false;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (fd >= 0 && !found && (more = read(fd, room + n, bytes - 1 - n)) > 0) {
    char *line = room, *end;
    room[n += (size_t)more] = '\0';
    for (; !found && (end = strchr(line, '\n')); line = end + 1) {
      *end = '\0';
      found = each(line, with);
    }
    n = strlen(line) < bytes / 2 ? strlen(line) : 0;
    memmove(room, line, n);
  }
  if (fd >= 0)
    close(fd);
  return found;
}
