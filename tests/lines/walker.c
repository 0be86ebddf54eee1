/* SPDX-License-Identifier: MIT
 *
 * The reader of Python frames as a library that a Python program calls with ctypes. With
 * ctypes.CDLL a call releases the GIL, as PyTorch does; with ctypes.PyDLL it keeps it.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "callsites/watched_stack.h"
#include "inspect/thread_activity.h"
#include "record/hook.h"

#define WALKER_EXPORT __attribute__((visibility("default")))

enum { FRAMES = 4096 };

const char *walker_find(void);
int walker_stack(char *to, size_t bytes, int by_system_call);
double walker_ns(int times);
unsigned long walker_state(void);
int walker_watch(unsigned long state, int tid);
int walker_watched(char *to, size_t bytes);
void walker_watched_often(char *to, size_t bytes, int times);
double walker_watched_us(int times, int with_activity);

/* Returns NULL if Python's frames can be read, else the reason. */
WALKER_EXPORT const char *walker_find(void) {
  return python_here_find();
}

static size_t write_frame(char *to, size_t bytes, size_t length, python_read *read,
                          const void *context, const struct python_frame *frame) {
  struct python_location place;
  if (!python_location_of(&python_here, read, context, frame, &place))
    return length + (size_t)snprintf(to + length, bytes - length, "?\n");
  return length + (size_t)snprintf(to + length, bytes - length, "%s:%u:%s\n", place.file,
                                   place.line, place.function);
}

static int write_frames(python_read *read, const void *context, u64 state, char *to, size_t bytes) {
  u64 at;
  struct python_frame frame;
  size_t length = 0;
  int frames = 0;
  to[0] = '\0';
  if (!state)
    return 0;
  if (!python_first_frame(&python_here, read, context, state, &at))
    return -1;
  for (; frames < FRAMES; frames++) {
    enum python_walk next = python_next_frame(&python_here, read, context, &at, &frame);
    if (next == PYTHON_UNREADABLE)
      return -1;
    if (next == PYTHON_END)
      break;
    length = write_frame(to, bytes, length, read, context, &frame);
  }
  return frames;
}

/* Writes the calling thread's frames, innermost first, one per line. Returns their number, or a
 * negative number if they cannot be read. */
WALKER_EXPORT int walker_stack(char *to, size_t bytes, int by_system_call) {
  const struct python_process self = {.pid = getpid()};
  return by_system_call ? write_frames(python_read_process, &self, python_here_thread(), to, bytes)
                        : write_frames(python_read_directly, NULL, python_here_thread(), to, bytes);
}

/* The time of a walk like the shim's, which hashes the keys of the frames. */
WALKER_EXPORT double walker_ns(int times) {
  struct timespec begin, end;
  static volatile u64 sink;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < times; i++) {
    u64 at, hash = 0;
    struct python_frame frame;
    if (!python_first_frame(&python_here, python_read_directly, NULL, python_here_thread(), &at))
      break;
    while (python_next_frame(&python_here, python_read_directly, NULL, &at, &frame) == PYTHON_FRAME)
      hash = python_mix(python_mix(hash, frame.tag), frame.code + (u64)frame.instruction);
    sink = hash;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  (void)sink;
  return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
         times;
}

/* Another thread's frames, as the sampler reads them. */
static struct watched_stack watched;
static struct memory_gather gather;
static struct thread_activity activity;
static struct stack_walk walk;

/* Address of the calling thread's PyThreadState. */
WALKER_EXPORT unsigned long walker_state(void) {
  return python_here_thread();
}

WALKER_EXPORT int walker_watch(unsigned long state, int tid) {
  thread_activity_close(&activity);
  return (gather.bytes || memory_gather_open(&gather, true)) &&
         watched_stack_begin(&watched, &gather, getpid(), state, python_here_runtime) &&
         thread_activity_open(&activity, getpid(), (u32)tid);
}

/* As walker_stack(), of the thread that is watched. Behind the last frame is a line with the value
 * of its enum tscope_activity. */
WALKER_EXPORT int walker_watched(char *to, size_t bytes) {
  const struct python_process self = {.pid = getpid()};
  struct watched_moment moment;
  struct timespec now;
  size_t length = 0;
  u8 what = TSCOPE_ACTIVITY_UNKNOWN;
  to[0] = '\0';
  clock_gettime(CLOCK_MONOTONIC, &now);
  thread_activity_read(&activity, (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec,
                       watched.gil_lock, GIL_LOCK_BYTES, &what);
  if (!watched_stack_read(&watched, &gather, &walk, &moment))
    return -1;
  for (u32 i = 0; i < walk.n; i++)
    length = write_frame(to, bytes, length, python_read_process, &self, &walk.frames[i]);
  snprintf(to + length, bytes - length, "%d\n", what);
  return (int)walk.n;
}

/* Looks at it some times while the caller lets it run: one line for each look, with the names of
 * its functions from the innermost out; an empty one where nothing was read. */
WALKER_EXPORT void walker_watched_often(char *to, size_t bytes, int times) {
  const struct python_process self = {.pid = getpid()};
  const unsigned pause_us = 200;
  struct watched_moment moment;
  size_t length = 0;
  for (int i = 0; i < times && bytes - length > 1 << 16; i++) {
    usleep(pause_us);
    bool found = watched_stack_read(&watched, &gather, &walk, &moment);
    for (u32 k = 0; found && k < walk.n; k++) {
      struct python_location place;
      bool known =
          python_location_of(&python_here, python_read_process, &self, &walk.frames[k], &place);
      length += (size_t)snprintf(to + length, bytes - length, "%s%s", k ? ";" : "",
                                 known ? place.function : "?");
    }
    length += (size_t)snprintf(to + length, bytes - length, "\n");
  }
}

/* The CPU time of a look at it. */
WALKER_EXPORT double walker_watched_us(int times, int with_activity) {
  struct watched_moment moment;
  struct timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (int i = 0; i < times; i++) {
    u8 what;
    if (with_activity)
      thread_activity_read(&activity, (u64)i * 10000000, watched.gil_lock, GIL_LOCK_BYTES, &what);
    watched_stack_read(&watched, &gather, &walk, &moment);
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return ((double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3) /
         times;
}
