/* SPDX-License-Identifier: MIT
 *
 * Streams, and the state of the calling thread: its device and its own default stream.
 */
#include <pthread.h>
#include <stdlib.h>

#include "engine.h"

/* CUPTI gives the default stream the number 7, and the application's streams higher ones. */
enum { DEFAULT_STREAM_ID = 7, FIRST_STREAM_ID = 13 };

static struct CUstream_st *all;
static struct CUstream_st defaults[SIM_DEVICES];
static uint32_t next_id = FIRST_STREAM_ID;
static __thread int current_device;
static __thread struct CUstream_st *own_default[SIM_DEVICES];

int *sim_device(void) {
  return &current_device;
}

struct CUstream_st *sim_streams(void) {
  return all;
}

static void add_stream(struct CUstream_st *stream) {
  stream->next = all;
  all = stream;
}

struct CUstream_st *sim_stream_new(int device, unsigned flags, int priority) {
  struct CUstream_st *stream = calloc(1, sizeof(*stream));
  if (!stream)
    return NULL;
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = next_id++;
  add_stream(stream);
  return stream;
}

/* Waits for the stream's work before it frees the stream. CUDA does not wait. */
void sim_stream_free(struct CUstream_st *stream) {
  if (stream->last)
    sim_wait(stream->last);
  for (struct CUstream_st **at = &all; *at; at = &(*at)->next)
    if (*at == stream) {
      *at = stream->next;
      break;
    }
  sim_op_release(stream->last);
  free(stream);
}

bool sim_stream_is(const struct CUstream_st *stream) {
  for (struct CUstream_st *each = all; each; each = each->next)
    if (each == stream)
      return true;
  return false;
}

static struct CUstream_st *legacy_stream(void) {
  struct CUstream_st *stream = &defaults[current_device];
  if (!stream->id) {
    stream->id = DEFAULT_STREAM_ID;
    stream->legacy = true;
    stream->device = current_device;
    add_stream(stream);
  }
  return stream;
}

struct CUstream_st *sim_stream(cudaStream_t handle, bool per_thread) {
  if (handle == cudaStreamPerThread || (!handle && per_thread)) {
    struct CUstream_st **own = &own_default[current_device];
    if (!*own)
      *own = sim_stream_new(current_device, cudaStreamDefault, 0);
    return *own;
  }
  return !handle || handle == cudaStreamLegacy ? legacy_stream() : handle;
}
