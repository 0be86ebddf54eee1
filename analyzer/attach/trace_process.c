/* SPDX-License-Identifier: MIT */
#include "attach/trace_process.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "inspect/thread_state.h"

enum { THREADS_MOST = 4096 };

/* Nanoseconds of CLOCK_MONOTONIC at which a process started; -1. */
static i64 start_of(u32 pid) {
  char path[64], text[1024];
  unsigned long long ticks;
  snprintf(path, sizeof(path), "/proc/%u/stat", pid);
  FILE *stat = fopen(path, "re");
  size_t got = stat ? fread(text, 1, sizeof(text) - 1, stat) : 0;
  text[got] = '\0';
  if (stat)
    fclose(stat);
  const char *name_end = strrchr(text, ')');
  if (!name_end || sscanf(name_end + 1,
                          " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                          "%*d %*d %llu",
                          &ticks) != 1)
    return -1;
  i64 suspended = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
  return (i64)(ticks * (1000000000ull / (u64)sysconf(_SC_CLK_TCK))) - suspended;
}

/* Whether one of its threads has the name of our helper. */
static bool has_helper(u32 pid) {
  static u32 tids[THREADS_MOST];
  u32 n = thread_list((pid_t)pid, tids, THREADS_MOST);
  for (u32 i = 0; i < n && i < THREADS_MOST; i++) {
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tids[i]);
    FILE *file = fopen(path, "re");
    bool is_it = file && fgets(name, sizeof(name), file) && strcmp(name, "tscope\n") == 0;
    if (file)
      fclose(file);
    if (is_it)
      return true;
  }
  return false;
}

bool trace_process_is_of_this_host(const struct tscope_file_header *header) {
  char host[sizeof(header->host)] = "";
  gethostname(host, sizeof(host) - 1);
  return strncmp(host, header->host, sizeof(host) - 1) == 0;
}

bool trace_process_runs(const struct tscope_file_header *header) {
  const i64 tolerance = 1000000000;
  i64 start = start_of(header->pid);
  return trace_process_is_of_this_host(header) && start >= 0 &&
         start <= (i64)header->start_monotonic_ns + tolerance && has_helper(header->pid);
}
