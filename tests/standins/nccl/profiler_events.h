/* SPDX-License-Identifier: MIT
 *
 * The events of NCCL's profiler interface as NCCL's src/include/plugin/profiler has them, in each
 * version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "format/tscope_format.h"

/* Every version starts with these; `type` is one byte up to v4 and eight in v5. */
struct profiler_event_head {
  u64 type;
  void *parent;
  int rank;
};

struct profiler_event_v1 {
  struct profiler_event_head head;
  union {
    struct {
      const char *name;
      u64 comm_hash, sequence;
      u8 func;
      const void *send_buffer;
      void *receive_buffer;
      size_t count;
      int root;
      u8 datatype;
      u32 op;
      size_t traffic_bytes;
      u8 most_channels, warps, algorithm, protocol;
    } coll;
    struct {
      const char *name;
      u64 comm_hash;
      u8 func;
      void *buffer;
      u8 datatype;
      size_t count;
      int peer;
    } p2p;
  };
};

struct profiler_event_v2 {
  struct profiler_event_head head;
  union {
    struct {
      const char *name;
      u64 comm_hash, sequence;
      const char *func;
      const void *send_buffer;
      void *receive_buffer;
      size_t count;
      int root;
      const char *datatype;
      size_t traffic_bytes;
      u8 most_channels, warps;
      const char *algorithm, *protocol;
    } coll;
    struct {
      const char *name;
      u64 comm_hash;
      const char *func;
      void *buffer;
      const char *datatype;
      size_t count;
      int peer;
    } p2p;
  };
};

/* The transfers of v2. */
struct profiler_event_v3 {
  struct profiler_event_head head;
  union {
    struct {
      const char *name;
      u64 comm_hash, sequence;
      const char *func;
      const void *send_buffer;
      void *receive_buffer;
      size_t count;
      int root;
      const char *datatype;
      u8 most_channels, warps;
      const char *algorithm, *protocol;
    } coll;
    struct {
      u8 channel;
    } kernel_channel;
  };
};

/* v4, and the part of v5 that is read: v5 appends to each struct. */
struct profiler_event_v4 {
  struct profiler_event_head head;
  union {
    struct {
      u64 sequence;
      const char *func;
      const void *send_buffer;
      void *receive_buffer;
      size_t count;
      int root;
      const char *datatype;
      u8 channels, warps;
      const char *algorithm, *protocol;
    } coll;
    struct {
      const char *func;
      void *buffer;
      const char *datatype;
      size_t count;
      int peer;
      u8 channels;
    } p2p;
    struct {
      u8 channel;
      u64 timer; /* ns of the GPU's global timer */
    } kernel_channel;
  };
};

struct profiler_event_v5_api {
  struct profiler_event_head head;
  union {
    struct {
      const char *func;
      size_t count;
      const char *datatype;
      int root;
      void *stream;
      bool captured;
    } coll;
    struct {
      const char *func;
      size_t count;
      const char *datatype;
      void *stream;
      bool captured;
    } p2p;
  };
};

struct profiler_event_v6_copies {
  struct profiler_event_head head;
  u64 sequence;
  const char *func;
  const void *send_buffer;
  void *receive_buffer;
  size_t count;
  int root;
  const char *datatype;
  const char *synchronization; /* how the ranks wait for each other */
  bool waits_in_between;
  u32 batch_size, batches, number;
  void *stream;
};
