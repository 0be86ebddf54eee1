/* SPDX-License-Identifier: MIT
 *
 * Compares reports on recordings made by others with the results of another analyzer. The
 * recordings are in ../shared/testdata, beside the source; without them this test is skipped.
 */
#include "recordings.h"

#include <ftw.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"

/* Another analyzer's table: "name,milliseconds,percent". */
static double other_says(const char *what) {
  char line[256];
  FILE *table = fopen(at("h100_bert_small/gpu_timeline.csv"), "r");
  assert_non_null(table);
  double ms = NAN;
  while (fgets(line, sizeof(line), table))
    if (strncmp(line, what, strlen(what)) == 0 && line[strlen(what)] == ',')
      ms = strtod(line + strlen(what) + 1, NULL);
  fclose(table);
  assert_false(isnan(ms));
  return ms;
}

static void agrees(double ours, const char *what) {
  double other = other_says(what);
  if (!(fabs(ours - other) <= 0.001 * other))
    fail_msg("%s: %.7f ms, the other analyzer has %.7f", what, ours, other);
}

/* Sums over the other analyzer's table of kernels, in which a kernel has a line for each operator.
 * The columns are counted from the end, because names contain commas. */
static void other_kernels(double *sum_ms, double *count) {
  char line[8192];
  FILE *table = fopen(at("h100_bert_small/kernel_summary.csv"), "r");
  assert_non_null(table);
  *sum_ms = *count = 0;
  assert_non_null(fgets(line, sizeof(line), table));
  u32 columns = 1, of_sum = 0, of_count = 0;
  for (char *column = strtok(line, ","); column; column = strtok(NULL, ","), columns++) {
    of_sum = strstr(column, "_sum") ? columns : of_sum;
    of_count = strstr(column, "_count") ? columns : of_count;
  }
  while (fgets(line, sizeof(line), table)) {
    char *at_column[64];
    u32 n = 0;
    bool quoted = false;
    at_column[n++] = line;
    for (char *c = line; *c && n < 64; c++) {
      quoted ^= *c == '"';
      if (*c == ',' && !quoted)
        at_column[n++] = c + 1;
    }
    assert_int_equal(n, columns - 1);
    *sum_ms += strtod(at_column[of_sum - 1], NULL) / 1e3;
    *count += strtod(at_column[of_count - 1], NULL);
  }
  fclose(table);
}

static void gpu_time_is_what_another_analyzer_found(void **state) {
  (void)state;
  struct model *model = import_file(at("h100_bert_small/trace.json.gz"));
  struct results *results = analyse_all(model);
  const struct gpu_timeline_result *gpu = &results->gpu_timeline;
  agrees(gpu->compute_ms, "computation_time");
  agrees(gpu->exposed_memcpy_ms, "exposed_memcpy_time");
  agrees(gpu->idle_ms, "idle_time");
  agrees(gpu->total_ms, "total_time");
  assert_true(gpu->exposed_comm_ms == 0);
  assert_true(gpu->total_ms ==
              gpu->compute_ms + gpu->exposed_comm_ms + gpu->exposed_memcpy_ms + gpu->idle_ms);
  double sum_ms, count, ours_ms = 0, ours = 0;
  other_kernels(&sum_ms, &count);
  for (u32 i = 0; i < results->n_kernel_categories; i++)
    if (strcmp(results->kernel_categories[i].category, "memcpy") != 0) {
      ours_ms += results->kernel_categories[i].sum_ms;
      ours += results->kernel_categories[i].count;
    }
  assert_true(ours == count);
  assert_true(fabs(ours_ms - sum_ms) < 1e-6);
  results_free(results);
  model_free(model);
}

static double on_path(const struct results *results, const char *name, const char *category) {
  double ms = 0;
  for (u32 i = 0; i < results->n_path_by_name; i++)
    if (strstr(results->path_by_name[i].name, name) &&
        strcmp(results->path_by_name[i].category, category) == 0)
      ms += results->path_by_name[i].ms;
  return ms;
}

static double edges(const struct results *results, const char *name) {
  for (u32 i = 0; i < results->n_path_edges; i++)
    if (strcmp(results->path_edges[i].name, name) == 0)
      return results->path_edges[i].count;
  return NAN;
}

/* The segments of the path follow each other without gaps and add up to the path. */
static void is_whole(const struct results *results) {
  double sum = 0;
  for (u32 i = 0; i < results->n_path_segments; i++) {
    assert_true(fabs(results->path_segments[i].start_ms - sum) < 1e-6);
    sum += results->path_segments[i].ms;
  }
  if (results->n_path_segments < 200)
    assert_true(fabs(sum - results->path_length_ms) < 1e-6);
}

/* A kernel spins, and the host waits for an event recorded after it. Before that, the host does
 * other work while nothing runs on the GPU. */
static void path_crosses_an_event_that_the_host_waits_for(void **state) {
  (void)state;
  struct model *model =
      import_file(at("hta/critical_path/cuda_event_sync/event_sync_trace.json.gz"));
  struct results *results = analyse_all(model);
  is_whole(results);
  assert_true(on_path(results, "spin_kernel", "compute") == 0.036);
  assert_true(edges(results, "sync") == 1);
  assert_true(edges(results, "launch") == 1);
  assert_true(on_path(results, "aten::empty", "host") == 2.187);
  results_free(results);
  model_free(model);
}

/* Three GEMMs on three streams, each launched long after the one before had ended, then a wait for
 * the device: only the last GEMM and its launch are on the path. */
static void path_takes_the_stream_that_ends_last(void **state) {
  (void)state;
  struct model *model =
      import_file(at("hta/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz"));
  struct results *results = analyse_all(model);
  is_whole(results);
  assert_true(on_path(results, "ampere_sgemm_128x64_nn", "compute") == 0.123);
  assert_true(edges(results, "sync") == 1 && edges(results, "launch") == 1);
  assert_true(on_path(results, "cudaMalloc", "host") > 0.6);
  results_free(results);
  model_free(model);
}

/* The host initializes a library and launches meanwhile: it waits for the GPU only in synchronous
 * copies. */
static void path_of_a_launch_bound_run_is_the_hosts(void **state) {
  (void)state;
  struct model *model = import_file(
      at("hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz"));
  struct results *results = analyse_all(model);
  is_whole(results);
  assert_true(on_path(results, "cudaDeviceGetStreamPriorityRange", "host") > 24000);
  assert_true(on_path(results, "cudaLaunchKernel", "launch") > 4000);
  assert_true(edges(results, "sync") == 16);
  assert_true(results->gpu_timeline.host_bound_ms > 0.9 * results->gpu_timeline.idle_ms);
  results_free(results);
  model_free(model);
}

/* Two unrelated jobs. */
static void strangers_are_not_aligned(void **state) {
  (void)state;
  char first[8300], second[8300];
  snprintf(first, sizeof(first), "%s", at("hta/nccl_parser_config/nccl_data.json.gz"));
  snprintf(second, sizeof(second), "%s", at("hta/trace_compare/base/base.json.gz"));
  const char *paths[] = {first, second}; /* ranks 0 and 1 */
  struct model *model = import_files(paths, 2);
  assert_int_equal(model->n_ranks, 2);
  assert_false(model->clock_aligned);
  assert_non_null(strstr(model->clock_method, "refused"));
  model_free(model);
}

/* Eight ranks of one step, in which each collective ends on all ranks within 7 us. */
static void eight_ranks_are_put_on_one_axis(void **state) {
  (void)state;
  char where[] = "/tmp/tscope-kineto-XXXXXX", command[8300];
  scratch_make(where);
  snprintf(command, sizeof(command), "tar xzf '%s' -C %s", at("dlrm_8rank/dlrm_kineto.tar.gz"),
           where);
  assert_int_equal(system(command), 0);
  struct model *model = import_file(where);
  scratch_remove(where);

  assert_int_equal(model->n_ranks, 8);
  assert_int_equal(model->world_size, 8);
  assert_true(model->clock_aligned);
  assert_true(model->clock_between_us <= 100);
  u32 complete = 0, all_to_all = 0;
  for (u32 c = 0; c < model->n_collectives; c++) {
    complete += model->collectives[c].complete && model->collectives[c].n_arrivals == 8 &&
                !model->collectives[c].mismatched;
    all_to_all += model->collectives[c].op == TSCOPE_OP_ALLTOALL;
  }
  assert_int_equal(model->n_collectives, 8);
  assert_int_equal(complete, 8);
  assert_int_equal(all_to_all, 5);
  assert_int_equal(model->steps.n, 1);
  assert_string_equal(model->steps.method, "ProfilerStep annotations");

  /* On rank 4, six pieces of work that were launched long before begin 2 us after the end of an
   * all_to_all on another stream, which waits for rank 7. No event was recorded, but the path
   * continues to rank 7. */
  struct results *results = analyse_all(model);
  is_whole(results);
  assert_true(edges(results, "inferred") >= 1);
  assert_true(on_path(results, "launched, not begun", "launch") < 0.5);
  assert_true(results->path_by_rank[7] > 1);
  results_free(results);
  model_free(model);
}

int main(int argc, char **argv) {
  if (!are_there(argc, argv))
    return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gpu_time_is_what_another_analyzer_found),
      cmocka_unit_test(path_crosses_an_event_that_the_host_waits_for),
      cmocka_unit_test(path_takes_the_stream_that_ends_last),
      cmocka_unit_test(path_of_a_launch_bound_run_is_the_hosts),
      cmocka_unit_test(strangers_are_not_aligned),
      cmocka_unit_test(eight_ranks_are_put_on_one_axis),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
