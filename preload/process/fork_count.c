/* SPDX-License-Identifier: MIT
 *
 * Python 3.12 and later warn at os.fork() and os.forkpty() if the process has other threads. Python
 * counts them after the fork, in the parent: it opens /proc/self/stat with fopen(), reads it, and
 * closes it. In a job of one thread tscope's own threads end when Python opens this file, and start
 * again when Python closes it. What the file says is true, and the same as without tscope. In a job
 * with more threads Python warns anyway, and tscope's threads stay.
 */
#include "process/fork_count.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "process/workers.h"
#include "resolve/call_slots.h"

#pragma weak fopen64

static FILE *counting; /* open while tscope's threads are away */

static FILE *open_file(FILE *(*real)(const char *, const char *), const char *path,
                       const char *mode) {
  bool away = path && strcmp(path, "/proc/self/stat") == 0 &&
              !__atomic_load_n(&counting, __ATOMIC_RELAXED) && tscope_workers_pause();
  FILE *file = real(path, mode);
  if (away && file)
    __atomic_store_n(&counting, file, __ATOMIC_RELEASE);
  else if (away)
    tscope_workers_resume();
  return file;
}

static FILE *open_with_fopen(const char *path, const char *mode) {
  return open_file(fopen, path, mode);
}

static FILE *open_with_fopen64(const char *path, const char *mode) {
  return open_file(fopen64, path, mode);
}

static int close_file(FILE *file) {
  bool counted = file && file == __atomic_load_n(&counting, __ATOMIC_ACQUIRE);
  int result = fclose(file);
  if (counted) {
    tscope_workers_resume();
    __atomic_store_n(&counting, NULL, __ATOMIC_RELEASE);
  }
  return result;
}

void tscope_fork_count_install(void) {
  if (!tscope_slots_replace("fclose", (const void *)close_file))
    return;
  tscope_slots_replace("fopen", (const void *)open_with_fopen);
  if (fopen64)
    tscope_slots_replace("fopen64", (const void *)open_with_fopen64);
}
