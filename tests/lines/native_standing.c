/* SPDX-License-Identifier: MIT
 *
 * A program of C that stands still in several threads, in functions whose names are known. It
 * prints "ready" once all are there. With the argument "vfork" its first thread then waits for a
 * child in a way that nothing interrupts (state D).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static pthread_barrier_t all_there;
static volatile int zero;

APART static int waits_inside(int n) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_barrier_wait(&all_there);
  pthread_mutex_lock(&mutex);
  while (!zero)
    pthread_cond_wait(&never, &mutex);
  return n + 1;
}

APART static int waits_outside(int n) {
  return waits_inside(n) + zero + 1;
}

static void *waits(void *unused) {
  (void)unused;
  return waits_outside(zero) ? NULL : &all_there;
}

APART static int spins_inside(int n) {
  pthread_barrier_wait(&all_there);
  while (!zero)
    n++;
  return n;
}

static void *spins(void *unused) {
  (void)unused;
  return spins_inside(zero) + zero ? NULL : &all_there;
}

APART static int stands(int n) {
  pthread_barrier_wait(&all_there);
  puts("ready");
  fflush(stdout);
  return pause() + n;
}

/* Its frame is as large as it is told, so that it is found through the frame pointer. */
APART static int stands_on_much(int bytes) {
  char *room = __builtin_alloca((size_t)bytes + 1);
  memset(room, zero, (size_t)bytes + 1);
  return stands(room[bytes]) + room[zero] + zero;
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
  pthread_barrier_init(&all_there, NULL, WAITING + 2);
  for (int i = 0; i < WAITING; i++)
    pthread_create(&thread, NULL, waits, NULL);
  pthread_create(&thread, NULL, spins, NULL);
  return stands_on_much(argc * 100) + zero;
}
