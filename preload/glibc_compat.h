/* SPDX-License-Identifier: MIT
 *
 * Included before everything else in every source of the shim. libtscope.so is loaded into every
 * program of a job, also into programs on an older glibc that do not load libpthread or libdl. So
 * functions that newer glibc moved into libc.so.6 are linked under their oldest version, and
 * weakly: a program in which one is missing still starts, and tscope stays dormant in it.
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
#include <pthread.h>

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

#endif
