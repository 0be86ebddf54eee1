/* SPDX-License-Identifier: MIT
 *
 * The waits for a child by which launchers such as torchrun, and shells (wait3() in dash), learn
 * that a rank has died. Their results are those of the next function of the name, which may be
 * another preloaded library's. If that is not known, they are the system's.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* A thread that waits can be cancelled. */
static pid_t ask_system(pid_t which, int *status, int options, struct rusage *usage) {
  int before;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  pid_t child = (pid_t)syscall(SYS_wait4, which, status, options, usage);
  pthread_setcanceltype(before, NULL);
  return child;
}

#define WAIT(name, parameters, ask_next, ...)                                                      \
  pid_t tscope_hook_##name parameters __asm__(#name);                                              \
  TSCOPE_EXPORT pid_t tscope_hook_##name parameters {                                              \
    pid_t(*next) parameters = TSCOPE_NEXT_FUNCTION(#name);                                         \
    int own = 0, *ended = status ? status : &own;                                                  \
    return note_end(next ? next ask_next : ask_system(__VA_ARGS__), ended);                        \
  }

WAIT(wait, (int *status), (ended), -1, ended, 0, NULL)
WAIT(waitpid, (pid_t which, int *status, int options), (which, ended, options), which, ended,
     options, NULL)
WAIT(wait3, (int *status, int options, struct rusage *usage), (ended, options, usage), -1, ended,
     options, usage)
WAIT(wait4, (pid_t which, int *status, int options, struct rusage *usage),
     (which, ended, options, usage), which, ended, options, usage)
