/* SPDX-License-Identifier: MIT */
#include "scripts/launch/stack_service.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspect/guarded_access.h"
#include "scripts/launch/installed_files.h"
#include "scripts/launch/job_access.h"

enum {
  MAX_WAITING = 64,
  REQUEST_WAIT_S = 1,
  SERVICE_MS = 20000,
  SERVICE_STACK_BYTES = 256 << 10,
  REQUEST_DESCRIPTOR = TSCOPE_REQUEST_DESCRIPTOR,
  FIRST_FREE_DESCRIPTOR =
      10, /* above REQUEST_DESCRIPTOR and the standard streams, which may be closed in us */
};

static char stacks_program[PATH_MAX];

bool stack_service_is_setting(const char *when) {
  return strcmp(when, "auto") == 0 || strcmp(when, "on") == 0 || strcmp(when, "off") == 0;
}

static bool is_wanted(const char *when) {
  static const char scope_file[] = "/proc/sys/kernel/yama/ptrace_scope";
  char scope = '\0';
  if (strcmp(when, "auto") != 0)
    return strcmp(when, "on") == 0;
  int fd = open(scope_file, O_RDONLY | O_CLOEXEC);
  bool known = fd >= 0 && read(fd, &scope, 1) == 1;
  if (fd >= 0)
    close(fd);
  return known && scope == '1';
}

static int open_socket(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, TSCOPE_STACK_SOCKET,
                        (int)getpid());
  socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, bytes) || listen(fd, MAX_WAITING))) {
    close(fd);
    fd = -1;
  }
  return fd;
}

/* Only our own user or root may connect: abstract sockets have no permissions. */
static bool is_allowed(int client) {
  struct ucred peer;
  socklen_t bytes = sizeof(peer);
  return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

static bool read_request(int client, struct stack_request *request) {
  struct timeval timeout = {.tv_sec = REQUEST_WAIT_S};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  return recv(client, request, sizeof(*request), MSG_WAITALL) == (ssize_t)sizeof(*request) &&
         memcmp(request->magic, TSCOPE_STACK_MAGIC, sizeof(request->magic)) == 0;
}

/* Our environment without the preload, because tscope-stacks does not train. NULL if there is no
 * memory; the caller frees it. */
static char **environment_of_helper(void) {
  size_t n = 0, kept = 0;
  while (environ[n])
    n++;
  char **list = calloc(n + 1, sizeof(*list));
  for (size_t i = 0; list && i < n; i++)
    if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
      list[kept++] = environ[i];
  return list;
}

/* Starts tscope-stacks so that it writes to `client` and sends requests through `request_end`. Its
 * pid, or -1. */
static pid_t start_stacks(const struct stack_request *request, int client, int request_end) {
  char pid_text[16], which_text[16];
  snprintf(pid_text, sizeof(pid_text), "%u", request->pid);
  snprintf(which_text, sizeof(which_text), "%u", request->which);
  char *const arguments[] = {"tscope-stacks", "--for-launcher", pid_text, which_text, NULL};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  char **environment = environment_of_helper();
  pid_t helper = -1;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, client, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, request_end, REQUEST_DESCRIPTOR);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  if (!environment ||
      posix_spawn(&helper, stacks_program, &files, &attributes, arguments, environment) != 0)
    helper = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  free(environment);
  return helper;
}

/* Moves a descriptor to a number from FIRST_FREE_DESCRIPTOR on; -1 on error. Closes the old one. */
static int move_descriptor_up(int fd) {
  int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR);
  close(fd);
  return high;
}

static void serve_request(const struct stack_request *request, int client) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
    return;
  int request_end = move_descriptor_up(ends[1]);
  pid_t helper = request_end >= 0 ? start_stacks(request, client, request_end) : -1;
  if (request_end >= 0)
    close(request_end);
  if (helper > 0) {
    job_access_serve((pid_t)request->pid, ends[0], SERVICE_MS);
    kill(helper, SIGKILL); /* it has ended, or its time is over */
    while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  close(ends[0]);
}

static void serve_next(int listener) {
  struct stack_request request;
  int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  int client = accepted < 0 ? -1 : move_descriptor_up(accepted);
  if (client < 0) { /* perhaps no free descriptors */
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    return;
  }
  if (is_allowed(client) && read_request(client, &request) && job_contains((pid_t)request.pid))
    serve_request(&request, client);
  close(client);
}

static void *serve(void *context) {
  int listener = *(int *)context;
  free(context);
  while (listener >= 0)
    serve_next(listener);
  return NULL;
}

void stack_service_start(const char *when) {
  sigset_t all, before;
  pthread_attr_t attributes;
  pthread_t thread;
  if (!is_wanted(when) || !installed_program("tscope-stacks", stacks_program))
    return;
  int *listener = malloc(sizeof(*listener));
  if (!listener || (*listener = open_socket()) < 0) {
    free(listener);
    return;
  }
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, SERVICE_STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, &attributes, serve, listener) != 0) {
    close(*listener);
    free(listener);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}
