/* SPDX-License-Identifier: MIT
 *
 * A separate thread of tscope-run stops a thread of the job, does nothing else, and ends when it is
 * done: when a tracing thread ends in any way, the kernel releases the threads it traces. It polls
 * and never waits for a signal, because SIGCHLD belongs to the thread that waits for the job.
 */
#include "scripts/launch/job_access.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspect/guarded_access.h"
#include "inspect/process_parent.h"

enum { MAX_ANCESTORS = 256, TRACER_STACK_BYTES = 128 << 10 };

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static ssize_t read_file(const char *path, char *to, size_t bytes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  ssize_t got = read(fd, to, bytes - 1);
  int error = errno;
  close(fd);
  to[got > 0 ? got : 0] = '\0';
  return got < 0 ? -error : got;
}

bool job_contains(pid_t pid) {
  pid_t self = getpid();
  for (int i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
    pid = process_parent(pid);
    if (pid == self)
      return true;
  }
  return false;
}

struct session {
  pid_t pid;
  int requests;
  struct guarded_request request;
};

static void send_reply(const struct session *s, struct guarded_reply *reply, int descriptor) {
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec part = {reply, sizeof(*reply)};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  reply->number = s->request.number;
  if (descriptor >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  }
  sendmsg(s->requests, &message, MSG_NOSIGNAL);
}

static void send_memory(const struct session *s) {
  struct guarded_reply reply = {0};
  char path[32];
  snprintf(path, sizeof(path), "/proc/%d/mem", (int)s->pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  reply.error = fd < 0 ? -errno : 0;
  send_reply(s, &reply, fd);
  if (fd >= 0)
    close(fd);
}

static void send_system_call(const struct session *s) {
  struct guarded_reply reply = {0};
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task/%u/syscall", (int)s->pid, s->request.tid);
  ssize_t got = read_file(path, reply.call, sizeof(reply.call));
  reply.error = got < 0 ? (i32)got : 0;
  send_reply(s, &reply, -1);
}

/* The pending state change of a thread that we trace; false if there is none. It is not consumed,
 * because the end of the job's first process is for the thread that waits for it. */
static bool has_state_change(pid_t tid, siginfo_t *change) {
  *change = (siginfo_t){0};
  return waitid(P_PID, (id_t)tid, change,
                WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) == 0 &&
         change->si_pid != 0;
}

/* Waits until a thread with a pending stop request stops. 0; -ESRCH if it has ended; -ETIMEDOUT. */
static int wait_for_stop(pid_t tid, int *status) {
  long long until = now_ms() + GUARDED_STOP_WAIT_MS;
  siginfo_t change;
  while (!has_state_change(tid, &change)) {
    if (now_ms() >= until)
      return -ETIMEDOUT;
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000}, NULL);
  }
  *status = change.si_status;
  return change.si_code == CLD_TRAPPED || change.si_code == CLD_STOPPED ? 0 : -ESRCH;
}

/* Waits for the next request or a timeout; after that the thread may continue. True if it was the
 * request to continue. */
static bool wait_for_continue(struct session *s) {
  struct pollfd more = {.fd = s->requests, .events = POLLIN};
  struct guarded_request next;
  if (poll(&more, 1, GUARDED_MAX_STOP_MS) != 1 ||
      recv(s->requests, &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT) != (ssize_t)sizeof(next) ||
      next.kind != GUARDED_CONTINUE)
    return false;
  return recv(s->requests, &s->request, sizeof(s->request), MSG_DONTWAIT) ==
         (ssize_t)sizeof(s->request);
}

/* The signal that the thread was about to get when it stopped, and that it must still get; 0 if
 * none. */
static int signal_of(int status) {
  return status >> 8 == PTRACE_EVENT_STOP ? 0 : status & 0xff;
}

/* Whether `tid` is a thread of the process `pid`. */
static bool is_thread_of(pid_t pid, u32 tid) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)pid, tid);
  return access(path, F_OK) == 0;
}

static void *stop_thread(void *context) {
  struct session *s = context;
  struct guarded_reply reply = {0};
  struct iovec registers = {&reply.registers, sizeof(reply.registers)};
  pid_t tid = (pid_t)s->request.tid;
  int status;
  if (!is_thread_of(s->pid, s->request.tid)) {
    reply.error = -ESRCH;
    send_reply(s, &reply, -1);
    return NULL;
  }
  if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 ||
      ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0) {
    reply.error = -errno;
    send_reply(s, &reply, -1);
    return NULL;
  }
  reply.error = wait_for_stop(tid, &status);
  if (!reply.error && ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &registers) != 0)
    reply.error = -errno;
  bool stopped = reply.error != -ETIMEDOUT && reply.error != -ESRCH;
  send_reply(s, &reply, -1);
  bool continue_requested = !reply.error && wait_for_continue(s);
  if (stopped)
    ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal_of(status));
  if (continue_requested)
    send_reply(s, &(struct guarded_reply){0}, -1);
  return NULL;
}

static void stop(struct session *s) {
  pthread_attr_t attributes;
  pthread_t tracer;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, TRACER_STACK_BYTES);
  int error = pthread_create(&tracer, &attributes, stop_thread, s);
  pthread_attr_destroy(&attributes);
  if (!error)
    pthread_join(tracer, NULL);
  else
    send_reply(s, &(struct guarded_reply){.error = -error}, -1);
}

void job_access_serve(pid_t pid, int requests, int ms) {
  struct session s = {.pid = pid, .requests = requests};
  long long until = now_ms() + ms;
  for (long long left = ms; left > 0; left = until - now_ms()) {
    struct pollfd more = {.fd = requests, .events = POLLIN};
    int ready = poll(&more, 1, (int)left);
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0 ||
        recv(requests, &s.request, sizeof(s.request), MSG_DONTWAIT) != (ssize_t)sizeof(s.request))
      return;
    if (s.request.kind == GUARDED_MEMORY)
      send_memory(&s);
    else if (s.request.kind == GUARDED_CALL)
      send_system_call(&s);
    else if (s.request.kind == GUARDED_STOP)
      stop(&s);
    else /* too late: the thread already runs again */
      send_reply(&s, &(struct guarded_reply){.error = -ETIMEDOUT}, -1);
  }
}
