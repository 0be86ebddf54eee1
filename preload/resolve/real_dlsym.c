/* SPDX-License-Identifier: MIT */
#include "resolve/real_dlsym.h"

#include <dlfcn.h>

#include "record/hook.h"
#include "resolve/next_function.h"

void *(*tscope_dlsym_real)(void *, const char *);

/* dlvsym() is not hooked by tscope, so it leads past tscope's own dlsym(). Every glibc that has
 * dlsym() has it under its oldest version; a further preloaded library's has no version, and is
 * found under any. Another C library has no dlvsym(). */
TSCOPE_NOT_SANITIZED void *(*tscope_dlsym_find(void))(void *, const char *) {
  void *(*found)(void *, const char *) = __atomic_load_n(&tscope_dlsym_real, __ATOMIC_RELAXED);
  if (TSCOPE_LIKELY(found != NULL))
    return found;
  found = (void *(*)(void *, const char *))(dlvsym ? dlvsym(RTLD_NEXT, "dlsym", TSCOPE_OLDEST_GLIBC)
                                                   : tscope_next_function("dlsym"));
  __atomic_store_n(&tscope_dlsym_real, found, __ATOMIC_RELAXED);
  return found;
}

void *tscope_dlsym(void *handle, const char *name) {
  void *(*real)(void *, const char *) = tscope_dlsym_find();
  void *address = real ? real(handle, name) : NULL;
  __asm__ volatile("" : "+r"(address)); /* called, not jumped to: RTLD_NEXT sees the caller */
  return address;
}
