/* SPDX-License-Identifier: MIT */
#include "attach/trace_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "inspect/small_file.h"
#include "inspect/thread_state.h"

enum { THREADS_MOST = 4096 };

/* Nanoseconds of CLOCK_MONOTONIC at which a process started; -1. */
static i64 start_of(u32 pid) {
  char path[64], text[1024];
  snprintf(path, sizeof(path), "/proc/%u/stat", pid);
  small_file_read(path, text, sizeof(text));
  const char *ticks = stat_field(text, 22);
  if (!ticks)
    return -1;
  i64 suspended = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
  u64 tick_ns = 1000000000u / (u64)sysconf(_SC_CLK_TCK);
  return (i64)(strtoull(ticks, NULL, 10) * tick_ns) - suspended;
}

/* Whether one of its threads has the name of our helper. */
static bool has_helper(u32 pid) {
  static u32 tids[THREADS_MOST];
  u32 n = thread_list((pid_t)pid, tids, THREADS_MOST);
  for (u32 i = 0; i < n && i < THREADS_MOST; i++) {
    char path[64], name[32];
    snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tids[i]);
    small_file_read(path, name, sizeof(name));
    if (strcmp(name, "tscope\n") == 0)
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
