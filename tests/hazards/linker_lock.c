/* SPDX-License-Identifier: MIT
 *
 * linker_lock [first]
 *
 * A thread that reads the list of loaded objects holds a lock of the dynamic linker, which without
 * tscope this thread would not do. In the middle of that a signal comes, whose handler leaves by
 * siglongjmp(). Other threads must still be able to read the list. With "first" the signal comes in
 * the calls that start tscope; other threads must then not wait for that.
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

static volatile int disturbed_read; /* of the first thread, from now on; 0: none */
static pthread_t first;
static sigjmp_buf back;

struct reading {
  bool disturbed;
  each_object each;
  void *more;
};

/* The lock is held. */
static int read_one(struct dl_phdr_info *object, size_t bytes, void *more) {
  struct reading *reading = more;
  if (reading->disturbed)
    raise(SIGUSR1);
  reading->disturbed = false;
  return reading->each(object, bytes, reading->more);
}

__attribute__((visibility("default"))) int dl_iterate_phdr(each_object each, void *more) {
  void *real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  reader read_all;
  memcpy(&read_all, &real, sizeof(real));
  bool counts = disturbed_read && pthread_equal(first, pthread_self());
  return read_all(read_one, &(struct reading){counts && --disturbed_read == 0, each, more});
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
  launch(1000);
  return NULL;
}

static void disturb_later(void) {
  launch(1000);
  if (sigsetjmp(back, 1) == 0) {
    disturbed_read = 1;
    for (unsigned i = 0; i < 10000; i++)
      launch_below(i % 200);
    fputs("not disturbed\n", stderr); /* always so without tscope */
  }
}

/* Once in each of the reads, until none is left. */
static void disturb_first_calls(void) {
  for (volatile int read = 1; read < 50; read++) {
    disturbed_read = read;
    if (sigsetjmp(back, 1) == 0)
      launch(1);
  }
}

int main(int argc, char **argv) {
  int n = 0;
  pthread_t other;
  alarm(30);
  first = pthread_self();
  signal(SIGUSR1, leave);
  if (argc > 1 && strcmp(argv[1], "first") == 0)
    disturb_first_calls();
  else
    disturb_later();
  disturbed_read = 0;
  pthread_create(&other, NULL, count_objects, &n);
  pthread_join(other, NULL);
  puts(n > 0 ? "the list can be read" : "no list");
  return 0;
}
