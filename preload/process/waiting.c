/* SPDX-License-Identifier: MIT
 *
 * waitpid() and wait(), with which launchers such as torchrun learn that a rank has died. Their
 * results are those of the next function of the name, which may be another preloaded library's. If
 * that is not known, they call wait4(), the same system call.
 */
#include <sys/wait.h>

#include "process/reaped.h"
#include "record/hook.h"
#include "resolve/next_function.h"
#include "settings/env.h"

/* Without a child the status may be anything, and at any address. */
static pid_t note_end(pid_t child, const int *status) {
  if (TSCOPE_UNLIKELY(child > 0 && WIFSIGNALED(*status)) && tscope_env_flag("TSCOPE", true))
    (tscope_is_live() ? tscope_reaped_later : tscope_reaped)(child, WTERMSIG(*status));
  return child;
}

pid_t tscope_hook_waitpid(pid_t which, int *status, int options) __asm__("waitpid");
TSCOPE_EXPORT pid_t tscope_hook_waitpid(pid_t which, int *status, int options) {
  pid_t (*real)(pid_t, int *, int) = TSCOPE_NEXT_FUNCTION("waitpid");
  int own = 0, *ended = status ? status : &own;
  pid_t child = real ? real(which, ended, options) : wait4(which, ended, options, NULL);
  return note_end(child, ended);
}

pid_t tscope_hook_wait(int *status) __asm__("wait");
TSCOPE_EXPORT pid_t tscope_hook_wait(int *status) {
  pid_t (*real)(int *) = TSCOPE_NEXT_FUNCTION("wait");
  int own = 0, *ended = status ? status : &own;
  pid_t child = real ? real(ended) : wait4(-1, ended, 0, NULL);
  return note_end(child, ended);
}
