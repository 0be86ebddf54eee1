/* SPDX-License-Identifier: MIT */
#include "attach/refused.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/texts.h"
#include "inspect/memory_read.h"
#include "inspect/small_file.h"

static const char yama_file[] = "/proc/sys/kernel/yama/ptrace_scope";

/* The right to read is checked before the address: so reading the first page, which no program has,
 * shows whether we may. */
bool is_reading_refused(pid_t pid) {
  char byte;
  int error = tscope_read_memory(pid, 0, &byte, 1);
  return error == -EPERM || error == -EACCES;
}

/* 0 where there is none. */
static int scope_in(const char *path) {
  char text[16];
  small_file_read(path, text, sizeof(text));
  return (int)leading_number(text, INT32_MAX, NULL);
}

const char *describe_refusal_for(uid_t owner, uid_t reader, const char *scope) {
  if (reader && owner != reader)
    return "not permitted, it belongs to another user: run this as that user or as root";
  switch (scope_in(scope)) {
  case 1:
    return "not permitted: Yama (kernel.yama.ptrace_scope is 1) lets a process read only those "
           "that it started: give the directory of its traces, then a process that runs under "
           "tscope is asked instead; or run this with sudo, in a container with CAP_SYS_PTRACE";
  case 2:
    return "not permitted: Yama (kernel.yama.ptrace_scope is 2) lets only CAP_SYS_PTRACE read "
           "processes: run this "
           "with sudo, in a container with that capability";
  case 3:
    return "not permitted: Yama (kernel.yama.ptrace_scope is 3) lets nobody read processes until "
           "the next boot";
  default:
    return "not permitted: in a container, start that with CAP_SYS_PTRACE; elsewhere run this with "
           "sudo";
  }
}

const char *describe_refusal(pid_t pid) {
  char path[32];
  struct stat info;
  snprintf(path, sizeof(path), "/proc/%d", (int)pid);
  uid_t owner = stat(path, &info) == 0 ? info.st_uid : geteuid();
  return describe_refusal_for(owner, geteuid(), yama_file);
}
