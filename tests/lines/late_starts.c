/* SPDX-License-Identifier: MIT
 *
 * A preload with which threads begin to run so many ms after they were made, as on a busy machine.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) unsigned late_by_ms;

struct start {
  void *(*run)(void *);
  void *argument;
  unsigned ms;
};

static void *begin_late(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
  usleep(start.ms * 1000);
  return start.run(start.argument);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*run)(void *), void *argument) {
  __typeof__(&pthread_create) next =
      (__typeof__(&pthread_create))(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
  struct start *start = late_by_ms ? malloc(sizeof(*start)) : NULL;
  if (!start)
    return next(thread, attributes, run, argument);
  *start = (struct start){run, argument, late_by_ms};
  return next(thread, attributes, begin_late, start);
}
