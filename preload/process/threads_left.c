/* SPDX-License-Identifier: MIT */
#include "process/threads_left.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel links a folder in /proc/self/task for each thread. */
u32 tscope_threads_left(void) {
  struct statx task;
  bool known = statx(AT_FDCWD, "/proc/self/task", 0, STATX_NLINK, &task) == 0 && task.stx_nlink > 2;
  return known ? task.stx_nlink - 2 : 0;
}

/* The first thread counts until the process ends, but has no memory any more once it has ended: the
 * kernel looks there for the program that the process runs. */
static bool first_has_ended(void) {
  char program[8];
  return readlink("/proc/self/exe", program, sizeof(program)) < 0 && errno == ENOENT;
}

bool tscope_job_has_ended(void) {
  return tscope_threads_left() == 1 + TSCOPE_OWN_THREADS && first_has_ended();
}
