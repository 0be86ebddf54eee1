/* SPDX-License-Identifier: MIT
 *
 * Included before everything else in every source of the shim. libtscope.so is loaded into every
 * program of a job, also into programs on an older glibc that do not load libpthread or libdl. So
 * functions that newer glibc moved into libc.so.6 are linked under their oldest version, and
 * weakly: a program in which one is missing still starts, and tscope stays dormant in it. So does
 * one on another C library (musl), which lacks the functions at the end.
 */
#if !defined(TSCOPE_GLIBC_COMPAT_H) && !defined(__ASSEMBLER__)
#define TSCOPE_GLIBC_COMPAT_H

#if defined(__x86_64__)
#define TSCOPE_OLDEST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define TSCOPE_OLDEST_GLIBC "GLIBC_2.17"
#else
#error "tscope knows x86-64 and aarch64"
#endif

#define TSCOPE_OLD_SYMBOL(name)                                                                    \
  __asm__(".symver " #name "," #name "@" TSCOPE_OLDEST_GLIBC);                                     \
  extern __typeof__(name) name __attribute__((weak))

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

TSCOPE_OLD_SYMBOL(dladdr);
TSCOPE_OLD_SYMBOL(dlclose);
TSCOPE_OLD_SYMBOL(dlerror);
TSCOPE_OLD_SYMBOL(dlopen);
TSCOPE_OLD_SYMBOL(dlvsym);
TSCOPE_OLD_SYMBOL(pthread_attr_setstacksize);
TSCOPE_OLD_SYMBOL(pthread_create);
TSCOPE_OLD_SYMBOL(pthread_getspecific);
TSCOPE_OLD_SYMBOL(pthread_key_create);
TSCOPE_OLD_SYMBOL(pthread_once);
TSCOPE_OLD_SYMBOL(pthread_setspecific);

extern __typeof__(fcntl) fcntl __attribute__((weak));
extern __typeof__(on_exit) on_exit __attribute__((weak));
extern __typeof__(statx) statx __attribute__((weak));
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *object) __attribute__((weak));

/* Where this is not glibc, only what forwards a call may run. */
static inline bool tscope_is_glibc(void) {
  return on_exit && __register_atfork;
}

/* pthread_atfork(), of which glibc puts a part into each library. False if it is refused. */
static inline bool tscope_at_fork(void (*prepare)(void), void (*parent)(void),
                                  void (*child)(void)) {
  return tscope_is_glibc() && __register_atfork(prepare, parent, child, NULL) == 0;
}

#endif
