/* SPDX-License-Identifier: MIT */
#include "process/threads_left.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspect/small_file.h"

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

/* The last number of its line is the status (proc_pid_stat(5)). */
int tscope_first_thread_status(void) {
  char path[64], line[1024];
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
  ssize_t bytes = small_file_read(path, line, sizeof(line));
  const char *last = bytes > 0 && line[bytes - 1] == '\n' ? strrchr(line, ' ') : NULL;
  return last ? atoi(last) : 0;
}
