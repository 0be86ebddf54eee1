/* SPDX-License-Identifier: MIT
 *
 * Why the GPU was not watched: the kinds of reasons. A trace has the reason as text (GPU_CLOCK in
 * records.def), with details such as the call that was seen. Each kind has words that its texts
 * contain: the library writes them, and the analyzer finds the kind by them.
 */
#pragma once

#include <string.h>

#define TSCOPE_REASON_STEPS "TSCOPE_GPU_STEPS"
#define TSCOPE_REASON_ONE_CONNECTION "CUDA_DEVICE_MAX_CONNECTIONS"
#define TSCOPE_REASON_SETTING "TSCOPE_GPU="
#define TSCOPE_REASON_INJECTED "CUDA_INJECTION64_PATH"
#define TSCOPE_REASON_CLIENT "the job's own CUPTI client"
#define TSCOPE_REASON_PROFILES "the job profiles with CUPTI itself"
#define TSCOPE_REASON_CUT_SHORT "the process did not end normally, and CUPTI had not delivered"

/* X(NAME, words): a reason has the first kind whose words it contains. */
#define TSCOPE_GPU_REASONS(X)                                                                      \
  X(STEPS, TSCOPE_REASON_STEPS)                                                                    \
  X(ONE_CONNECTION, TSCOPE_REASON_ONE_CONNECTION)                                                  \
  X(SETTING, TSCOPE_REASON_SETTING)                                                                \
  X(INJECTED, TSCOPE_REASON_INJECTED)                                                              \
  X(CLIENT, TSCOPE_REASON_CLIENT)                                                                  \
  X(PROFILES, TSCOPE_REASON_PROFILES)                                                              \
  X(CUT_SHORT, TSCOPE_REASON_CUT_SHORT)

enum tscope_gpu_reason {
#define X(NAME, words) TSCOPE_GPU_REASON_##NAME,
  TSCOPE_GPU_REASONS(X)
#undef X
      TSCOPE_GPU_REASON_OTHER /* also if no reason is known */
};

/* The kind of a reason, which is NULL where none is known. */
static inline enum tscope_gpu_reason tscope_gpu_reason_of(const char *reason) {
  static const char *const words[] = {
#define X(NAME, words) words,
      TSCOPE_GPU_REASONS(X)
#undef X
  };
  unsigned kind = 0;
  while (reason && kind < TSCOPE_GPU_REASON_OTHER && !strstr(reason, words[kind]))
    kind++;
  return reason ? (enum tscope_gpu_reason)kind : TSCOPE_GPU_REASON_OTHER;
}
