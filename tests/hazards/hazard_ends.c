/* SPDX-License-Identifier: MIT
 *
 * How a process ends: by itself, by a signal, by its last thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_cudart.h"
#include "hazard.h"

void end_exit(char **arguments) {
  (void)arguments;
  launch(10000);
  report();
  _exit(3);
}

void end_abort(char **arguments) {
  (void)arguments;
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  launch(10000);
  report();
  abort();
}

void end_signal(char **arguments) {
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  launch(10000);
  report();
  raise(atoi(arguments[0]));
}

void *launch_for_ever(void *unused) {
  for (;;)
    launch(1000);
  return unused;
}

/* Returns from main while other threads are inside hooked calls. */
void end_busy(char **arguments) {
  (void)arguments;
  for (int i = 0; i < 4; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, launch_for_ever, NULL))
      fail("pthread_create");
  }
  while (fake_launches() < 20000)
    sched_yield();
}

/* Counts in a shared page how many calls have returned, until it is killed. */
void until_killed(char **arguments) {
  int fd = open(arguments[0], O_RDWR | O_CLOEXEC);
  volatile unsigned long *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || done == MAP_FAILED)
    fail(arguments[0]);
  for (;;) {
    launch(1);
    *done += 1;
  }
}

static void *launch_on(void *unused) {
  (void)unused;
  launch(1000);
  usleep(300 * 1000);
  launch(1000);
  report();
  return NULL;
}

static void say_bye(void) {
  puts("bye");
}

/* The process ends with its last thread, and that is not the first. With a ring for input and
 * output, a thread of the kernel's is left as well. */
void first_thread_ends(char **arguments) {
  pthread_t thread;
  atexit(say_bye);
  launch(1000);
  struct io_uring_params ring = {.flags = IORING_SETUP_SQPOLL};
  if (strcmp(arguments[0], "ring") == 0 && syscall(SYS_io_uring_setup, 8, &ring) < 0)
    fail("io_uring_setup");
  if (pthread_create(&thread, NULL, launch_on, NULL) || pthread_detach(thread))
    fail("pthread_create");
  pthread_exit(NULL);
}

/* From now on the kernel answers this call so: of this thread and those that it starts, or
 * (SECCOMP_FILTER_FLAG_TSYNC) of all of the process. */
static void answer(unsigned call, unsigned how, unsigned of_all) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, how),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof(code) / sizeof(*code), code};
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, of_all, &filter))
    fail("filter");
}

static void forbid(unsigned call, unsigned of_all) {
  answer(call, SECCOMP_RET_KILL_THREAD, of_all);
}

static int job_fd;

/* Of a thread of tscope's: whether it has the cores of the first thread, and whether the helper has
 * a descriptor of the job's. */
static void look_at_thread(const char *number) {
  char path[64], name[32] = "";
  cpu_set_t its, first;
  snprintf(path, sizeof(path), "/proc/self/task/%s/comm", number);
  FILE *file = fopen(path, "re");
  if (!file || !fgets(name, sizeof(name), file))
    fail(path);
  fclose(file);
  if (strncmp(name, "tscope", 6) != 0)
    return;
  if (sched_getaffinity(atoi(number), sizeof(its), &its) != 0 ||
      sched_getaffinity(getpid(), sizeof(first), &first) != 0)
    fail("sched_getaffinity");
  if (!CPU_EQUAL(&its, &first))
    printf("%s has other cores\n", name);
  snprintf(path, sizeof(path), "/proc/self/task/%s/fd/%d", number, job_fd);
  if (strcmp(name, "tscope\n") == 0 && access(path, F_OK) == 0)
    printf("%s has the job's descriptor\n", name);
}

static void *launch_on_one_core(void *nothing) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((unsigned)sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0)
    fail("sched_setaffinity");
  launch(1000);
  return nothing;
}

/* A thread with a core of its own is the first that launches, on a kernel before 5.9. */
void look_at_threads(char **arguments) {
  (void)arguments;
  pthread_t thread;
  job_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 200);
  answer(SYS_close_range, SECCOMP_RET_ERRNO | ENOSYS, 0);
  if (pthread_create(&thread, NULL, launch_on_one_core, NULL) || pthread_join(thread, NULL))
    fail("pthread_create");
  usleep(150 * 1000);
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *entry; tasks && (entry = readdir(tasks));)
    if (entry->d_name[0] != '.')
      look_at_thread(entry->d_name);
  if (tasks)
    closedir(tasks);
}

/* The only thread ends by a system call of its own, or because of one that a filter forbids. */
void only_thread_ends(char **arguments) {
  launch(1000);
  report();
  if (*arguments[0])
    syscall(SYS_exit, atoi(arguments[0]));
  forbid(SYS_getppid, 0);
  syscall(SYS_getppid);
}

/* A filter that does not know what tscope's threads need: new ones inherit it, or those get it that
 * are there already. */
void other_threads_end(char **arguments) {
  bool first = strcmp(arguments[0], "first") == 0;
  if (!first) {
    launch(1000);
    usleep(150 * 1000);
  }
  forbid(first ? SYS_unshare : SYS_statx, first ? 0 : SECCOMP_FILTER_FLAG_TSYNC);
  launch(1000);
  usleep(300 * 1000);
  launch(1000);
}
