/* SPDX-License-Identifier: MIT
 *
 * mlockall(), with which a job locks all of its memory. The kernel compares with the job's limit
 * all that is mapped, and gives pages for all of it. So the reserve of the trace, which is large
 * and mostly never used, is away during the call, and is not locked after it.
 */
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

static bool leave_reserve(void) {
  TSCOPE_KEEP_ERRNO;
  return tscope_is_live() && tscope_chunk_pool_leave_reserve();
}

static void take_reserve(void) {
  TSCOPE_KEEP_ERRNO;
  tscope_chunk_pool_take_reserve();
}

int tscope_hook_mlockall(int flags) __asm__("mlockall");
TSCOPE_EXPORT int tscope_hook_mlockall(int flags) {
  TSCOPE_DEFER_CANCELLATION;
  bool away = leave_reserve();
  int result = next_mlockall(flags);
  if (away)
    take_reserve();
  return result;
}
