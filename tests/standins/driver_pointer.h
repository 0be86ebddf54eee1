/* SPDX-License-Identifier: MIT
 *
 * How the stand-in libraries look up the driver's functions, as NVIDIA's do: cuGetProcAddress()
 * with dlsym(), and the others with cuGetProcAddress().
 */
#pragma once

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

static inline void *driver_pointer(const char *name, bool per_thread) {
  static int (*get)(const char *, void **, int, unsigned long long, void *);
  void *function = NULL;
  if (!get) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    get = driver ? (int (*)(const char *, void **, int, unsigned long long, void *))dlsym(
                       driver, "cuGetProcAddress_v2")
                 : NULL;
  }
  return get && !get(name, &function, 13000, per_thread ? 2 : 0, NULL) ? function : NULL;
}
