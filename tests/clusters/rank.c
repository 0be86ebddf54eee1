/* SPDX-License-Identifier: MIT
 *
 * One rank of a job that a scheduler starts: makes STEPS steps, marks them, and launches kernels on
 * a CUDA runtime that does nothing. If built with WITH_MPI, each step has a barrier of all ranks.
 * rank STEPS [MILLISECONDS-A-STEP]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tscope.h"
#include <cuda_runtime_api.h>
#ifdef WITH_MPI
#include <mpi.h>
#else
#define MPI_Init(argc, argv) (void)0
#define MPI_Barrier(comm) (void)0
#define MPI_Finalize() (void)0
#endif

static void kernel(void) {}

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: rank STEPS [MILLISECONDS-A-STEP]\n", stderr);
    return 2;
  }
  MPI_Init(&argc, &argv);
  long steps = atol(argv[1]), pause = argc > 2 ? atol(argv[2]) : 5;
  for (long step = 0; step < steps; step++) {
    TSCOPE_STEP((uint64_t)step);
    if (cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL))
      return 1;
    MPI_Barrier(MPI_COMM_WORLD);
    nanosleep(&(struct timespec){pause / 1000, pause % 1000 * 1000000}, NULL);
  }
  MPI_Finalize();
  return 0;
}
