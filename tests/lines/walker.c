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

#include "callsites/python_here.h"
#include "inspect/python_code.h"
#include "record/hook.h"

#define WALKER_EXPORT __attribute__((visibility("default")))

enum { FRAMES = 4096 };

const char *walker_find(void);
int walker_stack(char *to, size_t bytes, int by_system_call);
double walker_ns(int times);

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
