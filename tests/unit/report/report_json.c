/* SPDX-License-Identifier: MIT
 *
 * The JSON report of invented results. (tests/project compares docs/outputs/report-json.md with its
 * fields.)
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyses/stalls/stack_tree.h"
#include "example_results.h"
#include "report/json/json_text.h"
#include "report/report.h"
#include <jansson.h>

static json_t *document_from(struct results *results) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  const struct report_view view = {.width = 80};
  assert_int_equal(report_json.write(results, &view, out), 0);
  example_free(results);
  fclose(out);
  json_error_t error;
  json_t *document = json_loadb(text, bytes, 0, &error); /* refuses invalid UTF-8 */
  free(text);
  assert_non_null(document);
  return document;
}

static json_t *document_of(const char *example) {
  return document_from(example_make(example));
}

static u32 whole_as_real(const json_t *value) {
  size_t i;
  const char *key;
  const json_t *one;
  u32 n = json_is_real(value) && json_real_value(value) == floor(json_real_value(value)) &&
          fabs(json_real_value(value)) < 1e15;
  json_object_foreach((json_t *)value, key, one) n += whole_as_real(one);
  json_array_foreach(value, i, one) n += whole_as_real(one);
  return n;
}

/* 3, and not 3.0 in one place of the document and 3 in another. */
static void whole_numbers_are_written_as_such(void **state) {
  (void)state;
  static const char *const of[] = {"healthy", "straggler", "unknown"};
  for (size_t i = 0; i < LENGTH_OF(of); i++) {
    json_t *document = document_of(of[i]);
    assert_int_equal(whole_as_real(document), 0);
    json_decref(document);
  }
}

/* The names that the first issue specified; programs that read reports rely on them. */
static void promised_names_are_there(void **state) {
  static const char *const promised[] = {
      "schema",
      "run.id",
      "run.world_size",
      "run.ranks_found",
      "run.hosts",
      "run.command",
      "run.duration_s",
      "quality.events",
      "quality.lost",
      "quality.partial_ranks",
      "quality.clock.aligned",
      "quality.clock.method",
      "quality.clock.residual_us",
      "quality.gpu_timing",
      "quality.coverage",
      "quality.overhead",
      "steps.count",
      "steps.warmup_excluded",
      "steps.method",
      "steps.median_ms",
      "steps.p95_ms",
      "steps.cv",
      "phases.data_ms",
      "phases.forward_ms",
      "phases.backward_ms",
      "phases.optimizer_ms",
      "phases.comm_ms",
      "phases.other_ms",
      "distributed.n_steps",
      "distributed.mean_step_wall_ms",
      "distributed.comm_fraction",
      "distributed.imbalance_cv",
      "distributed.sync_skew_ms",
      "distributed.wall_frac_lost_to_imbalance",
      "distributed.ranks.0.rank",
      "distributed.ranks.0.host",
      "distributed.ranks.0.mean_compute_ms",
      "distributed.ranks.0.median_compute_ms",
      "distributed.ranks.0.slowest_count",
      "distributed.ranks.0.slowest_fraction",
      "distributed.ranks.0.z",
      "distributed.ranks.0.p_value",
      "distributed.ranks.0.rel_slowdown",
      "distributed.ranks.0.imposed_wait_ms",
      "distributed.stragglers",
      "overlap.comm_ms",
      "overlap.overlapped_ms",
      "overlap.exposed_ms",
      "overlap.exposed_wait_ms",
      "overlap.exposed_transfer_ms",
      "overlap.exposed_fraction",
      "overlap.by_collective",
      "overlap.by_rank",
      "collectives.0.comm",
      "collectives.0.op",
      "collectives.0.count",
      "collectives.0.bytes",
      "collectives.0.algbw_gbps",
      "collectives.0.busbw_gbps",
      "collectives.0.wait_ms",
      "collectives.0.transfer_ms",
      "critical_path.length_ms",
      "critical_path.by_category",
      "critical_path.by_rank",
      "critical_path.what_if.0.change",
      "critical_path.what_if.0.step_ms",
      "critical_path.what_if.0.saving_fraction",
      "budget.wall_s",
      "budget.lines.0.name",
      "budget.lines.0.seconds",
      "budget.lines.0.fraction",
      "budget.lines.0.recoverable",
      "budget.residual_s",
      "budget.mfu",
      "budget.hfu",
      "budget.flops_per_step",
      "budget.peak_flops",
      "findings.0.id",
      "findings.0.severity",
      "findings.0.title",
      "findings.0.evidence",
      "findings.0.action",
      "findings.0.ranks",
  };
  (void)state;
  json_t *document = document_of("straggler");
  for (size_t i = 0; i < LENGTH_OF(promised); i++) {
    char path[96], *rest = path;
    strcpy(path, promised[i]);
    json_t *at = document;
    for (char *name; at && (name = strsep(&rest, ".")) != NULL;)
      at = json_is_array(at) ? json_array_get(at, (size_t)atoi(name)) : json_object_get(at, name);
    if (!at)
      fail_msg("%s is not in the document", promised[i]);
  }
  json_decref(document);
}

static json_t *get(json_t *document, const char *part, const char *name) {
  json_t *value = json_object_get(json_object_get(document, part), name);
  assert_non_null(value);
  return value;
}

static void unknown_is_null(void **state) {
  (void)state;
  json_t *document = document_of("unknown");
  assert_true(json_is_null(get(document, "run", "command")));
  assert_true(json_is_null(get(document, "run", "duration_s")));
  assert_true(json_is_null(get(document, "steps", "count")));
  assert_true(json_is_null(get(document, "steps", "median_ms")));
  assert_true(json_is_null(get(document, "overlap", "exposed_ms")));
  assert_true(json_is_null(get(document, "critical_path", "length_ms")));
  assert_int_equal(json_object_size(get(document, "critical_path", "by_rank")), 0);
  assert_true(json_is_null(get(document, "budget", "mfu")));
  assert_true(json_is_false(json_object_get(get(document, "quality", "clock"), "aligned")));
  assert_int_equal(json_integer_value(get(document, "quality", "lost")), 1200);
  json_decref(document);
}

static void known_values_come_through(void **state) {
  (void)state;
  json_t *document = document_of("straggler");
  json_t *stragglers = get(document, "distributed", "stragglers");
  assert_int_equal(json_array_size(stragglers), 1);
  assert_int_equal(json_integer_value(json_array_get(stragglers, 0)), 2);
  assert_true(fabs(json_real_value(get(document, "steps", "median_ms")) - 313.2) < 1e-9);
  assert_int_equal(json_integer_value(get(document, "steps", "count")), 110);
  assert_int_equal(json_array_size(get(document, "run", "hosts")), 2);
  json_decref(document);
}

static void hostile_names_stay_data(void **state) {
  (void)state;
  json_t *document = document_of("hostile");
  const char *command = json_string_value(get(document, "run", "command"));
  assert_non_null(strstr(command, "train\033[2J"));
  assert_non_null(strstr(command, "--name=\xef\xbf\xbd\xef\xbf\xbd\xe2\x80\xae"
                                  "evil \xe8\xa8\x93\xe7\xb7\xb4\nnext"));
  json_decref(document);
}

/* However many ranks stall, each at a line of its own. */
static void all_stacks_are_there(void **state) {
  enum { RANKS = 3000 };
  (void)state;
  struct results *results = example_make("unknown");
  struct arena *arena = results->internal;
  struct tree_stack *stacks = arena_array(arena, RANKS, sizeof(*stacks));
  struct call_frame *frames = arena_array(arena, RANKS, sizeof(*frames));
  struct stack_tree tree;
  for (u32 i = 0; i < RANKS; i++) {
    const struct call_frame **frame = arena_alloc(arena, sizeof(*frame));
    frames[i] = (struct call_frame){.file = "job.py", .function = "step", .line = i + 1};
    *frame = &frames[i];
    stacks[i] = (struct tree_stack){.rank = i, .frames = frame, .n = 1};
  }
  stack_tree_make(arena, stacks, RANKS, &tree);
  results->stalls.tree = tree.nodes;
  results->stalls.n_tree = tree.n;
  json_t *document = document_from(results);
  assert_int_equal(json_array_size(get(document, "stalls", "lines")), RANKS);
  json_decref(document);
}

/* The text as json_text_write() has it, and as jansson itself would write the value. */
static void assert_written_as_by_jansson(json_t *value) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  assert_int_equal(json_text_write(value, JSON_TEXT_SCRIPT, out), 0);
  fclose(out);
  char *expected = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY |
                                         JSON_REAL_PRECISION(9));
  assert_string_equal(text, expected);
  free(expected);
  free(text);
  json_decref(value);
}

static void numbers_are_written_as_printf_does(void **state) {
  (void)state;
  static const double sizes[] = {1e-6, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 12345, 1e7, 1e8, 1e9, 1e16};
  static const double parts[] = {0.1,
                                 0.123456789,
                                 0.9999999995,
                                 0.99999999949,
                                 1,
                                 1.0000000005,
                                 1.00000000049,
                                 1.23456789,
                                 1.2345678905,
                                 1.5,
                                 2.5000000150,
                                 9.9999999949,
                                 9.9999999951,
                                 9.999999995,
                                 -0.123456789,
                                 -4};
  for (size_t i = 0; i < LENGTH_OF(sizes); i++)
    for (size_t k = 0; k < LENGTH_OF(parts); k++)
      assert_written_as_by_jansson(json_real(sizes[i] * parts[k]));
  assert_written_as_by_jansson(json_real(65536.00048828125));
  assert_written_as_by_jansson(json_real(0.5 + 0x1p-10)); /* 0.5009765625: in the middle */
  for (u64 i = 1; i < 20000; i++)                         /* spread over all sizes */
    assert_written_as_by_jansson(
        json_real(ldexp((double)(i * 0x9e3779b97f4a7c15u >> 11), (int)(i % 60) - 80)));
  assert_written_as_by_jansson(json_real(0.0));
  assert_written_as_by_jansson(json_real(-0.0));
  static const json_int_t whole[] = {0, 7, -7, 1234567890, INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < LENGTH_OF(whole); i++)
    assert_written_as_by_jansson(json_integer(whole[i]));
}

static void texts_and_lists_are_written_as_by_jansson(void **state) {
  (void)state;
  assert_written_as_by_jansson(json_string("plain text, 100 %"));
  assert_written_as_by_jansson(
      json_string("\"\\/\b\f\n\r\t\001\177 \xe8\xa8\x93 \xf0\x9f\x8e\x84"));
  assert_written_as_by_jansson(json_pack("{s:[], s:{}, s:[i,n,f,b], s:[s,[i],{s:n}]}", "a", "b",
                                         "c\n", 1, 2.5, 1, "d", "x", 3, "y"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(promised_names_are_there),
      cmocka_unit_test(unknown_is_null),
      cmocka_unit_test(known_values_come_through),
      cmocka_unit_test(whole_numbers_are_written_as_such),
      cmocka_unit_test(hostile_names_stay_data),
      cmocka_unit_test(all_stacks_are_there),
      cmocka_unit_test(numbers_are_written_as_printf_does),
      cmocka_unit_test(texts_and_lists_are_written_as_by_jansson),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
