/* SPDX-License-Identifier: MIT
 *
 * Traces as the versions of PyTorch's profiler and other exporters write them, also damaged ones:
 * times, ranks and steps. Each is written here together with the expected result.
 */
#include "kineto_texts.h"

#include "analyses/analysis.h"

/* MTIA's calls have no prefix. What the host waits for in one is work that it waited for. */
static void waits_of_mtia_are_known(void **state) {
#define MTIA_CALL(name, at, dur, correlation)                                                      \
  "{\"ph\":\"X\",\"cat\":\"mtia_runtime\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" at    \
  ",\"dur\":" dur ",\"args\":{\"correlation\":" correlation "}}"
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" MTIA_CALL("runFunction", "10", "5", "1") "," MTIA_CALL(
          "synchronizeStream", "20", "100",
          "2") ",{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"merge\",\"pid\":0,\"tid\":7,"
               "\"ts\":18,\"dur\":100,\"args\":{\"device\":0,\"stream\":7,\"correlation\":1}}]}");
  struct timeline timeline = timeline_of(model, 0);
  assert_int_equal(count_kind(&timeline, SPAN_SYNC), 1);
  assert_int_equal(timeline.n_edges, 1);
  assert_int_equal(timeline.spans[timeline.edges[0].from].kind, SPAN_KERNEL);
  timeline_release(&timeline);
  model_free(model);
}

/* Microseconds with a fraction, on a clock that begins at baseTimeNanoseconds. */
static void fractions_are_nanoseconds(void **state) {
  struct model *model = read_text(
      *state, "{\"schemaVersion\":1,\"traceEvents\":[" LAUNCH("10.250", "1") "," KERNEL(
                  "k", "20.125", "3.001", "1") "],\"baseTimeNanoseconds\":1700000000000000000}");
  struct timeline timeline = timeline_of(model, 0);
  const struct span *kernel = first_of(&timeline, SPAN_KERNEL);
  assert_int_equal(kernel->start, 9875); /* relative to the launch, which is the first instant */
  assert_int_equal(kernel->end - kernel->start, 3001);
  assert_string_equal(timeline_name(&timeline, kernel->name), "k");
  assert_int_equal(timeline.spans[kernel->launch].kind, SPAN_LAUNCH);
  timeline_release(&timeline);
  model_free(model);
}

/* A ts so large that it must be in nanoseconds, as some exporters write it. */
static void whole_nanoseconds_are_known(void **state) {
  struct model *model =
      read_text(*state, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" LAUNCH(
                            "1700000000000000000", "1") "," KERNEL("k", "1700000000000004000",
                                                                   "1500", "1") "]}");
  struct timeline timeline = timeline_of(model, 0);
  const struct span *kernel = first_of(&timeline, SPAN_KERNEL);
  assert_int_equal(kernel->start, 4000);
  assert_int_equal(kernel->end - kernel->start, 1500);
  timeline_release(&timeline);
  model_free(model);
}

/* The categories of PyTorch 1.8, a bare list of events, and the function names of ROCm. */
static void old_and_amd_traces_are_read(void **state) {
  struct model *model = read_text(
      *state,
      "[{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mm\",\"pid\":\"9\",\"tid\":\"2\","
      "\"ts\":"
      "1,\"dur\":20},"
      "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"hipExtModuleLaunchKernel\",\"pid\":9,\"tid\":2,"
      "\"ts\":3,\"dur\":4,\"args\":{\"correlation\":\"77\"}},"
      "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"hipStreamSynchronize\",\"pid\":9,\"tid\":2,"
      "\"ts\":8,\"dur\":12},"
      "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"Cijk_Ailk\",\"pid\":0,\"tid\":\"stream 3 \","
      "\"ts\":9,\"dur\":9,\"args\":{\"correlation\":77}},"
      "{\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"CopyHostToDevice\",\"pid\":0,\"tid\":\"stream "
      "3\","
      "\"ts\":19,\"dur\":1,\"args\":{\"bytes\":4096}}]");
  struct timeline timeline = timeline_of(model, 0);
  const struct span *kernel = first_of(&timeline, SPAN_KERNEL);
  assert_int_equal(count_kind(&timeline, SPAN_OP), 1);
  assert_int_equal(timeline.spans[kernel->launch].kind, SPAN_LAUNCH);
  assert_int_equal(first_of(&timeline, SPAN_MEMCPY)->category, TSCOPE_MEMCPY_H2D);
  assert_int_equal(first_of(&timeline, SPAN_MEMCPY)->lane, kernel->lane);
  /* the trace does not say what the host waited for, but it returned when the kernel had ended */
  assert_int_equal(timeline.n_edges, 1);
  assert_ptr_equal(&timeline.spans[timeline.edges[0].from], kernel);
  assert_int_equal(timeline.spans[timeline.edges[0].to].kind, SPAN_SYNC);
  timeline_release(&timeline);
  model_free(model);
}

/* Exporters write the host's events first. */
static void a_quick_look_that_never_reached_the_gpu_says_so(void **state) {
  const struct fixture *fixture = *state;
  const char *path = fixture->directory;
  struct model *model = NULL;
  char why[512];
  write_text(fixture, "rank0.trace.json",
             "{\"traceEvents\":[" LAUNCH("1", "1") "," LAUNCH("11", "2") "," KERNEL("k", "20", "3",
                                                                                    "1") "]}");
  for (u64 quick = 2; quick <= 3; quick++) {
    const struct model_options options = {.quick = quick, .threads = 1};
    assert_int_equal(import_load(&path, 1, &options, &model, why, sizeof(why)), 0);
    bool said = false;
    for (u32 i = 0; i < model->n_notes; i++)
      said |= strstr(model->notes[i], "NO GPU WORK") != NULL;
    assert_int_equal(said, quick == 2);
    model_free(model);
  }
}

static void broken_files_are_read_as_far_as_they_go(void **state) {
  static const struct {
    const char *text;
    u32 kernels;
    const char *damage; /* NULL: the file is whole, and there is only a note */
  } cases[] = {
      {"{\"traceEvents\":[" KERNEL("a", "1", "1", "0") "," KERNEL("b", "3", "1",
                                                                  "0") ",{\"ph\":\"X\",",
       2, "cut short"},
      {"{\"traceEvents\":[" KERNEL("a", "1", "1", "0") "," KERNEL("b", "3", "1", "0"), 2,
       "cut short"},
      {"{\"traceEvents\":[" KERNEL("a", "1", "1", "0") " oops {\"x\" 3}, " KERNEL("b", "3", "1",
                                                                                  "0") "]}",
       2, "broken JSON"},
      {"{\"traceEvents\":[" KERNEL("a", "1", "1", "0") ",," KERNEL("b", "3", "1", "0") ",],}", 2,
       NULL},
      {"{\"traceEvents\":[" KERNEL("a", "NaN", "1", "0") "," KERNEL("b", "3", "Infinity", "0") "]}",
       1, NULL},
      {"{\"traceEvents\":[" KERNEL("a\\q\\u12", "1", "1", "0") "]}", 1, NULL},
  };
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct model *model = read_text(*state, cases[i].text);
    struct timeline timeline = timeline_of(model, 0);
    assert_int_equal(count_kind(&timeline, SPAN_KERNEL), cases[i].kernels);
    if (cases[i].damage)
      assert_non_null(strstr(model->ranks[0].damage, cases[i].damage));
    else
      assert_null(model->ranks[0].damage);
    if (!cases[i].damage) {
      assert_int_equal(model->n_notes, 1);
      bool one = i + 1 == LENGTH_OF(cases);
      assert_non_null(
          strstr(model->notes[0], one ? "1 event is not valid JSON" : "not valid JSON"));
    }
    timeline_release(&timeline);
    model_free(model);
  }
}

/* Claims that would need gigabytes of memory or endless time. */
static void false_claims_are_not_believed(void **state) {
  struct model *model = read_text(
      *state,
      "{\"distributedInfo\":{\"rank\":4000000000,\"world_size\":4000000000},\"traceEvents\":["
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"tid\":1,\"ts\":1,"
      "\"dur\":1,\"args\":{\"Collective name\":\"allreduce\",\"Group size\":1000000000,"
      "\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0, 1, 4000000000]\"}}," KERNEL(
          "k", "9.3e18", "9e18", "1") "," KERNEL("k", "-9e300", "1", "1") "]}");
  assert_int_equal(model->n_ranks, 1);
  assert_int_equal(model->ranks[0].rank, 0);
  assert_int_equal(model->world_size == 0 || model->world_size == 1, 1);
  for (u32 c = 0; c < model->n_comms; c++)
    assert_true(model->comms[c].size <= 4096);
  assert_true(model->end - model->begin < 1000000);
  model_free(model);
}

/* What is no number is no rank: then the file's name says it. */
static void a_rank_may_be_a_text(void **state) {
  static const char *const ranks[] = {"\"5\"", "\"node-7\"", "\"\"", "null", "true"};
  for (u32 i = 0; i < LENGTH_OF(ranks); i++) {
    char text[512];
    snprintf(text, sizeof(text),
             "{\"distributedInfo\":{\"rank\":%s},\"traceEvents\":[" KERNEL("k", "1", "1", "1") "]}",
             ranks[i]);
    write_text(*state, "rank3.trace.json", text);
    struct model *model = read_folder(*state);
    assert_int_equal(model->ranks[0].rank, i == 0 ? 5 : 3);
    model_free(model);
  }
}

/* Rank r's all-reduces end together on all ranks; its clock is off by r seconds and its trace
 * begins `skip` collectives later. */
static void write_rank(const struct fixture *fixture, const char *name, u32 r, u32 skip,
                       const char *more) {
  static const char *const sizes[] = {"1000", "2000", "3000", "4000", "5000", "6000"};
  char *text;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  fprintf(out, "{\"schemaVersion\":1,%s\"traceEvents\":[", more);
  for (u32 k = skip; k < 6; k++)
    fprintf(out,
            "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum_f32\","
            "\"pid\":0,\"tid\":20,\"ts\":%u,\"dur\":%u,\"args\":{\"stream\":20,\"Collective name\":"
            "\"allreduce\",\"In msg nelems\":%s,\"Out msg nelems\":%s,\"dtype\":\"Float\","
            "\"Group size\":2,\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0, 1]\"}}",
            k > skip ? "," : "", r * 1000000 + k * 1000 + 10 * r, 500 - 10 * r, sizes[k], sizes[k]);
  fputs("]}", out);
  fclose(out);
  write_text(fixture, name, text);
  free(text);
}

static void traces_that_begin_later_are_matched(void **state) {
  write_rank(*state, "a.trace.json", 0, 0, "\"distributedInfo\":{\"rank\":0,\"world_size\":2},");
  write_rank(*state, "b.trace.json", 1, 2, "\"distributedInfo\":{\"rank\":1,\"world_size\":2},");
  struct model *model = read_folder(*state);
  assert_int_equal(model->n_ranks, 2);
  u32 complete = 0;
  for (u32 c = 0; c < model->n_collectives; c++) {
    complete += model->collectives[c].complete;
    assert_false(model->collectives[c].mismatched);
  }
  assert_int_equal(complete, 4);
  assert_true(model->clock_aligned);
  assert_true(fabs((double)model->ranks[1].clock.offset_ns + 1e9) < 1000 ||
              fabs((double)model->ranks[1].clock.offset_ns) > 9e8);
  assert_int_equal(model->comms[0].size, 2);
  model_free(model);
}

/* Without distributedInfo, the rank is the only one that is in both groups, or else it comes from
 * the file's name. */
static void ranks_are_found_without_distributed_info(void **state) {
  write_text(*state, "x.trace.json",
             "{\"traceEvents\":["
             "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"tid\":1,\"ts\":1,"
             "\"dur\":1,\"args\":{\"Collective name\":\"allreduce\",\"Process Group Name\":\"1\","
             "\"Process Group Ranks\":\"[4, 5]\"}},"
             "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"tid\":1,\"ts\":3,"
             "\"dur\":1,\"args\":{\"Collective name\":\"allreduce\",\"Process Group Name\":\"2\","
             "\"Process Group Ranks\":\"[1, 5]\"}}]}");
  write_text(*state, "worker3_step_12.1694128201545.pt.trace.json",
             "{\"traceEvents\":[" KERNEL("k", "1", "1", "0") "]}");
  struct model *model = read_folder(*state);
  assert_int_equal(model->n_ranks, 2);
  assert_int_equal(model->ranks[0].rank, 3);
  assert_int_equal(model->ranks[1].rank, 5);
  model_free(model);
}

static void steps_are_the_profilers(void **state) {
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":["
      "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#5\",\"tid\":1,\"ts\":100,"
      "\"dur\":50},"
      "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#6\",\"tid\":1,\"ts\":160,"
      "\"dur\":30},"
      "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"Optimizer.step#SGD.step\",\"tid\":1,"
      "\"ts\":165,\"dur\":10},"
      "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"## Fwd ##\",\"tid\":1,"
      "\"ts\":161,\"dur\":3}," KERNEL("k", "170", "100", "1") "]}");
  assert_string_equal(model->steps.method, "ProfilerStep annotations");
  assert_int_equal(model->steps.n, 2);
  assert_int_equal(model->steps.end[1] - model->steps.begin[0], 90000);
  assert_int_equal(model->phases[1].optimizer, 10000);
  assert_int_equal(model->phases[1].forward, 3000);
  model_free(model);
}

/* Eight batches of four kernels, of which the host prepares each for 100 us. */
static void steps_without_names_are_rounds_of_launches(void **state) {
  static const char *const kernels[] = {"embed", "gemm", "gemm", "head"};
  char text[16384] = "{\"traceEvents\":[", comma = ' ';
  for (u32 i = 0; i < 8; i++)
    for (u32 k = 0; k < 4; k++, comma = ',') {
      u32 at = 1000 + i * 140 + k * 10, id = 1 + i * 4 + k;
      char launched[32], ran[32], number[32];
      snprintf(launched, sizeof(launched), "%u", at);
      snprintf(ran, sizeof(ran), "%u", at + 6);
      snprintf(number, sizeof(number), "%u", id);
      snprintf(text + strlen(text), sizeof(text) - strlen(text),
               "%c" LAUNCH("%s", "%s") "," KERNEL("%s", "%s", "3", "%s"), comma, launched, number,
               kernels[k], ran, number);
    }
  strcat(text, "]}");
  struct model *model = read_text(*state, text);
  assert_string_equal(model->steps.method, "repeated launches");
  assert_int_equal(model->steps.n, 8);
  assert_int_equal(model->steps.end[3] - model->steps.begin[3], 140000);
  model_free(model);
}

#define ITERATION(name, start, duration)                                                           \
  "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"" name "\",\"tid\":1,\"ts\":" start        \
  ",\"dur\":" duration "},"

/* Each kind has its own times; where nobody calls step(), these are the steps. */
static void check_iterations(void **state, const char *text) {
  struct model *model = read_text(*state, text);
  struct results *r;
  assert_string_equal(model->steps.method, "the engine's iterations");
  assert_int_equal(model->steps.n, 4);
  r = analyse_all(model);
  assert_int_equal(r->n_step_kinds, 3);
  const struct step_kind_result wanted[] = {
      {"prefill", 1, 0.2, 0.2}, {"decode", 2, 0.045, 0.05}, {"prefill and decode", 1, 0.3, 0.3}};
  for (u32 i = 0; i < 3; i++) {
    assert_string_equal(r->step_kinds[i].kind, wanted[i].kind);
    assert_true(r->step_kinds[i].count == wanted[i].count);
    assert_true(fabs(r->step_kinds[i].median_ms - wanted[i].median_ms) < 1e-9);
    assert_true(r->step_kinds[i].p95_ms <= wanted[i].p95_ms + 1e-9);
  }
  results_free(r);
  model_free(model);
}

static void steps_are_an_engines_iterations(void **state) {
  check_iterations(
      state,
      "{\"traceEvents\":[" ITERATION("execute_context_1(888_788544)_generation_0(0)", "100", "190")
          ITERATION("execute_32_context_0(sq0sk0)_generation_32(sq32sk55)", "300", "45")
              ITERATION("execute_8192_context_9(sq1)_generation_37(sq37)", "350", "299")
                  ITERATION("execute_context_0(0)_generation_8(8_90)", "650", "40")
                      KERNEL("k", "110", "10", "1") "]}");
  check_iterations(state, "{\"traceEvents\":[" ITERATION("step[EXTEND bs=1 toks=107]", "100", "190")
                              ITERATION("step[DECODE bs=32]", "300", "45")
                                  ITERATION("step[MIXED bs=2]", "350", "299")
                                      ITERATION("step[DECODE bs=63]", "650", "40")
                                          KERNEL("k", "110", "10", "1") "]}");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(waits_of_mtia_are_known),
      WITH_FOLDER(fractions_are_nanoseconds),
      WITH_FOLDER(whole_nanoseconds_are_known),
      WITH_FOLDER(old_and_amd_traces_are_read),
      WITH_FOLDER(broken_files_are_read_as_far_as_they_go),
      WITH_FOLDER(false_claims_are_not_believed),
      WITH_FOLDER(a_rank_may_be_a_text),
      WITH_FOLDER(traces_that_begin_later_are_matched),
      WITH_FOLDER(ranks_are_found_without_distributed_info),
      WITH_FOLDER(steps_are_the_profilers),
      WITH_FOLDER(steps_without_names_are_rounds_of_launches),
      WITH_FOLDER(steps_are_an_engines_iterations),
      WITH_FOLDER(a_quick_look_that_never_reached_the_gpu_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
