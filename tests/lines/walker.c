/* SPDX-License-Identifier: MIT
 *
 * The reader of Python frames as a library that a Python program calls through ctypes. Opened as
 * ctypes.CDLL a call gives the GIL up, as PyTorch does; opened as ctypes.PyDLL it keeps it.
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
int walker_stack(char *to, size_t bytes, int through_the_kernel);
double walker_ns(int times);

/* NULL, or why not. */
WALKER_EXPORT const char *walker_find(void) {
  return python_here_find();
}

static size_t put(char *to, size_t bytes, size_t length, python_read *read, const void *context,
                  const struct python_frame *frame) {
  struct python_place place;
  if (!python_place_of(&python_here, read, context, frame, &place))
    return length + (size_t)snprintf(to + length, bytes - length, "?\n");
  return length + (size_t)snprintf(to + length, bytes - length, "%s:%u:%s\n", place.file,
                                   place.line, place.function);
}

static int describe(python_read *read, const void *context, u64 state, char *to, size_t bytes) {
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
    length = put(to, bytes, length, read, context, &frame);
  }
  return frames;
}

/* The calling thread's frames, innermost first, a line each. Returns their number, negative where
 * they could not be read. */
WALKER_EXPORT int walker_stack(char *to, size_t bytes, int through_the_kernel) {
  const struct python_process self = {.pid = getpid()};
  return through_the_kernel ? describe(python_read_process, &self, python_here_thread(), to, bytes)
                            : describe(python_read_directly, NULL, python_here_thread(), to, bytes);
}

/* Sum of the keys of the frames, as the shim walks; for what a walk costs. */
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
