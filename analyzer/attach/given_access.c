/* SPDX-License-Identifier: MIT */
#include "attach/given_access.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inspect/guarded_access.h"

enum { ANSWER_MS = 5000 };

static u32 number;

/* Several processes send requests through one socket, one after the other. */
static u32 next_number(void) {
  static u32 n;
  return (u32)getpid() << 12 | (++n & 0xfff);
}

static bool send_request(enum guarded_kind kind, u32 tid) {
  number = next_number();
  struct guarded_request request = {.kind = kind, .number = number, .tid = tid};
  return send(TSCOPE_REQUEST_DESCRIPTOR, &request, sizeof(request), MSG_NOSIGNAL) ==
         (ssize_t)sizeof(request);
}

/* The descriptor that came with a message; -1. */
static int descriptor_of(struct msghdr *message) {
  struct cmsghdr *rights = CMSG_FIRSTHDR(message);
  int fd = -1;
  if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
      rights->cmsg_len == CMSG_LEN(sizeof(int)))
    memcpy(&fd, CMSG_DATA(rights), sizeof(int));
  return fd;
}

/* The next message, and the descriptor that came with it, -1; false at the end or after ANSWER_MS.
 */
static bool receive(struct guarded_reply *reply, int *descriptor) {
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec part = {reply, sizeof(*reply)};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof(control.bytes)};
  struct pollfd more = {.fd = TSCOPE_REQUEST_DESCRIPTOR, .events = POLLIN};
  *descriptor = -1;
  if (poll(&more, 1, ANSWER_MS) != 1 ||
      recvmsg(TSCOPE_REQUEST_DESCRIPTOR, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*reply))
    return false;
  *descriptor = descriptor_of(&message);
  return true;
}

/* Asks, and waits for the answer to just this: a process before us may have ended before it had
 * read its own. */
static int request_and_wait(enum guarded_kind kind, u32 tid, struct guarded_reply *reply,
                            int *descriptor) {
  if (!send_request(kind, tid))
    return -EPIPE;
  while (receive(reply, descriptor)) {
    if (reply->number == number)
      return reply->error;
    if (*descriptor >= 0)
      close(*descriptor);
  }
  return -EPIPE;
}

static ssize_t read_call(u32 tid, char *text, size_t bytes) {
  struct guarded_reply reply;
  int none;
  if (request_and_wait(GUARDED_CALL, tid, &reply, &none) != 0)
    return -1;
  reply.call[sizeof(reply.call) - 1] = '\0';
  size_t length = strlen(reply.call);
  length = length < bytes ? length : bytes - 1;
  memcpy(text, reply.call, length);
  text[length] = '\0';
  return (ssize_t)length;
}

int given_access_begin(pid_t pid) {
  static struct guarded_access access;
  struct guarded_reply reply;
  int memory, error = request_and_wait(GUARDED_MEMORY, 0, &reply, &memory);
  if (error || memory < 0)
    return error ? error : -EPROTO;
  access = (struct guarded_access){.pid = pid, .memory = memory, .call = read_call};
  tscope_guarded_access = &access;
  return 0;
}

bool given_access_covers(pid_t pid) {
  return tscope_guarded_access && tscope_guarded_access->pid == pid;
}

int given_access_stop(u32 tid, struct user_regs_struct *registers) {
  struct guarded_reply reply;
  int none, error = request_and_wait(GUARDED_STOP, tid, &reply, &none);
  if (!error)
    *registers = reply.registers;
  return error;
}

int given_access_continue(u32 tid) {
  struct guarded_reply reply;
  int none;
  return request_and_wait(GUARDED_CONTINUE, tid, &reply, &none);
}
