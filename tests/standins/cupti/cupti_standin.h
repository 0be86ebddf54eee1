/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the stand-in CUPTI. STANDIN_CUDA_MAJOR (12 or 13) selects the
 * layouts of the records.
 */
#pragma once

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
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 fill;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivityGraphTrace2 graph;
    CUpti_ActivityOverhead2 overhead;
    wait_record wait;
    event_record event;
  };
};

/* Converts the simulator's clock (raw) to the client's. */
struct clock_map {
  int64_t raw, client;
  double slope;
};

/* Sets the record's members, according to its kind. */
void record_set(struct standin_record *record, const struct sim_op *op);
size_t record_bytes(CUpti_ActivityKind kind);
/* Converts the record's times. */
void record_on_client_clock(struct standin_record *record, const struct clock_map *map);
/* Converts to CLOCK_REALTIME, whatever clock the client has. */
void record_on_realtime_clock(struct standin_record *record);

/* Whether a client has enabled the kind. For tests. */
__attribute__((visibility("default"))) bool standin_cupti_records(CUpti_ActivityKind kind);

/* Whether each thread that launches work has its own buffers. */
bool activity_buffers_are_per_thread(void);

/* How many kernels at the start of a session have times on another clock than the client's. */
size_t clock_misses(void);

/* Disables all kinds and drops the client's callbacks. */
void activity_reset(void);

/* Reads both clocks again. The caller must not hold the engine's lock. */
struct clock_map clock_map_now(void);
