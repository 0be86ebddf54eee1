/* SPDX-License-Identifier: MIT
 *
 * A thread that reads the list of loaded objects holds a lock of the dynamic linker, which without
 * tscope this thread would not do. In the middle of that a signal comes, whose handler leaves by
 * siglongjmp(). Other threads must still be able to read the list.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_cudart.h"

typedef int (*each_object)(struct dl_phdr_info *, size_t, void *);
typedef int (*reader)(each_object, void *);

static volatile bool armed; /* the next time that the first thread reads */
static pthread_t first;
static sigjmp_buf back;

struct reading {
  each_object each;
  void *more;
};

/* The lock is held. */
static int read_one(struct dl_phdr_info *object, size_t bytes, void *more) {
  const struct reading *reading = more;
  if (armed && pthread_equal(first, pthread_self())) {
    armed = false;
    raise(SIGUSR1);
  }
  return reading->each(object, bytes, reading->more);
}

__attribute__((visibility("default"))) int dl_iterate_phdr(each_object each, void *more) {
  void *real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  reader read_all;
  memcpy(&read_all, &real, sizeof(real));
  return read_all(read_one, &(struct reading){each, more});
}

static void launch(unsigned long count) {
  static const char kernel;
  for (unsigned long i = 0; i < count; i++)
    cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL);
}

/* An address on the stack that has not been seen makes tscope look where it is. */
__attribute__((noinline)) static void launch_below(unsigned depth) {
  if (depth)
    launch_below(depth - 1);
  else
    launch(1);
  __asm__ volatile("" ::: "memory"); /* the call above is not the last thing here */
}

static void leave(int number) {
  (void)number;
  siglongjmp(back, 1);
}

static int count_one(struct dl_phdr_info *object, size_t bytes, void *n) {
  (void)object, (void)bytes;
  ++*(int *)n;
  return 0;
}

static void *count_objects(void *n) {
  dl_iterate_phdr(count_one, n);
  return NULL;
}

int main(void) {
  int n = 0;
  pthread_t other;
  alarm(30);
  first = pthread_self();
  signal(SIGUSR1, leave);
  launch(1000);
  if (sigsetjmp(back, 1) == 0) {
    armed = true;
    for (unsigned i = 0; i < 10000; i++)
      launch_below(i % 200);
    fputs("not disturbed\n", stderr); /* always so without tscope */
  }
  pthread_create(&other, NULL, count_objects, &n);
  pthread_join(other, NULL);
  puts(n > 0 ? "the list can be read" : "no list");
  return 0;
}
