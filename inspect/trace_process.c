/* SPDX-License-Identifier: MIT */
#include "inspect/trace_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "inspect/pid_namespace.h"
#include "inspect/small_file.h"
#include "inspect/this_host.h"

#define SECOND_NS 1000000000ll
#define FIRST_NAMESPACE 0xEFFFFFFCu /* of the machine: PROC_PID_INIT_INO of the kernel */

/* The state of a process, if it started before its trace did; 0 if there is none: a later process
 * only has the number of one that has ended. */
static char state_of(const struct tscope_file_header *header, pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
  if (small_file_read(path, text, sizeof(text)) < 0)
    return errno == ENOENT || errno == ESRCH ? 0 : '?';
  const char *state = stat_field(text, 3), *ticks = stat_field(text, 22);
  if (!ticks)
    return '?';
  i64 suspended = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
  i64 started =
      (i64)leading_number(ticks, INT64_MAX, NULL) * (SECOND_NS / sysconf(_SC_CLK_TCK)) - suspended;
  return started - SECOND_NS > (i64)header->start_monotonic_ns ? 0 : *state;
}

/* Whether a process has the trace's number in its own namespace, which is the trace's. */
static bool is_in_namespace(const struct tscope_file_header *header, const char *process) {
  char path[64], text[4096];
  snprintf(path, sizeof(path), "/proc/%s/status", process);
  small_file_read(path, text, sizeof(text));
  const char *last = line_value(text, "NSpid");
  for (const char *at = last ? last : ""; *at && *at != '\n'; at++)
    last = *at == '\t' ? at + 1 : last;
  return last && leading_number(last, UINT32_MAX, NULL) == header->pid &&
         pid_namespace_of(process) == header->pid_namespace;
}

struct process_search {
  const struct tscope_file_header *header;
  struct trace_process found;
};

static bool look_at_process(int folder, const char *name, void *with) {
  struct process_search *search = with;
  pid_t pid = (pid_t)leading_number(name, INT32_MAX, NULL);
  (void)folder;
  char state = pid && is_in_namespace(search->header, name) ? state_of(search->header, pid) : 0;
  if (state)
    search->found = (struct trace_process){pid, state};
  return state;
}

/* From a namespace the processes of those below are seen, from the first one all. */
static struct trace_process find_in_namespace(const struct tscope_file_header *header, u64 own) {
  struct process_search search = {header, {0, own == FIRST_NAMESPACE ? 0 : '?'}};
  folder_names_of("/proc", look_at_process, &search);
  return search.found;
}

struct trace_process trace_process_find(const struct tscope_file_header *header) {
  if (!tscope_is_this_host(header->host) ||
      !may_be_this_boot((i64)(header->start_realtime_ns - header->start_monotonic_ns)))
    return (struct trace_process){0, '?'};
  u64 own = pid_namespace_of("self");
  if (header->pid_namespace && (header->pid_namespace != own || !proc_numbers_as_own()))
    return find_in_namespace(header, own);
  char state = state_of(header, (pid_t)header->pid);
  return (struct trace_process){state ? (pid_t)header->pid : 0, state};
}
