/* SPDX-License-Identifier: MIT
 *
 * hazard NAME [ARGUMENT]...: behaves in a way that can harm a preloaded library, or the job with
 * it, as real programs do. Its output must be the same with and without the shim. hazards.py
 * compares, and checks that every call was recorded or counted as lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_cudart.h"
#include "hazard.h"

extern char **environ;

void fail(const char *what) {
  fprintf(stderr, "hazard: %s: %s\n", what, strerror(errno));
  exit(99);
}

#ifdef THREAD_LOCAL_BYTES
static __thread volatile char thread_local_memory[THREAD_LOCAL_BYTES];
#endif

/* Launches, and checks that the result and errno are those of a runtime without the shim. */
static void launch_once(unsigned threads_per_block, cudaError_t expected, int number) {
  static const char kernel;
  dim3 block = {threads_per_block, 1, 1};
  errno = number;
  if (cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, block, NULL, 0, NULL) != expected)
    fail("result changed");
  if (errno != number)
    fail("errno changed");
}

void launch(unsigned long count) {
  for (unsigned long i = 0; i < count; i++)
    launch_once(32, cudaSuccess, 1000 + (int)(i % 100));
}

void report(void) {
  printf("%lu launches\n", fake_launches());
  fflush(stdout);
}

static void plain(char **arguments) {
  launch(strtoul(arguments[0], NULL, 10));
}

static void wait_for(pid_t child) {
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child)
    fail("child");
  printf("child ended with %d\n", status);
  fflush(stdout); /* otherwise the next child prints it again */
}

static void fork_child(char **arguments) {
  (void)arguments;
  for (int i = 0; i < 4; i++) {
    launch(1000);
    pid_t child = fork();
    if (child == 0) {
      launch(5000);
      exit(i);
    }
    launch(1000);
    wait_for(child);
  }
}

static void *fork_in_thread(void *unused) {
  fork_child(NULL);
  return unused;
}

/* Forks while other threads are inside hooked calls: a lock that they hold would hang the children.
 */
static void fork_busy(char **arguments) {
  (void)arguments;
  pthread_t busy[2], forker;
  for (int i = 0; i < 2; i++)
    pthread_create(&busy[i], NULL, launch_for_ever, NULL);
  pthread_create(&forker, NULL, fork_in_thread, NULL);
  pthread_join(forker, NULL);
  fflush(stdout);
  _exit(0);
}

static void register_kernels(void) {
  static char kernels[64];
  for (int i = 0; i < 64; i++)
    __cudaRegisterFunction(NULL, &kernels[i], NULL, "_Z6kernelv", -1, NULL, NULL, NULL, NULL, NULL);
}

static void *register_for_ever(void *unused) {
  for (;;)
    register_kernels();
  return unused;
}

/* The children load a library with kernels, while other threads of the parent were loading one. */
static void fork_while_registering(char **arguments) {
  (void)arguments;
  pthread_t busy[2];
  for (int i = 0; i < 2; i++)
    pthread_create(&busy[i], NULL, register_for_ever, NULL);
  for (int i = 0; i < 300; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      register_kernels();
      _exit(0);
    }
    wait_for(child);
  }
  _exit(0);
}

static void other_children(char **arguments) {
  (void)arguments;
  launch(1000);
  pid_t child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
    _exit(99);
  }
  wait_for(child);
  launch(1000);
  char *command[] = {"sh", "-c", "exit 6", NULL};
  if (posix_spawn(&child, "/bin/sh", NULL, NULL, command, environ))
    fail("posix_spawn");
  wait_for(child);
  printf("system says %d\n", system("exit 7"));
  launch(1000);
}

/* A child that shares this memory ends as a process should that has its own: with the exit handlers
 * of its parent. */
static void exit_after_vfork(char **arguments) {
  (void)arguments;
  launch(1000);
  pid_t child = vfork();
  if (child == 0)
    exit(5);
  wait_for(child);
  launch(1000);
}

/* The process becomes a new program with the same pid, which launches too. */
static void exec_self(char **arguments) {
  unsigned long more = strtoul(arguments[0], NULL, 10);
  launch(1000);
  report();
  if (more) {
    char count[24];
    snprintf(count, sizeof(count), "%lu", more - 1);
    execl("/proc/self/exe", "hazard", "exec", count, (char *)NULL);
    fail("exec");
  }
}

static void *launch_in_thread(void *count) {
  launch((unsigned long)count);
  return NULL;
}

static void threads(char **arguments) {
  pthread_t thread[256];
  int count = atoi(arguments[0]);
  for (int i = 0; i < count; i++)
    if (pthread_create(&thread[i], NULL, launch_in_thread, (void *)20000ul))
      fail("pthread_create");
  for (int i = 0; i < count; i++)
    pthread_join(thread[i], NULL);
}

static void thread_churn(char **arguments) {
  (void)arguments;
  for (int i = 0; i < 1000; i++) {
    pthread_t pair[2]; /* of which mostly one ends before the other begins, and nobody joins it */
    for (int t = 0; t < 2; t++)
      if (pthread_create(&pair[t], NULL, launch_in_thread, (void *)10ul))
        fail("pthread_create");
    for (int t = 0; t < 2; t++)
      pthread_join(pair[t], NULL);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  puts(usage.ru_maxrss < 300 * 1024 ? "memory stayed bounded" : "memory grew");
}

static void small_stack(char **arguments) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, strtoul(arguments[0], NULL, 10));
  pthread_t thread;
  if (pthread_create(&thread, &attributes, launch_in_thread, (void *)10000ul))
    fail("pthread_create");
  pthread_join(thread, NULL);
}

static void launch_late(void *count) {
  launch((unsigned long)count);
}

/* Launches from a destructor of thread-specific data, while the thread ends. */
static void *launch_at_thread_end(void *key) {
  launch(100);
  pthread_setspecific(*(pthread_key_t *)key, (void *)50ul);
  return NULL;
}

static void thread_exit(char **arguments) {
  (void)arguments;
  static pthread_key_t key;
  pthread_key_create(&key, launch_late);
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, launch_at_thread_end, &key);
    pthread_join(thread, NULL);
  }
}

/* A thread that is to be cancelled at its next cancellation point: a launch is none, nor is what
 * tscope hooks of the C library. */
static void *launch_while_cancelled(void *unused) {
  struct rlimit limit = {16ull << 30, RLIM_INFINITY};
  pthread_cancel(pthread_self());
  launch(1000);
  unshare(1); /* no such flag: may be refused because of threads */
  setrlimit(RLIMIT_AS, &limit);
  mlockall(0);
  return unused;
}

static void cancelled(char **arguments) {
  (void)arguments;
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, launch_while_cancelled, NULL);
  pthread_join(thread, &result);
  puts(result == PTHREAD_CANCELED ? "cancelled" : "ended");
}

static sigjmp_buf back;
static void jump(void) {
  siglongjmp(back, 1);
}

static void jump_over(char **arguments) {
  (void)arguments;
  for (volatile int i = 0; i < 100; i++) {
    if (sigsetjmp(back, 1) == 0) {
      fake_inside_launch = jump;
      launch(1);
      fail("not reached");
    }
    fake_inside_launch = NULL;
    launch(10);
  }
}

static void launch_from_handler(int number) {
  (void)number;
  int before = errno;
  launch(1);
  errno = before;
}

static void raise_alarm(void) {
  static __thread volatile bool inside;
  if (!inside) {
    inside = true;
    raise(SIGALRM);
    inside = false;
  }
}

/* A signal handler, on its own stack, launches while a launch is in progress. */
static void handler_inside(char **arguments) {
  (void)arguments;
  static char stack[256 * 1024];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = launch_from_handler, .sa_flags = SA_ONSTACK},
            NULL);
  fake_inside_launch = raise_alarm;
  launch(1000);
  fake_inside_launch = NULL;
  launch(1000);
}

/* The standard streams are closed: the next files that the job opens must get 0, 1 and 2. */
static void closed_streams(char **arguments) {
  close(0), close(1), close(2);
  launch(50000);
  int fds[3];
  for (int i = 0; i < 3; i++)
    fds[i] = open("/dev/null", O_RDWR);
  FILE *out = fopen(arguments[0], "w");
  fprintf(out, "%d %d %d, %lu launches\n", fds[0], fds[1], fds[2], fake_launches());
  fclose(out);
}

/* A file of the job's gets the number of standard error, which was closed: "first" before the first
 * launch, or after it. Then a command makes that tscope has something to say. */
static void data_at_2(char **arguments) {
  bool first = strcmp(arguments[1], "first") == 0;
  if (!first)
    launch(1000);
  close(STDERR_FILENO);
  int flags = O_RDWR | O_CREAT | O_TRUNC | (first ? O_CLOEXEC : 0);
  if (open(arguments[0], flags, 0600) != STDERR_FILENO)
    exit(98);
  launch(1000);
  if (system(arguments[2]) != 0)
    exit(97);
  usleep(500 * 1000);
  printf("%ld bytes of data\n", (long)lseek(STDERR_FILENO, 0, SEEK_END));
}

/* Closes every descriptor, as daemons do, and then uses the same numbers itself. */
static void descriptors_taken(char **arguments) {
  launch(1000);
  for (int fd = 3; fd < 1024; fd++)
    close(fd);
  int mine[64];
  for (int i = 0; i < 64; i++) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/mine-%d", arguments[0], i);
    mine[i] = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (mine[i] < 0 || write(mine[i], "mine", 4) != 4)
      fail(path);
  }
  launch(400000);
  usleep(300 * 1000);
  launch(400000);
  for (int i = 0; i < 64; i++) {
    char content[8] = "";
    if (lseek(mine[i], 0, SEEK_END) != 4 || pread(mine[i], content, 8, 0) != 4 ||
        strcmp(content, "mine") != 0)
      printf("file %d of the job was changed\n", i);
  }
}

static void no_descriptors(char **arguments) {
  (void)arguments;
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64});
  while (dup(1) >= 0)
    ;
  launch(50000);
  for (int fd = 3; fd < 64; fd++)
    close(fd);
}

static void limit_more_memory(rlim_t bytes) {
  long pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  if (!statm || fscanf(statm, "%ld", &pages) != 1)
    fail("statm");
  fclose(statm);
  rlim_t limit = (rlim_t)(pages * sysconf(_SC_PAGESIZE)) + bytes;
  setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit});
}

static void no_memory(char **arguments) {
  (void)arguments;
  limit_more_memory(512 << 10);
  launch(50000);
}

/* Most of the address space that the job may have must be left to it. */
static void little_memory(char **arguments) {
  (void)arguments;
  const rlim_t mb = 1 << 20, more = 1600;
  rlim_t got = 0;
  limit_more_memory(more * mb);
  launch(50000);
  while (mmap(NULL, 8 * mb, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
    got += 8;
  puts(got > more * 3 / 4 ? "most is left" : "most is gone");
}

/* Standard error is a file that must not grow. */
static void full_stderr(char **arguments) {
  int file = open(arguments[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || dup2(file, STDERR_FILENO) < 0 || write(STDERR_FILENO, "full", 4) != 4)
    fail(arguments[0]);
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){4, 4});
  launch(50000);
}

static void small_files(char **arguments) {
  rlim_t limit = strtoul(arguments[0], NULL, 10);
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
  launch(400000);
}

static void busy(char **arguments) {
  (void)arguments;
  for (int i = 0; i < 8; i++) {
    launch(250000);
    usleep(20 * 1000);
  }
}

/* Launches for 1.2 s. */
static void steady(char **arguments) {
  (void)arguments;
  for (int i = 0; i < 120; i++) {
    launch(1000);
    usleep(10 * 1000);
  }
}

/* So many kinds of launches that the first chunks are used up; none may take as long as the server
 * of the trace's file does not answer. */
static void shapes(char **arguments) {
  (void)arguments;
  static const char kernel;
  double longest = 0;
  for (unsigned i = 0; i < 120000; i++) {
    struct timespec before, after;
    if (i < 1000) /* then all at once, while there is no answer */
      usleep(1000);
    clock_gettime(CLOCK_MONOTONIC, &before);
    cudaLaunchKernel(&kernel, (dim3){i + 1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    double s =
        (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    longest = s > longest ? s : longest;
  }
  puts(longest < 5 ? "no launch waited" : "a launch waited for the server");
}

static const struct hazard {
  const char *name;
  void (*run)(char **arguments);
} hazards[] = {
    {"plain", plain},
    {"exit", end_exit},
    {"abort", end_abort},
    {"signal", end_signal},
    {"end-busy", end_busy},
    {"until-killed", until_killed},
    {"fork", fork_child},
    {"fork-busy", fork_busy},
    {"fork-registering", fork_while_registering},
    {"children", other_children},
    {"exit-after-vfork", exit_after_vfork},
    {"exec", exec_self},
    {"threads", threads},
    {"thread-churn", thread_churn},
    {"thread-exit", thread_exit},
    {"small-stack", small_stack},
    {"cancelled", cancelled},
    {"first-thread-ends", first_thread_ends},
    {"first-thread-ends-without-proc", first_thread_ends_without_proc},
    {"only-thread-ends", only_thread_ends},
    {"other-threads-end", other_threads_end},
    {"handlers-that-wait", handlers_that_wait},
    {"work-on-stack-of-handlers", work_on_stack_of_handlers},
    {"allocation-is-interrupted", allocation_is_interrupted},
    {"calls-are-trapped", calls_are_trapped},
    {"calls-are-refused", calls_are_refused},
    {"little-memory", little_memory},
    {"full-stderr", full_stderr},
    {"shapes", shapes},
    {"longjmp", jump_over},
    {"handler", handler_inside},
    {"coroutine", run_coroutine},
    {"signals-kept", signals_kept},
    {"signal-pending", signal_pending},
    {"bus-error-sent", bus_error_sent},
    {"bus-errors-of-children", bus_errors_of_children},
    {"handler-with-little-stack", handler_with_little_stack},
    {"lock-memory", lock_memory},
    {"lock-idle", lock_idle},
    {"look-at-the-end", end_with_a_look},
    {"core-dump", core_dump},
    {"look-at-threads", look_at_threads},
    {"limit-address-space", limit_address_space},
    {"lock-in-child", lock_in_child},
    {"threads-wait", threads_wait},
    {"threads-asleep", threads_asleep},
    {"unshare-user", unshare_user},
    {"unshare-processes", unshare_processes},
    {"join-namespaces", join_namespaces},
    {"change-root", change_root},
    {"change-user", change_user},
    {"mask-all", mask_all},
    {"closed-streams", closed_streams},
    {"data-at-2", data_at_2},
    {"descriptors-taken", descriptors_taken},
    {"no-descriptors", no_descriptors},
    {"no-memory", no_memory},
    {"small-files", small_files},
    {"busy", busy},
    {"steady", steady},
};

int main(int argc, char **argv) {
#ifdef THREAD_LOCAL_BYTES
  thread_local_memory[0] = 1;
#endif
  static char *none[] = {"0", NULL};
  for (size_t i = 0; argc > 1 && i < sizeof(hazards) / sizeof(*hazards); i++) {
    if (strcmp(argv[1], hazards[i].name) == 0) {
      hazards[i].run(argc > 2 ? argv + 2 : none);
      report();
      return 0;
    }
  }
  fprintf(stderr, "usage: hazard NAME [ARGUMENT]...\n");
  return 2;
}
