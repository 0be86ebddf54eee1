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
#include <ucontext.h>
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
static cpu_set_t all_cores;

/* What is wrong with a thread of tscope's, which is to have all cores and no precedence, and if it
 * is the helper, no descriptor of the job's. NULL: nothing, or it is none of these. */
static const char *fault_of(int thread) {
  char path[64], name[32] = "";
  cpu_set_t its;
  snprintf(path, sizeof(path), "/proc/self/task/%d/comm", thread);
  FILE *file = fopen(path, "re");
  if (!file || !fgets(name, sizeof(name), file))
    fail(path);
  fclose(file);
  if (strncmp(name, "tscope", 6) != 0)
    return NULL;
  if (sched_getaffinity(thread, sizeof(its), &its) != 0)
    fail("sched_getaffinity");
  snprintf(path, sizeof(path), "/proc/self/task/%d/fd/%d", thread, job_fd);
  return !CPU_EQUAL(&its, &all_cores)                           ? "has other cores"
         : sched_getscheduler(thread) != SCHED_OTHER            ? "has precedence"
         : !strcmp(name, "tscope\n") && access(path, F_OK) == 0 ? "has the job's descriptor"
                                                                : NULL;
}

static const char *find_fault(void) {
  const char *fault = NULL;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *entry; tasks && !fault && (entry = readdir(tasks));)
    fault = entry->d_name[0] != '.' ? fault_of(atoi(entry->d_name)) : NULL;
  if (tasks)
    closedir(tasks);
  return fault;
}

static void use_cores(const cpu_set_t *cores) {
  if (sched_setaffinity(0, sizeof(*cores), cores) != 0)
    fail("sched_setaffinity");
}

static bool looked;

static void *launch_on_cores(void *cores) {
  use_cores(cores);
  sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}); /* if that is allowed */
  launch(1000);
  while (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE))
    usleep(1000);
  return NULL;
}

/* The thread that launches has a core of its own, or ("first") the first thread has; on a kernel
 * before 5.9. */
void look_at_threads(char **arguments) {
  const char *fault;
  pthread_t thread;
  cpu_set_t one;
  bool first = arguments[0] && strcmp(arguments[0], "first") == 0;
  CPU_ZERO(&one);
  CPU_SET((unsigned)sched_getcpu(), &one);
  if (sched_getaffinity(0, sizeof(all_cores), &all_cores) != 0)
    fail("sched_getaffinity");
  if (first)
    use_cores(&one);
  job_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 200);
  answer(SYS_close_range, SECCOMP_RET_ERRNO | ENOSYS, 0);
  if (pthread_create(&thread, NULL, launch_on_cores, first ? &all_cores : &one))
    fail("pthread_create");
  usleep(150 * 1000);
  for (int waits = 0; (fault = find_fault()) && waits < 2000; waits++)
    usleep(10 * 1000);
  if (fault)
    puts(fault);
  __atomic_store_n(&looked, true, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
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

/* The job answers calls that a filter traps: with EPERM. */
static void refuse(int number, siginfo_t *info, void *at) {
  ucontext_t *context = at;
  (void)number, (void)info;
#if defined(__x86_64__)
  context->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
  context->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#endif
}

/* What tscope's threads need is trapped: from before they start, or later for all threads. */
void calls_are_trapped(char **arguments) {
  bool first = strcmp(arguments[0], "first") == 0;
  struct sigaction action = {.sa_sigaction = refuse, .sa_flags = SA_SIGINFO};
  if (!first) {
    launch(1000);
    usleep(150 * 1000);
  }
  sigaction(SIGSYS, &action, NULL);
  usleep(250 * 1000); /* until tscope's threads have seen it */
  answer(first ? SYS_unshare : SYS_statx, SECCOMP_RET_TRAP, first ? 0 : SECCOMP_FILTER_FLAG_TSYNC);
  launch(1000);
  usleep(300 * 1000);
  launch(1000);
}

/* A filter refuses what tells threads apart. */
void calls_are_refused(char **arguments) {
  (void)arguments;
  answer(SYS_gettid, SECCOMP_RET_ERRNO | EPERM, 0);
  launch(1000);
  usleep(150 * 1000);
  launch(1000);
}

/* As tmpfs answers where a timer is faster than it allocates. */
void allocation_is_interrupted(char **arguments) {
  (void)arguments;
  answer(SYS_fallocate, SECCOMP_RET_ERRNO | EINTR, 0);
  launch(1000);
}
