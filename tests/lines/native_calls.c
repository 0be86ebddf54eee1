/* SPDX-License-Identifier: MIT
 *
 * A training loop in C that waits for the GPU and copies. It prints the lines of these calls:
 * "FILE LINE FUNCTION CALLS" for each. `native_calls N` makes N steps.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

static int wait_line, copy_line;

NOINLINE static void wait_for_loss(void) {
  wait_line = __LINE__ + 1;
  cudaDeviceSynchronize();
  __asm__ volatile("" ::: "memory"); /* prevents a tail call */
}

NOINLINE static void read_loss(void *from) {
  float loss = 0;
  copy_line = __LINE__ + 1;
  cudaMemcpy(&loss, from, sizeof(loss), cudaMemcpyDeviceToHost);
  __asm__ volatile("" ::: "memory");
}

NOINLINE static void train_step(void *buffer) {
  cudaMemset(buffer, 0, 1024);
  wait_for_loss();
  read_loss(buffer);
  __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 10;
  void *buffer = NULL;
  if (cudaMalloc(&buffer, 1 << 20) != cudaSuccess)
    return 1;
  for (int i = 0; i < steps; i++)
    train_step(buffer);
  printf("%s %d wait_for_loss %d\n%s %d read_loss %d\n", __FILE__, wait_line, steps, __FILE__,
         copy_line, steps);
  return 0;
}
