/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/process_state.h"

#include "base/now.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECOND_NS = 1000000000 };

char process_state_of(const struct tscope_file_header *header) {
  char path[64], line[512], state;
  unsigned long long start = 0;
  snprintf(path, sizeof(path), "/proc/%u/stat", header->pid);
  FILE *file = fopen(path, "re");
  if (!file)
    return errno == ENOENT ? 0 : '?';
  bool read = fgets(line, sizeof(line), file) != NULL;
  fclose(file);
  const char *after = read ? strrchr(line, ')') : NULL;
  if (!after || sscanf(after + 1,
                       " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                       "%*d %*d %*d %*d %llu",
                       &state, &start) != 2)
    return '?';
  /* A process that began after the trace did only has the number of one that has ended. */
  long hertz = sysconf(_SC_CLK_TCK);
  i64 started = hertz > 0 ? (i64)(start * ((u64)SECOND_NS / (u64)hertz)) : 0;
  return started > (i64)header->start_monotonic_ns + 2 * (i64)SECOND_NS ? 0 : state;
}

char process_runs(const struct tscope_file_header *header) {
  char host[sizeof(header->host)] = "";
  gethostname(host, sizeof(host) - 1);
  if (header->closed_realtime_ns || header->reaped_signal || !header->alive_ticks ||
      strncmp(header->host, host, sizeof(host) - 1) != 0)
    return 0;
  i64 booted = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
  char state = (i64)header->start_realtime_ns < booted ? 0 : process_state_of(header);
  return state == 'Z' || state == 'X' || state == '?' ? 0 : state;
}

bool processes_share_host(const struct tscope_file_header *a, const struct tscope_file_header *b) {
  i64 apart = (i64)(a->start_realtime_ns - a->start_monotonic_ns -
                    (b->start_realtime_ns - b->start_monotonic_ns));
  return strcmp(a->host, b->host) == 0 && apart > -SAME_BOOT_NS && apart < SAME_BOOT_NS;
}
