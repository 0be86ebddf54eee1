/* SPDX-License-Identifier: MIT
 *
 * Which threads are sampled, and what a look at one of them shows.
 *
 * A thread trains if calls of its own carry lines (call_sites.h): collectives, launches, phases,
 * waits for the GPU. It may be any thread, or several. Until one is known it is the first thread.
 */
#pragma once

#include "callsites/watched_stack.h"
#include "inspect/thread_activity.h"

#pragma GCC visibility push(hidden)

enum { MAX_TRAINING_THREADS = 8 };

/* A run of moments at which a thread had the same stack and did the same. */
struct sample_run {
  u64 stack;                                  /* 0: none */
  u16 tag;                                    /* of its LINE_SAMPLE */
  u64 sampled, unwritten, total, write_after; /* ticks: of the last; not yet in the trace; in all */
};

struct sampled_thread {
  u32 tid; /* 0: free */
  pid_t pid;
  bool is_native; /* no Python: its stack is that of its last call */
  const u64 *last_stack;
  bool is_over; /* it does not train any more */
  u64 called;   /* ticks: when it was last known to make calls */
  struct watched_stack watched;
  struct thread_activity activity;
  struct sample_run run;
};

/* What a thread did at a moment. */
struct thread_moment {
  u64 stack;   /* 0: none */
  bool unread; /* there is one, but it could not be read */
  u16 tag;     /* of a LINE_SAMPLE */
  u64 gil_holder;
};

struct sampled_threads {
  struct sampled_thread training[MAX_TRAINING_THREADS];
  u32 n;           /* slots in use, or used before */
  bool any_trains; /* a thread is known that makes calls, or made them */
};
extern struct sampled_threads sampled_threads;

/* On the helper: begins. False without memory. */
bool sampled_threads_open(bool own_descriptors);

/* On the helper, ten times a second: finds threads that train now, and forgets those that ended. */
void sampled_threads_find(u64 now);

/* Looks at a thread. False if it has ended, or is not the one that it was: then its slot is to be
 * given up. */
bool sampled_thread_look(struct sampled_thread *thread, struct thread_moment *moment);

/* Gives up the slot. */
void sampled_thread_end(struct sampled_thread *thread);

/* The thread whose PyThreadState this is, for a look; NULL if it is not known. */
struct sampled_thread *sampled_thread_of_state(u64 state);

/* Each of the other threads with Python in turn; NULL if there is none. `n`: how many they are. */
struct sampled_thread *sampled_thread_beside(u32 *n);

/* Each child of the first thread and of those that train in turn, such as a data loader's worker;
 * likewise. */
struct sampled_thread *sampled_thread_of_child(u32 *n);

/* Asks the kernel again which children there are. */
void sampled_children_find(void);

#pragma GCC visibility pop
