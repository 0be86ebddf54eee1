/* SPDX-License-Identifier: MIT
 *
 * Recordings of PyTorch's profiler that a test writes as text, with the events that most of them
 * have.
 */
#pragma once

#include "importing.h"
#include "model_support.h"

static inline void write_text(const struct fixture *fixture, const char *name, const char *text) {
  scratch_text(fixture->directory, name, text);
}

static inline struct model *read_folder(const struct fixture *fixture) {
  return import_file(fixture->directory);
}

static inline struct model *read_text(const struct fixture *fixture, const char *text) {
  write_text(fixture, "rank0.trace.json", text);
  return read_folder(fixture);
}

static inline struct timeline timeline_of(const struct model *model, u32 rank) {
  struct timeline timeline;
  assert_int_equal(timeline_load(model, rank, &timeline), 0);
  return timeline;
}

static inline const struct span *first_of(const struct timeline *timeline, u8 kind) {
  for (u32 i = 0; i < timeline->n_spans; i++)
    if (timeline->spans[i].kind == kind)
      return &timeline->spans[i];
  fail_msg("no span of kind %u", kind);
  return NULL;
}

#define LAUNCH(at, correlation)                                                                    \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,"      \
  "\"ts\":" at ",\"dur\":5,\"args\":{\"correlation\":" correlation "}}"
#define KERNEL(name, at, dur, correlation)                                                         \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" at          \
  ",\"dur\":" dur ",\"args\":{\"device\":0,\"stream\":7,\"correlation\":" correlation "}}"
