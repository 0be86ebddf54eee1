/* SPDX-License-Identifier: MIT */
#include "inspect/small_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
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

void stat_name(const char *text, char *name, size_t bytes) {
  const char *open = strchr(text, '('), *close = strrchr(text, ')');
  int length = open && close ? (int)(close - open - 1) : 0;
  snprintf(name, bytes, "%.*s", length, length ? open + 1 : "");
}

const char *line_value(const char *text, const char *name) {
  size_t n = strlen(name);
  for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
    const char *colon = line + n;
    if (strncmp(line, name, n) != 0)
      continue;
    colon += strspn(colon, " \t");
    if (*colon == ':')
      return colon + 1 + strspn(colon + 1, " \t");
  }
  return NULL;
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

/* As the kernel has it. */
struct entry {
  uint64_t inode;
  int64_t offset;
  uint16_t bytes;
  uint8_t type;
  char name[];
};

bool folder_names_visit(int folder, char *room, size_t bytes,
                        bool (*each)(int folder, const char *name, void *with), void *with) {
  long got;
  while ((got = syscall(SYS_getdents64, folder, room, bytes)) > 0)
    for (long at = 0; at < got;) {
      const struct entry *entry = (const void *)(room + at);
      if (entry->name[0] != '.' && each(folder, entry->name, with))
        return true;
      at += entry->bytes;
    }
  return false;
}

int folder_names_of(const char *path, bool (*each)(int folder, const char *name, void *with),
                    void *with) {
  _Alignas(8) char room[1024];
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int found = folder < 0 ? -1 : folder_names_visit(folder, room, sizeof(room), each, with);
  if (folder >= 0)
    close(folder);
  return found;
}
