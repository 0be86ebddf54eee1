/* SPDX-License-Identifier: MIT */
#include "example_results.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/building.h"

static void *keep(struct arena *arena, const void *from, size_t bytes) {
  void *copy = arena_alloc(arena, bytes);
  if (!copy)
    abort();
  memcpy(copy, from, bytes);
  return copy;
}

#define KEEP(arena, array) keep(arena, array, sizeof(array))

static struct results *begin(struct arena **arena, struct model **model) {
  *arena = calloc(1, sizeof(**arena));
  struct results *results = arena_alloc(*arena, sizeof(*results));
  *model = arena_alloc(*arena, sizeof(**model));
  results->internal = *arena;
  results->memory = memory_result_unknown();
  results->check = unknown_collective_check;
  results->memory.reason = "nothing says what was allocated";
  results->modules = module_result_unknown();
  results->gemms = unknown_gemms_result;
  results->gemms.reason = "no GEMM was seen";
  results->convergence = convergence_result_unknown();
  results->series = series_result_unknown();
  results->lines.stacks_rank = INDEX_NONE;
  results->run_end.ahead_s = results->run_end.followed = NAN;
  results->stalls.limit_s = results->stalls.recorded_s = results->stalls.past_known = NAN;
  results->model = *model;
  results->gpu_timeline =
      (struct gpu_timeline_result){INDEX_NONE, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
  results->launch = (struct launch_result){.kernels = NAN,
                                           .short_kernels = NAN,
                                           .short_ms = NAN,
                                           .delay_median_us = NAN,
                                           .delay_p95_us = NAN,
                                           .delay_max_us = NAN,
                                           .queue_mean = NAN,
                                           .queue_max = NAN,
                                           .queue_full_ms = NAN,
                                           .syncs = NAN,
                                           .sync_ms = NAN,
                                           .fill_count = NAN,
                                           .fill_ms = NAN,
                                           .recompute_ms = NAN};
  results->gpu_timeline_ranks = 0;
  results->gpu_timeline_seen = NAN;
  results->pipeline_stages = results->pipeline_micro_batches = results->pipeline_chunks = NAN;
  results->pipeline_bubble = results->pipeline_inherent = NAN;
  results->pipeline_excess = results->pipeline_excess_ms = NAN;
  results->pipeline_reason = "no messages between ranks were recorded";
  return results;
}

void example_free(struct results *results) {
  struct arena *arena = results->internal;
  arena_release(arena);
  free(arena);
}

static void add_ranks(struct arena *arena, struct model *model, u32 n, u32 per_host) {
  model->n_ranks = n;
  model->ranks = arena_array(arena, n, sizeof(*model->ranks));
  for (u32 i = 0; i < n; i++) {
    struct rank *rank = &model->ranks[i];
    *rank = (struct rank){.rank = i,
                          .local_rank = i % per_host,
                          .pid = 4000 + i,
                          .host = arena_printf(arena, "node%02u", i / per_host),
                          .closed = true,
                          .clock = {.domain = i / per_host,
                                    .aligned = model->clock_aligned,
                                    .error_us = !model->clock_aligned ? NAN
                                                : i < per_host        ? 0
                                                                      : 11.8},
                          .records = 310000,
                          .launches = 120000,
                          .gpu_kernels = 120000,
                          .collective_calls = 800,
                          .collective_runs = 800,
                          .gpu_clock = TSCOPE_GPU_CLOCK_CUPTI};
    rank->path = arena_printf(arena, "rank-%u.tscope", i);
  }
  model_number_hosts(model);
}

/* Every `period`th rank from `first` on computes a third longer and is last. */
static void add_rank_results(struct arena *arena, struct results *results, u32 first, u32 period) {
  const struct model *model = results->model;
  results->n_ranks = model->n_ranks;
  results->ranks = arena_array(arena, model->n_ranks, sizeof(*results->ranks));
  results->path_by_rank = arena_array(arena, model->n_ranks, sizeof(double));
  u32 n_slow = (model->n_ranks - first + period - 1) / period;
  for (u32 i = 0; i < model->n_ranks; i++) {
    bool slow = i >= first && (i - first) % period == 0;
    double wobble = (double)(i * 37 % 11) * 0.4;
    results->ranks[i] =
        (struct rank_result){.rank = i,
                             .host = model->ranks[i].host,
                             .mean_compute_ms = slow ? 291.4 : 221.3 + wobble,
                             .median_compute_ms = slow ? 290.8 : 220.9 + wobble,
                             .slowest_count = slow ? 107 : i % 4,
                             .slowest_fraction = slow ? 107 / 110.0 : i % 4 / 110.0,
                             .z = slow ? 17.44 : -5.2 + wobble,
                             .p_value = slow ? 3e-41 : 1,
                             .rel_slowdown = slow ? 0.316 : -0.004 + wobble / 200,
                             .imposed_wait_ms = slow ? 68.9 : 0.1 * wobble,
                             .late_a_step_ms = slow ? 68.9 : NAN,
                             .late_a_step_error_ms = slow ? 0.4 : NAN,
                             .late_more_ms = NAN,
                             .late_error_ms = NAN,
                             .late_every = NAN,
                             .longer_compute_steps = NAN,
                             .comm_ms = slow ? 62 : 131,
                             .exposed_ms = slow ? 11 : 80,
                             .exposed_wait_ms = slow ? 0.2 : 69.1,
                             .exposed_transfer_ms = 10.8,
                             .data_ms = 4.1,
                             .idle_ms = 6.2,
                             .straggler = slow,
                             .reason = slow ? STRAGGLER_SLOW_COMPUTE : STRAGGLER_NOT,
                             .collective = slow ? "all_reduce" : NULL,
                             .lateness_ms = slow ? 68.9 : NAN,
                             .lateness_error_ms = slow ? 0.4 : NAN};
    results->path_by_rank[i] = slow ? 292.1 / n_slow : 24.0 / (model->n_ranks - n_slow);
  }
}

/* If two findings would save the same time, the second gets only what the first leaves. */
static void share_out(struct arena *arena, struct results *results) {
  for (u32 i = 0; i < results->n_findings; i++) {
    results->findings[i].saving_added_s = results->findings[i].saving_s;
    results->findings[i].saving_low_s = 0.95 * results->findings[i].saving_s;
    results->findings[i].saving_high_s = 1.04 * results->findings[i].saving_s;
  }
  struct finding *last = &results->findings[results->n_findings - 1];
  last->saving_added_s = 0.89;
  last->overlaps = arena_array(arena, 1, sizeof(*last->overlaps));
  last->overlaps[last->n_overlaps++] = finding_id_words[results->findings[0].id];
}

static void add_steps(struct arena *arena, struct results *results, struct model *model, u32 n) {
  model->steps =
      (struct steps){.n = n, .warmup = 10, .method = "optimizer phases", .confidence = 1};
  results->n_step_ms = n;
  results->step_ms = arena_array(arena, n, sizeof(double));
  for (u32 i = 0; i < n; i++)
    results->step_ms[i] = i < 10    ? 900 - 50 * (double)i
                          : i == 77 ? 611.5
                                    : 311 + 3 * sin(i * 1.7) + (double)(i * 13 % 7);
}

static struct results *straggler_of(u32 ranks, u32 period) {
  struct arena *arena;
  struct model *model;
  struct results *results = begin(&arena, &model);
  model->run = "20261121-101500-node00-4000";
  model->command =
      "python -m torch.distributed.run --nproc-per-node 4 train.py --config gpt2-xl.yaml";
  model->world_size = ranks;
  model->begin = 0;
  model->end = 41200000000;
  model->clock_aligned = true;
  model->clock_method = "collective ends";
  model->clock_residual_us = 0.05;
  model->clock_between_us = 23.6;
  model->phases = arena_alloc(arena, sizeof(struct phase_times));
  model->phase_method = "PyTorch ranges";
  add_ranks(arena, model, ranks, ranks < 8 ? 2 : 8);
  add_rank_results(arena, results, 2, period);
  add_steps(arena, results, model, 120);

  results->events = 310000.0 * ranks;
  results->gpu_timing = "CUPTI activity";
  static const struct coverage coverage[] = {
      {"ranks", 1, NULL}, {"collective times", 1, NULL}, {"kernel times", 1, NULL}};
  results->coverage = KEEP(arena, coverage);
  results->n_coverage = LENGTH_OF(coverage);
  results->overhead_fraction = 0.0031;
  results->overhead_basis = "estimated; 300 small operators take 20 \u00b5s more on a test machine";
  results->overhead_helper_cpu_s = 0.41;
  results->overhead_ns_per_event = 41;
  results->overhead_startup_ms = 3.2;
  results->overhead_gpu_clock_ms = 11.4;
  results->trace_bytes = 7.6e6 * ranks;

  results->step_count = 110;
  results->training_steps = 100;
  results->warmup_excluded = 10;
  results->step_median_ms = 313.2;
  results->step_p95_ms = 318.4;
  results->step_mean_ms = 316.1;
  results->step_cv = 0.091;
  results->host_ahead_ms = 212.4;
  results->host_ahead_max_ms = 388.1;
  results->host_ahead_max_steps = 1;
  results->data_ms = 4.1;
  results->forward_ms = 88.2;
  results->backward_ms = 201.4;
  results->optimizer_ms = 14.8;
  results->comm_ms = 62.9;
  results->other_ms = 7.6;

  results->dist_steps = 110;
  results->comm_fraction = 0.36;
  results->imbalance_cv = 0.13;
  results->sync_skew_ms = 69.3;
  results->wall_frac_lost_to_imbalance = 0.163;

  results->ov_ranks = ranks;
  results->ov_steps = 110;
  results->ov_step_ms = 316.1;
  results->ov_compute_ms = 239.2;
  results->ov_comm_ms = 113.9;
  results->ov_overlapped_ms = 51;
  results->ov_exposed_ms = 62.9;
  results->ov_exposed_wait_ms = 51.9;
  results->ov_exposed_transfer_ms = 11;
  results->ov_exposed_late_ms = 51.2;
  results->ov_exposed_fraction = 62.9 / 113.9;
  results->ov_exposed_memcpy_ms = 1.2;
  results->ov_idle_ms = 12.8;
  results->wait_method = "aligned clocks";
  static const struct overlap_by_op by_op[] = {{"all_reduce", 112.4, 61.6, 51.1, 10.5},
                                               {"all_gather", 1.5, 1.3, 0.8, 0.5}};
  results->by_op = KEEP(arena, by_op);
  results->n_by_op = LENGTH_OF(by_op);
  static const struct collective_result collectives[] = {
      {"default_pg", "all_reduce", 660, 26214400, 41.2, 61.8, 7.9, 0.636, "RING", "SIMPLE", 24, 0,
       INDEX_NONE, INDEX_NONE, .sizes = 1},
      {"default_pg", "all_reduce", 110, 9830400, 33.1, 49.7, 4.2, 0.297, "RING/TREE", "LL128", 24,
       0, INDEX_NONE, INDEX_NONE, .sizes = 1},
      {"default_pg", "all_gather", 110, 65536, 1.9, 1.43, 0.8, 0.034, "RING", "LL", 16, 0,
       INDEX_NONE, INDEX_NONE, .sizes = 1},
      {"f3a91c (4 ranks)", "broadcast", 2, 4096, NAN, NAN, NAN, NAN, NULL, NULL, NAN, 0, INDEX_NONE,
       INDEX_NONE, .sizes = 1},
  };
  results->collectives = KEEP(arena, collectives);
  results->n_collectives = LENGTH_OF(collectives);

  static const struct kernel_category_result kinds[] = {
      {"GEMM", 105600, 61640, 0.529, KERNEL_GEMM},
      {"communication", 3520, 50116, 0.43, KERNEL_COMMUNICATION},
      {"elementwise", 88000, 4260, 0.037, KERNEL_ELEMENTWISE},
      {"memcpy", 440, 528, 0.0045, KERNEL_MEMCPY}};
  results->kernel_categories = KEEP(arena, kinds);
  results->n_kernel_categories = LENGTH_OF(kinds);
  static const struct kernel_result kernels[] = {
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication", 3520, 50116, 14.24, 80.1, 0.43},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
       "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "GEMM",
       52800, 41640, 0.789, 2.1, 0.357},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
       "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
       "vectorized_elementwise_kernel<CUDAFunctor_add<float>>", "elementwise", 44000, 2130, 0.0484,
       0.31, 0.0183}};
  results->kernels = KEEP(arena, kernels);
  results->n_kernels = LENGTH_OF(kernels);
  results->kernel_names = 61;
  results->kernels_seen = 1;
  results->kernels_ranks = ranks;

  results->path_length_ms = 316.1;
  results->path_steps_used = 32;
  results->path_selfcheck = 0.0004;
  static const struct share categories[] = {{"compute", 281.2}, {"transfer", 13.1}, {"copy", 1.2},
                                            {"launch", 11.6},   {"input", 4.1},     {"other", 4.9}};
  results->path_by_category = KEEP(arena, categories);
  results->n_path_by_category = LENGTH_OF(categories);
  const struct what_if what_if[] = {{.change = arena_text(arena, "rank 2 as fast as its peers"),
                                     .step_ms = 247.3,
                                     .saving_fraction = 0.2177,
                                     .saving_low = 0.2102,
                                     .saving_high = 0.2251,
                                     .rank = 2},
                                    {.change = arena_text(arena, "communication takes no time"),
                                     .step_ms = 303,
                                     .saving_fraction = 0.0414,
                                     .saving_low = 0.0398,
                                     .saving_high = 0.0431,
                                     .rank = -1},
                                    {.change = arena_text(arena, "no launch gaps"),
                                     .step_ms = 304.5,
                                     .saving_fraction = 0.0367,
                                     .saving_low = 0.0351,
                                     .saving_high = 0.0379,
                                     .rank = -1}};
  results->what_if = KEEP(arena, what_if);
  results->n_what_if = LENGTH_OF(what_if);

  results->wall_s = results->analysed_s = 34.77;
  static const struct budget_line budget[] = {{BUDGET_COMPUTE, 26.312, 0.7567, NAN},
                                              {BUDGET_RANKS, 5.709, 0.1642, 5.709},
                                              {BUDGET_COMMUNICATION, 1.21, 0.0348, 1.21},
                                              {BUDGET_MEMCPYS, 0.132, 0.0038, 0.132},
                                              {BUDGET_LAUNCH_AND_IDLE, 1.407, 0.0405, 1.407}};
  results->budget = KEEP(arena, budget);
  results->n_budget = LENGTH_OF(budget);
  results->residual_s = 0;
  results->mfu = results->hfu = results->flops_per_step = results->peak_flops = NAN;
  results->mfu_reason = "FLOPs per step not given: --flops-per-step, or --params and "
                        "--tokens-per-step";
  results->hfu_reason = "no GEMM was recorded: cuBLAS was not called, or not through its "
                        "library's symbols";
  results->hfu_coverage = results->hfu_attention = results->hfu_attention_coverage = NAN;
  results->gemm_flops = NAN;

  u32 *slow = arena_array(arena, ranks, sizeof(u32)), n_slow = 0;
  for (u32 i = 0; i < ranks; i++)
    if (results->ranks[i].straggler)
      slow[n_slow++] = i;
  const struct finding findings[] = {
      {.id = FINDING_DIST_STRAGGLER,
       .severity = SEVERITY_CRITICAL,
       .saving_s = 7.57,
       .title = arena_text(arena, "Rank 2 on node01 is slow (slow compute): its peers wait for it"),
       .evidence =
           arena_text(arena, "last in 107 of 110 steps (chance: 27.5, p < 1e-12); its compute "
                             "takes 291 ms a step, 32 % more than its peers'; they wait 68.9 ms "
                             "a step in all_reduce"),
       .action =
           arena_text(arena, "Compare clocks, temperature and other processes on node01 with its "
                             "peers; if they are alike, rank 2 has more work than its peers."),
       .ranks = slow,
       .n_ranks = n_slow},
      {.id = FINDING_TIMING_JITTER,
       .severity = SEVERITY_WARNING,
       .saving_s = 0.298,
       .title = arena_text(arena, "One step took much longer than the typical one"),
       .evidence = arena_text(arena, "Step 77 took 612 ms against a median of 313 ms."),
       .action =
           arena_text(arena, "Look at what else happens in step 77: checkpoint, evaluation.")},
      {.id = FINDING_EFFICIENCY_RECOVERABLE,
       .severity = SEVERITY_INFO,
       .saving_s = 8.46,
       .title = arena_text(arena, "24 % of the time is not compute"),
       .evidence = arena_text(arena, "8.46 s of 34.8 s went to waiting, transfers and idle time."),
       .action = arena_text(arena, "Work down the budget, largest line first.")}};
  results->findings = KEEP(arena, findings);
  results->n_findings = LENGTH_OF(findings);
  share_out(arena, results);
  results->verdict = REPORT_CRITICAL;
  return results;
}

static struct results *straggler(void) {
  return straggler_of(4, 1000000);
}
static struct results *thousand(void) {
  return straggler_of(1000, 400);
}

/* The GEMMs of a job without CUPTI: bf16, and some still in fp32. */
static struct gemms_result sampled_gemms(struct arena *arena) {
  static const struct gemm_row rows[] = {
      {"4096 x 8192 x 4096", 1, "bfloat16", "bf16/fp16", 96, 661, 451, 1.2, 43.3, 0.62, 609, 0.616},
      {"4096 x 4096 x 11008", 1, "bfloat16", "bf16/fp16", 32, 220, 604, 2.1, 19.3, 0.276, 611,
       0.618},
      {"2048 x 128 x 2048", 32, "bfloat16", "bf16/fp16", 64, 441, 88.2, 0.9, 5.64, 0.081, 389,
       0.393},
      {"4096 x 64 x 4096", 1, "float32", "fp32", 4, 27, 411, 9, 1.64, 0.023, 5.2, 0.078}};
  static const struct precision_row precisions[] = {
      {"bf16/fp16", 5.58e14, 0.9965, 989, 0.446, 68.2, 600, 0.607},
      {"fp32", 1.96e12, 0.0035, 67, 0.002, 1.64, 5.2, 0.078}};
  struct gemms_result gemms = {.how = "pairs of events around a sample",
                               .sampled = true,
                               .one_in = 16,
                               .calls = 21560,
                               .timed = 1349,
                               .ms = 69.9,
                               .ms_error = 0.151,
                               .covered = 0.998,
                               .bounded = 0.004,
                               .tflops = 586,
                               .tflops_error = 1.3,
                               .shapes = 9,
                               .rows = KEEP(arena, rows),
                               .n_rows = LENGTH_OF(rows),
                               .precisions = KEEP(arena, precisions),
                               .n_precisions = LENGTH_OF(precisions)};
  return gemms;
}

/* The same job without problems, and with known arithmetic. */
static struct results *healthy(void) {
  struct results *results = straggler_of(4, 1000000);
  struct rank_result *two = &results->ranks[2];
  *two = results->ranks[1];
  two->rank = 2;
  two->host = results->model->ranks[2].host;
  results->n_findings = 0;
  results->verdict = REPORT_OK;
  results->wall_frac_lost_to_imbalance = 0.004;
  results->imbalance_cv = 0.006;
  results->sync_skew_ms = 0.9;
  results->flops_per_step = 5.2e14;
  results->peak_flops = 4 * 989e12;
  results->mfu = 0.416;
  results->mfu_reason = NULL;
  results->hfu = 0.448;
  results->hfu_reason = NULL;
  results->hfu_note = "12 GEMMs of unknown size are not counted";
  results->hfu_coverage = 0.71;
  results->hfu_attention = 0.031;
  results->hfu_attention_coverage = 0.12;
  results->gemm_flops = 5.6e14;
  results->peak_precision = "bf16/fp16";
  results->gemms = sampled_gemms((struct arena *)results->internal);
  results->what_if[0].rank = -1;
  results->what_if[0].change = "every rank as fast as the median";
  results->what_if[0].saving_fraction = 0.0002;
  results->what_if[0].step_ms = 316;
  return results;
}

/* Only the host calls of one rank of eight. */
static struct results *unknown(void) {
  struct arena *arena;
  struct model *model;
  struct results *results = begin(&arena, &model);
  model->run = "job-77";
  model->world_size = 8;
  model->begin = model->end = NS_UNKNOWN;
  model->clock_method = "refused: ranks 0 and 1 have no collective in common";
  model->clock_residual_us = NAN;
  model->steps = (struct steps){.method = "none", .confidence = NAN};
  add_ranks(arena, model, 2, 1);
  model->ranks[1].damage = "cut at byte 73,216: the rest of the file is missing";
  model->ranks[1].closed = false;
  model->ranks[1].lost[TSCOPE_LOSS_DISK] = 1200;
  static const u32 partial[] = {1, 2, 3, 4, 5, 6, 7};
  results->partial_ranks = KEEP(arena, partial);
  results->n_partial_ranks = LENGTH_OF(partial);
  results->events = 621000;
  results->lost = 1200;
  results->gpu_timing = "none (CUPTI could not be opened: libcupti.so.12 not found)";
  static const struct coverage coverage[] = {
      {"ranks", 0.25, "traces of some ranks were not found"},
      {"collective times", 0, "communication ran but when is not known"}};
  results->coverage = KEEP(arena, coverage);
  results->n_coverage = LENGTH_OF(coverage);
  results->overhead_gpu_clock_ms = results->overhead_startup_ms = results->overhead_fraction =
      results->overhead_helper_cpu_s = results->overhead_ns_per_event = NAN;
  results->trace_bytes = 9.1e6;
  results->step_count = results->warmup_excluded = results->step_median_ms = NAN;
  results->step_p95_ms = results->step_mean_ms = results->step_cv = NAN;
  results->host_ahead_ms = results->host_ahead_max_ms = results->host_ahead_max_steps = NAN;
  results->data_ms = results->forward_ms = results->backward_ms = NAN;
  results->optimizer_ms = results->comm_ms = results->other_ms = NAN;
  results->dist_steps = results->comm_fraction = NAN;
  results->imbalance_cv = results->sync_skew_ms = results->wall_frac_lost_to_imbalance = NAN;
  results->n_ranks = 2;
  results->ranks = arena_array(arena, 2, sizeof(*results->ranks));
  for (u32 i = 0; i < 2; i++)
    results->ranks[i] = (struct rank_result){.rank = i,
                                             .host = model->ranks[i].host,
                                             .late_more_ms = NAN,
                                             .late_error_ms = NAN,
                                             .late_every = NAN,
                                             .longer_compute_steps = NAN,
                                             .mean_compute_ms = NAN,
                                             .median_compute_ms = NAN,
                                             .slowest_count = NAN,
                                             .slowest_fraction = NAN,
                                             .z = NAN,
                                             .p_value = NAN,
                                             .rel_slowdown = NAN,
                                             .imposed_wait_ms = NAN,
                                             .late_a_step_ms = NAN,
                                             .late_a_step_error_ms = NAN,
                                             .comm_ms = NAN,
                                             .exposed_ms = NAN,
                                             .exposed_wait_ms = NAN,
                                             .exposed_transfer_ms = NAN,
                                             .data_ms = NAN,
                                             .idle_ms = NAN,
                                             .lateness_ms = NAN,
                                             .lateness_error_ms = NAN};
  results->ov_ranks = 0;
  results->ov_steps = NAN;
  results->ov_comm_ms = results->ov_overlapped_ms = results->ov_exposed_ms = NAN;
  results->ov_exposed_wait_ms = results->ov_exposed_transfer_ms = NAN;
  results->ov_exposed_fraction = results->ov_step_ms = results->ov_compute_ms = NAN;
  results->ov_exposed_memcpy_ms = results->ov_idle_ms = NAN;
  results->overlap_reason = "collectives were called but when they ran was not recorded: CUPTI "
                            "could not be opened";
  results->whole_run = true;
  static const struct collective_result collectives[] = {{"default_pg", "all_reduce", 660, 26214400,
                                                          NAN, NAN, NAN, NAN, NULL, NULL, NAN, 0,
                                                          INDEX_NONE, INDEX_NONE, .sizes = 1}};
  results->collectives = KEEP(arena, collectives);
  results->n_collectives = LENGTH_OF(collectives);
  results->kernel_names = results->kernels_seen = results->kernels_ranks = NAN;
  results->kernels_reason = "WHAT RAN ON THE GPU WAS NOT SEEN: CUPTI could not be opened";
  results->path_length_ms = results->path_selfcheck = NAN;
  results->path_reason = "no GPU work was timed";
  results->what_if_reason = results->path_reason;
  results->wall_s = results->analysed_s = 39.1;
  static const struct budget_line budget[] = {{BUDGET_NOT_SEEN, 39.1, 1, NAN}};
  results->budget = KEEP(arena, budget);
  results->n_budget = LENGTH_OF(budget);
  results->mfu = results->hfu = results->flops_per_step = results->peak_flops = NAN;
  results->mfu_reason = results->hfu_reason = "no steps were found";
  results->hfu_coverage = results->hfu_attention = results->hfu_attention_coverage = NAN;
  results->gemm_flops = NAN;
  const struct finding findings[] = {
      {.id = FINDING_DATA_PARTIAL,
       .severity = SEVERITY_WARNING,
       .saving_s = NAN,
       .saving_added_s = NAN,
       .title = arena_text(arena, "7 of 8 ranks are missing or partial"),
       .evidence = arena_text(arena, "2 of 8 ranks were found, 1 of them cut; 1,200 of 622,200 "
                                     "events were lost because the disk was full."),
       .action = arena_text(arena, "Give the report the directories of all hosts; free disk space "
                                   "in TSCOPE_DIR, then measure again.")}};
  results->findings = KEEP(arena, findings);
  results->n_findings = LENGTH_OF(findings);
  const struct undecided undecided[] = {{"step times", "no steps were found in the trace"},
                                        {"waits between ranks", model->clock_method},
                                        {"exposed communication", results->overlap_reason},
                                        {"critical path", results->path_reason}};
  results->undecided = KEEP(arena, undecided);
  results->n_undecided = LENGTH_OF(undecided);
  results->verdict = REPORT_WARNING;
  return results;
}

/* Names with control sequences for the terminal, and bytes that are not characters. */
static struct results *hostile(void) {
  struct results *results = straggler_of(4, 1000000);
  struct model *model = (struct model *)results->model;
  model->command = "train\033[2J\033]0;owned\007 --name=\xff\xfe\xe2\x80\xae"
                   "evil \xe8\xa8\x93\xe7\xb7\xb4\nnext";
  for (u32 i = 0; i < model->n_ranks; i++)
    results->ranks[i].host = model->ranks[i].host = i % 2 ? "\033[31mred\033[0m" : "\xc3(";
  model_number_hosts(model);
  results->kernels[1].shortened = "gemm\033[2J<\x01\xff\xe2\x80\xae>";
  results->findings[0].evidence = "kernel \033[5mvoid gemm<\x01>\x7f and a word that is too long: "
                                  "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_"
                                  "impl_nocastIZZZNS0_23direct_copy_kernel_cudaERNS_18Tensor";
  return results;
}

const struct example examples[] = {
    {"straggler", "four ranks on GPUs, one of them slow", straggler},
    {"healthy", "the same without findings, with MFU", healthy},
    {"unknown", "host calls of two ranks of eight, clocks not aligned", unknown},
    {"thousand", "a thousand ranks, three of them slow", thousand},
    {"hostile", "control characters and invalid UTF-8 in every name", hostile},
    {NULL, NULL, NULL},
};

struct results *example_make(const char *name) {
  for (const struct example *example = examples; example->name; example++)
    if (strcmp(example->name, name) == 0)
      return example->make();
  return NULL;
}
