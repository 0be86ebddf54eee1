/* SPDX-License-Identifier: MIT
 *
 * Who may do what while streams are captured. A call that could upset a capture (asking for an
 * event, waiting) is forbidden to a thread by the mode of the captures and its own, and where it is
 * forbidden, it is the capture that is lost.
 */
#include <pthread.h>

#include "engine.h"

static __thread int thread_mode; /* SIM_CAPTURE_GLOBAL until it says otherwise */

int sim_capture_exchange_mode(int mode) {
  int before = thread_mode;
  thread_mode = mode;
  return before;
}

bool sim_capture_forbids(void) {
  bool forbidden = false;
  if (thread_mode == SIM_CAPTURE_RELAXED)
    return false;
  for (struct CUstream_st *stream = sim_streams(); stream; stream = stream->next) {
    bool own = stream->capture_thread == (uint64_t)pthread_self();
    bool counts =
        own ? stream->capture_mode != SIM_CAPTURE_RELAXED
            : stream->capture_mode == SIM_CAPTURE_GLOBAL && thread_mode == SIM_CAPTURE_GLOBAL;
    if (stream->captures && counts)
      stream->capture_lost = forbidden = true;
  }
  return forbidden;
}

bool sim_capture_implied(const struct CUstream_st *stream) {
  struct CUstream_st *other = stream->legacy ? sim_streams() : NULL;
  while (other && (!other->graph || other->flags & cudaStreamNonBlocking))
    other = other->next;
  return other != NULL;
}
