/* SPDX-License-Identifier: MIT
 *
 * own_bus_errors [cut]: what a program sees of its own actions for SIGBUS, once it has launched;
 * each line must be the same with and without the shim. With `cut`, it first cuts the trace that is
 * mapped into it, if there is one, and launches on.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cudart.h"

static void launch(int count) {
  static const char kernel;
  for (int i = 0; i < count; i++)
    if (cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL) != cudaSuccess)
      exit(99);
}

static volatile char *page; /* of a file that has become shorter */
static sigjmp_buf after;
static volatile sig_atomic_t handled;

static void map_page(void) {
  char name[] = "/tmp/bus-errors-XXXXXX";
  int fd = mkstemp(name);
  if (fd < 0 || unlink(name) != 0 || ftruncate(fd, 4096) != 0)
    exit(99);
  page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED || ftruncate(fd, 0) != 0)
    exit(99);
  close(fd);
}

static void jump(int number, siginfo_t *info, void *context) {
  (void)context;
  handled++;
  siglongjmp(after, number == SIGBUS && info->si_addr == (void *)page ? 1 : 2);
}

static void count(int number) {
  handled += number == SIGBUS;
}

static void touch_page(void) {
  int came = sigsetjmp(after, 1);
  if (!came)
    *page = 1;
  printf("handler %d with %d\n", (int)handled, came);
}

static const char *name_of(const struct sigaction *action) {
  return action->sa_handler == SIG_DFL   ? "default"
         : action->sa_handler == SIG_IGN ? "ignored"
         : action->sa_handler == count   ? "count"
         : action->sa_sigaction == jump  ? "jump"
                                         : "another";
}

static void print_action(const char *when) {
  struct sigaction now;
  if (sigaction(SIGBUS, NULL, &now) != 0)
    exit(99);
  printf("%s: %s, flags %x, masks itself %d, SIGUSR1 %d\n", when, name_of(&now),
         (unsigned)now.sa_flags & ~0x04000000u, sigismember(&now.sa_mask, SIGBUS),
         sigismember(&now.sa_mask, SIGUSR1));
}

static void own_handlers(void) {
  struct sigaction wanted = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO | SA_NODEFER}, was;
  sigaddset(&wanted.sa_mask, SIGUSR1);
  sigaction(SIGBUS, &wanted, &was);
  printf("before: %s\n", name_of(&was));
  print_action("own");
  touch_page();
  touch_page();
  was.sa_handler = signal(SIGBUS, count);
  printf("signal() gives %s\n", name_of(&was));
  print_action("by signal()");
  raise(SIGBUS);
  printf("%d handled\n", (int)handled);
  sigaction(SIGBUS, &(struct sigaction){.sa_handler = count, .sa_flags = SA_RESETHAND}, NULL);
  raise(SIGBUS);
  print_action("after one for once");
  printf("%d handled; an error: %d\n", (int)handled,
         signal(SIGBUS, SIG_ERR) == SIG_ERR && errno == EINVAL);
}

typedef void (*handler)(int);
extern handler sysv_signal(int number, handler action);

/* What is put back was got by a function that tscope does not hook. */
static void put_back(void) {
  signal(SIGBUS, sysv_signal(SIGBUS, count));
  *page = 1;
}

/* How a child ends that does `what`. */
static void print_end(const char *which, void (*what)(void)) {
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    what();
    fflush(stdout);
    _exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child)
    exit(99);
  printf("%s: status %d\n", which, status & 0x7f7f);
}

static void store(void) {
  *page = 1;
}

static void raise_it(void) {
  raise(SIGBUS);
}

static void ignore_it(void) {
  signal(SIGBUS, SIG_IGN);
  raise(SIGBUS);
  print_action("ignored");
  fflush(stdout);
  execlp("grep", "grep", "SigIgn", "/proc/self/status", NULL);
}

static void handle_in_child(void) {
  print_action("in a child");
  sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = jump, .sa_flags = SA_SIGINFO}, NULL);
  touch_page();
  print_action("in a child");
  signal(SIGBUS, SIG_DFL);
  store();
}

/* A child made by vfork() has the parent's memory and its own actions. */
static void leave_to_vfork(void) {
  signal(SIGBUS, count);
  pid_t child = vfork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);
    execlp("true", "true", NULL);
    _exit(1);
  }
  waitpid(child, NULL, 0);
  print_action("after vfork()");
  raise(SIGBUS);
  printf("%d handled\n", (int)handled);
  signal(SIGBUS, SIG_DFL);
}

static bool cut_trace(void) {
  char line[4096], *path;
  bool cut = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && !cut && fgets(line, sizeof(line), maps)) {
    line[strcspn(line, "\n")] = 0;
    path = strchr(line, '/');
    cut = path && strstr(path, ".tscope") && truncate(path, 0) == 0;
  }
  if (maps)
    fclose(maps);
  return cut;
}

int main(int n, char **arguments) {
  (void)arguments;
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  map_page();
  launch(1000);
  if (n > 1) {
    if (getenv("TSCOPE_DIR") && !cut_trace())
      return 98;
    launch(200000);
  }
  print_action("at first");
  own_handlers();
  print_end("a store", store);
  print_end("a signal", raise_it);
  print_end("putting back", put_back);
  print_end("ignoring", ignore_it);
  print_end("a child", handle_in_child);
  leave_to_vfork();
  launch(1000);
  printf("%lu launches\n", fake_launches());
  return 0;
}
