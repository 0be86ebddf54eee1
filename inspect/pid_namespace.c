/* SPDX-License-Identifier: MIT */
#include "inspect/pid_namespace.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/text_parts.h"

u64 pid_namespace_of(const char *process) {
  char path[64];
  struct statx namespace;
  snprintf(path, sizeof(path), "/proc/%s/ns/pid", process);
  bool known = statx(AT_FDCWD, path, 0, STATX_INO, &namespace) == 0;
  return known ? namespace.stx_ino : 0;
}

bool proc_numbers_as_own(void) {
  char self[16] = "";
  return readlink("/proc/self", self, sizeof(self) - 1) > 0 &&
         leading_number(self, INT32_MAX, NULL) == (u64)getpid();
}

const char *proc_name(pid_t pid, char room[16]) {
  snprintf(room, 16, "%d", (int)pid);
  return pid == getpid() ? "self" : room;
}
