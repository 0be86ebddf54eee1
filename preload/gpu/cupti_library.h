/* SPDX-License-Identifier: MIT
 *
 * The functions of CUPTI that tscope calls, found at run time: X(name, needed, (parameters)).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUPTI_FUNCTIONS(X)                                                                         \
  X(cuptiGetTimestamp, true, (uint64_t * time))                                                    \
  X(cuptiActivityRegisterCallbacks, true,                                                          \
    (void (*requested)(uint8_t **, size_t *, size_t *),                                            \
     void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t)))                              \
  X(cuptiActivityEnable, true, (int kind))                                                         \
  X(cuptiActivityDisable, true, (int kind))                                                        \
  X(cuptiActivityFlushAll, true, (uint32_t flag))                                                  \
  X(cuptiActivityGetNextRecord, true, (uint8_t * buffer, size_t valid, void **record))             \
  X(cuptiActivityGetAttribute, false, (int attribute, size_t *bytes, void *value))                 \
  X(cuptiActivitySetAttribute, false, (int attribute, size_t *bytes, void *value))                 \
  X(cuptiActivityGetNumDroppedRecords, false, (void *context, uint32_t stream, size_t *dropped))   \
  X(cuptiGetStreamIdEx, false,                                                                     \
    (void *context, void *stream, uint8_t per_thread, uint32_t *stream_id))                        \
  X(cuptiGetGraphExecId, false, (void *executable, uint32_t *graph_id))                            \
  X(cuptiGetResultString, false, (int result, const char **text))

/* CUpti_ActivityKind, CUpti_ActivityAttribute, CUpti_ActivityFlag. */
enum {
  CUPTI_KIND_MEMCPY = 1,
  CUPTI_KIND_MEMSET = 2,
  CUPTI_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_KIND_OVERHEAD = 17,
  CUPTI_KIND_MEMCPY2 = 22, /* between devices */
  CUPTI_KIND_GRAPH_TRACE = 51,
};
enum { CUPTI_DEVICE_BUFFER_POOL_LIMIT = 2, CUPTI_ZEROED_OUT_ACTIVITY_BUFFER = 5 };
enum { CUPTI_FLUSH_COMPLETED = 0, CUPTI_FLUSH_ALL = 1 };

struct cupti {
#define X(name, needed, params) int(*name) params;
  CUPTI_FUNCTIONS(X)
#undef X
};

extern const char *const cupti_sonames[];

/* Finds CUPTI: the copy that is in the process, else one beside the CUDA runtime. Never loads a
 * second copy. False, with a reason in words, if there is no suitable one. */
bool cupti_find(struct cupti *cupti, char *why, size_t why_bytes);
