/* SPDX-License-Identifier: MIT
 *
 * Helpers for the recorders of CUDA calls.
 */
#pragma once

#include "streams/stream_numbers.h"

/* The head of a recorder (hooks/wrapper.h) of calls that return a cudaError_t. The second: of those
 * that put work on a stream, or wait for it. */
#define RECORDER(name, wakes, ...)                                                                 \
  enum { name##_wakes = TSCOPE_##wakes };                                                          \
  static inline void record_##name(struct tscope_thread *thread, u64 start, cudaError_t result,    \
                                   ##__VA_ARGS__)
#define STREAM_RECORDER(name, wakes, ...)                                                          \
  RECORDER(name, wakes, enum tscope_default_stream default_stream, ##__VA_ARGS__)

/* Writes a ring record; its other fields are given as initialisers. */
#define RING(NAME, name_, start_, dur_, tag_, ...)                                                 \
  do {                                                                                             \
    const u64 long_dur_ = (dur_);                                                                  \
    const bool is_long_ = TSCOPE_UNLIKELY(long_dur_ >= TSCOPE_DUR_LONG);                           \
    struct tscope_##name_##_record *record_ = tscope_reserve(                                      \
        thread, &thread->ring, (start_), TSCOPE_REC_##NAME, (tag_), sizeof(*record_));             \
    if (TSCOPE_LIKELY(record_ != NULL)) {                                                          \
      *record_ =                                                                                   \
          (struct tscope_##name_##_record){.header = record_->header,                              \
                                           .dur = is_long_ ? TSCOPE_DUR_LONG : (u32)long_dur_,     \
                                           __VA_ARGS__};                                           \
      if (is_long_)                                                                                \
        tscope_commit_long(&thread->ring, sizeof(*record_), long_dur_);                            \
      else                                                                                         \
        tscope_commit(&thread->ring, sizeof(*record_));                                            \
    }                                                                                              \
  } while (0)
