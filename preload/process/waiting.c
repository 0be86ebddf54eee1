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

static void note_end(pid_t child, int signal) {
  if (tscope_is_glibc() && tscope_is_wanted())
    (tscope_is_live() ? tscope_reaped_later : tscope_reaped)(child, signal);
}

/* Without a child the status may be anything, and at any address. */
static pid_t read_status(pid_t child, const int *status) {
  if (TSCOPE_UNLIKELY(child > 0 && WIFSIGNALED(*status)))
    note_end(child, WTERMSIG(*status));
  return child;
}

/* One that can still be waited for (WNOWAIT) is told of when that is done. */
static int read_told(int result, const siginfo_t *told, int options) {
  if (TSCOPE_UNLIKELY(result == 0 && !(options & WNOWAIT) && told->si_pid > 0 &&
                      (told->si_code == CLD_KILLED || told->si_code == CLD_DUMPED)))
    note_end(told->si_pid, told->si_status);
  return result;
}

/* A thread that waits can be cancelled. */
#define ASK_SYSTEM(...)                                                                            \
  ({                                                                                               \
    int before_;                                                                                   \
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before_);                                  \
    long result_ = syscall(__VA_ARGS__);                                                           \
    pthread_setcanceltype(before_, NULL);                                                          \
    (int)result_;                                                                                  \
  })

#define WAIT(name, parameters, ask_next, ...)                                                      \
  pid_t tscope_hook_##name parameters __asm__(#name);                                              \
  TSCOPE_EXPORT pid_t tscope_hook_##name parameters {                                              \
    pid_t(*next) parameters = TSCOPE_NEXT_FUNCTION(#name);                                         \
    int own = 0, *ended = status ? status : &own;                                                  \
    return read_status(next ? next ask_next : ASK_SYSTEM(SYS_wait4, __VA_ARGS__), ended);          \
  }

WAIT(wait, (int *status), (ended), -1, ended, 0, NULL)
WAIT(waitpid, (pid_t which, int *status, int options), (which, ended, options), which, ended,
     options, NULL)
WAIT(wait3, (int *status, int options, struct rusage *usage), (ended, options, usage), -1, ended,
     options, usage)
WAIT(wait4, (pid_t which, int *status, int options, struct rusage *usage),
     (which, ended, options, usage), which, ended, options, usage)

int tscope_hook_waitid(idtype_t kind, id_t which, siginfo_t *told, int options) __asm__("waitid");
TSCOPE_EXPORT int tscope_hook_waitid(idtype_t kind, id_t which, siginfo_t *told, int options) {
  int (*next)(idtype_t, id_t, siginfo_t *, int) = TSCOPE_NEXT_FUNCTION("waitid");
  siginfo_t own = {.si_pid = 0}, *ended = told ? told : &own;
  return read_told(next ? next(kind, which, ended, options)
                        : ASK_SYSTEM(SYS_waitid, kind, which, ended, options, NULL),
                   ended, options);
}
