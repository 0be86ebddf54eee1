/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the stand-in CUPTI. STANDIN_CUDA_MAJOR (12 or 13) says whose record
 * layouts are spoken.
 */
#ifndef STANDIN_CUPTI_H
#define STANDIN_CUPTI_H

#include "../gpu/clock.h"
#include "../gpu/order.h"

#pragma GCC visibility push(default)
#include <cupti.h>
#pragma GCC visibility pop

#if STANDIN_CUDA_MAJOR == 12
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 memcpy_record;
typedef CUpti_ActivitySynchronization wait_record;
typedef CUpti_ActivityCudaEvent event_record;
#else
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 memcpy_record;
typedef CUpti_ActivitySynchronization2 wait_record;
typedef CUpti_ActivityCudaEvent2 event_record;
#endif

struct standin_record {
  union {
    CUpti_Activity any;
    kernel_record kernel;
    memcpy_record copy;
    CUpti_ActivityMemset4 fill;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivityGraphTrace2 graph;
    CUpti_ActivityOverhead2 overhead;
    wait_record wait;
    event_record event;
  };
};

/* How the simulator's clock reads on the client's. */
struct clock_map {
  int64_t raw, client;
  double slope;
};

void record_memset(struct standin_record *record, const struct sim_op *op);
size_t record_bytes(CUpti_ActivityKind kind);
void record_on_client_clock(struct standin_record *record, const struct clock_map *map);
/* On CLOCK_REALTIME, whatever clock the client has. */
void record_on_usual_clock(struct standin_record *record);

/* Whether each thread that launches work fills buffers of its own. */
bool activity_buffers_are_per_thread(void);

/* How many kernels at the start of a session are told on another clock than the client's. */
size_t clock_misses(void);

/* All that clients asked for is undone. */
void activity_forget(void);

/* Looks at both clocks again. Not while the engine's lock is held. */
struct clock_map clock_map_now(void);

#endif
