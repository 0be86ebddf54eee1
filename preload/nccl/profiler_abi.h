/* SPDX-License-Identifier: MIT
 *
 * The interface between NCCL and a profiler plugin, in the versions that NCCL 2.23 (v1) to 2.30
 * (v6) look for; later NCCL still accepts v6. As in NCCL's src/include/plugin/profiler. What is
 * read of events is in profiler_plugin.c; they are whole in tests/standins/nccl/profiler_events.h.
 */
#pragma once

#include <stddef.h>

#include "format/tscope_format.h"

/* Kinds of event, bits of the activation mask. */
enum {
  PROFILE_COLL = 1 << 1,
  PROFILE_P2P = 1 << 2,
  PROFILE_KERNEL_CHANNEL = 1 << 6,
  PROFILE_COLL_API = 1 << 9, /* v5 */
  PROFILE_P2P_API = 1 << 10, /* v5 */
  PROFILE_COPIES = 1 << 12   /* v6: a collective that copy engines run */
};

enum { PROFILER_KERNEL_CHANNEL_STOP = 22 }; /* a state, from v4 on */

/* Arguments of a change of state; for the end of a kernel channel, v4 on. */
struct profiler_state {
  u64 timer;
};

/* All return 0: failures of the profiler must not affect NCCL. */
struct profiler_plugin_v1 {
  const char *name;
  int (*init)(void **context, int *mask);
  int (*start)(void *context, void **event, const void *description);
  int (*stop)(void *event);
  int (*state)(void *event, int state, const struct profiler_state *arguments);
  int (*finalize)(void *context);
};

struct profiler_plugin_v4 {
  const char *name;
  int (*init)(void **context, int *mask, const char *comm_name, u64 comm_hash, int nodes, int ranks,
              int rank, void *log);
  int (*start)(void *context, void **event, const void *description);
  int (*stop)(void *event);
  int (*state)(void *event, int state, const struct profiler_state *arguments);
  int (*finalize)(void *context);
};

struct profiler_plugin_v5 {
  const char *name;
  int (*init)(void **context, u64 comm_hash, int *mask, const char *comm_name, int nodes, int ranks,
              int rank, void *log);
  int (*start)(void *context, void **event, const void *description);
  int (*stop)(void *event);
  int (*state)(void *event, int state, const struct profiler_state *arguments);
  int (*finalize)(void *context);
};
