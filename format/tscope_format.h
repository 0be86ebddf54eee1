/* SPDX-License-Identifier: MIT
 *
 * The trace on disk: what the shim writes and the analyzer reads. docs/trace-format.md describes it
 * in prose. One file per process:
 *
 *   file header (one page) | chunk 0 | chunk 1 | ...
 *
 * A chunk belongs to one thread and one retention (retained or ring) at a time and is a sequence of
 * records. Retained chunks are written once; ring chunks are recycled, oldest first, once the cap
 * is reached. All integers are little-endian.
 */
#pragma once

#include <stddef.h>

#include "format/enums.def"
#include "format/records.def"
#include "format/values.h"

#define TSCOPE_MAGIC "tscope\r\n"
#define TSCOPE_VERSION_MAJOR 1 /* a reader refuses a newer major */
#define TSCOPE_VERSION_MINOR 4 /* a reader skips what a newer minor added */
#define TSCOPE_BYTE_ORDER_MARK 0x01020304u
#define TSCOPE_HEADER_BYTES 4096u
#define TSCOPE_CHUNK_BYTES 65536u
#define TSCOPE_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */
#define TSCOPE_FILE_SUFFIX ".tscope"

/* How often tscope's threads wake up at least, and a process gives signs of life (alive_ticks). Its
 * anchors come every second in its first minute, then every ten. */
enum { TSCOPE_TICKS_PER_S = 10, TSCOPE_FIRST_ANCHORS_S = 60, TSCOPE_LATER_ANCHORS_S = 10 };

#define TSCOPE_DUR_LONG 0xffffffffu
#define TSCOPE_DUR_PENDING UINT64_MAX

/* The result of an accepted call that is still in progress, because its communicator does not block
 * (NCCL's ncclInProgress). */
#define TSCOPE_RESULT_IN_PROGRESS 7
/* `tag` of a GROUP record whose calls were not launched: NCCL only estimated their time
 * (ncclGroupSimulateEnd). */
#define TSCOPE_GROUP_SIMULATED 1
#define TSCOPE_UNKNOWN 0xffffffffu
/* In the seq of a COMM_WAIT: it is the number of a send or receive. */
#define TSCOPE_TRANSFER 0x80000000u
#define TSCOPE_UNKNOWN_RANK 0xffffffffu
#define TSCOPE_NO_STREAM 0xffffu
#define TSCOPE_MEMCPY_ASYNC 0x100u
/* In the tag of a CALL_SITE: its low bits are the binary logarithm of the number of calls that it
 * represents. */
#define TSCOPE_CALL_SITE_OF_BACKWARD                                                               \
  0x8000u /* the thread had no frames; these are the frames of                                     \
           * backward() */
#define TSCOPE_CALL_SITE_OF_FORWARD                                                                \
  0x4000u /* likewise; these are the frames of the operator whose backward it ran */
#define TSCOPE_CALL_SITE_WEIGHT 0x1fu
/* In the tag of a THREAD_STACK. */
#define TSCOPE_STACK_HOLDS_GIL 1u
#define TSCOPE_STACK_MOVED 2u /* it changed while it was read, because the thread runs */
/* In the tag of a LINE_SAMPLE, above an enum tscope_activity. */
#define TSCOPE_SAMPLE_ACTIVITY 0xffu
#define TSCOPE_SAMPLE_OF_THREAD 0x100u /* `tid` is a thread of this process, else of a child */
#define TSCOPE_SAMPLE_BESIDE                                                                       \
  0x200u /* the thread does not train: it was sampled because one that trains waited */
#define TSCOPE_SAMPLE_HOLDS_GIL 0x400u
#define TSCOPE_SAMPLE_AFTER_CALL                                                                   \
  0x800u /* without Python: the stack is that of the last call that the thread made */
#define TSCOPE_SAMPLE_ENDS                                                                         \
  0x1000u /* exact, and for no time: the thread is about to end the process by _exit() */
#define TSCOPE_MAX_RECORD_WORDS 255u

enum tscope_retention { TSCOPE_RETAINED = 1, TSCOPE_RING = 2 };

/* Clock of a chunk's times. TICKS: the file header's tick clock >> tick_shift. MONOTONIC:
 * nanoseconds of CLOCK_MONOTONIC, used for spans that come from a GPU clock source. */
enum tscope_chunk_clock { TSCOPE_CLOCK_TICKS = 1, TSCOPE_CLOCK_MONOTONIC = 2 };

enum tscope_tick_source { TSCOPE_TICK_TSC = 1, TSCOPE_TICK_CNTVCT = 2, TSCOPE_TICK_MONOTONIC = 3 };

#define X(n, v, t) TSCOPE_BACKEND_##n = v,
enum tscope_backend { TSCOPE_BACKENDS(X) };
#undef X
#define X(n, v, t) TSCOPE_OP_##n = v,
enum tscope_op { TSCOPE_OPS(X) };
#undef X
#define X(n, v, t, bytes) TSCOPE_DTYPE_##n = v,
enum tscope_dtype { TSCOPE_DTYPES(X) };
#undef X
#define X(n, v, t) TSCOPE_REDOP_##n = v,
enum tscope_redop { TSCOPE_REDOPS(X) };
#undef X
#define X(n, v, t) TSCOPE_ONE_SIDED_##n = v,
enum tscope_one_sided { TSCOPE_ONE_SIDED_KINDS(X) };
#undef X
#define X(n, v, t) TSCOPE_COMM_END_##n = v,
enum tscope_comm_end { TSCOPE_COMM_ENDS(X) };
#undef X
#define X(n, v, t) TSCOPE_PHASE_##n = v,
enum tscope_phase { TSCOPE_PHASES(X) };
#undef X
#define X(n, v, t) TSCOPE_MEMCPY_##n = v,
enum tscope_memcpy { TSCOPE_MEMCPYS(X) };
#undef X
#define X(n, v, t) TSCOPE_MEMORY_##n = v,
enum tscope_memory { TSCOPE_MEMORIES(X) };
#undef X
#define X(n, v, t) TSCOPE_MAPPING_##n = v,
enum tscope_mapping { TSCOPE_MAPPINGS(X) };
#undef X
#define X(n, v, t) TSCOPE_REFUSAL_##n = v,
enum tscope_refusal { TSCOPE_REFUSALS(X) };
#undef X
#define X(n, v, t) TSCOPE_RANGE_##n = v,
enum tscope_range { TSCOPE_RANGES(X) };
#undef X
#define X(n, v, t) TSCOPE_SYNC_##n = v,
enum tscope_sync { TSCOPE_SYNCS(X) };
#undef X
#define X(n, v, t) TSCOPE_GPU_CLOCK_##n = v,
enum tscope_gpu_clock { TSCOPE_GPU_CLOCKS(X) };
#undef X
#define X(n, v, t) TSCOPE_GPU_OVERHEAD_##n = v,
enum tscope_gpu_overhead { TSCOPE_GPU_OVERHEADS(X) };
#undef X
#define X(n, v, t) TSCOPE_CONDITION_##n = v,
enum tscope_condition { TSCOPE_CONDITIONS(X) };
#undef X
#define X(n, v, t) TSCOPE_LOSS_##n = v,
enum tscope_loss { TSCOPE_LOSSES(X) TSCOPE_LOSS_REASONS };
#undef X
#define X(n, v, t) TSCOPE_ACTIVITY_##n = v,
enum tscope_activity { TSCOPE_ACTIVITIES(X) };
#undef X
#define X(n, v, t) TSCOPE_END_##n = v,
enum tscope_end { TSCOPE_ENDS(X) };
#undef X
#define X(n, v, t) TSCOPE_STALL_##n = v,
enum tscope_stall { TSCOPE_STALLS(X) };
#undef X
#define X(n, v, t) TSCOPE_COMM_STATE_##n = v,
enum tscope_comm_state { TSCOPE_COMM_STATES(X) };
#undef X
#define X(n, v, t) TSCOPE_FAILED_##n = v,
enum tscope_failed_call { TSCOPE_FAILED_CALLS(X) };
#undef X
#define X(n, v, t) TSCOPE_INFO_##n = v,
enum tscope_info { TSCOPE_INFOS(X) };
#undef X

#define X(NAME, name, id, retention, doc) TSCOPE_REC_##NAME = id,
enum tscope_record_type { TSCOPE_RECORDS(X) };
#undef X

/* words counts 8-byte units including this header; 0 ends a chunk's records. */
struct tscope_record {
  u8 type;
  u8 words;
  u16 tag;
  u32 time;
};

#define TSCOPE_FIELD_MEMBER(type, field, doc) type field;
#define X(NAME, name, id, retention, doc)                                                          \
  struct tscope_##name##_record {                                                                  \
    struct tscope_record header;                                                                   \
    TSCOPE_FIELDS_##NAME(TSCOPE_FIELD_MEMBER)                                                      \
  };                                                                                               \
  _Static_assert(sizeof(struct tscope_##name##_record) % 8 == 0, #NAME " is whole words");         \
  _Static_assert(sizeof(struct tscope_##name##_record) <= 8 * TSCOPE_MAX_RECORD_WORDS, #NAME);
TSCOPE_RECORDS(X)
#undef X

/* After a GRAPH_REPLAY: the first sequence numbers of its calls on one communicator. After a
 * GRAPH_CHILD the numbers are indices in the graph that contains it. */
struct tscope_graph_comm {
  u32 comm;
  u32 first_collective; /* seq of the graph's collective 0 on this communicator in this replay */
  u32 first_transfer;   /* likewise for point-to-point calls */
  u32 reserved;
};
_Static_assert(sizeof(struct tscope_graph_comm) == 16, "graph comm");

/* After a COLLECTIVE_RUN in the replay of a graph: which kernel of the graph it was. */
struct tscope_graph_node {
  u64 node;  /* the GPU clock source's id, the same in each replay; 0 if unknown */
  u32 graph; /* the source's id of the launched graph, never 0 */
  u32 reserved;
};
_Static_assert(sizeof(struct tscope_graph_node) == 16, "graph node");

/* Sizes on disk, pinned: a change here is a new format version. */
_Static_assert(sizeof(struct tscope_record) == 8, "record header");
_Static_assert(sizeof(struct tscope_launch_record) == 16, "launch");
_Static_assert(sizeof(struct tscope_gpu_kernel_record) == 24, "gpu kernel");
_Static_assert(sizeof(struct tscope_collective_record) == 56, "collective");

/* `committed` is the one word by which records become visible: high 32 bits the number of records,
 * low 32 bits the number of bytes after this header that hold them. The writer stores it with
 * release order after the record's bytes; a reader reads nothing beyond it. A chunk with magic but
 * committed 0 is empty. When a ring chunk is recycled, committed is set to 0 before its records are
 * counted as lost, and before anything is written into it. */
struct tscope_chunk_header {
  u32 magic;
  u8 retention; /* enum tscope_retention */
  u8 clock;     /* enum tscope_chunk_clock */
  u16 header_bytes;
  u32 thread;   /* dense thread number */
  u32 sequence; /* order among this thread's chunks of this retention, from 0 */
  u64 base;     /* absolute time, the origin of the records' `time`, in chunk clock units */
  u64 committed;
  u64 generation; /* how often this chunk has been recycled */
  u32 reserved;
  u32 given_up_as;              /* enum tscope_loss: why it gave up records the last time */
  u64 given_up, given_up_empty; /* see tscope_given_up() */
};
_Static_assert(sizeof(struct tscope_chunk_header) == 64, "chunk header");

/* Records that a ring chunk has given up in all its uses, since version 1.2. The store to
 * `committed` that empties a chunk counts its records as well, wherever a kill comes. */
static inline u64 tscope_given_up(const struct tscope_chunk_header *chunk) {
  return chunk->committed ? chunk->given_up : chunk->given_up_empty;
}

/* First page of the file. Fixed facts are written before the file gets its final name; `chunks` and
 * the counters after it change during the run and are relaxed atomics. */
struct tscope_file_header {
  char magic[8];
  u16 version_major;
  u16 version_minor;
  u32 byte_order_mark;
  u32 header_bytes;
  u32 chunk_bytes;
  u32 tick_source; /* enum tscope_tick_source */
  u32 tick_shift;  /* chunk time units are ticks >> tick_shift */
  u64 tick_hz;     /* estimate at start; ANCHOR records refine it */
  u32 pid;
  u32 rank;       /* from the launcher's environment, TSCOPE_UNKNOWN_RANK if unknown */
  u32 world_size; /* likewise, 0 if unknown */
  u32 local_rank; /* likewise, TSCOPE_UNKNOWN_RANK if unknown */
  u64 start_ticks;
  u64 start_monotonic_ns;
  u64 start_realtime_ns;
  u64 features;           /* reserved for incompatible additions; a reader refuses unknown low 32 */
  char host[64];          /* NUL-terminated, cut if longer */
  char run[128];          /* run identity: equal for all processes of one run */
  u64 chunks;             /* chunks that exist in the file */
  u64 ring_cap_chunks;    /* ring chunks before recycling starts */
  u64 closed_realtime_ns; /* 0 until the process ended normally */
  u64 lost[16];           /* by enum tscope_loss */
  /* How the process ended, as far as known; 0 if unknown. A trace of an earlier version has no
   * `alive_ticks`. */
  u64 alive_ticks;   /* the last time it was alive; updated TSCOPE_TICKS_PER_S times a second */
  u64 end_ticks;     /* it began to end */
  u32 end_kind;      /* enum tscope_end */
  i32 end_status;    /* as given to exit() or _exit() */
  u32 reaped_signal; /* the signal that ended it, as its launcher saw; also 0 if none */
  u32 carried;       /* 1: what was recorded reaches the file up to 100 ms later */
  u64 reaped_realtime_ns;
  u64 oom_kills_at_start;  /* processes killed in its cgroup because of memory; UINT64_MAX: unknown
                            */
  u64 oom_kills;           /* the same, at the last look */
  u64 exception_ticks;     /* when Python wrote the exception */
  char memory_events[256]; /* the file that counts those kills */
  char exception[512];     /* the last one that Python wrote to standard error: "Type: message";
                              exception_links.def */
  char exception_place[512]; /* the last frame of its traceback in the user's own code, else the
                                last: "function\nline\nfile"; the begin of a long file is cut */
  u64 last_line_ticks; /* with a status that is not 0: when Python wrote the last line to standard
                        */
  char last_line[256]; /* error that is no traceback, and that line */
  /* Since 1.2: losses that are not of a whole chunk. With those that the chunks say, they are all
   * losses; lost[], which says why, is counted after both. A kill may come in between. */
  u64 lost_singly;
  u64 pid_namespace; /* since 1.3: in which the process has that pid; the inode of
                        /proc/self/ns/pid, 0 if unknown */
};
_Static_assert(sizeof(struct tscope_file_header) <= TSCOPE_HEADER_BYTES, "one page");
_Static_assert(TSCOPE_LOSS_REASONS <= 16, "loss counters fit");
