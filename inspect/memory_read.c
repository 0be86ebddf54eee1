/* SPDX-License-Identifier: MIT */
#include "inspect/memory_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inspect/kept_errno.h"
#include "inspect/pid_namespace.h"

/* Where seccomp refuses process_vm_readv(), as older container runtimes do, and where an emulator
 * does not know it. */
static int read_mem_file(pid_t pid, u64 address, void *to, size_t bytes) {
  char path[32], room[16];
  snprintf(path, sizeof(path), "/proc/%s/mem", proc_name(pid, room));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  ssize_t got = pread(fd, to, bytes, (off_t)address);
  close(fd);
  return got == (ssize_t)bytes ? 0 : -EFAULT;
}

int tscope_read_memory(pid_t pid, u64 address, void *to, size_t bytes) {
  struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
  TSCOPE_KEEP_ERRNO;
  ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  int error = got == (ssize_t)bytes ? 0 : got < 0 ? -errno : -EFAULT;
  if (error == -ENOSYS || error == -EPERM)
    error = read_mem_file(pid, address, to, bytes);
  return error;
}
