/* SPDX-License-Identifier: MIT
 *
 * The timeline of one rank: each span of its host and its device, with the reasons for their order.
 */
#pragma once

#include <stdbool.h>

#include "base/intervals.h"

struct arena;
struct call_sites;    /* span_call_sites.h */
struct carrier;       /* base/carrier.h */
struct flight_record; /* flight_record.h */
struct gemms;         /* gemms.h */
struct model;
struct named_range; /* named_ranges.h */
struct timeline_source;

/* S(KIND, value, its word, how a span without a name is called). On the host: LAUNCH, any call that
 * puts work on a stream (kernel, memcpy, memset, graph); COLL_CALL, a collective call or the
 * outermost group end; SYNC, blocked on the GPU; COMM_WAIT, blocked on a collective (gloo, PyTorch
 * Work::wait); PHASE, a training phase, category = enum tscope_phase; OP, an operator of the
 * framework, or a call that puts nothing on the GPU. On the device (GPU stream, or a gloo worker
 * lane): MEMCPY, category = enum tscope_memcpy; COLLECTIVE, link = index into model.arrivals. */
#define TSCOPE_SPAN_KINDS(S)                                                                       \
  S(LAUNCH, 1, "launch", "launch")                                                                 \
  S(COLL_CALL, 2, "collCall", "collective call")                                                   \
  S(SYNC, 3, "sync", "synchronise")                                                                \
  S(COMM_WAIT, 4, "commWait", "wait for a collective")                                             \
  S(PHASE, 5, "phase", "phase")                                                                    \
  S(OP, 6, "op", "operator")                                                                       \
  S(KERNEL, 16, "kernel", "kernel of unknown name")                                                \
  S(MEMCPY, 17, "copy", "memory copy")                                                             \
  S(MEMSET, 18, "fill", "memory set")                                                              \
  S(COLLECTIVE, 19, "collective", "collective")

enum span_kind {
#define S(KIND, value, ...) SPAN_##KIND = value,
  TSCOPE_SPAN_KINDS(S)
#undef S
      SPAN_KINDS
};
extern const struct span_kind_words { const char *word, *nameless; } span_kinds[SPAN_KINDS];

#define SPAN_ON_DEVICE(kind) ((kind) >= SPAN_KERNEL)

struct span {
  i64 start, end;
  u32 name;   /* index for timeline_name(); 0 unknown */
  u32 link;   /* SPAN_LAUNCH/SPAN_COLL_CALL: the device span it caused; device span: the host span
                 that launched it; SPAN_COLLECTIVE: the arrival; INDEX_NONE if not known */
  u32 launch; /* device spans incl. SPAN_COLLECTIVE: host span that launched it, or INDEX_NONE */
  u16 lane;
  u8 kind;
  u8 category;
};

/* One span could not start (or a host wait could not end) before another ended; this is the reason.
 * The order within a lane is implied and not listed. */
enum edge_kind {
  EDGE_EVENT = 1, /* device -> device, through event record and stream wait */
  EDGE_SYNC,      /* device -> host sync or comm wait that it released */
};

struct edge {
  u32 from, to; /* spans */
  u8 kind;
};

/* A call on the host whose arithmetic is known: a GEMM, a launch whose grid and name show it, or
 * the launch of a graph into which GEMMs were captured. The kernels launched between its start and
 * its end do that arithmetic; of a graph, some of the kernels. */
struct arithmetic {
  i64 start, end;
  u64 flops; /* ARITHMETIC_UNKNOWN for a GEMM of unknown size, or a graph whose capture was not seen
              */
  u32 what;  /* index into struct gemms: the shape of a GEMM, the content of a
                graph; INDEX_NONE */
  u16 lane;
  bool estimate : 1; /* from the grid: see kernel_attention_flops() */
  bool captured : 1; /* went into a graph and ran nothing itself */
  bool replay : 1;   /* launch of a graph */
};

#define ARITHMETIC_UNKNOWN UINT64_MAX

/* Whether what its kernels do is known: all of `flops`. */
static inline bool arithmetic_is_known(const struct arithmetic *call) {
  return !call->captured && !call->replay && call->flops != ARITHMETIC_UNKNOWN;
}

struct lane {
  bool device;
  u32 id; /* thread number, or stream index */
  const char *name;
  i64 queued_until; /* if work of a stream starts earlier and its launch is not known, it was
                       launched before the recording began; 0: there is none */
};

static inline bool lane_was_queued(const struct lane *lane, const struct span *span) {
  return span->launch == INDEX_NONE && span->start < lane->queued_until;
}

/* One rank, decoded: spans sorted by (start, longer first). */
struct timeline {
  const struct timeline_source *source; /* whose internal this has */
  u32 rank;                             /* index into model.ranks */
  struct span *spans;
  u32 n_spans;
  float *bytes;       /* [n_spans] of memcpys and memsets, 0 unknown; NULL where no size is known */
  struct edge *edges; /* sorted by (to, from) */
  u32 n_edges;
  struct lane *lanes;
  u32 n_lanes;
  struct arithmetic *arithmetic; /* sorted by (lane, start); those of a lane do not overlap */
  u32 n_arithmetic;
  const struct gemms *gemms;           /* gemms.h; NULL where nothing is known */
  const struct call_sites *call_sites; /* span_call_sites.h; NULL where the trace has none */
  /* Unions over the rank, on the same axis. compute: GPU kernels that are not collectives; in a CPU
   * job, training phases without the time blocked in them, plus the time outside phases that the
   * thread computed according to its CPU clock. comm: collectives as they ran. memcpy: memcpys and
   * memsets on the GPU. If the trace does not show one of them, it is empty and its has_* is
   * false. */
  struct intervals compute, comm, memcpy;
  struct intervals capturing; /* the host puts its calls into a CUDA graph: nothing is launched */
  bool has_compute, has_comm, has_memcpy;
  bool on_gpu;
  bool has_cpu_times; /* of a CPU job: time in no phase and no call is divided into compute and
                         idle, by the threads' CPU clocks */
  u64 graph_launches,
      graph_launches_run,  /* replays of graphs; of which something was seen to run */
      graph_launches_open; /* of all: those with a part for which the GPU decides how often it runs
                            */
  i64 ring_begin;          /* ring records before this were overwritten in the ring */
  void *internal;
};

/* The source of timelines: the kind of input that has them, or a test. */
struct timeline_source {
  int (*load)(const struct model *model, u32 rank, struct timeline *timeline);
  void (*release)(struct timeline *timeline); /* NULL, as the next: there is nothing in them */
  const char *(*name)(const struct timeline *timeline, u32 name);

  /* What else the input provides; NULL if it does not. An int is 0, or negative errno. */

  /* Finds the host's pauses for input in the steps of one rank, if nothing names its phases: fills
   * the data phase in model.phases, and says whether there was any. */
  bool (*infer_input)(const struct model *model, u32 rank);
  /* See model_named_ranges() and model_traced_calls(). */
  int (*named_ranges)(const struct model *model, u32 rank, struct arena *arena,
                      struct named_range **ranges, u32 *n);
  const struct flight_record *(*flight)(const struct model *model, struct arena *arena);
  /* See model_found(). */
  bool (*found)(const struct model *model, u32 rank, bool settled, struct arena *arena,
                struct carrier *found);
  /* Only of a source that must first look for the file of each rank: why the last load() of this
   * one failed; NULL if it did not. */
  const char *(*unreachable)(const struct model *model, u32 rank);
};

/* Decodes one rank. Thread-safe for different timelines of one model. 0, or negative errno. */
int timeline_load(const struct model *model, u32 rank, struct timeline *timeline);
void timeline_release(struct timeline *timeline);
const char *timeline_name(const struct timeline *timeline, u32 name);

/* What the analyses found on a rank when it was reduced (import/summary), to be read in place of
 * its timeline; false: nothing. `settled`: only if it was found beside the ranks that are here.
 * What is read lives in `arena`. */
bool model_found(const struct model *model, u32 rank, bool settled, struct arena *arena,
                 struct carrier *found);
