/* SPDX-License-Identifier: MIT
 *
 * Messages on stderr. A line is written only if that can neither block nor raise a signal, and only
 * to standard error: a job that has closed it gets its number for the next file that it opens.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/cancellation.h"
#include "record/hook.h"
#include "settings/env.h"

/* The signals with which the kernel answers a write that fails, or that comes from the background
 * of a terminal. The job must not end, or stop, because of us. */
static const int answers[] = {SIGPIPE, SIGXFSZ, SIGTTOU};

static struct {
  bool known;
  u64 device, inode; /* both 0 if it was closed */
} at_waking;

/* Connections over a network are the job's own, such as those of NCCL. */
static bool is_local(int file) {
  int domain = AF_UNSPEC;
  socklen_t bytes = sizeof(domain);
  return getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

static bool can_be_standard_error(const struct statx *file) {
  bool kept_by_programs = fcntl(STDERR_FILENO, F_GETFD) == 0; /* those that are started next */
  return kept_by_programs &&
         (S_ISREG(file->stx_mode) || S_ISCHR(file->stx_mode) || S_ISFIFO(file->stx_mode) ||
          (S_ISSOCK(file->stx_mode) && is_local(STDERR_FILENO)));
}

static u64 device_of(const struct statx *file) {
  return (u64)file->stx_dev_major << 32 | file->stx_dev_minor;
}

/* Looks at descriptor 2. False if it is none that can be standard error. */
static bool look(struct statx *now) {
  return statx(STDERR_FILENO, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO, now) == 0 &&
         can_be_standard_error(now);
}

static bool is_standard_error(void) {
  struct statx now;
  return look(&now) && (!at_waking.known ||
                        (device_of(&now) == at_waking.device && now.stx_ino == at_waking.inode));
}

void tscope_log_begin(void) {
  struct statx now;
  TSCOPE_KEEP_ERRNO;
  if (look(&now)) {
    at_waking.device = device_of(&now);
    at_waking.inode = now.stx_ino;
  }
  at_waking.known = true;
}

static void write_quietly(const char *line, size_t bytes) {
  struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
  if (!is_standard_error() || poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
    return;
  sigset_t blocked, before, pending;
  sigemptyset(&blocked);
  for (size_t i = 0; i < LENGTH_OF(answers); i++)
    sigaddset(&blocked, answers[i]);
  if (sigprocmask(SIG_BLOCK, &blocked, &before) != 0)
    return;
  sigpending(&pending);
  if (write(STDERR_FILENO, line, bytes) < 0 && (errno == EPIPE || errno == EFBIG)) {
    for (size_t i = 0; i < LENGTH_OF(answers); i++)
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
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  char line[512] = "tscope: ";
  const int prefix = 8;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix - 1, format, arguments);
  va_end(arguments);
  if (length >= 0) {
    size_t bytes = MIN((size_t)prefix + (size_t)length, sizeof(line) - 2);
    line[bytes++] = '\n';
    write_quietly(line, bytes);
  }
}
