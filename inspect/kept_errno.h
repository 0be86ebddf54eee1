/* SPDX-License-Identifier: MIT
 *
 * errno belongs to the caller: code that is called in between leaves it as it was.
 */
#pragma once

#include <errno.h>

static inline void tscope_put_errno_back(const int *kept) {
  errno = *kept;
}

/* At the end of this block, errno is again what it is here. */
#define TSCOPE_KEEP_ERRNO                                                                          \
  const int kept_errno_ __attribute__((cleanup(tscope_put_errno_back), unused)) = errno
