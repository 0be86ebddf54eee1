/* SPDX-License-Identifier: MIT */
#include "scripts/launch/ask_within.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/clock_ns.h"
#include "process/descriptors.h"

/* If it is held for ever, it must not hold a pipe of the caller's, whose reader waits for the end.
 */
__attribute__((noreturn)) static void answer_to(int fd, void (*ask)(const void *question),
                                                const void *question) {
  int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0)
    dup2(nothing, STDIN_FILENO);
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
  tscope_descriptors_close_from(STDERR_FILENO + 1);
  ask(question);
  fflush(stdout);
  _exit(0);
}

/* Signals are pending until the command has them: who wants an end now need not wait for the
 * answer.
 */
static bool is_told_to_end(void) {
  static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  sigset_t pending;
  bool told = false;
  sigpending(&pending);
  for (size_t i = 0; i < LENGTH_OF(ends); i++)
    told |= sigismember(&pending, ends[i]) == 1;
  return told;
}

static enum asked read_answer(int fd, int seconds, char *answer, size_t bytes) {
  char part[4096];
  size_t n = 0;
  for (i64 until = clock_ns(CLOCK_MONOTONIC) + seconds * 1000000000ll;
       clock_ns(CLOCK_MONOTONIC) < until;) {
    if (is_told_to_end())
      return ASK_TOLD_TO_END;
    if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 50) <= 0)
      continue;
    ssize_t got = read(fd, part, sizeof(part));
    if (got <= 0)
      return got == 0 ? ASK_ANSWERED : ASK_NO_ANSWER;
    if (!answer)
      (void)!write(STDERR_FILENO, part, (size_t)got);
    for (ssize_t i = 0; answer && i < got && n + 1 < bytes; i++)
      answer[n++] = part[i];
    if (answer)
      answer[n] = '\0';
  }
  return ASK_NO_ANSWER;
}

enum asked ask_within(int seconds, void (*ask)(const void *question), const void *question,
                      char *answer, size_t bytes) {
  int ends[2];
  if (answer)
    *answer = '\0';
  if (pipe2(ends, O_CLOEXEC) != 0)
    return ASK_NOT_ASKED;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0)
    answer_to(ends[1], ask, question);
  close(ends[1]);
  enum asked asked = child > 0 ? read_answer(ends[0], seconds, answer, bytes) : ASK_NOT_ASKED;
  close(ends[0]);
  if (child > 0 && asked != ASK_ANSWERED)
    kill(child, SIGKILL);
  while (asked == ASK_ANSWERED && waitpid(child, NULL, 0) < 0 && errno == EINTR)
    continue;
  return asked;
}
