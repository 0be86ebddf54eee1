/* SPDX-License-Identifier: MIT
 *
 * counted FILE: a job for tests that kill it. Two threads launch kernels on a CUDA runtime that
 * does nothing. They count in the shared FILE the calls that they begin and the calls that have
 * returned. After the kill, FILE has the number of calls that must be in the trace.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

enum { THREADS = 2, MOST = 200000 };

struct counts {
  _Atomic unsigned long begun, returned;
};

static struct counts *counts;

static void kernel(void) {}

static void *launch(void *number) {
  struct counts *mine = &counts[(size_t)number];
  for (unsigned long i = 1; i <= MOST; i++) {
    atomic_store(&mine->begun, i);
    if (cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL))
      return NULL;
    atomic_store(&mine->returned, i);
    if (i % 8 == 0)
      nanosleep(&(struct timespec){0, 200000}, NULL);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int file = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ftruncate(file, THREADS * sizeof(*counts)) != 0) {
    fputs("usage: counted FILE\n", stderr);
    return 2;
  }
  counts = mmap(NULL, THREADS * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (counts == MAP_FAILED)
    return 2;
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, launch, (void *)i);
  for (size_t i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  return 0;
}
