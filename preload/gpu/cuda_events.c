/* SPDX-License-Identifier: MIT */
#include "gpu/cuda_events.h"

#include <dlfcn.h>
#include <stdio.h>

#include "resolve/loaded_objects.h"
#include "resolve/real_dlsym.h"
#include "streams/cuda_thread.h"

struct cuda_events cuda_events;

void *cuda_driver_open(void) {
  void *driver =
      tscope_library_open(tscope_driver_sonames[0], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  dlerror(); /* what was not there is no news to the job */
  return driver;
}

bool cuda_events_find(char *why, size_t why_bytes) {
  void *driver = cuda_driver_open();
  if (!driver) {
    snprintf(why, why_bytes, "there is no CUDA driver to record events with");
    return false;
  }
#define X(name_, symbol, params)                                                                   \
  cuda_events.name_ = (int(*) params)tscope_dlsym(driver, symbol);                                 \
  if (!cuda_events.name_) {                                                                        \
    snprintf(why, why_bytes, "this CUDA driver has no %s", symbol);                                \
    dlerror();                                                                                     \
    return false;                                                                                  \
  }
  CUDA_EVENT_FUNCTIONS(X)
#undef X
  cuda_events.cuStreamGetGreenCtx =
      (int (*)(void *, void **))tscope_dlsym(driver, "cuStreamGetGreenCtx");
  dlerror();
  return true;
}
