/* SPDX-License-Identifier: MIT
 *
 * The closed-form schedule of tracegen: one function per flavour walks a rank through a step. The
 * first walk has no emitter and computes the arrival of all ranks; the second has one.
 */
#pragma once

#include "tracegen.h"

#define TRACEGEN_CALL_NS 8000u /* time of a collective call or a copy call */
#define TRACEGEN_SYNC_NS 3000u /* from the end of GPU work to the host's return from a sync */
#define TRACEGEN_START_NS 10000000000ull

enum tracegen_lane { LANE_HOST, LANE_COMPUTE, LANE_COMM };

/* Gets all events, in true time. Any member may be NULL. */
struct emitter {
  void *user;
  void (*step)(void *user, u32 step, u64 at);
  void (*phase)(void *user, enum tscope_phase phase, u64 start, u64 end);
  void (*copy)(void *user, u64 call, u64 call_end, u64 start, u64 end);
  void (*kernel)(void *user, u32 which, u64 call, u64 call_end, u64 start, u64 end);
  void (*order)(void *user, u32 from_stream, u32 to_stream, u64 at);
  void (*collective)(void *user, u32 bucket, u64 call, u64 call_end, u64 start, u64 end);
  void (*sync)(void *user, u64 start, u64 end);
  void (*asleep)(void *user, u64 start, u64 end);
  void (*wait)(void *user, u32 bucket, u64 start, u64 end);
};

/* Times up to which a rank has been walked: true time, nanoseconds. */
struct tracegen_progress {
  u64 host, gpu_free, comm_free;
};

/* Walks one rank through one step and returns its progress at the begin of the next. `ends` are the
 * ends of this step's collectives on this rank; it is NULL on the first walk, which only sets
 * `ready`: when the rank could start each of them. `before` is the end, on the GPU, of the step
 * that the host waits for first; 0 for none. */
struct tracegen_progress tracegen_walk(const struct tracegen_options *options, u32 rank, u32 step,
                                       struct tracegen_progress progress, u64 before, u64 *ready,
                                       const u64 *ends, const struct emitter *emitter);

/* Which communicator a rank is in, how many there are, and its host counted from the last. */
u32 tracegen_island(const struct tracegen_options *options, u32 rank);
u32 tracegen_islands(const struct tracegen_options *options);
u32 tracegen_host_from_last(const struct tracegen_options *options, u32 rank);

/* The elements of a bucket's all-reduce, and its time after all ranks have arrived. */
u64 tracegen_bucket_count(const struct tracegen_options *options, u32 bucket);
u64 tracegen_bucket_transfer(const struct tracegen_options *options, u32 bucket);
