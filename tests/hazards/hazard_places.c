/* SPDX-License-Identifier: MIT
 *
 * A job that can no longer reach, or no longer write, the place where its trace is.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hazard.h"

static void launch_for_a_while(void) {
  for (int i = 0; i < 20; i++) {
    launch(20000);
    usleep(20 * 1000);
  }
}

/* How the process ends: 0 as usual, 1 at once. */
static void end(const char *how) {
  char here[4096];
  printf("in %s\n", getcwd(here, sizeof(here)));
  fflush(stdout);
  if (atoi(how))
    _exit(0);
}

/* Another root directory, in which the trace has no name. */
void change_root(char **arguments) {
  launch(1000);
  usleep(250 * 1000);
  if (chroot(arguments[0]) != 0 || chdir("/") != 0)
    fail(arguments[0]);
  launch_for_a_while();
  end(arguments[1]);
}

/* Without /proc, where a process sees its threads. */
void first_thread_ends_without_proc(char **arguments) {
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      umount2("/proc", MNT_DETACH) != 0)
    fail("/proc");
  first_thread_ends(arguments);
}

/* Another user, to whom the trace's directory is closed. */
void change_user(char **arguments) {
  launch(1000);
  usleep(250 * 1000);
  if (setgid(65534) != 0 || setuid(65534) != 0)
    fail("setuid");
  launch_for_a_while();
  end(arguments[0]);
}

/* Whoever makes a file says himself what is allowed. */
void mask_all(char **arguments) {
  umask(0777);
  launch_for_a_while();
  end(arguments[0]);
}
