/* SPDX-License-Identifier: MIT
 *
 * The driver's functions for events, found at run time. The driver exists with every kind of
 * runtime (shared, static, several). Its calls do not change the runtime's last error, and with a
 * context pushed none of them creates one. Streams of the runtime are handles of the driver.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CUDA_NOT_READY = 600, CAPTURE_RELAXED = 2, STREAM_NON_BLOCKING = 1 };

#define CUDA_EVENT_FUNCTIONS(X)                                                                    \
  X(cuCtxGetDevice, "cuCtxGetDevice", (int *device))                                               \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (void **context))                                       \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (void *context))                                      \
  X(cuEventCreate, "cuEventCreate", (void **event, unsigned flags))                                \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float *ms, void *start, void *end))                 \
  X(cuEventQuery, "cuEventQuery", (void *event))                                                   \
  X(cuEventRecord, "cuEventRecord", (void *event, void *stream))                                   \
  X(cuStreamCreate, "cuStreamCreate", (void **stream, unsigned flags))                             \
  X(cuStreamGetCtx, "cuStreamGetCtx", (void *stream, void **context))                              \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (void *stream, int *status))                       \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))

struct cuda_events {
#define X(name, symbol, params) int(*name) params;
  CUDA_EVENT_FUNCTIONS(X)
#undef X
  /* NULL in drivers before 12.4, which have no such contexts. */
  int (*cuStreamGetGreenCtx)(void *stream, void **green);
};

extern struct cuda_events cuda_events;

/* The driver's library, which is never unloaded: it loads it, as the runtime is about to do. NULL
 * without one. */
void *cuda_driver_open(void);

/* Fills in cuda_events. False, with a reason in words, if there is no suitable driver. */
bool cuda_events_find(char *why, size_t why_bytes);
