/* SPDX-License-Identifier: MIT
 *
 * Another preloaded library, which counts the calls of waitpid() and wait().
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>

#define EXPORT __attribute__((visibility("default")))

static int waitpids, waits;

EXPORT pid_t waitpid(pid_t which, int *status, int options) {
  pid_t (*next)(pid_t, int *, int);
  *(void **)&next = dlsym(RTLD_NEXT, "waitpid");
  waitpids++;
  return next(which, status, options);
}

EXPORT pid_t wait(int *status) {
  pid_t (*next)(int *);
  *(void **)&next = dlsym(RTLD_NEXT, "wait");
  waits++;
  return next(status);
}

__attribute__((destructor)) static void say(void) {
  fprintf(stderr, "%d of waitpid, %d of wait\n", waitpids, waits);
}
