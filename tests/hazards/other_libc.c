/* SPDX-License-Identifier: MIT
 *
 * A program for any C library, which calls what tscope hooks of it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void note(int number) {
  came += number;
}

static pid_t killed(void) {
  pid_t child = fork();
  if (child == 0)
    raise(SIGKILL);
  return child;
}

int main(void) {
  struct sigaction action = {.sa_handler = note}, before;
  struct rlimit limit = {1000, 1000};
  int status = 0;
  siginfo_t told;
  printf("%d %d\n", signal(SIGBUS, note) == SIG_DFL, sigaction(SIGUSR1, &action, NULL));
  printf("%d %d\n", sigaction(SIGBUS, NULL, &before), before.sa_handler == note);
  raise(SIGBUS);
  raise(SIGUSR1);
  printf("%d came\n", came == SIGBUS + SIGUSR1);
  pid_t child = killed();
  printf("%d %d\n", waitpid(child, &status, 0) == child, status);
  child = killed();
  printf("%d %d\n", waitid(P_PID, (id_t)child, &told, WEXITED), told.si_status);
  killed();
  printf("%d %d\n", wait(&status) > 0, status);
  printf("%s %d\n", getenv("KNOWN"), getenv("NVTX_INJECTION64_PATH") != NULL);
  printf("%d %d\n", dlsym(RTLD_DEFAULT, "malloc") != NULL, dlsym(RTLD_DEFAULT, "no_such") != NULL);
  void *self = dlopen(NULL, RTLD_NOW);
  printf("%d %d\n", dlsym(self, "cuInit") != NULL, dlclose(self));
  printf("%d %d\n", setrlimit(RLIMIT_NOFILE, &limit), mlockall(0));
  printf("%d\n", unshare(CLONE_FILES));
  return 3;
}
