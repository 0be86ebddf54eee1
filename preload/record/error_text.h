/* SPDX-License-Identifier: MIT
 *
 * What an error is called, in English. strerror() looks for it in the job's language: it may read a
 * file for that, allocate, and hold a lock of the C library's, which a child that is forked
 * meanwhile finds taken for ever. glibc's list needs nothing of that; new programs cannot be linked
 * with it, except by its version.
 */
#pragma once

#if defined(__x86_64__)
__asm__(".symver tscope_error_texts, _sys_errlist@GLIBC_2.12");
#else
__asm__(".symver tscope_error_texts, _sys_errlist@" TSCOPE_OLDEST_GLIBC);
#endif
extern const char *const tscope_error_texts[] __attribute__((weak));

static inline const char *tscope_error_text(int error) {
  const int last = 133; /* EHWPOISON */
  bool known = tscope_error_texts && error > 0 && error <= last;
  return known && tscope_error_texts[error] ? tscope_error_texts[error] : "unknown error";
}
