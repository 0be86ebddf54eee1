/* SPDX-License-Identifier: MIT
 *
 * Another way to read what the kernel protects of a process. Yama (ptrace_scope 1) lets only its
 * ancestors trace a process, read its memory, or see which system call its threads are in.
 * tscope-run is an ancestor of its job. On request it starts tscope-stacks as its own child, and
 * does for that child the few things that only an ancestor may do. These are the messages between
 * the two, over a SOCK_SEQPACKET; and the requests that reach tscope-run from outside.
 */
#ifndef TSCOPE_GUARDED_ACCESS_H
#define TSCOPE_GUARDED_ACCESS_H

#include <sys/types.h>
#include <sys/user.h>

#include "format/tscope_format.h"

/* Outside to tscope-run: connect to the abstract socket of this name, with tscope-run's process id,
 * and send one of these. What comes back until the end is the stacks as JSON; nothing if there are
 * none. */
#define TSCOPE_STACK_SOCKET "tscope-run-look-%d"
#define TSCOPE_STACK_MAGIC "tscopeL1"

struct stack_request {
  char magic[8];
  u32 pid;   /* must descend from tscope-run */
  u32 which; /* enum native_which */
};

/* The descriptor by which tscope-stacks sends requests to tscope-run. */
enum { TSCOPE_REQUEST_DESCRIPTOR = 3 };

enum guarded_kind {
  GUARDED_MEMORY,   /* send a descriptor of /proc/PID/mem, open for reading */
  GUARDED_CALL,     /* send what /proc/PID/task/TID/syscall has */
  GUARDED_STOP,     /* stop the thread, send its registers, let it continue at GUARDED_CONTINUE */
  GUARDED_CONTINUE, /* -ETIMEDOUT: it continued before this, after GUARDED_MAX_STOP_MS */
};

struct guarded_request {
  u32 kind;
  u32 number; /* is repeated in the reply, so that a late one is not confused with another */
  u32 tid;
};

enum {
  GUARDED_STOP_WAIT_MS = 250, /* a thread that does not stop in that time waits in the kernel */
  GUARDED_MAX_STOP_MS = 1000, /* a stopped thread continues after this time in any case */
};

struct guarded_reply {
  u32 number;
  i32 error; /* 0; negative errno; -ETIMEDOUT: the thread did not stop */
  char call[256];
  struct user_regs_struct registers;
};

/* How this process reads what the kernel protects of the process `pid`. */
struct guarded_access {
  pid_t pid;
  int memory; /* /proc/PID/mem, open for reading */
  /* What /proc/PID/task/TID/syscall has, ended with a 0; how many bytes, or -1. */
  ssize_t (*call)(u32 tid, char *text, size_t bytes);
};

/* NULL: it queries the kernel itself. Only tscope-stacks as tscope-run's child sets it. */
extern const struct guarded_access *tscope_guarded_access __attribute__((visibility("hidden")));

#endif
