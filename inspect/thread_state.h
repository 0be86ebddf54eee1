/* SPDX-License-Identifier: MIT
 *
 * What the kernel reports about a process's threads under /proc: the process is not stopped, and
 * nothing waits for it. Allocates nothing and takes no lock of the C library; opens and closes
 * files.
 */
#pragma once

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "format/tscope_format.h"

/* Of the states of /proc: whether it has ended or is not there (0), and whether it is stopped. */
static inline bool thread_is_gone(char state) {
  return state == 0 || state == 'Z' || state == 'X';
}

static inline bool thread_is_stopped(char state) {
  return state == 'T' || state == 't';
}

/* Whether a thread that sleeps in this function of the kernel is frozen, as in a paused container.
 */
static inline bool thread_is_frozen(const char *wait) {
  return strstr(wait, "freezer") || strstr(wait, "refrigerator");
}

/* Texts are empty if the kernel does not give them. */
struct thread_state {
  u32 tid;
  char state;   /* as in /proc/PID/stat: R running, S sleeping, D waiting for a device, T stopped,
                   t traced, Z ended */
  u8 waits_for; /* an enum tscope_activity, but for the GIL; 0 if it is in no system call */
  char name[32];
  char wait[64];  /* the function of the kernel that it sleeps in */
  char call[32];  /* the system call it is in, or its number where the name is not known here */
  char file[256]; /* what file or socket that is about; of a longer one its end, after "..." */
};

/* Where the kernel has a file about a thread, such as "stat"; and the beginning of that file's
 * text, as small_file_read() gives it. */
enum { THREAD_PATH_BYTES = 64 };
void thread_path(char path[THREAD_PATH_BYTES], pid_t pid, u32 tid, const char *file);
ssize_t thread_file_read(pid_t pid, u32 tid, const char *file, char *text, size_t bytes);

/* From the text of a thread's file "syscall", unless that is "running": the call that it is in and
 * the first two arguments, or -1 where it is blocked outside of any. */
struct thread_call {
  i32 number;
  u64 arguments[2];
};
struct thread_call thread_call_of(const char *text);

/* What a thread that is blocked in this call waits for: an enum tscope_activity. */
u8 thread_waits_for(pid_t pid, u32 tid, const struct thread_call *call);

/* Likewise from the texts of a thread_state, where no more is known; NULL where not known. */
u8 thread_waits_by_name(const char *call, const char *file);

/* What a thread has open with that number: a path, or what the kernel calls it, such as
 * "socket:[123]"; cut to what fits, and empty if there is nothing. */
void thread_open_file(pid_t pid, u32 tid, i32 number, char *text, size_t bytes);

/* From the text of a thread's schedstat: for how long, in nanoseconds, it ran and was ready without
 * a core, and how often it was put on one. False if the kernel does not count. */
bool thread_times(const char *text, u64 times[3]);

/* Numbers of the threads of a process, at most `most`; returns how many there are, 0 if the process
 * has ended. */
u32 thread_list(pid_t pid, u32 *tids, u32 most);

/* Process ids of the children that a thread has started, at most `most`, of some hundreds; returns
 * how many were put. For one thread at a time. */
u32 thread_children(pid_t pid, u32 tid, u32 *pids, u32 most);

/* False if the thread has ended. Preserves errno. */
bool thread_state_read(pid_t pid, u32 tid, struct thread_state *state);
