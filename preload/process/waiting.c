/* SPDX-License-Identifier: MIT
 *
 * waitpid() and wait(), with which launchers such as torchrun learn that a rank has died. Their
 * results are those of the C library. They call wait4(), the same system call, so that nothing is
 * looked up in processes that do not train.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "process/reaped.h"
#include "record/hook.h"

static pid_t wait_for(pid_t which, int *status, int options) {
  int own;
  int *ended = status ? status : &own;
  pid_t child = wait4(which, ended, options, NULL);
  if (TSCOPE_UNLIKELY(child > 0 && WIFSIGNALED(*ended)))
    tscope_reaped(child, WTERMSIG(*ended));
  return child;
}

pid_t tscope_hook_waitpid(pid_t which, int *status, int options) __asm__("waitpid");
TSCOPE_EXPORT pid_t tscope_hook_waitpid(pid_t which, int *status, int options) {
  return wait_for(which, status, options);
}

pid_t tscope_hook_wait(int *status) __asm__("wait");
TSCOPE_EXPORT pid_t tscope_hook_wait(int *status) {
  return wait_for(-1, status, 0);
}
