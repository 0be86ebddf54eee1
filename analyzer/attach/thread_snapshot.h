/* SPDX-License-Identifier: MIT
 *
 * Threads of another process, each stopped only while its registers, its stack and the places of
 * its Python frames are copied: some ten microseconds. Everything else is derived from the copies.
 *
 * This is done by a process of its own, which ends at once, and which the kernel ends together with
 * its parent: whatever happens to either, the kernel then lets every thread go on.
 */
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "attach/python_calls.h"

enum snapshot_got {
  SNAPSHOT_NONE, /* not requested, or no room */
  SNAPSHOT_TAKEN,
  SNAPSHOT_REFUSED, /* the kernel does not let us */
  SNAPSHOT_STUCK,   /* it did not stop in time: it waits in the kernel, not to be interrupted */
  SNAPSHOT_ENDED,
};

struct thread_snapshot {
  u32 tid;
  u64 python_state; /* of its PyThreadState; 0: none */
  enum snapshot_got got;
  struct user_regs_struct registers;
  u64 stack_at; /* the stack pointer */
  const u8 *stack;
  size_t stack_bytes;
  struct python_step *steps;
  u32 n_steps;
  bool python_whole; /* the steps are all there are */
  i64 stopped_ns;    /* from the request to stop until it was released: it was stopped for less than
                        this */
};

struct snapshots {
  struct thread_snapshot *threads;
  u32 n;
  void *room; /* shared by the two processes */
  size_t room_bytes;
};

/* Takes snapshots of `n` threads of `pid`, whose tid and python_state are set in `threads`, into
 * `out`, in their order. `python` is NULL where the process has none. 0; -ENOBUFS; -ETIMEDOUT when
 * the process could not be read in time: what is there is there. */
int snapshots_take(pid_t pid, const struct python *python, const struct thread_snapshot *threads,
                   u32 n, struct snapshots *out);

void snapshots_release(struct snapshots *snapshots);

/* Whether the kernel lets its memory be read now: no, where a thread of it holds its memory map and
 * waits for a device. Takes two seconds to say no. */
bool process_is_readable(pid_t pid);
