/* SPDX-License-Identifier: MIT */
#include "process/threads_left.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "inspect/small_file.h"
#include "inspect/thread_state.h"
#include "process/workers.h"

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

/* The same without /proc. */
static bool first_has_no_memory(void) {
  char here, copy;
  struct iovec from = {&here, 1}, to = {&copy, 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == ESRCH;
}

/* The kernel's own threads for io_uring count as threads of the process, but end only with it:
 * their flags say so. */
static bool is_the_kernels(u32 tid) {
  const u64 io_worker = 0x10, user_worker = 0x4000;
  char line[1024];
  thread_file_read(getpid(), tid, "stat", line, sizeof(line));
  const char *flags = stat_field(line, 9);
  return flags && leading_number(flags, UINT64_MAX, NULL) & (io_worker | user_worker);
}

static bool is_of_job(u32 tid) {
  return tid != (u32)getpid() && !tscope_is_worker(tid) && !is_the_kernels(tid);
}

static bool all_have_ended(u32 threads, bool own_descriptors) {
  u32 tids[64];
  if (threads < 1 + TSCOPE_OWN_THREADS || !first_has_ended())
    return false;
  if (threads == 1 + TSCOPE_OWN_THREADS || !own_descriptors)
    return threads == 1 + TSCOPE_OWN_THREADS;
  u32 n = thread_list(getpid(), tids, LENGTH_OF(tids));
  bool job = !n || n > LENGTH_OF(tids);
  for (u32 i = 0; i < n && !job; i++)
    job = is_of_job(tids[i]);
  return !job;
}

enum tscope_job tscope_job_now(bool own_descriptors) {
  u32 threads = tscope_threads_left();
  if (!threads && first_has_no_memory())
    return TSCOPE_JOB_UNKNOWN;
  return all_have_ended(threads, own_descriptors) ? TSCOPE_JOB_ENDED : TSCOPE_JOB_RUNS;
}

/* The last number of its line is the status (proc_pid_stat(5)). */
int tscope_first_thread_status(void) {
  char line[1024];
  thread_file_read(getpid(), (u32)getpid(), "stat", line, sizeof(line));
  const char *last = strrchr(line, ' ');
  return last && strchr(last, '\n') ? (int)leading_number(last + 1, INT32_MAX, NULL) : 0;
}
