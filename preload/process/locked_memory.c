/* SPDX-License-Identifier: MIT
 *
 * mlockall(), with which a job locks all of its memory. The kernel compares with the job's limit
 * all that is mapped, and gives pages for all of it. So the reserve of the trace, which is large
 * and mostly never used, is away during the call, and is not locked after it.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/cancellation.h"
#include "record/chunk_pool.h"
#include "record/hook.h"
#include "resolve/next_function.h"

static int next_mlockall(int flags) {
  int (*real)(int) = TSCOPE_NEXT_FUNCTION("mlockall");
  return real ? real(flags) : (int)syscall(SYS_mlockall, flags);
}

int tscope_hook_mlockall(int flags) __asm__("mlockall");
TSCOPE_EXPORT int tscope_hook_mlockall(int flags) {
  TSCOPE_DEFER_CANCELLATION;
  int before = errno;
  bool away = tscope_is_live() && tscope_chunk_pool_leave_reserve();
  errno = before;
  int result = next_mlockall(flags);
  int after = errno;
  if (away)
    tscope_chunk_pool_take_reserve();
  errno = after;
  return result;
}
