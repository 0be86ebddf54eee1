/* SPDX-License-Identifier: MIT
 *
 * unshare() and setns(), with which a process of one thread can go into other namespaces: the
 * kernel refuses some of them to a process with more threads. In a job of one thread tscope's own
 * threads end for such a call, and start again after it. So its result is the same as without
 * tscope. In a job with more threads the call is refused anyway, and tscope's threads stay.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/workers.h"
#include "record/hook.h"
#include "resolve/next_function.h"

/* What the kernel says of a call that a process of one thread may make; also of others. */
static bool may_be_for_threads(int result) {
  return result != 0 && (errno == EINVAL || errno == EUSERS);
}

/* Makes the call. If the kernel may have refused it because of tscope's threads, ends these, makes
 * it once more, and starts them again. */
#define WITHOUT_OWN_THREADS(call)                                                                  \
  ({                                                                                               \
    int saved = errno, result = call;                                                              \
    if (may_be_for_threads(result) && tscope_workers_pause()) {                                    \
      errno = saved;                                                                               \
      result = call;                                                                               \
      tscope_workers_resume();                                                                     \
    }                                                                                              \
    result;                                                                                        \
  })

int tscope_hook_unshare(int flags) __asm__("unshare");
TSCOPE_EXPORT int tscope_hook_unshare(int flags) {
  int (*real)(int) = TSCOPE_NEXT_FUNCTION("unshare");
  return WITHOUT_OWN_THREADS(real ? real(flags) : (int)syscall(SYS_unshare, flags));
}

int tscope_hook_setns(int namespace, int kind) __asm__("setns");
TSCOPE_EXPORT int tscope_hook_setns(int namespace, int kind) {
  int (*real)(int, int) = TSCOPE_NEXT_FUNCTION("setns");
  return WITHOUT_OWN_THREADS(real ? real(namespace, kind)
                                  : (int)syscall(SYS_setns, namespace, kind));
}
