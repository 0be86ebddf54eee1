/* SPDX-License-Identifier: MIT
 *
 * What is kept of one trace file: every event that can matter, 32 bytes each, and the few facts
 * that collectives and synchronisation need in addition. Times are nanoseconds on the file's own
 * clock.
 */
#pragma once

#include "import/import.h"
#include "import/kineto/kineto_event.h"
#include "import/kineto/kineto_names.h"

#define KINETO_MOST_RANKS (1u << 20) /* a larger world, group or rank is a false claim */

enum kineto_item_kind {
  KINETO_ITEM_OP =
      1, /* what = its sequence number, or none; thread = of its forward, 0 if it is one */
  KINETO_ITEM_RANGE, /* annotation; what = comm facts of nccl:all_reduce and the like */
  KINETO_ITEM_CALL,  /* call of the runtime, by name */
  KINETO_ITEM_COMMS, /* record_param_comms; what = comm facts */
  KINETO_ITEM_KERNEL,
  KINETO_ITEM_COLLECTIVE,  /* a kernel of NCCL; what = comm facts, or none */
  KINETO_ITEM_COMM_KERNEL, /* one of another library that communicates; what = none */
  KINETO_ITEM_MEMCPY,      /* bytes */
  KINETO_ITEM_MEMSET,      /* bytes */
  KINETO_ITEM_SYNC,        /* what = sync facts */
  KINETO_ITEM_SPIN,        /* the host waits for a kernel without a call: kineto_spins.c */
  KINETO_ITEM_WORKER_WAIT, /* or for a collective that a worker runs: kineto_workers.c */
  KINETO_ITEM_PYTHON,      /* a function of a program, "file(line): name" */
};

struct kineto_item {
  i64 start, end;
  u32 name;
  u32 correlation; /* calls and what they put on the device or gave a worker */
  union {
    u32 what; /* INDEX_NONE where there is nothing */
    float bytes;
  };
  u16 lane;
  u8 kind;
  u8 thread; /* as PyTorch numbers those that call operators */
};

/* Arguments of a collective; counts are elements, -1 if not known. */
struct kineto_comm_facts {
  i64 in_count, out_count;
  i64 size, seq, rank, source, target;
  u32 group; /* index into groups, INDEX_NONE */
  u8 op, dtype;
};

struct kineto_group {
  u32 number; /* of its name among the names */
  const char *name, *what;
  const char *ranks; /* as it stands: "[0, 1]" */
  u32 *members;      /* [n_members] global ranks; NULL if the file does not list them all */
  u32 n_members, size;
};

struct kineto_sync {
  i64 wait_stream; /* -1 unknown */
  u32 wait_record; /* correlation of the event record, 0 unknown */
};

struct kineto_lane {
  bool device;
  i64 stream; /* as the trace numbers it */
  i64 gpu;
  const char *name;
};

struct kineto_trace {
  const char *path;
  struct arena arena;
  struct kineto_names names;
  VECTOR(struct kineto_item) items; /* in order of the file; of start once it is read */
  VECTOR(struct kineto_comm_facts) comms;
  VECTOR(struct kineto_group) groups;
  VECTOR(struct kineto_sync) syncs;
  HASHED(struct kineto_lane) lanes;
  i64 begin, end; /* first and last instant of what is kept; NS_UNKNOWN */
  u64 events;     /* in the file */
  u64 bytes;      /* of text */
  u64 file_bytes; /* on disk */
  u32 rank;       /* INDEX_NONE if the file does not say */
  u32 world_size; /* 0 if not known */
  u64 gpu_memory; /* bytes of the first device, 0 */
  const char *gpu_name, *backend, *nccl;
  u64 malformed;      /* events that are not proper JSON, but whose meaning is clear */
  i64 lost_since;     /* from then on work of devices is missing: nothing is kept; NS_UNKNOWN */
  const char *damage; /* NULL if the file is whole */
};

static inline const struct kineto_name *kineto_item_name(const struct kineto_trace *trace,
                                                         const struct kineto_item *item) {
  return &trace->names.list.at[item->name];
}

/* Reads a file. 0, or a negative errno with what is wrong in `why`, to follow the
 * file's name. A file that ends early or is damaged is read as far as it goes and says so. */
int kineto_trace_read(struct kineto_trace *trace, const char *path,
                      const struct model_options *options, char *why, size_t why_bytes);
void kineto_trace_free(struct kineto_trace *trace);

/* Adds an event to the trace. */
void kineto_add_event(struct kineto_trace *trace, const struct kineto_event *event);

/* Adds a member of the document that is not the list of events, as text. One that cannot be read is
 * ignored. */
void kineto_add_fact(struct kineto_trace *trace, struct json_text key, const char *value,
                     size_t bytes, i64 *base_ns);
