/* SPDX-License-Identifier: MIT */
#include "gpu/cupti_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/text_parts.h"
#include "gpu/cuda_events.h"
#include "resolve/loaded_objects.h"
#include "resolve/real_dlsym.h"
#include "resolve/search.h"
#include "streams/cuda_thread.h"

const char *const cupti_sonames[] = {"libcupti.so.13", "libcupti.so.12", NULL};

/* Where CUPTI is, relative to the CUDA runtime: wheels of CUDA 13, wheels of CUDA 12, Toolkit. */
static const char *const folders[] = {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/",
                                      "../../../extras/CUPTI/lib64/"};

static void *already_loaded(int *major) {
  for (size_t i = 0; cupti_sonames[i]; i++) {
    void *library = dlopen(cupti_sonames[i], RTLD_NOW | RTLD_NOLOAD);
    *major = (int)leading_number(strrchr(cupti_sonames[i], '.') + 1, INT32_MAX, NULL);
    if (library)
      return library;
  }
  return NULL;
}

/* The CUDA runtime's file, and which major version it is. */
static bool find_runtime(char path[PATH_MAX], int *major) {
  int (*get_version)(int *) = CUDA_FUNCTION("cudaRuntimeGetVersion");
  struct tscope_object runtime;
  int version;
  if (!get_version || get_version(&version) || !tscope_object_of(get_version, &runtime) ||
      !realpath(runtime.path, path))
    return false;
  *major = version / 1000;
  return true;
}

/* Looked for once, on a thread that may have little stack. */
static void *load_next_to_runtime(int *major) {
  static char runtime[PATH_MAX], path[PATH_MAX + 64];
  if (!find_runtime(runtime, major))
    return NULL;
  char *slash = strrchr(runtime, '/');
  if (!slash)
    return NULL;
  slash[1] = '\0';
  for (size_t i = 0; i < LENGTH_OF(folders); i++) {
    snprintf(path, sizeof(path), "%s%slibcupti.so.%d", runtime, folders[i], *major);
    void *library = tscope_library_open(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library)
      return library;
  }
  return NULL;
}

/* The CUDA that the driver is for, as 13020; 0 without a driver that has an interface for CUPTI. */
static int driver_version(void) {
  void *driver = cuda_driver_open();
  int (*get_version)(int *) = driver ? tscope_dlsym(driver, "cuDriverGetVersion") : NULL;
  bool has_tables = driver && tscope_dlsym(driver, "cuGetExportTable");
  int version = 0;
  dlerror();
  return has_tables && get_version && get_version(&version) == 0 ? version : 0;
}

/* CUPTI gets at the GPU through tables of the driver. A driver has those of all CUDA before its
 * own; of an older minor version, CUDA promises that it serves. Where a table is missing,
 * CUPTI 13.2 calls itself without end, even for its own version, and so ends the job: no call may
 * reach it. */
static bool driver_fits(int cupti_major, char *why, size_t why_bytes) {
  int version = driver_version();
  if (version / 1000 >= cupti_major)
    return true;
  if (version > 0)
    snprintf(why, why_bytes, "the driver is for CUDA %d.%d, and CUPTI for CUDA %d", version / 1000,
             version % 1000 / 10, cupti_major);
  else
    snprintf(why, why_bytes, "there is no driver, or none with an interface for CUPTI");
  return false;
}

bool cupti_find(struct cupti *cupti, char *why, size_t why_bytes) {
  int major;
  void *library = already_loaded(&major);
  if (!library)
    library = load_next_to_runtime(&major);
  dlerror(); /* what was not there is no news to the job */
  if (!library) {
    snprintf(why, why_bytes, "CUPTI is neither loaded nor beside the CUDA runtime");
    return false;
  }
  if (!driver_fits(major, why, why_bytes))
    return false;
#define X(name_, needed, params)                                                                   \
  cupti->name_ = (int(*) params)tscope_dlsym(library, #name_);                                     \
  if (!cupti->name_ && (needed)) {                                                                 \
    snprintf(why, why_bytes, "this CUPTI has no %s", #name_);                                      \
    dlerror();                                                                                     \
    return false;                                                                                  \
  }
  CUPTI_FUNCTIONS(X)
#undef X
  dlerror();
  return true;
}
