/* SPDX-License-Identifier: MIT
 *
 * Another preloaded library, as clusters have them: it interposes a function, and also dlsym() if
 * LOOKUPS_DLSYM is defined, and calls the next function of the name.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "lookups.h"

LOOKUPS_EXPORT pid_t getpid(void);
pid_t getpid(void) {
  static pid_t (*next)(void);
  if (!next) {
    *(void **)&next = dlsym(RTLD_NEXT, "getpid");
    fprintf(stderr, "getpid: next is %s\n", next && next != getpid ? "another" : "none or itself");
  }
  return next();
}

#ifdef LOOKUPS_DLSYM
LOOKUPS_EXPORT void *dlsym(void *handle, const char *name);
void *dlsym(void *handle, const char *name) {
  static void *(*next)(void *, const char *);
  if (!next)
    *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", LOOKUPS_DLSYM);
  return next(handle, name);
}
#endif

__attribute__((constructor)) static void call_getpid(void) {
  getpid();
}
