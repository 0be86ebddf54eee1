/* SPDX-License-Identifier: MIT */
#include "inspect/thread_activity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "inspect/kept_errno.h"
#include "inspect/small_file.h"
#include "inspect/thread_state.h"

enum {
  TICK_NS = 10000000, /* the longest time between two updates of a running thread's CPU time */
  MAX_MOMENT_NS = 2000000000, /* a look stands for no longer time */
  FAULT_NS = 500,             /* a page fault takes at least about so long */
};

static int open_file(pid_t pid, u32 tid, const char *name) {
  char path[THREAD_PATH_BYTES];
  thread_path(path, pid, tid, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}

bool thread_activity_open(struct thread_activity *activity, pid_t pid, u32 tid) {
  TSCOPE_KEEP_ERRNO;
  *activity = (struct thread_activity){.pid = pid,
                                       .tid = tid,
                                       .call = open_file(pid, tid, "syscall"),
                                       .times = open_file(pid, tid, "schedstat"),
                                       .counts = open_file(pid, tid, "stat")};
  bool opened = activity->call >= 0;
  if (!opened)
    thread_activity_close(activity);
  return opened;
}

void thread_activity_close(struct thread_activity *activity) {
  const int files[] = {activity->call, activity->times, activity->counts};
  for (size_t i = 0; activity->tid && i < LENGTH_OF(files); i++)
    if (files[i] >= 0)
      close(files[i]);
  *activity = (struct thread_activity){0};
}

static ssize_t read_again(int file, char *text, size_t bytes) {
  ssize_t got = file < 0 ? -1 : pread(file, text, bytes - 1, 0);
  text[got > 0 ? got : 0] = '\0';
  return got;
}

static u8 activity_in_call(const struct thread_activity *activity, const char *text, u64 gil,
                           u32 gil_bytes) {
  struct thread_call call = thread_call_of(text);
  bool of_gil = call.number == SYS_futex && gil && call.arguments[0] - gil < gil_bytes;
  return of_gil ? TSCOPE_ACTIVITY_GIL : thread_waits_for(activity->pid, activity->tid, &call);
}

/* Whether a thread that is not blocked is without a core. */
static bool is_without_core(struct thread_activity *activity, const u64 times[3], i64 moment_ns) {
  u64 cpu = times[0] - activity->cpu_ns, wait = times[1] - activity->wait_ns;
  bool not_run = !cpu && times[2] == activity->runs && moment_ns >= TICK_NS / 2;
  if (!activity->has_times)
    return false;
  i64 owed = activity->owed_ns + (i64)wait;
  activity->owed_ns = CLAMP(owed, -4 * moment_ns, 4 * moment_ns);
  if (!not_run && activity->owed_ns < moment_ns / 2)
    return false;
  activity->owed_ns -= moment_ns;
  return true;
}

/* Those without and with reading from a disk. */
static bool read_faults(struct thread_activity *activity, u64 *faults) {
  char text[256];
  if (read_again(activity->counts, text, sizeof(text)) <= 0)
    return false;
  const char *minor = stat_field(text, 10), *major = stat_field(text, 12);
  *faults =
      major ? leading_number(minor, UINT64_MAX, NULL) + leading_number(major, UINT64_MAX, NULL) : 0;
  return major;
}

/* Whether page faults took at least half of its CPU time since the last look. */
static bool is_in_faults(struct thread_activity *activity, u64 cpu_ns) {
  u64 faults;
  if (!read_faults(activity, &faults))
    return false;
  u64 more = faults - activity->faults, cpu = cpu_ns - activity->faults_cpu_ns;
  bool many = activity->has_faults && more > 1 && more * FAULT_NS >= cpu / 2;
  activity->faults = faults;
  activity->faults_cpu_ns = cpu_ns;
  activity->has_faults = true;
  return many;
}

static u8 activity_on_core(struct thread_activity *activity, i64 moment_ns) {
  char text[96];
  u64 times[3];
  if (read_again(activity->times, text, sizeof(text)) <= 0 || !thread_times(text, times))
    return TSCOPE_ACTIVITY_UNKNOWN;
  bool without_core = is_without_core(activity, times, moment_ns);
  activity->cpu_ns = times[0];
  activity->wait_ns = times[1];
  activity->runs = times[2];
  activity->has_times = true;
  if (without_core)
    return TSCOPE_ACTIVITY_NO_CORE;
  return is_in_faults(activity, times[0]) ? TSCOPE_ACTIVITY_PAGES : TSCOPE_ACTIVITY_RUNNING;
}

bool thread_activity_read(struct thread_activity *activity, u64 now_ns, u64 gil, u32 gil_bytes,
                          u8 *what) {
  TSCOPE_KEEP_ERRNO;
  char text[128];
  i64 moment_ns = (i64)(now_ns - activity->looked_ns);
  bool known = read_again(activity->call, text, sizeof(text)) > 0;
  bool alive = known || errno != ESRCH;
  activity->looked_ns = now_ns;
  if (!known)
    *what = TSCOPE_ACTIVITY_UNKNOWN;
  else if (*text == 'r') /* "running" */
    *what = activity_on_core(activity, MIN(moment_ns, MAX_MOMENT_NS));
  else
    *what = activity_in_call(activity, text, gil, gil_bytes);
  return alive;
}
