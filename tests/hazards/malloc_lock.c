/* SPDX-License-Identifier: MIT
 *
 * malloc_lock KEYS [FLAGS]: an allocator with a lock, as the C library's, that ends the program
 * with exit status 9 if a thread enters it that is inside already, which would wait for ever. Each
 * of many threads gets a signal there, whose handler makes the thread's first hooked calls; with
 * flags of sigaction(), the program's first, too. Before, the program takes so many keys for values
 * of threads.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_cudart.h"

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void __libc_free(void *memory);

static __thread bool inside, gets_signal;

static void enter(void) {
  static const char text[] = "an allocation inside an allocation\n";
  if (inside && write(STDERR_FILENO, text, sizeof(text) - 1))
    _exit(9);
  inside = true;
  if (gets_signal) {
    gets_signal = false;
    raise(SIGUSR1);
  }
}

#define ALLOCATES(type, call)                                                                      \
  enter();                                                                                         \
  type result = call;                                                                              \
  inside = false;                                                                                  \
  return result;

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
  ALLOCATES(void *, __libc_malloc(bytes))
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t bytes) {
  ALLOCATES(void *, __libc_calloc(n, bytes))
}

__attribute__((visibility("default"))) void *realloc(void *memory, size_t bytes) {
  ALLOCATES(void *, __libc_realloc(memory, bytes))
}

__attribute__((visibility("default"))) void free(void *memory) {
  enter();
  __libc_free(memory);
  inside = false;
}

static void launch(int count) {
  static const char kernel;
  for (int i = 0; i < count; i++)
    cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL);
}

static void launch_from_handler(int number_of_signal) {
  (void)number_of_signal;
  launch(10);
}

static volatile long number; /* the kernel's, of the last thread */

static void *launch_in_thread(void *memory) {
  number = syscall(SYS_gettid);
  gets_signal = true;
  memory = malloc(100);
  launch(10);
  free(memory);
  return NULL;
}

int main(int argc, char **argv) {
  pthread_key_t key;
  for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 0); i++)
    pthread_key_create(&key, NULL);
  struct sigaction action = {.sa_handler = launch_from_handler};
  static char stack[64 << 10];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
  if (argc > 2) {
    action.sa_flags = atoi(argv[2]);
    sigaction(SIGUSR1, &action, NULL);
    launch_in_thread(NULL);
  }
  action.sa_flags = 0;
  sigaction(SIGUSR1, &action, NULL);
  launch(100);
  for (int i = 0; i < 200; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, launch_in_thread, NULL);
    pthread_join(thread, NULL);
    while (syscall(SYS_tgkill, getpid(), number, 0) == 0)
      sched_yield(); /* joined, it may still be there, and has its slot */
  }
  printf("%lu launches\n", fake_launches());
  return 0;
}
