/* SPDX-License-Identifier: MIT
 *
 * A job that is to be killed: two threads launch kernels on a CUDA runtime that does nothing, until
 * they are killed, and count in a shared file what they are about to call and what has returned.
 * The file tells, after the kill, what the trace must have. counted FILE
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
  _Atomic unsigned long begun, done;
};

static struct counts *counts;

static void kernel(void) {}

static void *launch(void *number) {
  struct counts *mine = &counts[(size_t)number];
  for (unsigned long i = 1; i <= MOST; i++) {
    atomic_store(&mine->begun, i);
    if (cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL))
      return NULL;
    atomic_store(&mine->done, i);
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
