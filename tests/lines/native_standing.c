/* SPDX-License-Identifier: MIT
 *
 * A program in C whose threads stall in functions with known names. It prints "ready" when
 * all are there. With the argument "vfork", its only thread waits for a child in an uninterruptible
 * way (state D).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static pthread_barrier_t barrier;
static volatile int zero;

NOINLINE static int waits_inside(int n) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(&mutex);
  while (!zero)
    pthread_cond_wait(&never, &mutex);
  return n + 1;
}

NOINLINE static int waits_outside(int n) {
  return waits_inside(n) + zero + 1;
}

static void *waits(void *unused) {
  (void)unused;
  return waits_outside(zero) ? NULL : &barrier;
}

NOINLINE static int spins_inside(int n) {
  pthread_barrier_wait(&barrier);
  while (!zero)
    n++;
  return n;
}

static void *spins(void *unused) {
  (void)unused;
  return spins_inside(zero) + zero ? NULL : &barrier;
}

NOINLINE static int stands(int n) {
  pthread_barrier_wait(&barrier);
  puts("ready");
  fflush(stdout);
  return pause() + n;
}

/* Has a frame of variable size, which can be unwound only with the frame pointer. */
NOINLINE static int stands_on_much(int bytes) {
  char *memory = __builtin_alloca((size_t)bytes + 1);
  memset(memory, zero, (size_t)bytes + 1);
  return stands(memory[bytes]) + memory[zero] + zero;
}

int main(int argc, char **argv) {
  enum { WAITING = 6 };
  pthread_t thread;
  if (argc > 1 && strcmp(argv[1], "vfork") == 0) {
    puts("ready");
    fflush(stdout);
    if (vfork() == 0) {
      syscall(SYS_pause);
      _exit(0);
    }
    return 0;
  }
  pthread_barrier_init(&barrier, NULL, WAITING + 2);
  for (int i = 0; i < WAITING; i++)
    pthread_create(&thread, NULL, waits, NULL);
  pthread_create(&thread, NULL, spins, NULL);
  return stands_on_much(argc * 100) + zero;
}
