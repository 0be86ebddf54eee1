/* SPDX-License-Identifier: MIT */
#include "scripts/launch/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "inspect/small_file.h"
#include "process/reaped.h"
#include "scripts/launch/message.h"

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* All but those that stop a process until it is continued. */
static sigset_t watched_signals(void) {
  static const int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU};
  sigset_t watched;
  sigfillset(&watched);
  for (size_t i = 0; i < LENGTH_OF(stops); i++)
    sigdelset(&watched, stops[i]);
  return watched;
}

void supervise_begin(sigset_t *before) {
  sigset_t watched = watched_signals();
  sigprocmask(SIG_BLOCK, &watched, before);
}

static bool close_other(int folder, const char *name, void *kept) {
  struct stat file;
  int fd = (int)leading_number(name, INT_MAX, NULL);
  if (fd != folder && fd != ((int *)kept)[0] && fd != ((int *)kept)[1] && fstat(fd, &file) == 0 &&
      !S_ISREG(file.st_mode))
    close(fd);
  return false;
}

/* Closes all descriptors but these two and those of files: locks on a file (fcntl) would end, which
 * may have been taken before this program was started in their owner's place. */
static void close_others(int kept, int also_kept) {
  folder_names_of("/proc/self/fd", close_other, (int[]){kept, also_kept});
}

/* So that nothing else gets their numbers. */
static void hold_standard_places(void) {
  int fd;
  while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
    ;
  if (fd >= 0)
    close(fd);
}

/* The witness answers one question: was a signal sent to the whole process group (a terminal's
 * Ctrl-C, timeout(1), a batch system that signals every process) or to tscope-run alone? It is a
 * process that only keeps signals pending. If a signal that the command already got were forwarded,
 * it would get it twice, and a second SIGTERM ends torchrun's clean-up early. */
static void run_witness(int channel, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(0);
  int number;
  while (read(channel, &number, sizeof(number)) == sizeof(number)) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    int seen = sigtimedwait(&set, NULL, &(struct timespec){0}) == number;
    if (write(channel, &seen, sizeof(seen)) != sizeof(seen))
      break;
  }
  _exit(0);
}

/* The channel to a new witness, -1 if it cannot be started. Call with signals blocked. */
static int start_witness(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
    return -1;
  pid_t self = getpid();
  pid_t witness = fork();
  if (witness == 0) {
    close_others(ends[1], -1);
    run_witness(ends[1], self);
  }
  close(ends[1]);
  if (witness < 0) {
    close(ends[0]);
    return -1;
  }
  return ends[0];
}

static bool sent_to_group(int channel, int number) {
  nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL); /* until all members have it */
  int seen = 0;
  return channel >= 0 &&
         send(channel, &number, sizeof(number), MSG_NOSIGNAL) == (ssize_t)sizeof(number) &&
         read(channel, &seen, sizeof(seen)) == (ssize_t)sizeof(seen) && seen;
}

/* In the child. Who kills this process with SIGKILL, as a batch system or Python's
 * subprocess.run(timeout=…) does, means the command. */
__attribute__((noreturn)) static void become(char **command, const sigset_t *before, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    raise(SIGKILL);
  sigprocmask(SIG_SETMASK, before, NULL);
  execvp(command[0], command);
  int error = errno;
  print_message("cannot run %s: %s", command[0], strerror(error));
  _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

int supervise(char **command, const sigset_t *before, bool says) {
  sigset_t watched = watched_signals();
  struct sigaction child_action = {.sa_handler = SIG_DFL}, inherited;
  sigaction(SIGCHLD, &child_action, &inherited);
  int witness = start_witness();
  pid_t self = getpid(), child = fork();
  if (child == 0) {
    sigaction(SIGCHLD, &inherited, NULL);
    become(command, before, self);
  }
  if (child < 0) {
    print_message("cannot start a process: %s; running the command unobserved by tscope-run",
                  strerror(errno));
    sigaction(SIGCHLD, &inherited, NULL);
    sigprocmask(SIG_SETMASK, before, NULL);
    execvp(command[0], command);
    exit(EXIT_CANNOT_RUN);
  }
  close_others(witness, says ? STDERR_FILENO : -1);
  hold_standard_places();
  for (;;) {
    int status;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status))
        tscope_reaped(child, WTERMSIG(status));
      return status;
    }
    siginfo_t sent;
    int number = sigwaitinfo(&watched, &sent);
    /* SIGPIPE and SIGXFSZ for a line of ours are not for the command. */
    bool own = number > 0 && sent.si_code == SI_USER && sent.si_pid == self;
    if (number > 0 && number != SIGCHLD && !own && !sent_to_group(witness, number))
      kill(child, number);
  }
}

int supervise_exit(int status) {
  if (!WIFSIGNALED(status))
    return WEXITSTATUS(status);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* only the core dump of the command is useful */
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigset_t its;
  sigemptyset(&its);
  sigaddset(&its, WTERMSIG(status));
  sigaction(WTERMSIG(status), &action, NULL);
  raise(WTERMSIG(status));
  sigprocmask(SIG_UNBLOCK, &its, NULL);
  return 128 + WTERMSIG(status);
}
