/* SPDX-License-Identifier: MIT */
#include "process/descriptors.h"

#include <limits.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "inspect/small_file.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

static bool close_one(int folder, const char *name, void *first) {
  int fd = (int)leading_number(name, INT_MAX, NULL);
  if (fd != folder && fd >= *(const int *)first)
    close(fd);
  return false;
}

/* Kernels before 5.9 cannot close all of them at once. */
void tscope_descriptors_close_from(int first) {
  struct rlimit most;
  if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0)
    return;
  if (folder_names_of("/proc/thread-self/fd", close_one, &first) < 0 &&
      getrlimit(RLIMIT_NOFILE, &most) == 0) /* without /proc: few have a number above */
    for (int fd = first; fd < 65536 && (rlim_t)fd < most.rlim_cur; fd++)
      close(fd);
}

/* Kernels before 5.9 cannot do both at once. */
bool tscope_descriptors_leave(void) {
  if (syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) == 0)
    return true;
  if (syscall(SYS_unshare, CLONE_FILES) != 0)
    return false;
  tscope_descriptors_close_from(0);
  return true;
}
