/* SPDX-License-Identifier: MIT
 *
 * Where the times at which the GPU really worked come from. The first source that works is opened
 * before the first call that gives the GPU work, and is polled from tscope's poller thread.
 * gpu_clock.c has the sources in the order in which they are tried, and says when none may be used.
 * It writes a GPU_CLOCK record at every change: from a record that names a source until the next
 * that does not, all work launched is seen by that source; otherwise only the host side is
 * recorded.
 */
#pragma once

#include "record/atomics.h"
#include "record/families.h"

/* Running totals of a source. */
struct gpu_clock_counts {
  u64 seen;    /* spans recorded */
  u64 dropped; /* records that the source lost, or for which there was no room */
  u64 invalid; /* thrown away because they cannot be true */
};

static inline void gpu_clock_dropped(struct gpu_clock_counts *totals, u64 more) {
  tscope_atomic_add(&totals->dropped, more);
  tscope_count_lost(TSCOPE_LOSS_GPU, more);
}

struct gpu_clock_source {
  enum tscope_gpu_clock id;
  /* Starts it. On failure says why and leaves nothing behind. */
  bool (*open)(char *why, size_t why_bytes);
  /* Makes it deliver what it has, every few ticks. May block; called with no lock held. */
  void (*poll)(struct tscope_thread *thread);
  u32 ticks_per_poll;
  /* Pauses measuring, or continues; NULL if it cannot. */
  void (*pause)(bool pause);
  /* Delivers everything and restores the state from before; at the end of the process it does not
   * restore, because that is not worth the risk. None of its functions is called after that. */
  void (*close)(bool process_ends);
  /* Why it does not work any more; returns NULL while it works. The function may be NULL. */
  const char *(*failed)(void);
  /* The source's id for a stream, TSCOPE_UNKNOWN if it does not know. May be NULL. */
  u32 (*stream_id)(void *stream, bool per_thread);
  /* Likewise for an executable graph. */
  u32 (*graph_id)(void *executable);
  const struct gpu_clock_counts *totals;
};

extern const struct gpu_clock_source gpu_clock_cupti;  /* every kernel, copy and fill */
extern const struct gpu_clock_source gpu_clock_events; /* collectives, and a sample of GEMMs */

/* How long CUPTI may report no work at all before it is given up; and how long it may hold back
 * completed work, because other work runs, before it is forced to deliver. Nanoseconds. Tests use
 * shorter times. */
extern struct gpu_clock_timeouts { u64 silence_ns, held_back_ns; } gpu_clock_timeouts;

enum gpu_span_kind { GPU_SPAN_KERNEL, GPU_SPAN_MEMCPY, GPU_SPAN_MEMSET };

/* One piece of work on the GPU. Times are nanoseconds of CLOCK_MONOTONIC. */
struct gpu_span {
  enum gpu_span_kind kind;
  u64 start;
  u64 end;
  u32 device;
  u32 stream; /* the source's id */
  u32 correlation;
  u32 graph;               /* the source's id of the graph in whose replay it was, 0 if in none */
  u64 node;                /* of a kernel there: its node in the graph, 0 if not known */
  u64 bytes;               /* of a copy or fill */
  enum tscope_memcpy copy; /* direction of a copy */
  const char *name;        /* of a kernel, mangled; NULL if not known */
};

/* Records a span. The caller has checked that it ended after it began. */
void gpu_span_record(struct tscope_thread *thread, const struct gpu_span *span);

/* Whether a kernel of this mangled name is the work of a collective library. */
bool gpu_kernel_is_collective(const char *name);

/* A kernel was launched in this process: so a source that reports no work is broken. */
extern bool gpu_clock_kernels_launched;

/* Opens the first source that works, the first time it is called. */
extern u32 gpu_clock_tried;
TSCOPE_NOINLINE void gpu_clock_start(struct tscope_thread *thread);

static inline void gpu_clock_start_once(struct tscope_thread *thread) {
  if (TSCOPE_UNLIKELY(!__atomic_load_n(&gpu_clock_tried, __ATOMIC_RELAXED)))
    gpu_clock_start(thread);
}

/* Called at the start of every hook of hooks/wrapper.h: a call that only a training process makes
 * gives the GPU work, or soon will. */
#define TSCOPE_BEFORE_CALL(wakes)                                                                  \
  ((int)(wakes) == (int)TSCOPE_WAKES ? gpu_clock_start_once(thread) : (void)0)

/* The driver works in this process: registers the function that closes the source at exit. Call
 * once.
 */
void gpu_clock_register_close(void);

/* Allows one change of source at a time, and none while another client of CUPTI starts. False, with
 * nothing to unlock, if the calling thread already has the lock or could not get it in two
 * seconds. */
bool gpu_clock_lock(void);
void gpu_clock_unlock(bool locked);

/* Closes CUPTI because another client needs it; `for_good` also prevents opening it again. The
 * pointer `why` is kept. Called from any thread, also of a dormant process. */
void gpu_clock_release_cupti(const char *why, bool for_good);

/* Whether this source is the one that is open. */
bool gpu_clock_is_open(const struct gpu_clock_source *which);

/* Opens a source again if no other client needs CUPTI any more. Called by the poller. */
void gpu_clock_reopen(struct tscope_thread *thread);

/* Pauses the source, or lets it work again: see gpu_steps.h. */
void gpu_clock_pause(struct tscope_thread *thread, bool pause);

/* The open source's id for a stream of the calling thread's context, TSCOPE_UNKNOWN if there is no
 * source or it does not know. */
u32 gpu_clock_stream_id(void *stream, bool per_thread);

/* Likewise for an executable graph. */
u32 gpu_clock_graph_id(void *executable);
