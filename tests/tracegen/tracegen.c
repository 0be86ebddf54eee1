/* SPDX-License-Identifier: MIT */
#include "tracegen.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rank_file.h"
#include "schedule.h"

#define CLOCK_BASE_NS 1000000000000ull

struct tracegen_options tracegen_defaults(void) {
  return (struct tracegen_options){.directory = "tscope",
                                   .run = "synthetic",
                                   .flavour = TRACEGEN_NCCL,
                                   .ranks = 4,
                                   .steps = 20,
                                   .buckets = 4,
                                   .kernels = 5,
                                   .gpu_spans = true,
                                   .slow_rank = TSCOPE_UNKNOWN_RANK,
                                   .slow_ranks = 1,
                                   .unmarked_rank = TSCOPE_UNKNOWN_RANK,
                                   .hang_rank = TSCOPE_UNKNOWN_RANK,
                                   .slow_factor = 1.3,
                                   .slow_share = 1,
                                   .islands = 1,
                                   .ranks_per_host = 8,
                                   .cut_rank = TSCOPE_UNKNOWN_RANK,
                                   .start_realtime_ns = 1700000000000000000ull,
                                   .data_ns = 300000,
                                   .copy_ns = 50000,
                                   .kernel_ns = 60000,
                                   .transfer_ns = 400000,
                                   .optimizer_ns = 200000,
                                   .launch_ns = 5000,
                                   .drift_ppm = 50,
                                   .jitter_ns = 20000,
                                   .end_noise_ns = 3000};
}

u64 tracegen_clock(const struct tracegen_rank *rank, u64 true_ns) {
  double drift = rank->drift_ppm * 1e-6 * (double)true_ns;
  return (u64)((i64)(CLOCK_BASE_NS + true_ns) + rank->offset_ns + (i64)llrint(drift));
}

static void set_clocks(const struct tracegen_options *options, struct tracegen_truth *truth) {
  for (u32 r = 0; r < options->ranks && (options->skew || options->skew_hosts); r++) {
    u32 clock = options->skew ? r : r / options->ranks_per_host;
    truth->ranks[r].offset_ns = ((i64)(clock * 7919 % 13) - 6) * 500000000;
    truth->ranks[r].drift_ppm = ((int)(clock * 31 % 11) - 5) * (options->drift_ppm / 5.0);
  }
}

/* Computes the ends of a step's collectives: end = last arrival + transfer. A rank does not arrive
 * before its previous collective has ended. */
static void end_collectives(const struct tracegen_options *options, u32 step, const u64 *ready,
                            struct tracegen_truth *truth) {
  u32 islands = tracegen_islands(options);
  for (u32 b = 0; b < options->buckets; b++) {
    size_t first = ((size_t)step * options->buckets + b) * islands;
    for (u32 r = 0; r < options->ranks; r++) {
      size_t at = first + tracegen_island(options, r);
      u64 free_at = b == 0 ? 0
                           : truth->collective_end[at - islands] +
                                 tracegen_end_noise(options, r, step, b - 1);
      u64 arrival = ready[(size_t)r * options->buckets + b];
      arrival = MAX(arrival, free_at);
      u64 *last = &truth->collective_start[at];
      *last = arrival > *last ? arrival : *last;
    }
    for (u32 island = 0; island < islands; island++)
      truth->collective_end[first + island] =
          truth->collective_start[first + island] + tracegen_bucket_transfer(options, b);
  }
}

static void ends_on_rank(const struct tracegen_options *options, const struct tracegen_truth *truth,
                         u32 rank, u32 step, u64 *ends) {
  for (u32 b = 0; b < options->buckets; b++) {
    size_t at = ((size_t)step * options->buckets + b) * tracegen_islands(options) +
                tracegen_island(options, rank);
    ends[b] = truth->collective_end[at] + tracegen_end_noise(options, rank, step, b);
  }
}

/* The end, on the GPU, of the step that the host waits for before it begins this one; 0 for none.
 */
static u64 wait_end(const struct tracegen_options *options, const struct tracegen_truth *truth,
                    u32 rank, u32 step) {
  bool waits = options->ahead && step >= options->ahead;
  return waits ? truth->gpu_end[(size_t)(step - options->ahead) * options->ranks + rank] : 0;
}

/* Computes the whole schedule: the begin of every step on every rank, and the end of every
 * collective. */
static int make_schedule(const struct tracegen_options *options, struct tracegen_truth *truth) {
  size_t buckets = options->buckets;
  u64 *ready = calloc(options->ranks * buckets, sizeof(*ready));
  u64 *ends = calloc(buckets, sizeof(*ends)), *scratch = calloc(buckets, sizeof(*scratch));
  struct tracegen_progress *progresses = calloc(options->ranks, sizeof(*progresses));
  int result = ready && ends && scratch && progresses ? 0 : -ENOMEM;
  for (u32 r = 0; r < options->ranks && result == 0; r++)
    progresses[r].host = truth->step_begin[r] = TRACEGEN_START_NS;
  for (u32 s = 0; s < options->steps && result == 0; s++) {
    u64 *next = truth->step_begin + (size_t)(s + 1) * options->ranks;
    for (u32 r = 0; r < options->ranks; r++)
      tracegen_walk(options, r, s, progresses[r], wait_end(options, truth, r, s),
                    ready + r * buckets, NULL, NULL);
    end_collectives(options, s, ready, truth);
    for (u32 r = 0; r < options->ranks; r++) {
      ends_on_rank(options, truth, r, s, ends);
      progresses[r] = tracegen_walk(options, r, s, progresses[r], wait_end(options, truth, r, s),
                                    scratch, ends, NULL);
      next[r] = progresses[r].host;
      truth->gpu_end[(size_t)s * options->ranks + r] = progresses[r].gpu_free;
    }
  }
  free(ready);
  free(ends);
  free(scratch);
  free(progresses);
  return result;
}

static int write_rank(const struct tracegen_options *options, struct tracegen_truth *truth,
                      u32 rank, const char *folder) {
  u64 *ends = calloc(options->buckets, sizeof(*ends));
  u64 *ready = calloc(options->buckets, sizeof(*ready));
  struct rank_file *file = rank_file_new(options, &truth->ranks[rank], rank);
  struct tracegen_progress progress = {.host = TRACEGEN_START_NS};
  int result = ends && ready && file ? 0 : -ENOMEM;
  for (u32 s = 0; s < options->steps && result == 0; s++) {
    const u64 *last_start =
        truth->collective_start + (size_t)s * options->buckets * tracegen_islands(options);
    ends_on_rank(options, truth, rank, s, ends);
    rank_file_step(file, last_start);
    progress = tracegen_walk(options, rank, s, progress, wait_end(options, truth, rank, s), ready,
                             ends, rank_file_emitter(file));
  }
  if (result == 0)
    result = rank_file_save(file, folder, MAX(progress.host, progress.gpu_free));
  rank_file_free(file);
  free(ends);
  free(ready);
  return result;
}

static int write_truth(const struct tracegen_options *options, const struct tracegen_truth *truth) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s.truth.json", options->directory, options->run);
  FILE *out = fopen(path, "w");
  if (!out)
    return -errno;
  fprintf(out, "{\n\"run\": \"%s\", \"ranks\": %u, \"steps\": %u, \"buckets\": %u,\n", options->run,
          options->ranks, options->steps, options->buckets);
  const u64 *begin = truth->step_begin;
  fprintf(out, "\"mean_step_ms\": %.6f,\n",
          (double)(begin[(size_t)options->steps * options->ranks] - begin[0]) / 1e6 /
              options->steps);
  fputs("\"per_rank\": [", out);
  for (u32 r = 0; r < options->ranks; r++) {
    const struct tracegen_rank *rank = &truth->ranks[r];
    double per_step = 1e6 * options->steps;
    fprintf(out,
            "%s\n{\"rank\": %u, \"offset_ns\": %lld, \"drift_ppm\": %.1f, \"events\": %llu, "
            "\"compute_ms\": %.6f, \"comm_ms\": %.6f, \"exposed_ms\": %.6f, \"wait_ms\": %.6f}",
            r ? "," : "", r, (long long)rank->offset_ns, rank->drift_ppm,
            (unsigned long long)rank->events, (double)rank->compute_ns / per_step,
            (double)rank->comm_ns / per_step, (double)rank->exposed_ns / per_step,
            (double)rank->wait_ns / per_step);
  }
  fputs("\n]}\n", out);
  return fclose(out) == 0 ? 0 : -errno;
}

static int make_folder(const char *path) {
  return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

int tracegen_write(const struct tracegen_options *options, struct tracegen_truth *truth) {
  size_t collectives = (size_t)options->steps * options->buckets * tracegen_islands(options);
  *truth = (struct tracegen_truth){
      .ranks = calloc(options->ranks, sizeof(*truth->ranks)),
      .step_begin = calloc((options->steps + 1) * (size_t)options->ranks, sizeof(u64)),
      .gpu_end = calloc(options->steps * (size_t)options->ranks + 1, sizeof(u64)),
      .collective_end = calloc(collectives + 1, sizeof(u64)),
      .collective_start = calloc(collectives + 1, sizeof(u64))};
  if (!truth->ranks || !truth->step_begin || !truth->gpu_end || !truth->collective_end ||
      !truth->collective_start)
    return -ENOMEM;
  set_clocks(options, truth);
  char folder[4096];
  snprintf(folder, sizeof(folder), "%s/%s", options->directory, options->run);
  int result = make_folder(options->directory);
  if (result == 0)
    result = make_folder(folder);
  if (result == 0)
    result = make_schedule(options, truth);
  for (u32 r = 0; r + options->lost_ranks < options->ranks && result == 0; r++)
    result = write_rank(options, truth, r, folder);
  return result == 0 ? write_truth(options, truth) : result;
}

void tracegen_truth_free(struct tracegen_truth *truth) {
  free(truth->ranks);
  free(truth->step_begin);
  free(truth->gpu_end);
  free(truth->collective_end);
  free(truth->collective_start);
  *truth = (struct tracegen_truth){0};
}
