/* SPDX-License-Identifier: MIT
 *
 * Messages on stderr. A line is written only if that can neither block nor raise a signal.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "record/hook.h"
#include "settings/env.h"

/* The signals with which the kernel answers a write that fails, or that comes from the background
 * of a terminal. The job must not end, or stop, because of us. */
static const int answers[] = {SIGPIPE, SIGXFSZ, SIGTTOU};

static void write_quietly(const char *line, size_t bytes) {
  struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
  if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
    return;
  sigset_t blocked, before, pending;
  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
    sigaddset(&blocked, answers[i]);
  if (sigprocmask(SIG_BLOCK, &blocked, &before) != 0)
    return;
  sigpending(&pending);
  if (write(STDERR_FILENO, line, bytes) < 0 && (errno == EPIPE || errno == EFBIG)) {
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
      if (sigismember(&pending, answers[i])) /* it is the job's */
        sigdelset(&blocked, answers[i]);
    while (sigtimedwait(&blocked, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
      ;
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
}

void tscope_log(int level, const char *format, ...) {
  if (level > 0 && (u64)level > tscope_env.verbose)
    return;
  int saved = errno;
  char line[512] = "tscope: ";
  const int prefix = 8;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix - 1, format, arguments);
  va_end(arguments);
  if (length >= 0) {
    size_t bytes = (size_t)prefix + (size_t)length;
    if (bytes > sizeof(line) - 2)
      bytes = sizeof(line) - 2;
    line[bytes++] = '\n';
    write_quietly(line, bytes);
  }
  errno = saved;
}
