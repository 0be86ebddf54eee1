/* SPDX-License-Identifier: MIT
 *
 * Support for tests of the shim's core. A process starts recording only once in its life, so each
 * scene runs in a child that records like a hooked program, and the test checks the trace it
 * leaves.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "record/hook.h"
#include "scratch.h"
#include "trace.h"

struct scene {
  char directory[64];
  struct trace trace;
  int status; /* as from waitpid() */
};

static inline void scene_directory(struct scene *scene) {
  strcpy(scene->directory, "/tmp/tscope-unit-XXXXXX");
  scratch_make(scene->directory);
}

/* Starts `play` in a child under TSCOPE_DIR; the child calls exit(0) when `play` returns. */
static inline pid_t scene_start(struct scene *scene, void (*play)(void *more), void *more) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    setenv("TSCOPE_DIR", scene->directory, 1);
    setenv("TSCOPE_RUN", "unit", 1);
    play(more);
    exit(0);
  }
  return child;
}

static inline void scene_wait(struct scene *scene, pid_t child) {
  assert_int_equal(waitpid(child, &scene->status, 0), child);
}

static inline bool scene_exited(const struct scene *scene) {
  return WIFEXITED(scene->status) && WEXITSTATUS(scene->status) == 0;
}

/* The child's trace, of which there must be exactly one. */
static inline void scene_read(struct scene *scene) {
  char *path = NULL;
  assert_int_equal(trace_find(scene->directory, &path, 1), 1);
  assert_true(trace_open(&scene->trace, path));
  free(path);
}

/* Runs a scene to its normal end and opens the trace. */
static inline void scene_play(struct scene *scene, void (*play)(void *more), void *more) {
  scene_directory(scene);
  scene_wait(scene, scene_start(scene, play, more));
  assert_true(scene_exited(scene));
  scene_read(scene);
  assert_true(scene->trace.header->closed_realtime_ns > 0);
}

static inline int scene_traces(const struct scene *scene) {
  char *paths[16] = {NULL};
  int found = trace_find(scene->directory, paths, 16);
  for (int i = 0; i < 16; i++)
    free(paths[i]);
  return found;
}

static inline void scene_clean(struct scene *scene) {
  scratch_remove(scene->directory);
}

static inline void scene_end(struct scene *scene) {
  trace_close(&scene->trace);
  scene_clean(scene);
}

/* A hooked launch. False when it was only forwarded. */
__attribute__((noinline, unused)) static bool hooked_launch(u32 shape) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  if (!thread)
    return false;
  u64 start = tscope_ticks();
  struct tscope_launch_record *launch =
      tscope_reserve(thread, &thread->ring, start, TSCOPE_REC_LAUNCH, 3, sizeof(*launch));
  if (launch) {
    launch->shape = shape;
    tscope_commit_dur(thread, &thread->ring, sizeof(*launch), start);
  }
  tscope_leave(thread);
  return true;
}

/* Checks a condition in the child; an assertion of cmocka would jump into the parent's runner. */
#define CHILD_CHECK(condition)                                                                     \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)

/* Of each shape, for trace_walk(). */
static inline void count_launches(const struct trace_record *at, void *more) {
  u64 *counts = more;
  const struct tscope_launch_record *launch = (const void *)at->record;
  if (launch->header.type == TSCOPE_REC_LAUNCH)
    counts[launch->shape]++;
}
