/* SPDX-License-Identifier: MIT */
#include "attach/launcher_stacks.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach/attached.h"
#include "attach/given_access.h"
#include "attach/look_json.h"
#include "inspect/guarded_access.h"
#include "inspect/process_parent.h"

enum { ANCESTORS_MOST = 256, ANSWER_WAIT_S = 30, ANSWER_MOST = 256 << 20 };

/* Whether the other side is that process, as our user or root: anybody may use a name. */
static bool is_process(int fd, pid_t pid) {
  struct ucred peer;
  socklen_t bytes = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid == pid &&
         (peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0);
}

/* A connection to this tscope-run; -1 when that process is none, or does not help. */
static int connect_to(pid_t pid) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int length =
      snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, TSCOPE_STACK_SOCKET, (int)pid);
  socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  struct timeval patience = {.tv_sec = ANSWER_WAIT_S};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (connect(fd, (struct sockaddr *)&address, bytes) == 0 && is_process(fd, pid))
    return fd;
  close(fd);
  return -1;
}

/* All that comes until the end; NULL. The caller frees it. */
static char *receive_all(int fd, size_t *bytes) {
  size_t room = 64 << 10;
  char *text = malloc(room);
  *bytes = 0;
  for (ssize_t got = 1; text && got > 0;) {
    got = recv(fd, text + *bytes, room - *bytes, 0);
    if (got > 0 && (*bytes += (size_t)got) == room) {
      char *more = room < ANSWER_MOST ? realloc(text, 2 * room) : NULL;
      if (!more)
        free(text);
      text = more;
      room *= 2;
    }
  }
  return text;
}

static int request_stacks(int fd, pid_t pid, enum native_which which, struct arena *arena,
                          struct rank_stall *stacks, struct native_outcome *native) {
  struct stack_request request = {.pid = (u32)pid, .which = (u32)which};
  size_t bytes;
  memcpy(request.magic, TSCOPE_STACK_MAGIC, sizeof(request.magic));
  if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
    return -EPIPE;
  char *text = receive_all(fd, &bytes);
  int error = text ? look_json_read(arena, text, bytes, stacks, native) : -ENOMEM;
  free(text);
  return error;
}

int launcher_read_stacks(struct arena *arena, pid_t pid, enum native_which which,
                         struct rank_stall *stacks, struct native_outcome *native) {
  pid_t ancestor = process_parent(pid);
  for (int i = 0; i < ANCESTORS_MOST && ancestor > 0; i++, ancestor = process_parent(ancestor)) {
    int fd = connect_to(ancestor);
    if (fd < 0)
      continue;
    int error = request_stacks(fd, pid, which, arena, stacks, native);
    close(fd);
    return error ? error : ancestor;
  }
  return -ENOENT;
}

int launcher_serve_stacks(pid_t pid, enum native_which which) {
  struct arena arena = {0};
  struct rank_stall stacks;
  struct native_outcome native;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int error = given_access_begin(pid);
  if (!error)
    error = attached_read_stacks(&arena, pid, which, &stacks, &native);
  char *text = error ? NULL : look_json_write(&stacks, &native);
  if (text)
    fputs(text, stdout);
  else if (!error)
    error = -ENOMEM;
  free(text);
  arena_release(&arena);
  return fflush(stdout) == 0 ? error : -EPIPE;
}
