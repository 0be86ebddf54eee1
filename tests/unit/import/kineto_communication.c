/* SPDX-License-Identifier: MIT
 *
 * Every recording in ../shared/testdata says one thing about communication: what the table of
 * kernels calls by that name is what the overlap calls so. And the truths of three recordings that
 * communicate by other means than NCCL, computed there from the files themselves (see README.md).
 */
#include "recordings.h"

#include <ftw.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "scratch.h"

static void within_a_percent(double ours, double truth) {
  if (!(fabs(ours - truth) <= 0.01 * truth))
    fail_msg("%.4f, but the truth is %.4f", ours, truth);
}

static double of_category(const struct results *r, unsigned kind, double *share) {
  *share = 0;
  for (u32 i = 0; i < r->n_kernel_categories; i++)
    if (r->kernel_categories[i].kind == kind) {
      *share = r->kernel_categories[i].share;
      return r->kernel_categories[i].sum_ms;
    }
  return 0;
}

static bool communicates(struct kernel_names *names, const struct timeline *t,
                         const struct span *span) {
  unsigned category = kernel_category(names, timeline_name(t, span->name));
  return category == KERNEL_COMMUNICATION || category == KERNEL_COMPUTING_COMMUNICATION;
}

/* Adds up one rank's communication as the names of its work say it, and checks that the timeline
 * has the same, span by span and as a union. */
static i64 sum_rank(struct kernel_names *names, const struct model *model, u32 rank) {
  struct timeline t;
  i64 sum = 0, together = 0, until = INT64_MIN, of_timeline = 0;
  assert_int_equal(timeline_load(model, rank, &t), 0);
  for (u32 i = 0; i < t.n_spans; i++) {
    const struct span *span = &t.spans[i];
    if (span->kind != SPAN_KERNEL && span->kind != SPAN_COLLECTIVE)
      continue;
    if (communicates(names, &t, span) != (span->kind == SPAN_COLLECTIVE))
      fail_msg("%s is counted in two ways", timeline_name(&t, span->name));
    if (span->kind != SPAN_COLLECTIVE)
      continue;
    i64 from = MAX(span->start, until);
    sum += span->end - span->start;
    together += span->end > from ? span->end - from : 0;
    until = MAX(span->end, until);
  }
  for (u32 i = 0; i < t.comm.n; i++)
    of_timeline += t.comm.at[i].end - t.comm.at[i].start;
  assert_int_equal(together, of_timeline);
  timeline_release(&t);
  return sum;
}

static void check_model(struct model *model) {
  char why[128];
  struct kernel_names *names = kernel_names_new(NULL, why, sizeof(why));
  struct results *results = analyse_all(model);
  double share, other, sum = 0;
  for (u32 r = 0; r < model->n_ranks; r++)
    sum += (double)sum_rank(names, model, r) / 1e6;
  double table = of_category(results, KERNEL_COMMUNICATION, &share) +
                 of_category(results, KERNEL_COMPUTING_COMMUNICATION, &other);
  assert_true(fabs(table - sum) < 1e-6 * (1 + sum));
  of_category(results, KERNEL_OTHER, &other);
  if (other >= 0.02)
    fail_msg("%.1f %% of GPU time is of no known kind", 100 * other);
  results_free(results);
  model_free(model);
  kernel_names_free(names);
}

static u32 checked;

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int check_file(const char *path, const struct stat *about, int kind, struct FTW *where) {
  (void)about, (void)where;
  if (kind != FTW_F || !ends_with(path, ".json.gz") || strstr(path, "/mtia/"))
    return 0; /* an accelerator without kernels */
  printf("%s\n", path);
  check_model(import_file(path));
  checked++;
  return 0;
}

static void every_recording_says_one_thing(void **state) {
  (void)state;
  assert_int_equal(nftw(recordings, check_file, 16, FTW_PHYS), 0);
  assert_true(checked >= 10);
  char where[] = "/tmp/tscope-kineto-XXXXXX", command[8300];
  scratch_make(where);
  snprintf(command, sizeof(command), "tar xzf '%s/dlrm_8rank/dlrm_kineto.tar.gz' -C %s", recordings,
           where);
  assert_int_equal(system(command), 0);
  check_model(import_file(where));
  scratch_remove(where);
}

static double operation_ms(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->n_by_op; i++)
    if (strcmp(r->by_op[i].op, name) == 0)
      return r->by_op[i].comm_ms;
  fail_msg("no operation %s", name);
  return NAN;
}

static double on_path(const struct results *r, const char *category) {
  double ms = 0;
  for (u32 i = 0; i < r->n_path_by_name; i++)
    if (strcmp(r->path_by_name[i].category, category) == 0)
      ms += r->path_by_name[i].ms;
  return ms;
}

static void dualpipe_hides_its_communication(void **state) {
  (void)state;
  struct model *model = import_file(at("deepseek_dualpipe"));
  struct results *r = analyse_all(model);
  within_a_percent(r->ov_comm_ms, 113.44);
  within_a_percent(r->ov_exposed_ms, 4.19);
  within_a_percent(r->gpu_timeline.exposed_comm_ms, 4.19);
  within_a_percent(r->gpu_timeline.idle_ms, 129.012 - 128.515);
  within_a_percent(r->gpu_timeline.compute_ms, 124.31);
  within_a_percent(operation_ms(r, "DeepEP dispatch") + operation_ms(r, "DeepEP combine"), 80.45);
  assert_true(operation_ms(r, "DeepEP notify") > 32 && operation_ms(r, "DeepEP layout") > 0.4);
  assert_null(r->overlap_reason);
  /* the host waits four times for notify_dispatch, without a call */
  assert_true(on_path(r, "host") < 0.05 * r->path_length_ms);
  assert_true(on_path(r, "compute") + on_path(r, "communication") > 0.85 * r->path_length_ms);
  results_free(r);
  model_free(model);
}

static void symmetric_memory_communicates(void **state) {
  (void)state;
  struct model *model = import_file(at("b200_vllm_eager"));
  struct results *r = analyse_all(model);
  double gemms, norms;
  within_a_percent(r->gpu_timeline.exposed_comm_ms, 2.141);
  within_a_percent(r->gpu_timeline.compute_ms, 8.652);
  within_a_percent(r->ov_exposed_ms, 2.141);
  within_a_percent(operation_ms(r, "symm_mem all_reduce"), 2.1195);
  of_category(r, KERNEL_GEMM, &gemms);
  of_category(r, KERNEL_NORMALISATION, &norms);
  assert_true(gemms > 0.447); /* the batched ones alone */
  assert_true(norms > 0.038 && norms < 0.041);
  results_free(r);
  model_free(model);
}

static void parts_of_convolutions_are_convolutions(void **state) {
  (void)state;
  struct model *model = import_file(at("mi300_resnet_checkpoint"));
  struct results *r = analyse_all(model);
  u32 seen = 0;
  for (u32 i = 0; i < r->n_kernels; i++)
    if (strstr(r->kernels[i].name, "batched_transpose_") ||
        strstr(r->kernels[i].name, "kernel_batched_gemm_xdlops_bwd_weight")) {
      assert_int_equal(r->kernels[i].kind, KERNEL_CONVOLUTION);
      seen++;
    }
  assert_true(seen >= 4);
  results_free(r);
  model_free(model);
}

int main(int argc, char **argv) {
  if (!are_there(argc, argv))
    return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_recording_says_one_thing),
      cmocka_unit_test(dualpipe_hides_its_communication),
      cmocka_unit_test(symmetric_memory_communicates),
      cmocka_unit_test(parts_of_convolutions_are_convolutions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
