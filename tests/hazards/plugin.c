/* SPDX-License-Identifier: MIT
 *
 * Like a Python extension module: linked with the CUDA runtime, and loaded RTLD_LOCAL by a program
 * that is not. With LAUNCH_WHILE_LOADED its constructor launches too, as a library's static
 * initialisers may. The dynamic linker's lock is held then.
 */
#include <stdlib.h>

#include "fake_cudart.h"

__attribute__((visibility("default"))) unsigned long plugin_launches(unsigned long count);

unsigned long plugin_launches(unsigned long count) {
  static const char kernel;
  unsigned long good = 0;
  for (unsigned long i = 0; i < count; i++)
    good +=
        cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL) == cudaSuccess;
  return good;
}

/* As nvcc's code does for a kernel of a library. */
__attribute__((visibility("default"))) const char plugin_kernel;
__attribute__((constructor)) static void register_kernel(void) {
  static char name[] = "kernel_of_the_plugin";
  __cudaRegisterFunction(NULL, &plugin_kernel, name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

__attribute__((constructor)) static void launch_while_loaded(void) {
  if (getenv("LAUNCH_WHILE_LOADED"))
    plugin_launches(100);
}
