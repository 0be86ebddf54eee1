/* SPDX-License-Identifier: MIT
 *
 * Included before everything else in every source of the shim. libtscope.so is loaded into every
 * program of a job, also into ones on an older glibc that lack libpthread or libdl, so functions
 * that newer glibc moved into libc.so.6 are asked for under their oldest version, and weakly: a
 * program in which one is missing still starts, and tscope stays dormant in it.
 */
#ifndef TSCOPE_GLIBC_COMPAT_H
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
  __asm__(".weak " #name)

#endif
