/* SPDX-License-Identifier: MIT
 *
 * cuGetProcAddress(), with which the CUDA runtime looks up the driver's functions. For a function
 * that the stand-in lacks it returns one that fails. STANDIN_DRIVER_TRACE=1 in the environment
 * prints to stderr which of those were looked up, 2 also which were called.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { MISSING = 1024 };
static const char *missing[MISSING];

static int trace_level(void) {
  const char *level = getenv("STANDIN_DRIVER_TRACE");
  return level ? atoi(level) : 0;
}

static CUresult refuse(unsigned index) {
  if (trace_level() > 1)
    fprintf(stderr, "stand-in driver: %s called\n", missing[index]);
  return CUDA_ERROR_NOT_SUPPORTED;
}

/* 1024 functions, each with its own index. */
#define ONE(n)                                                                                     \
  static CUresult refuse_##n(void) {                                                               \
    return refuse(0##n);                                                                           \
  }
#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define SIXTY_FOUR(X, n)                                                                           \
  EIGHT(X, n##0)                                                                                   \
  EIGHT(X, n##1)                                                                                   \
  EIGHT(X, n##2) EIGHT(X, n##3) EIGHT(X, n##4) EIGHT(X, n##5) EIGHT(X, n##6) EIGHT(X, n##7)
#define FIVE_HUNDRED_TWELVE(X, high)                                                               \
  SIXTY_FOUR(X, high##0)                                                                           \
  SIXTY_FOUR(X, high##1)                                                                           \
  SIXTY_FOUR(X, high##2)                                                                           \
  SIXTY_FOUR(X, high##3)                                                                           \
  SIXTY_FOUR(X, high##4)                                                                           \
  SIXTY_FOUR(X, high##5)                                                                           \
  SIXTY_FOUR(X, high##6)                                                                           \
  SIXTY_FOUR(X, high##7)
#define ALL(X) FIVE_HUNDRED_TWELVE(X, 0) FIVE_HUNDRED_TWELVE(X, 1)
ALL(ONE)
#define NAME(n) refuse_##n,
static CUresult (*const refusals[MISSING])(void) = {ALL(NAME)};

void *driver_missing(const char *name) {
  void *function = NULL;
  sim_lock();
  for (unsigned i = 0; i < MISSING && !function; i++) {
    if (!missing[i]) {
      missing[i] = strdup(name);
      if (trace_level())
        fprintf(stderr, "stand-in driver: %s is missing\n", name);
    }
    if (!strcmp(missing[i], name))
      function = (void *)refusals[i];
  }
  sim_unlock();
  return function;
}

/* A handle of this library, so that a preloaded library's functions are not found in its place. */
static void *this_library(void) {
  static void *handle;
  Dl_info info;
  if (!handle && dladdr((void *)this_library, &info))
    handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return handle;
}

/* Uses the C library's dlsym(), because a preloaded library may export another. */
static void *look_up(const char *name) {
#if defined(__x86_64__)
  const char *oldest = "GLIBC_2.2.5";
#else
  const char *oldest = "GLIBC_2.17";
#endif
  static void *(*libc_dlsym)(void *, const char *);
  void *c = libc_dlsym ? NULL : dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (c)
    *(void **)&libc_dlsym = dlvsym(c, "dlsym", oldest);
  return libc_dlsym ? libc_dlsym(this_library(), name) : NULL;
}

/* The newest version of a function. */
static void *find(const char *name, bool per_thread) {
  static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
  char full[128];
  for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
    for (int plain = !per_thread; plain < 2; plain++) {
      const char *suffixes[] = {"_ptsz", "_ptds"};
      for (int j = 0; j < (plain ? 1 : 2); j++) {
        snprintf(full, sizeof(full), "%s%s%s", name, versions[i], plain ? "" : suffixes[j]);
        void *function = look_up(full);
        if (function)
          return function;
      }
    }
  return NULL;
}

ENTRY(cuGetProcAddress_v2, (const char *symbol, void **function, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult *status)) {
  (void)version;
  void *found = find(symbol, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *function = found ? found : driver_missing(symbol);
  if (status)
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
ENTRY(cuGetProcAddress, (const char *symbol, void **function, int version, cuuint64_t flags)) {
  return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/* Tables of undocumented functions. NVIDIA's runtime needs several. With one of them it checks that
 * the driver is NVIDIA's own before it gives out a device. The stand-in has none of them: programs
 * on the stand-in driver use the stand-in runtime. */
ENTRY(cuGetExportTable, (const void **table, const CUuuid *id)) {
  (void)id;
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}
