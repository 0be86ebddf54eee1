/* SPDX-License-Identifier: MIT */
#include "base/trace_words.h"

#include "base/each.h"

#define X(NAME, value, text) [value] = text,
#define WORDS(function, VOCABULARY)                                                                \
  const char *function(u32 value) {                                                                \
    static const char *const words[] = {VOCABULARY(X)};                                            \
    return value < LENGTH_OF(words) ? words[value] : NULL;                                         \
  }
WORDS(op_word, TSCOPE_OPS)
WORDS(phase_word, TSCOPE_PHASES)
WORDS(copy_word, TSCOPE_MEMCPYS)
WORDS(loss_word, TSCOPE_LOSSES)
WORDS(activity_word, TSCOPE_ACTIVITIES)
WORDS(gpu_clock_word, TSCOPE_GPU_CLOCKS)
WORDS(backend_word, TSCOPE_BACKENDS)
WORDS(stall_word, TSCOPE_STALLS)
