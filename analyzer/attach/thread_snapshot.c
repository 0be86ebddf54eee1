/* SPDX-License-Identifier: MIT */
#include "attach/thread_snapshot.h"
#include "base/now.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  PAGE = 4096,
  STACK_PAGES = 512, /* 2 MiB; of a deeper stack the outer frames are missing, which is reported */
  STEPS_MOST = 1024,
  STOP_WAIT_MS = 250,
  ALL_WAIT_MS = 10000,
  DIE_WAIT_MS = 1000,
  STUCK_MOST = 8, /* threads that do not stop cost their time each */
};
static const size_t room_bytes = (size_t)512 << 20; /* only what is written uses memory */

/* Lies at the start of the room. */
struct taking {
  pid_t pid;
  const struct python *python;
  struct snapshots *all;
  _Atomic u32 next; /* thread whose turn it is */
  size_t used;      /* of the room */
};

/* waitpid() that gives up at `until`. SIGCHLD is blocked: it wakes us. 0 in time-out. */
static pid_t wait_until(pid_t pid, int *status, i64 until) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  for (;;) {
    pid_t got = waitpid(pid, status, __WALL | WNOHANG);
    i64 left = until - clock_ns(CLOCK_MONOTONIC);
    if (got || left <= 0)
      return got;
    sigtimedwait(&child, NULL,
                 &(struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000});
  }
}

static void *reserve(struct taking *t, size_t bytes) {
  size_t at = (t->used + 15) & ~(size_t)15;
  if (bytes > t->all->room_bytes - at)
    return NULL;
  t->used = at + bytes;
  return (char *)t->all->room + at;
}

static u64 stack_pointer(const struct user_regs_struct *registers) {
#if defined(__x86_64__)
  return registers->rsp;
#else
  return registers->sp;
#endif
}

/* Page by page: the kernel copies as many as there are. */
static ssize_t read_pages(pid_t pid, u64 at, void *to, size_t bytes) {
  struct iovec pages[STACK_PAGES], local = {to, bytes};
  FOR_EACH_CHANGED(pages, STACK_PAGES, one) {
    size_t part = PAGE - at % PAGE;
    *one = (struct iovec){(void *)(uintptr_t)at, part};
    at += part;
  }
  return process_vm_readv(pid, &local, 1, pages, STACK_PAGES, 0);
}

/* From the stack pointer to the end of its mapping. */
static void copy_stack(struct taking *t, struct thread_snapshot *thread) {
  thread->stack_at = stack_pointer(&thread->registers);
  size_t all = (size_t)STACK_PAGES * PAGE - thread->stack_at % PAGE, before = t->used;
  void *to = reserve(t, all);
  ssize_t got = to ? read_pages(t->pid, thread->stack_at, to, all) : -1;
  if (got > 0) {
    thread->stack = to;
    thread->stack_bytes = (size_t)got;
    t->used -= all - (size_t)got;
  } else {
    t->used = before;
  }
}

static void copy_python(struct taking *t, struct thread_snapshot *thread) {
  size_t before = t->used;
  thread->steps = reserve(t, STEPS_MOST * sizeof(*thread->steps));
  if (!thread->steps)
    return;
  thread->n_steps = python_calls_read(t->python, t->pid, thread->python_state, thread->steps,
                                      STEPS_MOST, &thread->python_whole);
  t->used = before + 16 + thread->n_steps * sizeof(*thread->steps);
}

/* Its registers are there. */
static void copy_thread(struct taking *t, struct thread_snapshot *thread) {
  copy_stack(t, thread);
  if (t->python && thread->python_state)
    copy_python(t, thread);
}

/* A signal that was on its way to the thread when it stopped, to be delivered after all. */
static int signal_of(int status) {
  return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

static enum snapshot_got snapshot_thread(struct taking *t, struct thread_snapshot *thread) {
  struct iovec registers = {&thread->registers, sizeof(thread->registers)};
  int status;
  if (ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) != 0)
    return errno == ESRCH ? SNAPSHOT_ENDED : SNAPSHOT_REFUSED;
  i64 from = clock_ns(CLOCK_MONOTONIC);
  if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) != 0)
    return SNAPSHOT_ENDED;
  pid_t got = wait_until((pid_t)thread->tid, &status, from + STOP_WAIT_MS * 1000000ll);
  if (got == 0)
    return SNAPSHOT_STUCK;
  if (got < 0 || !WIFSTOPPED(status))
    return SNAPSHOT_ENDED;
  if (ptrace(PTRACE_GETREGSET, thread->tid, NT_PRSTATUS, &registers) == 0)
    copy_thread(t, thread);
  ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)signal_of(status));
  thread->stopped_ns = clock_ns(CLOCK_MONOTONIC) - from;
  return thread->stack ? SNAPSHOT_TAKEN : SNAPSHOT_NONE;
}

/* A thread that was asked to stop and did not is released only when this process ends: another
 * process continues with the threads after it. */
static void snapshot_remaining(void *context) {
  struct taking *t = context;
  while (t->next < t->all->n) {
    struct thread_snapshot *thread = &t->all->threads[t->next];
    thread->got = snapshot_thread(t, thread);
    t->next++;
    if (thread->got == SNAPSHOT_STUCK)
      return;
  }
}

/* Runs `work` in a process of its own, which ends with this one, and is ended after `ms`.
 * 0, -ETIMEDOUT, or another negative errno. */
static int run_in_child(void (*work)(void *), void *context, int ms) {
  sigset_t child, before;
  int status;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  pid_t parent = getpid(), worker = fork();
  if (worker == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
      work(context);
    _exit(0);
  }
  int error = worker < 0 ? -errno : 0;
  if (!error && wait_until(worker, &status, clock_ns(CLOCK_MONOTONIC) + ms * 1000000ll) == 0) {
    error = -ETIMEDOUT;
    kill(worker, SIGKILL);
    wait_until(worker, &status, clock_ns(CLOCK_MONOTONIC) + DIE_WAIT_MS * 1000000ll);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  return error;
}

int snapshots_take(pid_t pid, const struct python *python, const struct thread_snapshot *threads,
                   u32 n, struct snapshots *out) {
  *out = (struct snapshots){.n = n, .room_bytes = room_bytes};
  out->room = mmap(NULL, out->room_bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (out->room == MAP_FAILED) {
    out->room = NULL;
    return -ENOBUFS;
  }
  struct taking *t = out->room;
  *t = (struct taking){.pid = pid, .python = python, .all = out, .used = sizeof(*t)};
  out->threads = reserve(t, n * sizeof(*threads));
  if (!out->threads)
    return -ENOBUFS;
  memcpy(out->threads, threads, n * sizeof(*threads));
  i64 until = clock_ns(CLOCK_MONOTONIC) + ALL_WAIT_MS * 1000000ll;
  for (u32 tries = 0; t->next < n && tries <= STUCK_MOST; tries++) {
    int left = (int)((until - clock_ns(CLOCK_MONOTONIC)) / 1000000);
    int error = left > 0 ? run_in_child(snapshot_remaining, t, left) : -ETIMEDOUT;
    if (error)
      return error;
  }
  return t->next < n ? -ETIMEDOUT : 0;
}

void snapshots_release(struct snapshots *snapshots) {
  if (snapshots->room)
    munmap(snapshots->room, snapshots->room_bytes);
  *snapshots = (struct snapshots){0};
}

/* Whatever reads a process's memory, reads its mappings first. */
static void read_mappings(void *context) {
  char path[32], bytes[PAGE];
  snprintf(path, sizeof(path), "/proc/%d/maps", *(pid_t *)context);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
    ;
}

bool process_is_readable(pid_t pid) {
  return run_in_child(read_mappings, &pid, 2000) != -ETIMEDOUT;
}
