/* SPDX-License-Identifier: MIT
 *
 * nvtx: marks ranges, launches, and prints the results of its calls and its environment variables.
 * A child prints the environment that it inherited.
 */
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char kernel;

static void print_variables(void) {
  for (char **entry = environ; *entry; entry++)
    if (!strncmp(*entry, "NVTX", 4) || !strncmp(*entry, "NCCL", 4))
      printf("%s\n", *entry);
}

int main(void) {
  printf("push %d\n", nvtxRangePushA("before the first launch"));
  printf("pop %d\n", nvtxRangePop());
  cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
  for (int i = 0; i < 1000; i++) {
    char name[32];
    snprintf(name, sizeof(name), "iteration %d", i);
    printf("push %d\n", nvtxRangePushA(name));
    nvtxRangePushA("work");
    cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
    nvtxRangePop();
    printf("pop %d\n", nvtxRangePop());
  }
  print_variables();
  fflush(stdout);
  pid_t forked = fork();
  if (forked == 0) {
    nvtxRangePushA("of the child");
    nvtxRangePop();
    execlp("env", "env", NULL);
  }
  int status;
  if (forked < 0 || waitpid(forked, &status, 0) != forked)
    return 1;
  return status;
}
