/* SPDX-License-Identifier: MIT
 *
 * Another preloaded library, which counts the calls of waitpid(), wait() and waitid(), and knows a
 * variable of the environment that nobody has set.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define EXPORT __attribute__((visibility("default")))

static int waitpids, waits, waitids;

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

EXPORT int waitid(idtype_t kind, id_t which, siginfo_t *told, int options) {
  int (*next)(idtype_t, id_t, siginfo_t *, int);
  *(void **)&next = dlsym(RTLD_NEXT, "waitid");
  waitids++;
  return next(kind, which, told, options);
}

EXPORT char *getenv(const char *name) {
  char *(*next)(const char *);
  *(void **)&next = dlsym(RTLD_NEXT, "getenv");
  static char known[] = "known";
  return strcmp(name, "KNOWN_TO_ANOTHER_PRELOAD") == 0 ? known : next(name);
}

__attribute__((destructor)) static void say(void) {
  fprintf(stderr, "%d of waitpid, %d of wait, %d of waitid\n", waitpids, waits, waitids);
}
