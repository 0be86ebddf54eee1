/* SPDX-License-Identifier: MIT */
#include "schedule.h"

static u64 hash3(u64 a, u64 b, u64 c) {
  u64 x = a * 0x9e3779b97f4a7c15ull + b * 0xc2b2ae3d27d4eb4full + c * 0x165667b19e3779f9ull;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 29);
}

u32 tracegen_host_from_last(const struct tracegen_options *options, u32 rank) {
  return (options->ranks - 1) / options->ranks_per_host - rank / options->ranks_per_host;
}

u32 tracegen_islands(const struct tracegen_options *options) {
  return options->islands + options->lone_hosts;
}

u32 tracegen_island(const struct tracegen_options *options, u32 rank) {
  u32 host = tracegen_host_from_last(options, rank);
  return host < options->lone_hosts ? options->islands + host : rank % options->islands;
}

u64 tracegen_bucket_count(const struct tracegen_options *options, u32 bucket) {
  return bucket + 1 == options->buckets ? 1000000 : 4000000;
}

u64 tracegen_bucket_transfer(const struct tracegen_options *options, u32 bucket) {
  return bucket + 1 == options->buckets ? options->transfer_ns / 4 : options->transfer_ns;
}

u64 tracegen_end_noise(const struct tracegen_options *options, u32 rank, u32 step, u32 bucket) {
  u32 others = options->ranks > 1 ? options->ranks - 1 : 1;
  u64 pattern = (u64)(options->end_pattern * rank / others *
                      (double)tracegen_bucket_transfer(options, bucket));
  return pattern + (options->end_noise_ns ? hash3(rank, step, bucket) % options->end_noise_ns : 0);
}

static u64 kernel_time(const struct tracegen_options *options, u32 rank, u32 step) {
  bool slow = rank >= options->slow_rank && rank - options->slow_rank < options->slow_ranks &&
              (double)(hash3(step, 1, 0x510e) % 1000) < 1000 * options->slow_share;
  return slow ? (u64)((double)options->kernel_ns * options->slow_factor) : options->kernel_ns;
}

static u64 jitter(const struct tracegen_options *options, u32 rank, u32 step) {
  return options->jitter_ns ? hash3(rank, step, 0xabcd) % options->jitter_ns : 0;
}

struct walk {
  const struct tracegen_options *options;
  const struct emitter *emitter; /* NULL on the first walk */
  u32 rank, step;
  u64 host, gpu_free, comm_free;
};

#define EMIT(walk, what, ...)                                                                      \
  do {                                                                                             \
    if ((walk)->emitter && (walk)->emitter->what)                                                  \
      (walk)->emitter->what((walk)->emitter->user, __VA_ARGS__);                                   \
  } while (0)

static void launch(struct walk *walk, u32 which, u64 not_before, u64 duration) {
  u64 call = walk->host;
  walk->host += walk->options->launch_ns;
  u64 start = MAX(MAX(walk->host, walk->gpu_free), not_before);
  walk->gpu_free = start + duration;
  EMIT(walk, kernel, which, call, walk->host, start, walk->gpu_free);
}

static void load_batch(struct walk *walk) {
  walk->host += walk->options->data_ns;
  u64 call = walk->host;
  walk->host += TRACEGEN_CALL_NS;
  u64 start = MAX(walk->host, walk->gpu_free);
  walk->gpu_free = start + walk->options->copy_ns;
  EMIT(walk, copy, call, walk->host, start, walk->gpu_free);
}

static void all_reduce(struct walk *walk, u32 bucket, u64 *ready, const u64 *ends, bool on_gpu) {
  u64 call = walk->host;
  if (on_gpu)
    EMIT(walk, order, LANE_COMPUTE - 1, LANE_COMM - 1, call);
  walk->host += TRACEGEN_CALL_NS;
  ready[bucket] = on_gpu ? MAX(walk->host, walk->gpu_free) : walk->host;
  if (!ends)
    return;
  u64 start = MAX(ready[bucket], walk->comm_free);
  walk->comm_free = ends[bucket];
  EMIT(walk, collective, bucket, call, walk->host, start, ends[bucket]);
}

static void walk_nccl(struct walk *walk, u64 *ready, const u64 *ends) {
  const struct tracegen_options *options = walk->options;
  u64 begin = walk->host, duration = kernel_time(options, walk->rank, walk->step);
  load_batch(walk);
  u64 forward = walk->host;
  for (u32 k = 0; k < options->buckets * options->kernels; k++)
    launch(walk, k % 3, 0, duration + (k == 0 ? jitter(options, walk->rank, walk->step) : 0));
  u64 backward = walk->host;
  for (u32 bucket = 0; bucket < options->buckets; bucket++) {
    for (u32 k = 0; k < options->kernels; k++)
      launch(walk, 3 + k % 3, 0, duration);
    all_reduce(walk, bucket, ready, ends, true);
  }
  if (!ends)
    return;
  u64 optimizer = walk->host;
  EMIT(walk, order, LANE_COMM - 1, LANE_COMPUTE - 1, walk->host);
  launch(walk, 6, walk->comm_free, options->optimizer_ns);
  if (options->ahead == 0) {
    u64 sync = walk->host;
    walk->host = MAX(sync, walk->gpu_free) + TRACEGEN_SYNC_NS;
    EMIT(walk, sync, sync, walk->host);
  }
  EMIT(walk, phase, TSCOPE_PHASE_DATA, begin, begin + options->data_ns);
  EMIT(walk, phase, TSCOPE_PHASE_FORWARD, forward, backward);
  EMIT(walk, phase, TSCOPE_PHASE_BACKWARD, backward, optimizer);
  EMIT(walk, phase, TSCOPE_PHASE_OPTIMIZER, optimizer, walk->host);
}

static void walk_gloo(struct walk *walk, u64 *ready, const u64 *ends) {
  const struct tracegen_options *options = walk->options;
  u64 begin = walk->host, compute = options->kernels * kernel_time(options, walk->rank, walk->step);
  /* By turns it is another rank in each step, and for another time. */
  u32 turn = walk->step % options->ranks;
  bool does =
      options->unmarked_by_turns ? walk->rank == turn : walk->rank == options->unmarked_rank;
  u64 unmarked = does ? options->unmarked_ns * (options->unmarked_by_turns ? 1 + turn : 1) : 0;
  u64 forward = begin + options->data_ns + unmarked;
  if (unmarked && options->unmarked_asleep)
    EMIT(walk, asleep, begin + options->data_ns, forward);
  walk->host = forward + options->buckets * compute + jitter(options, walk->rank, walk->step);
  u64 backward = walk->host;
  for (u32 bucket = 0; bucket < options->buckets; bucket++) {
    walk->host += compute;
    all_reduce(walk, bucket, ready, ends, false);
  }
  if (!ends)
    return;
  if (walk->comm_free > walk->host) {
    EMIT(walk, wait, options->buckets - 1, walk->host, walk->comm_free);
    walk->host = walk->comm_free;
  }
  u64 optimizer = walk->host;
  walk->host += options->optimizer_ns;
  EMIT(walk, phase, TSCOPE_PHASE_DATA, begin, begin + options->data_ns);
  EMIT(walk, phase, TSCOPE_PHASE_FORWARD, forward, backward);
  EMIT(walk, phase, TSCOPE_PHASE_BACKWARD, backward, optimizer);
  EMIT(walk, phase, TSCOPE_PHASE_OPTIMIZER, optimizer, walk->host);
}

struct tracegen_progress tracegen_walk(const struct tracegen_options *options, u32 rank, u32 step,
                                       struct tracegen_progress progress, u64 before, u64 *ready,
                                       const u64 *ends, const struct emitter *emitter) {
  struct walk walk = {.options = options,
                      .emitter = emitter,
                      .rank = rank,
                      .step = step,
                      .host = progress.host,
                      .gpu_free = progress.gpu_free,
                      .comm_free = progress.comm_free};
  EMIT(&walk, step, step, progress.host);
  if (before)
    walk.host = MAX(walk.host, before + TRACEGEN_SYNC_NS);
  if (options->flavour == TRACEGEN_NCCL)
    walk_nccl(&walk, ready, ends);
  else
    walk_gloo(&walk, ready, ends);
  return (struct tracegen_progress){walk.host, walk.gpu_free, walk.comm_free};
}
