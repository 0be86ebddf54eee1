/* SPDX-License-Identifier: MIT
 *
 * Signals of the job: none is handled otherwise, or elsewhere, because of a preloaded library.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "hazard.h"

void signals_kept(char **arguments) {
  (void)arguments;
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  struct sigaction actions[2][65];
  for (int number = 1; number < 65; number++)
    sigaction(number, NULL, &actions[0][number]);
  launch(50000);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  for (int number = 1; number < 65; number++) {
    sigaction(number, NULL, &actions[1][number]);
    if (actions[0][number].sa_handler != actions[1][number].sa_handler)
      printf("handler of signal %d changed\n", number);
    if (sigismember(&before, number) != sigismember(&after, number))
      printf("mask of signal %d changed\n", number);
  }
}

static volatile sig_atomic_t delivered;
static void note_signal(int number) {
  (void)number;
  delivered = 1;
}

/* A signal that all of the job's threads block must stay pending, and must not be handled on a
 * thread of the shim. */
void signal_pending(char **arguments) {
  (void)arguments;
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  signal(SIGUSR1, note_signal);
  launch(1000);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  kill(getpid(), SIGUSR1);
  launch(50000);
  usleep(150 * 1000);
  puts(delivered ? "signal was taken by another thread" : "signal stayed pending");
}

static void *take_signal(void *number) {
  sigset_t all;
  sigfillset(&all);
  if (sigwait(&all, number) != 0)
    fail("sigwait");
  return NULL;
}

static pthread_t of_signals;
static void note_thread(int number) {
  (void)number;
  delivered = 1 + pthread_equal(pthread_self(), of_signals);
}

static void *open_for_signal(void *unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_UNBLOCK, &all, NULL);
  for (int i = 0; i < 100 && !delivered; i++)
    usleep(20 * 1000);
  return unused;
}

/* A job whose threads block all signals, but for one thread that waits for them; then for one in
 * which they are handled. */
void bus_error_sent(char **arguments) {
  (void)arguments;
  int number = 0;
  sigset_t all;
  launch(1000);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  pthread_create(&of_signals, NULL, take_signal, &number);
  kill(getpid(), SIGBUS);
  pthread_join(of_signals, NULL);
  printf("signal %d was taken\n", number);
  launch(1000);
  signal(SIGBUS, note_thread);
  kill(getpid(), SIGBUS);
  pthread_create(&of_signals, NULL, open_for_signal, NULL);
  pthread_join(of_signals, NULL);
  puts(delivered == 2 ? "and handled where it should be" : "and handled elsewhere");
}

/* What a process is told of its action for SIGBUS, which it has from its parent. */
__attribute__((noreturn)) static void tell_action(void) {
  struct sigaction action;
  sigaction(SIGBUS, NULL, &action);
  int flags = action.sa_flags & (SA_NODEFER | SA_SIGINFO | SA_RESTART | SA_RESETHAND | SA_ONSTACK);
  bool same = action.sa_handler == note_signal && flags == SA_NODEFER;
  _exit(same && signal(SIGBUS, SIG_DFL) == note_signal ? 0 : 1);
}

/* Children of which the C library tells nobody, and one that shares this process's memory. */
void bus_errors_of_children(char **arguments) {
  (void)arguments;
  sigaction(SIGBUS, &(struct sigaction){.sa_handler = note_signal, .sa_flags = SA_NODEFER}, NULL);
  launch(1000);
  for (int shares = 0; shares < 2; shares++) {
    pid_t child = shares ? vfork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    int status = 0;
    if (child == 0)
      tell_action();
    if (child < 0 || waitpid(child, &status, 0) != child)
      fail("child");
    printf("the child's action is %s\n", status ? "another" : "its parent's");
  }
}

static void note_child(int number) {
  int status;
  (void)number;
  if (waitpid(-1, &status, WNOHANG) > 0)
    delivered = WTERMSIG(status);
}

/* A child of this number of launches is killed, and its end is taken in a handler, on a stack of
 * that many bytes beside what the kernel puts there. */
void handler_with_little_stack(char **arguments) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), kernel = (size_t)sysconf(_SC_MINSIGSTKSZ);
  size_t bytes = (strtoul(arguments[0], NULL, 10) + kernel + page - 1) / page * page;
  char *memory = mmap(NULL, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(memory + page, bytes, PROT_READ | PROT_WRITE);
  sigaltstack(&(stack_t){.ss_sp = memory + page, .ss_size = bytes}, NULL);
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = note_child, .sa_flags = SA_ONSTACK}, NULL);
  int ready[2];
  char byte;
  if (pipe(ready) != 0)
    fail("pipe");
  pid_t child = fork();
  if (child == 0) {
    launch(1000);
    usleep(200 * 1000);
    (void)!write(ready[1], "r", 1);
    pause();
  }
  (void)!read(ready[0], &byte, 1);
  kill(child, SIGKILL);
  while (!delivered)
    usleep(10 * 1000);
  printf("the child was ended by signal %d\n", (int)delivered);
}

/* What functions find that are called next. */
__attribute__((noinline)) static void clear_stack_below(void) {
  volatile char stack[128 * 1024];
  for (size_t i = 0; i < sizeof(stack); i++)
    stack[i] = 0;
}

/* As Python's faulthandler has them: they block nothing, and none is in progress. */
void handlers_that_wait(char **arguments) {
  (void)arguments;
  const int numbers[] = {SIGSEGV, SIGFPE, SIGABRT, SIGILL, SIGUSR1};
  struct sigaction was, action = {.sa_handler = note_signal, .sa_flags = SA_NODEFER};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
    if (sigaction(numbers[i], &action, &was) != 0 || sigaction(numbers[i], NULL, &was) != 0)
      fail("sigaction");
  raise(SIGUSR1);
  clear_stack_below();
  launch(1000);
}

static void launch_there(void) {
  launch(1000);
}

/* As a program may whose coroutines begin there: to the kernel each of its calls is a handler's. */
void work_on_stack_of_handlers(char **arguments) {
  (void)arguments;
  static char memory[512 << 10];
  static ucontext_t there, here;
  const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
  if (sigaltstack(&stack, NULL) != 0 || getcontext(&there) != 0)
    fail("sigaltstack");
  there.uc_stack = stack;
  there.uc_link = &here;
  makecontext(&there, launch_there, 0);
  swapcontext(&here, &there);
}
