/* SPDX-License-Identifier: MIT */
#include "process/memory_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

/* Where seccomp refuses process_vm_readv(), as older container runtimes do, and where an emulator
 * does not know it. */
static bool read_mem_file(pid_t pid, u64 address, void *to, size_t bytes) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  bool whole = pread(fd, to, bytes, (off_t)address) == (ssize_t)bytes;
  close(fd);
  return whole;
}

bool tscope_read_memory(pid_t pid, u64 address, void *to, size_t bytes) {
  struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
  int saved = errno;
  ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  bool whole = got == (ssize_t)bytes;
  if (got < 0 && (errno == ENOSYS || errno == EPERM))
    whole = read_mem_file(pid, address, to, bytes);
  errno = saved;
  return whole;
}
