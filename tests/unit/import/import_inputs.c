/* SPDX-License-Identifier: MIT
 *
 * tscope-report recognises its input by the content, wherever the file is.
 */
#include "importing.h"
#include "model_support.h"

#include <errno.h>
#include <sys/stat.h>

#include "report/options.h"

static char why[512];

static const char *write_notes(const struct fixture *fixture) {
  static char path[128];
  scratch_text(fixture->directory, "notes.txt", "nothing of ours");
  snprintf(path, sizeof(path), "%s/notes.txt", fixture->directory);
  return path;
}

static void generate_run(const struct fixture *fixture, u32 ranks) {
  struct tracegen_options options = tracegen_defaults();
  options.directory = fixture->directory;
  options.ranks = ranks;
  options.steps = 4;
  struct tracegen_truth truth;
  assert_int_equal(tracegen_write(&options, &truth), 0);
  tracegen_truth_free(&truth);
}

static void ranks_are_read_from_names(void **state) {
  (void)state;
  static const struct {
    const char *name;
    u32 rank;
  } cases[] = {
      {"rank3.json", 3},
      {"rank_12.json.gz", 12},
      {"rank-0.pt.trace.json", 0},
      {"job7_rank5_1694039959.pt.trace.json.gz", 5},
      {"_dump_11", 11},
      {"nccl_trace_rank_4", 4},
      {"node3_gpu_6", 6},
      {"dump_2.pickle", 2},
      {"trace.json", INDEX_NONE},
      {"", INDEX_NONE},
      {".hidden", INDEX_NONE},
      {"rank99999999999999999999", INDEX_NONE},
  };
  for (size_t i = 0; i < LENGTH_OF(cases); i++)
    if (rank_of_name(cases[i].name) != cases[i].rank)
      fail_msg("%s: rank %u", cases[i].name, rank_of_name(cases[i].name));
}

static void other_numbers_of_names_are_no_ranks(void **state) {
  (void)state;
  assert_int_equal(rank_said_by_name("job7_rank5_1694039959.json"), 5);
  assert_int_equal(rank_said_by_name("snapshot_1694039959.pickle"), INDEX_NONE);
}

static void traces_are_found_and_counted(void **state) {
  struct fixture *fixture = *state;
  generate_run(fixture, 2);
  write_notes(fixture);
  struct model *model = import_file(fixture->directory);
  assert_int_equal(model->n_ranks, 2);
  assert_int_equal(model->n_inputs, 1);
  assert_int_equal(model->inputs[0].files, 2);
  assert_string_equal(model->inputs[0].what, "tscope traces");
  assert_int_equal(model->n_notes, 0);
  model_free(model);
}

static void unknown_files_are_named(void **state) {
  struct fixture *fixture = *state;
  generate_run(fixture, 1);
  const char *paths[] = {fixture->directory, write_notes(fixture)};
  struct model *model = import_files(paths, 2);
  assert_int_equal(model->n_notes, 1);
  assert_non_null(strstr(model->notes[0], "notes.txt is not recognised"));
  model_free(model);
  assert_true(import_load(paths + 1, 1, NULL, &model, why, sizeof(why)) < 0);
  assert_non_null(strstr(why, "notes.txt is not recognised"));
  assert_non_null(strstr(why, "tscope traces"));
  const char *nowhere = "/nonexistent/tscope";
  assert_true(import_load(&nowhere, 1, NULL, &model, why, sizeof(why)) == -ENOENT);
  assert_non_null(strstr(why, "TSCOPE_DIR"));
}

/* Only dumps or snapshots: no ranks, no timelines. The report has no empty panels, the document no
 * zeroes. */
static void models_without_timelines_can_be_reported(void **state) {
  (void)state;
  struct model *model = model_new();
  struct results *results;
  char *text;
  size_t bytes;
  assert_non_null(model);
  results = analyse_all(model);
  assert_int_equal(results->n_findings, 1); /* it says that nothing can be judged */
  assert_int_equal(results->findings[0].id, FINDING_DATA_UNDECIDED);
  FILE *out = open_memstream(&text, &bytes);
  const struct report_view view = {.width = 80};
  assert_int_equal(report_text.write(results, &view, out), 0);
  fclose(out);
  assert_non_null(strstr(text, "Verdict"));
  assert_null(strstr(text, "Steps"));
  assert_null(strstr(text, "Communication"));
  assert_null(strstr(text, "unknown:"));
  free(text);
  out = open_memstream(&text, &bytes);
  assert_int_equal(report_json.write(results, &view, out), 0);
  fclose(out);
  assert_non_null(strstr(text, "\"events\": null"));
  assert_null(strstr(text, "\": 0")); /* unknown figures are not zero */
  free(text);
  results_free(results);
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_are_read_from_names),
      cmocka_unit_test(other_numbers_of_names_are_no_ranks),
      cmocka_unit_test_setup_teardown(traces_are_found_and_counted, make_fixture, drop_fixture),
      cmocka_unit_test_setup_teardown(unknown_files_are_named, make_fixture, drop_fixture),
      cmocka_unit_test(models_without_timelines_can_be_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
