/* SPDX-License-Identifier: MIT
 *
 * Kernels that communicate without a call are matched by their order: profiler traces of a written
 * schedule, for each family of communication.def, with one slow rank, clocks that are seconds apart
 * and part of the communication behind compute. Wait, transfer and what is exposed are those of the
 * schedule, and the slow rank is named.
 *
 * A step, in ms: compute 10 (the slow rank 13); the first operation, 2 ms from the last arrival,
 * the last one of them behind compute on another stream; compute 5; the second operation, 1 ms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "figures.h"
#include "importing.h"
#include "scratch.h"

enum { RANKS = 4, STEPS = 24, SLOW = 2 };

struct family {
  const char *first, *second; /* kernels */
  const char *first_op, *second_op;
};

struct schedule {
  const struct family *family;
  bool pairs;   /* ranks 0 and 1, 2 and 3 communicate, each pair for itself */
  bool strange; /* the ends have nothing to do with each other */
  u32 cut;      /* the last rank's recording begins this many steps later */
  double drift; /* of the last rank's clock */
};

/* A rank's clock, which is right when its recording begins. */
struct own_clock {
  double begin, rate;
};

static void put_kernel(FILE *out, const struct own_clock *clock, const char *name, int stream,
                       double start, double end) {
  start = clock->begin + (start - clock->begin) * clock->rate;
  end = clock->begin + (end - clock->begin) * clock->rate;
  fprintf(out,
          ",\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,"
          "\"dur\":%.3f,\"args\":{\"stream\":%d,\"device\":0}}",
          name, stream, start, end - start, stream);
}

/* In microseconds: when a rank's compute of a step is over. */
static double arrival(const struct schedule *s, u32 rank, double begin) {
  double slow = s->pairs ? rank % 2 : rank == SLOW;
  return begin + (slow ? 13000 : 10000);
}

static void put_rank(const struct schedule *s, u32 rank, const char *folder) {
  char path[256];
  snprintf(path, sizeof(path), "%s/rank%u.json", folder, rank);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  double begin = 1e9 + rank * 1.7e6;
  const struct own_clock clock = {begin, rank == RANKS - 1 ? 1 + s->drift : 1};
  fprintf(out,
          "{\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":%u,\"world_size\":%u},\n"
          "\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{}}",
          rank, RANKS);
  for (u32 step = 0; step < STEPS; step++) {
    bool left_out = rank == RANKS - 1 && step < s->cut;
    double jitter = (double)((rank * 7 + step * 3) % 5); /* of the ends, as in real recordings */
    double pace = s->pairs && rank > 1 ? step * 137 % 900 : 0; /* the pairs' own */
    double strange = s->strange ? step * (rank + 1) * 1049 % 4001 : 0;
    double from = begin + pace, own = arrival(s, rank, from) + strange;
    double last = from + 13000 + strange, first_end = last + 2000 + jitter;
    double second = first_end + 5000, second_end = first_end - jitter + 6000 + jitter / 2;
    double end = begin + 24000;
    if (!left_out) {
      fprintf(out,
              ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%u\",\"pid\":1,"
              "\"tid\":1,\"ts\":%.3f,\"dur\":%.3f}",
              step, begin, end - begin - 1);
      put_kernel(out, &clock, "sgemm_forward", 7, from, own);
      put_kernel(out, &clock, s->family->first, 7, own, first_end);
      put_kernel(out, &clock, "sgemm_other", 9, last + 1000, first_end);
      put_kernel(out, &clock, "sgemm_backward", 7, first_end, second);
      put_kernel(out, &clock, s->family->second, 7, second, second_end);
    }
    begin = end;
  }
  fputs("]}\n", out);
  fclose(out);
}

static struct results *report_on(const struct schedule *s, struct model **model) {
  char folder[] = "/tmp/tscope-groups-XXXXXX";
  struct results *results;
  scratch_make(folder);
  for (u32 rank = 0; rank < RANKS; rank++)
    put_rank(s, rank, folder);
  *model = import_file(folder);
  results = analyse_all(*model);
  scratch_remove(folder);
  return results;
}

static void is_about(const char *what, double ours, double truth) {
  if (!(fabs(ours - truth) <= 0.01 * truth + 0.005))
    fail_msg("%s: %.4f ms, the schedule has %.4f", what, ours, truth);
}

static const struct overlap_by_op *operation(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->n_by_op; i++)
    if (strcmp(r->by_op[i].op, name) == 0)
      return &r->by_op[i];
  fail_msg("no operation %s", name);
  return NULL;
}

static const struct family families[] = {
    {"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",
     "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(int4*)", "DeepEP dispatch",
     "DeepEP combine"},
    {"void deep_ep::elastic::dispatch_impl<4>(int*)",
     "void deep_ep::elastic::combine_impl<4>(int*)", "DeepEP dispatch", "DeepEP combine"},
    {"void nccl_ep::internode_ll::dispatch<true>(int)",
     "void nccl_ep::internode_ll::combine<4>(int)", "NCCL EP dispatch", "NCCL EP combine"},
    {"void one_shot_all_reduce_kernel<float, 16, 8>(float**)",
     "void multimem_all_gather_kernel<16>(char*)", "symm_mem all_reduce", "symm_mem all_gather"},
    {"void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(int)",
     "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(int)", "custom all_reduce", NULL},
    {"void flashinfer::trtllm_allreduce::twoShotAllReduceKernel<1>(int)",
     "void flashinfer::trtllm_alltoall::moeAllToAllKernel(int)", "FlashInfer all_reduce",
     "FlashInfer all_to_all"},
    {"void tensorrt_llm::kernels::moe_alltoall::moeA2ADispatchKernel<1>(int)",
     "void tensorrt_llm::kernels::moe_alltoall::moeA2ACombineKernel<1>(int)",
     "TensorRT-LLM dispatch", "TensorRT-LLM combine"},
    {"userbuffers_fp16_sum_inplace_gpu_rr_rs(int)", "userbuffers_fp16_sum_inplace_gpu_rr_ag(int)",
     "userbuffers reduce_scatter", "userbuffers all_gather"},
    {"void mscclpp::collective::allreduceRsAg<1>(int)",
     "void mscclpp::collective::allgatherFullmesh2<1>(int)", "MSCCL++ all_reduce",
     "MSCCL++ all_gather"},
    {"void meta::comms::ddaAllReduceFlatIpc<float, 8>(int)",
     "void meta::comms::ddaAllToAllIpc<float, 8>(int)", "torchcomms all_reduce",
     "torchcomms all_to_all"},
};

static void check_times(const struct results *r, const struct family *family) {
  const struct overlap_by_op *first = operation(r, family->first_op);
  is_about("wait", r->ov_exposed_wait_ms, 3 * 3.0 / RANKS);
  is_about("transfer", r->ov_exposed_transfer_ms, 1 + 1);
  is_about("exposed", r->ov_exposed_ms, 3 * 3.0 / RANKS + 2);
  is_about("hidden", r->ov_overlapped_ms, 1);
  if (!family->second_op)
    return;
  is_about("wait of the first", first->exposed_wait_ms, 3 * 3.0 / RANKS);
  is_about("transfer of the first", first->exposed_transfer_ms, 1);
  is_about("transfer of the second", operation(r, family->second_op)->exposed_transfer_ms, 1);
}

static void each_family_is_matched(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(families); i++) {
    const struct schedule schedule = {.family = &families[i]};
    struct model *model = NULL;
    struct results *r = report_on(&schedule, &model);
    printf("%s\n", families[i].first_op);
    assert_true(model->clock_aligned);
    check_times(r, &families[i]);
    for (u32 rank = 0; rank < RANKS; rank++)
      assert_int_equal(r->ranks[rank].straggler, rank == SLOW);
    results_free(r);
    model_free(model);
  }
}

/* The last rank was recorded from a later step on. */
static void a_recording_may_begin_later(void **state) {
  (void)state;
  const struct schedule schedule = {.family = &families[0], .cut = 3};
  struct model *model = NULL;
  struct results *r = report_on(&schedule, &model);
  u32 whole = 0;
  for (u32 i = 0; i < model->n_collectives; i++)
    whole += model->collectives[i].n_arrivals == RANKS;
  assert_int_equal(whole, 2 * (STEPS - 3));
  results_free(r);
  model_free(model);
}

/* Two hosts' clocks may drift apart as fast as anywhere else. */
static void clocks_may_drift_apart(void **state) {
  (void)state;
  const struct schedule schedule = {.family = &families[0], .drift = 5e-4};
  struct model *model = NULL;
  struct results *r = report_on(&schedule, &model);
  for (u32 i = 0; i < model->n_collectives; i++)
    assert_int_equal(model->collectives[i].n_arrivals, RANKS);
  assert_true(model->clock_aligned);
  results_free(r);
  model_free(model);
}

/* Two pairs, which run the same kernels in the same order, are two groups. */
static void ranks_that_do_not_meet_are_apart(void **state) {
  (void)state;
  const struct schedule schedule = {.family = &families[0], .pairs = true};
  struct model *model = NULL;
  struct results *r = report_on(&schedule, &model);
  assert_int_equal(model->n_collectives, 2 * 2 * STEPS);
  for (u32 i = 0; i < model->n_collectives; i++)
    assert_int_equal(model->collectives[i].n_arrivals, 2);
  results_free(r);
  model_free(model);
}

static void ends_that_differ_match_nothing(void **state) {
  (void)state;
  const struct schedule schedule = {.family = &families[0], .strange = true};
  struct model *model = NULL;
  struct results *r = report_on(&schedule, &model);
  for (u32 i = 0; i < model->n_collectives; i++)
    assert_int_equal(model->collectives[i].n_arrivals, 1);
  assert_true(isnan(r->ov_exposed_wait_ms));
  bool told = false;
  for (u32 i = 0; i < model->n_notes; i++)
    told |= strstr(model->notes[i], "do not end together") != NULL;
  assert_true(told);
  results_free(r);
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_family_is_matched),
      cmocka_unit_test(a_recording_may_begin_later),
      cmocka_unit_test(clocks_may_drift_apart),
      cmocka_unit_test(ranks_that_do_not_meet_are_apart),
      cmocka_unit_test(ends_that_differ_match_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
