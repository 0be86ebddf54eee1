/* SPDX-License-Identifier: MIT
 *
 * Kernels by category, arithmetic and its coverage, and reports on runs in which part of the GPU's
 * work was not seen: they say so in words and as unknown, never as zero.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse_cluster.h"
#include "kernels/attention.h"
#include "report/report.h"

#define GEMM_FLOPS 3000000000000ull /* operations of each GEMM below */

static const struct kernel_category_result *category_of(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->n_kernel_categories; i++)
    if (!strcmp(r->kernel_categories[i].category, name))
      return &r->kernel_categories[i];
  return NULL;
}

static const struct coverage *coverage_of(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->n_coverage; i++)
    if (!strcmp(r->coverage[i].name, name))
      return &r->coverage[i];
  return NULL;
}

/* The JSON report, which the caller releases. */
static json_t *json_of(const struct results *results) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  const struct report_view view = {.width = 80};
  assert_int_equal(report_json.write(results, &view, out), 0);
  fclose(out);
  json_t *document = json_loads(text, 0, NULL);
  free(text);
  assert_non_null(document);
  return document;
}

static char *text_of(const struct results *results) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  const struct report_view view = {.width = 160};
  assert_int_equal(report_text.write(results, &view, out), 0);
  fclose(out);
  return text;
}

static bool is_launched_kernel(const struct timeline *t, u32 span) {
  const struct span *kernel = &t->spans[span];
  return kernel->kind == SPAN_KERNEL && kernel->launch != INDEX_NONE;
}

/* Every kernel except each `skip`th was launched by a GEMM of GEMM_FLOPS operations. */
static void add_gemms(struct cluster *c, u32 skip) {
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    t->arithmetic = arena_array(&c->arena, t->n_spans, sizeof(*t->arithmetic));
    c->model.ranks[r].info[TSCOPE_INFO_TSCOPE] = "0";
    u32 n = 0;
    for (u32 i = 0; i < t->n_spans; i++) {
      if (!is_launched_kernel(t, i) || (skip && ++n % skip == 0))
        continue;
      const struct span *launch = &t->spans[t->spans[i].launch];
      t->arithmetic[t->n_arithmetic++] = (struct arithmetic){.start = launch->start - 1,
                                                             .end = launch->end + 1,
                                                             .flops = GEMM_FLOPS,
                                                             .lane = launch->lane};
    }
  }
}

static struct analyse_options with_peak(void) {
  struct analyse_options options = no_options();
  options.peak_tflops = 100;
  return options;
}

static void times_add_up_by_category_and_by_name(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.exposed_memcpy = 7 * MS;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  /* 8 ranks, 50 steps, 100 + 2 x 100 ms of kernels, at least 2 x 10 ms of all-reduces, one copy */
  assert_true(fabs(category_of(r, "GEMM")->sum_ms - 8 * 50 * 300) < 1e-6);
  assert_true(category_of(r, "GEMM")->count == 8 * 50 * 3);
  assert_true(fabs(category_of(r, "memcpy")->sum_ms - 8 * 50 * 7) < 1e-6);
  assert_true(fabs(category_of(r, "communication")->sum_ms - 8 * 50 * 2 * 10) < 1e-6);
  double share = 0, sum = 0, by_name = 0;
  for (u32 i = 0; i < r->n_kernel_categories; i++) {
    share += r->kernel_categories[i].share;
    sum += r->kernel_categories[i].sum_ms;
  }
  for (u32 i = 0; i < r->n_kernels; i++) {
    by_name += r->kernels[i].sum_ms;
    assert_true(!i || r->kernels[i].sum_ms <= r->kernels[i - 1].sum_ms);
  }
  assert_true(fabs(share - 1) < 1e-12 && fabs(by_name - sum) < 1e-6);
  assert_string_equal(r->kernels[0].name, "gemm_backward");
  assert_true(fabs(r->kernels[0].mean_ms - 100) < 1e-9 && fabs(r->kernels[0].max_ms - 100) < 1e-9);
  assert_null(r->kernels_reason);
  cluster_end(r, c);
}

/* The windows have no gaps; kernels are seen only in those of CUPTI, from where what was launched
 * before they opened is over. */
static void partly_seen_times_say_so(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  for (u32 r = 0; r < o.ranks; r++) {
    struct rank *rank = &c->model.ranks[r];
    i64 half = (rank->begin + rank->end) / 2, last = (half + rank->end) / 2;
    rank->gpu_windows = arena_array(&c->arena, 3, sizeof(*rank->gpu_windows));
    rank->gpu_windows[0] = (struct gpu_window){.start = INT64_MIN + 1,
                                               .end = half,
                                               .settled = INT64_MIN + 1,
                                               .clock = TSCOPE_GPU_CLOCK_CUPTI};
    rank->gpu_windows[1] = (struct gpu_window){
        .start = half, .end = last, .settled = half, .clock = TSCOPE_GPU_CLOCK_NONE};
    rank->gpu_windows[2] = (struct gpu_window){.start = last,
                                               .end = INT64_MAX,
                                               .settled = (last + rank->end) / 2,
                                               .clock = TSCOPE_GPU_CLOCK_CUPTI};
    rank->n_gpu_windows = 3;
  }
  struct results *r = cluster_analyse(c, NULL);
  assert_true(fabs(r->kernels_seen - 0.625) < 1e-6);
  char *text = text_of(r);
  assert_non_null(strstr(text, "SEEN FOR 62 % OF THE TIME ONLY"));
  free(text);
  cluster_end(r, c);
}

static void hfu_is_operations_over_time_and_peak(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct analyse_options options = with_peak();
  add_gemms(c, 0);
  struct results *r = cluster_analyse(c, &options);
  /* three GEMMs per step and rank, at a peak of 100 TFLOP/s */
  assert_true(fabs(r->hfu - 3.0 * GEMM_FLOPS / (r->step_mean_ms / 1e3 * 100e12)) < 1e-6);
  assert_true(fabs(r->gemm_flops - 8 * 3.0 * GEMM_FLOPS) < 1);
  assert_true(r->hfu_coverage == 1);
  assert_true(isnan(r->hfu_attention));
  /* one of the three is in the forward pass */
  assert_true(r->flops_estimated && fabs(r->mfu - r->hfu) < 1e-6);
  assert_true(coverage_of(r, "GEMMs")->share == 1);
  assert_true(coverage_of(r, "launch calls")->share == 1);
  cluster_end(r, c);
}

static void coverage_is_the_share_of_gpu_time(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.forward = 300 * MS;
  struct cluster *c = cluster_new(&o);
  struct analyse_options options = with_peak();
  add_gemms(c, 3); /* everything except the second half of backward: 300 + 100 of 500 ms */
  struct results *r = cluster_analyse(c, &options);
  assert_true(fabs(r->hfu_coverage - 0.8) < 1e-9);
  assert_true(fabs(coverage_of(r, "GEMMs")->share - 0.8) < 1e-9);
  assert_non_null(coverage_of(r, "GEMMs")->note);
  cluster_end(r, c);
}

/* In words, in capitals; null in JSON. */
static void expect_unknown_hfu(struct cluster *c, const char *reason) {
  struct analyse_options options = with_peak();
  struct results *r = cluster_analyse(c, &options);
  assert_true(isnan(r->hfu));
  assert_non_null(strstr(r->hfu_reason, reason));
  json_t *document = json_of(r);
  assert_true(json_is_null(json_object_get(json_object_get(document, "budget"), "hfu")));
  json_decref(document);
  results_free(r);
}

static void no_gemms_is_no_hfu(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  for (u32 r = 0; r < o.ranks; r++)
    c->model.ranks[r].info[TSCOPE_INFO_TSCOPE] = "0";
  expect_unknown_hfu(c, "no GEMM was recorded");
  struct results *r = cluster_analyse(c, NULL);
  assert_true(coverage_of(r, "GEMMs")->share == 0);
  assert_non_null(strstr(coverage_of(r, "GEMMs")->note, "NO GEMM CALLS"));
  cluster_end(r, c);
  o.on_gpu = false;
  c = cluster_new(&o);
  expect_unknown_hfu(c, "no GPU work");
  cluster_free(c);
}

static void gemms_in_graphs_are_not_counted(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  add_gemms(c, 0);
  for (u32 r = 0; r < o.ranks; r++)
    for (u32 i = 0; i < c->timelines[r].n_arithmetic; i++)
      c->timelines[r].arithmetic[i].captured = true;
  expect_unknown_hfu(c, "graph");
  for (u32 r = 0; r < o.ranks; r++)
    for (u32 i = 0; i < c->timelines[r].n_arithmetic; i++) {
      c->timelines[r].arithmetic[i].captured = false;
      c->timelines[r].arithmetic[i].flops = ARITHMETIC_UNKNOWN;
    }
  expect_unknown_hfu(c, "unknown size");
  cluster_free(c);
}

static void no_peak_is_no_hfu_but_coverage(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  add_gemms(c, 0);
  struct results *r = cluster_analyse(c, NULL);
  assert_true(isnan(r->hfu) && r->hfu_coverage == 1);
  assert_non_null(strstr(r->hfu_reason, "--peak-tflops"));
  cluster_end(r, c);
}

/* Only the host was seen: the operations are known, their share of GPU time is not. */
static void coverage_needs_gpu_times(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  add_gemms(c, 0);
  o.no_gpu_times = true;
  struct cluster *blind = cluster_new(&o);
  struct analyse_options options = with_peak();
  for (u32 r = 0; r < o.ranks; r++) {
    blind->timelines[r].arithmetic = c->timelines[r].arithmetic;
    blind->timelines[r].n_arithmetic = c->timelines[r].n_arithmetic;
    blind->model.ranks[r].info[TSCOPE_INFO_TSCOPE] = "0";
  }
  struct results *r = cluster_analyse(blind, &options);
  assert_true(r->hfu > 0 && isnan(r->hfu_coverage));
  assert_non_null(strstr(r->kernels_reason, "WHAT RAN ON THE GPU WAS NOT SEEN"));
  char *text = text_of(r);
  assert_non_null(strstr(text, "WHAT RAN ON THE GPU WAS NOT SEEN"));
  assert_non_null(strstr(text, "NO COLLECTIVE TIMES"));
  assert_non_null(strstr(text, "NO KERNEL TIMES"));
  free(text);
  json_t *document = json_of(r);
  assert_true(json_is_null(json_object_get(json_object_get(document, "budget"), "hfu_coverage")));
  assert_true(json_is_null(json_object_get(json_object_get(document, "overlap"), "comm_ms")));
  json_decref(document);
  cluster_end(r, blind);
  cluster_free(c);
}

/* Removes the collectives, both calls and kernels, from a run. */
static void hide_collectives(struct cluster *c) {
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    for (u32 i = 0; i < t->n_spans; i++)
      if (t->spans[i].kind == SPAN_COLLECTIVE || t->spans[i].kind == SPAN_COLL_CALL)
        t->spans[i] = (struct span){.start = t->spans[i].start,
                                    .end = t->spans[i].start,
                                    .link = INDEX_NONE,
                                    .launch = INDEX_NONE,
                                    .kind = SPAN_PHASE,
                                    .category = TSCOPE_PHASE_USER};
    t->comm.n = t->n_edges = 0;
    c->model.ranks[r].collective_calls = c->model.ranks[r].collective_runs = 0;
  }
  c->model.n_collectives = c->model.n_arrivals = 0;
}

static void unseen_communication_is_not_zero(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  hide_collectives(c);
  struct results *r = cluster_analyse(c, NULL);
  assert_true(isnan(r->ov_comm_ms) && isnan(r->ov_exposed_ms) && isnan(r->comm_fraction));
  assert_non_null(strstr(r->overlap_reason, "NO COLLECTIVE WAS RECORDED in a job of 8 ranks"));
  assert_true(isnan(r->gpu_timeline.exposed_comm_ms) && isnan(r->gpu_timeline.compute_ms));
  assert_true(isnan(r->gpu_timelines[0].exposed_comm_ms) && r->gpu_timeline.idle_ms > 0);
  assert_true(coverage_of(r, "collectives")->share == 0);
  char *text = text_of(r);
  assert_non_null(strstr(text, "NO COLLECTIVE WAS RECORDED"));
  assert_non_null(strstr(text, "WHICH KERNELS COMMUNICATE IS NOT KNOWN"));
  free(text);
  json_t *document = json_of(r);
  assert_true(json_is_null(json_object_get(json_object_get(document, "overlap"), "comm_ms")));
  json_decref(document);
  results_free(r);
  c->model.world_size = 1; /* a job of one rank does not communicate */
  r = cluster_analyse(c, NULL);
  assert_true(r->ov_comm_ms == 0);
  assert_null(coverage_of(r, "collectives"));
  cluster_end(r, c);
}

static void collective_kernels_without_calls_say_so(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  for (u32 r = 0; r < o.ranks; r++) {
    struct timeline *t = &c->timelines[r];
    for (u32 i = 0; i < t->n_spans; i++)
      if (t->spans[i].kind == SPAN_COLLECTIVE)
        t->spans[i].link = INDEX_NONE;
    c->model.ranks[r].collective_calls = c->model.ranks[r].collective_runs = 0;
  }
  struct results *r = cluster_analyse(c, NULL);
  assert_true(coverage_of(r, "collective calls")->share == 0);
  assert_non_null(strstr(coverage_of(r, "collective calls")->note, "NO COLLECTIVE CALLS"));
  assert_true(r->ov_comm_ms > 0);
  cluster_end(r, c);
}

/* Work that by its clock began before its call was never queued: no queue is shorter than empty. */
static void clock_errors_empty_no_queue(void **state) {
  double mean[2];
  (void)state;
  for (u32 early = 0; early < 2; early++) {
    struct cluster_options o = healthy_gpu();
    struct cluster *c = cluster_new(&o);
    for (u32 r = 0; r < o.ranks; r++) {
      struct timeline *t = &c->timelines[r];
      for (u32 i = 0; i < t->n_spans; i++) {
        i64 call = is_launched_kernel(t, i) ? t->spans[t->spans[i].launch].start : INT64_MIN;
        if (t->spans[i].start == call + LATENCY) /* on an idle GPU */
          t->spans[i].start = call - early * MS;
      }
    }
    struct results *r = cluster_analyse(c, NULL);
    mean[early] = r->launch.queue_mean;
    cluster_end(r, c);
  }
  assert_near(mean[1], mean[0], 1e-4);
}

static void unseen_launches_are_reported(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  for (u32 r = 0; r < o.ranks; r++) {
    struct timeline *t = &c->timelines[r];
    for (u32 i = 0, n = 0; i < t->n_spans; i++)
      if (t->spans[i].kind == SPAN_KERNEL && n++ % 3 != 0)
        t->spans[i].launch = INDEX_NONE;
  }
  struct results *r = cluster_analyse(c, NULL);
  assert_true(fabs(coverage_of(r, "launch calls")->share - 1.0 / 3) < 1e-9);
  assert_non_null(strstr(coverage_of(r, "launch calls")->note, "own CUDA runtime"));
  results_free(r);
  for (u32 k = 0; k < o.ranks; k++)
    for (u32 i = 0; i < c->timelines[k].n_spans; i++)
      if (c->timelines[k].spans[i].kind == SPAN_KERNEL)
        c->timelines[k].spans[i].launch = INDEX_NONE;
  r = cluster_analyse(c, NULL);
  assert_non_null(strstr(coverage_of(r, "launch calls")->note, "NO LAUNCH CALLS"));
  cluster_end(r, c);
}

static void graphs_whose_content_was_not_seen_say_so(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_null(coverage_of(r, "graph replays"));
  results_free(r);
  for (u32 i = 0; i < o.ranks; i++)
    c->timelines[i].graph_launches = 10;
  r = cluster_analyse(c, NULL);
  assert_true(coverage_of(r, "graph replays")->share == 0);
  assert_non_null(strstr(coverage_of(r, "graph replays")->note, "NO GRAPH CONTENT"));
  results_free(r);
  for (u32 i = 0; i < o.ranks; i++)
    c->timelines[i].graph_launches_run = 5;
  r = cluster_analyse(c, NULL);
  assert_true(coverage_of(r, "graph replays")->share == 0.5);
  cluster_end(r, c);
}

/* FlashAttention 2 with head size 128 and blocks of 128 x 64 on a grid of (16 blocks, batch 4, 32
 * heads): a sequence of 2048. Forward has two GEMMs, backward five, half as much with a causal
 * mask. */
static void attention_is_estimated_by_its_grid(void **state) {
  (void)state;
  const u32 grid[3] = {16, 4, 32};
  const double all = 2 * 2.0 * 2048 * 2048 * 128 * 4 * 32;
  double got = kernel_attention_flops(
      "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, "
      "4, "
      "false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<128, 128, 64, 4, "
      "cutlass::bfloat16_t> >, false, false, false, false, true, true, false, false>"
      "(pytorch_flash::Flash_fwd_params)",
      grid, 0);
  assert_true(fabs(got - all) < 1);
  got = kernel_attention_flops(
      "void flash::flash_fwd_kernel<flash::Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
      "cutlass::half_t>, false, true, false, false, true, true, false, false>(flash::Params)",
      grid, 0);
  assert_true(fabs(got - all / 2) < 1);
  const u32 backward_grid[3] = {32, 4, 32}; /* blocks of 64 keys */
  got = kernel_attention_flops(
      "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::"
      "Flash_bwd_kernel_traits<128, 128, 64, 8, 4, 2, 2, false, false, cutlass::bfloat16_t>, "
      "false, "
      "false, false, false, true, true, false>(pytorch_flash::Flash_bwd_params)",
      backward_grid, 0);
  assert_true(fabs(got - all * 5 / 2) < 1);
  assert_true(isnan(
      kernel_attention_flops("flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64>>", grid, 0)));
  assert_true(isnan(kernel_attention_flops("flash_fwd_kernel", grid, 0)));
  assert_true(isnan(kernel_attention_flops("ampere_sgemm_128x64_nn", grid, 0)));
  assert_true(isnan(kernel_attention_flops(NULL, grid, 0)));
}

/* FlashAttention 3 with tiles of 64 queries and 128 keys, head size 96, batch 4, 32 heads, and 2048
 * keys. The first name is one that a compiler printed (Dao-AILab/flash-attention issue 1162). */
static void backward_attention_of_hopper_is_estimated(void **state) {
  (void)state;
  const u32 grid[3] = {16, 32, 4}, row[3] = {16 * 32 * 4, 1, 1}, prepares[3] = {32, 32, 4};
  const double all = 5 * 2.0 * 2048 * 2048 * 96 * 4 * 32;
  double got = kernel_attention_flops(
      "_ZN7cutlass13device_kernelIN5flash12FlashAttnBwdINS1_"
      "21CollectiveMainloopBwdILi2EN4cute5tuple"
      "IJNS4_1CILi1EEES7_S7_EEENS5_IJNS6_ILi64EEENS6_ILi128EEENS6_ILi96EEEEEENS_10bfloat16_tEfNS_4a"
      "rch4Sm90ELb1ELb0ELb0ELb0ELb0ELi1ELi2ELi1EEENS1_21CollectiveEpilogueBwdISC_SD_"
      "Li256ELb0EEENS1_"
      "22SingleTileSchedulerBwdEEEEEvNT_6ParamsE",
      grid, 0);
  assert_true(fabs(got - all / 2) < 1);
#define NEWER(flags, scheduler)                                                                    \
  "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnBwdSm90<flash::"        \
  "CollectiveMainloopBwdSm90<2, 2, 2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, "          \
  "cute::tuple<cute::C<64>, cute::C<128>, cute::C<96> >, 96, cutlass::bfloat16_t, float, "         \
  "cutlass::arch::Sm90, " flags ", false, true, false, false, 2, 1, 2, 1, false>, "                \
  "flash::CollectiveEpilogueBwd<>, flash::" scheduler " > > >(Params)"
  got = kernel_attention_flops(NEWER("false, false, false, false", "SingleTileScheduler<false>"),
                               grid, 0);
  assert_true(fabs(got - all) < 1);
  const char *causal = NEWER("true, false, false, false", "SingleTileBwdLPTScheduler<false, 128>");
  assert_true(isnan(kernel_attention_flops(causal, row, 0))); /* the launch before was not seen */
  u32 heads =
      kernel_attention_heads("flash::FlashAttnBwdPreprocess<cute::tuple<cute::C<64>>>", prepares);
  got = kernel_attention_flops(causal, row, heads);
  assert_true(fabs(got - all / 2) < 1);
  assert_true(isnan(kernel_attention_flops(
      NEWER("false, false, false, true", "SingleTileScheduler<true>"), grid, 0)));
  assert_int_equal(kernel_attention_heads(causal, row), 0);
  const char *cut = "FlashAttnBwd<CollectiveMainloopBwd<tuple<1, tuple<1, arch::Sm,";
  assert_true(isnan(kernel_attention_flops(cut, grid, 0)));
}

static void estimates_stay_apart_from_what_is_known(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct analyse_options options = with_peak();
  add_gemms(c, 0);
  for (u32 r = 0; r < o.ranks; r++)
    for (u32 i = 0; i < c->timelines[r].n_arithmetic; i++)
      c->timelines[r].arithmetic[i].estimate = i % 3 == 2;
  struct results *r = cluster_analyse(c, &options);
  double step_s = r->step_mean_ms / 1e3;
  assert_true(fabs(r->hfu - 2.0 * GEMM_FLOPS / (step_s * 100e12)) < 1e-6);
  assert_true(fabs(r->hfu_attention - 1.0 * GEMM_FLOPS / (step_s * 100e12)) < 1e-6);
  assert_true(fabs(r->hfu_coverage - 2.0 / 3) < 1e-9);
  assert_true(fabs(r->hfu_attention_coverage - 1.0 / 3) < 1e-9);
  cluster_end(r, c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(times_add_up_by_category_and_by_name),
      cmocka_unit_test(partly_seen_times_say_so),
      cmocka_unit_test(hfu_is_operations_over_time_and_peak),
      cmocka_unit_test(coverage_is_the_share_of_gpu_time),
      cmocka_unit_test(no_gemms_is_no_hfu),
      cmocka_unit_test(gemms_in_graphs_are_not_counted),
      cmocka_unit_test(no_peak_is_no_hfu_but_coverage),
      cmocka_unit_test(coverage_needs_gpu_times),
      cmocka_unit_test(unseen_communication_is_not_zero),
      cmocka_unit_test(collective_kernels_without_calls_say_so),
      cmocka_unit_test(clock_errors_empty_no_queue),
      cmocka_unit_test(unseen_launches_are_reported),
      cmocka_unit_test(graphs_whose_content_was_not_seen_say_so),
      cmocka_unit_test(attention_is_estimated_by_its_grid),
      cmocka_unit_test(backward_attention_of_hopper_is_estimated),
      cmocka_unit_test(estimates_stay_apart_from_what_is_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
