/* SPDX-License-Identifier: MIT
 *
 * A job of one thread that goes into other namespaces, which the kernel refuses to more threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hazard.h"

/* Also whether a call that succeeds leaves errno alone. */
static void say(const char *call, int result) {
  printf("%s: %d, %s\n", call, result, strerror(errno));
  errno = 0;
}

/* With an argument the thread is to be cancelled at its next cancellation point, which these are
 * not. */
void unshare_user(char **arguments) {
  launch(1000);
  if (strcmp(arguments[0], "cancelled") == 0)
    pthread_cancel(pthread_self());
  int result = unshare(CLONE_NEWUSER);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  say("unshare of the users", result);
  launch(1000);
  usleep(150 * 1000);
  say("unshare of a flag that there is not", unshare(1));
  launch(1000);
}

/* From then on the kernel lets the process start no thread. */
void unshare_processes(char **arguments) {
  (void)arguments;
  launch(1000);
  say("unshare of users and processes", unshare(CLONE_NEWUSER | CLONE_NEWPID));
  launch(1000);
}

/* Starts a child in namespaces of its own; the number of its process. */
static pid_t start_elsewhere(int *hold) {
  int ready[2], kept[2];
  char byte;
  if (pipe(ready) != 0 || pipe(kept) != 0)
    fail("pipe");
  pid_t child = fork();
  if (child == 0) {
    close(kept[1]);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
      _exit(1);
    close(ready[1]);
    _exit((int)read(kept[0], &byte, 1));
  }
  close(ready[1]);
  close(kept[0]);
  (void)!read(ready[0], &byte, 1);
  close(ready[0]);
  *hold = kept[1];
  return child;
}

static int open_namespace(pid_t process, const char *kind) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)process, kind);
  return open(path, O_RDONLY | O_CLOEXEC);
}

void join_namespaces(char **arguments) {
  (void)arguments;
  int hold, status;
  launch(1000);
  pid_t child = start_elsewhere(&hold);
  int users = open_namespace(child, "user"), mounts = open_namespace(child, "mnt");
  say("setns of the users", setns(users, CLONE_NEWUSER));
  launch(1000);
  say("setns of the mounts", setns(mounts, 0));
  launch(1000);
  say("setns of a kind that it is not", setns(mounts, CLONE_NEWUSER));
  close(hold);
  waitpid(child, &status, 0);
}
