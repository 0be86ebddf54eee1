/* SPDX-License-Identifier: MIT
 *
 * Forks while another thread registers what runs at the end of the process, which takes it long, as
 * if it had lost its core while it has the C library's lock: the child would wait for that for
 * ever. Exit status 9 if the child was made then. Prints how many children were made.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cudart.h"

enum { REGISTERS_US = 300000, TRIES = 3000 };

static pthread_t first;
static volatile bool registers;

__attribute__((visibility("default"))) int on_exit(void (*end)(int, void *), void *value) {
  int (*real)(void (*)(int, void *), void *);
  *(void **)&real = dlsym(RTLD_NEXT, "on_exit");
  registers = !pthread_equal(pthread_self(), first);
  usleep(registers ? REGISTERS_US : 0);
  int result = real(end, value);
  registers = false;
  return result;
}

int main(void) {
  static const char kernel;
  int children = 0;
  first = pthread_self();
  for (int i = 0; i < 10; i++)
    cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL);
  for (int i = 0; i < TRIES && !children; i++, usleep(1000)) {
    if (!registers)
      continue;
    int status = 0;
    pid_t child = fork();
    if (child == 0)
      _exit(registers ? 9 : 0);
    if (waitpid(child, &status, 0) != child || status)
      return WEXITSTATUS(status);
    children++;
  }
  printf("%d\n", children);
  return 0;
}
