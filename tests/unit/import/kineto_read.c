/* SPDX-License-Identifier: MIT
 *
 * Traces as the versions of PyTorch's profiler and other exporters write them, also damaged ones.
 * Each is written here together with the expected result.
 */
#include "model_support.h"

#include "analyses/analysis.h"
#include "import/import.h"
#include "model/span_call_sites.h"

static char why[512];

static void write_text(const struct fixture *fixture, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static struct model *read_folder(const struct fixture *fixture) {
  const char *path = fixture->directory;
  struct model *model = NULL;
  if (import_load(&path, 1, NULL, &model, why, sizeof(why)) != 0)
    fail_msg("%s", why);
  return model;
}

static struct model *read_text(const struct fixture *fixture, const char *text) {
  write_text(fixture, "rank0.trace.json", text);
  return read_folder(fixture);
}

static struct timeline timeline_of(const struct model *model, u32 rank) {
  struct timeline timeline;
  assert_int_equal(timeline_load(model, rank, &timeline), 0);
  return timeline;
}

static u32 count_kind(const struct timeline *timeline, u8 kind) {
  u32 n = 0;
  for (u32 i = 0; i < timeline->n_spans; i++)
    n += timeline->spans[i].kind == kind;
  return n;
}

static const struct span *first_of(const struct timeline *timeline, u8 kind) {
  for (u32 i = 0; i < timeline->n_spans; i++)
    if (timeline->spans[i].kind == kind)
      return &timeline->spans[i];
  fail_msg("no span of kind %u", kind);
  return NULL;
}

#define LAUNCH(at, correlation)                                                                    \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,"      \
  "\"ts\":" at ",\"dur\":5,\"args\":{\"correlation\":" correlation "}}"
#define KERNEL(name, at, dur, correlation)                                                         \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" at          \
  ",\"dur\":" dur ",\"args\":{\"device\":0,\"stream\":7,\"correlation\":" correlation "}}"

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
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    struct model *model = read_text(*state, cases[i].text);
    struct timeline timeline = timeline_of(model, 0);
    assert_int_equal(count_kind(&timeline, SPAN_KERNEL), cases[i].kernels);
    if (cases[i].damage)
      assert_non_null(strstr(model->ranks[0].damage, cases[i].damage));
    else
      assert_null(model->ranks[0].damage);
    if (!cases[i].damage) {
      assert_int_equal(model->n_notes, 1);
      assert_non_null(strstr(model->notes[0], "not valid JSON"));
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
      "\"ts\":165,\"dur\":10}," KERNEL("k", "170", "100", "1") "]}");
  assert_string_equal(model->steps.method, "ProfilerStep annotations");
  assert_int_equal(model->steps.n, 2);
  assert_int_equal(model->steps.end[1] - model->steps.begin[0], 90000);
  assert_int_equal(model->phases[1].optimizer, 10000);
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
  static const struct analyse_options options = {
      .flops_per_step = NAN, .params = NAN, .tokens_per_step = NAN, .peak_tflops = NAN};
  struct model *model = read_text(*state, text);
  struct results *r;
  assert_string_equal(model->steps.method, "the engine's iterations");
  assert_int_equal(model->steps.n, 4);
  r = analyse(model, &options);
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

static double path_ms(const struct results *results, const char *category) {
  for (u32 i = 0; i < results->n_path_by_category; i++)
    if (strcmp(results->path_by_category[i].name, category) == 0)
      return results->path_by_category[i].ms;
  return NAN;
}

/* Three kernels of 100 us, 20 us apart, were launched before the recording begins. One more is
 * launched in it, and ends after the host's last call. No part of the path is unknown. */
static void the_path_of_a_recording_that_begins_amid_work(void **state) {
  static const struct analyse_options options = {
      .flops_per_step = NAN, .params = NAN, .tokens_per_step = NAN, .peak_tflops = NAN};
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" KERNEL("a", "100", "100", "1") "," KERNEL(
          "b", "220", "100",
          "2") "," KERNEL("c", "340", "100",
                          "3") "," LAUNCH("300", "9") "," KERNEL("d", "440", "160", "9") "]}");
  struct results *results = analyse(model, &options);
  assert_true(fabs(results->path_length_ms - 0.5) < 1e-9);
  assert_true(fabs(path_ms(results, "compute") - 0.46) < 1e-9);
  assert_true(fabs(path_ms(results, "launch") - 0.04) < 1e-9);
  assert_true(path_ms(results, "unknown") == 0);
  results_free(results);
  model_free(model);
}

/* A stream waits for an event of another stream, and the host waits for an event, as cuda_sync
 * events show. */
static void waits_are_edges(void **state) {
#define CALL(name, at, correlation)                                                                \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" at    \
  ",\"dur\":1,\"args\":{\"correlation\":" correlation "}}"
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" LAUNCH("10", "1") "," CALL("cudaEventRecord", "16", "2") "," CALL(
          "cudaStreamWaitEvent", "18",
          "3") "," LAUNCH("20",
                          "4") "," CALL("cudaEventRecord", "26",
                                        "5") ","
                                             "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                                             "\"cudaEventSynchronize\",\"pid\":1,\"tid\":1,"
                                             "\"ts\":30,\"dur\":90,\"args\":{\"correlation\":6}}"
                                             "," KERNEL(
                                                 "first", "15", "40",
                                                 "1") ","
                                                      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
                                                      "\"second\",\"pid\":0,\"tid\":8,\"ts\":56,"
                                                      "\"dur\":60,"
                                                      "\"args\":{\"device\":0,\"stream\":8,"
                                                      "\"correlation\":4}},"
                                                      "{\"ph\":\"X\",\"cat\":\"cuda_sync\","
                                                      "\"name\":\"Stream Wait "
                                                      "Event\",\"pid\":0,\"tid\":8,"
                                                      "\"ts\":18,\"dur\":1,\"args\":{\"stream\":8,"
                                                      "\"correlation\":3,\"wait_on_stream\":7,"
                                                      "\"wait_on_cuda_event_record_corr_id\":2}},"
                                                      "{\"ph\":\"X\",\"cat\":\"cuda_sync\","
                                                      "\"name\":\"Event "
                                                      "Sync\",\"pid\":0,\"tid\":-1,\"ts\":30,"
                                                      "\"dur\":89,\"args\":{\"stream\":-1,"
                                                      "\"correlation\":6,\"wait_on_stream\":8,"
                                                      "\"wait_on_cuda_event_record_corr_id\":5}}]"
                                                      "}");
  struct timeline timeline = timeline_of(model, 0);
  assert_int_equal(timeline.n_edges, 2);
  for (u32 i = 0; i < 2; i++) {
    const struct edge *edge = &timeline.edges[i];
    const char *from = timeline_name(&timeline, timeline.spans[edge->from].name);
    const char *to = timeline_name(&timeline, timeline.spans[edge->to].name);
    assert_string_equal(from, edge->kind == EDGE_EVENT ? "first" : "second");
    assert_string_equal(to, edge->kind == EDGE_EVENT ? "second" : "cudaEventSynchronize");
  }
  timeline_release(&timeline);
  model_free(model);
}

#define COPY(call_at, call_dur, at, correlation)                                                   \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":1,\"tid\":1,"       \
  "\"ts\":" call_at ",\"dur\":" call_dur ",\"args\":{\"correlation\":" correlation "}},"           \
  "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH (Device -> Pageable)\",\"pid\":0,"  \
  "\"tid\":7,\"ts\":" at ",\"dur\":2,\"args\":{\"device\":0,\"stream\":7,\"bytes\":4,"             \
  "\"correlation\":" correlation "}}"

/* loss.item(): the call of the copy returns when the copy has ended, and so the kernel before it.
 * The second copy runs after its call. */
static void a_copy_to_pageable_memory_is_a_wait(void **state) {
  static const struct analyse_options options = {
      .flops_per_step = NAN, .params = NAN, .tokens_per_step = NAN, .peak_tflops = NAN};
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" LAUNCH("10", "1") "," KERNEL("a", "20", "400", "1") "," COPY(
          "16", "410", "422",
          "2") "," LAUNCH("430", "3") "," KERNEL("b", "440", "100", "3") "," COPY("436", "60",
                                                                                  "541", "4") "]}");
  struct timeline timeline = timeline_of(model, 0);
  assert_int_equal(timeline.n_edges, 1);
  const struct span *wait = &timeline.spans[timeline.edges[0].to];
  assert_int_equal(wait->kind, SPAN_SYNC);
  assert_string_equal(timeline_name(&timeline, wait->name), "cudaMemcpyAsync");
  assert_in_range(wait->end - wait->start, 409999, 410000);
  assert_int_equal(timeline.spans[timeline.edges[0].from].kind, SPAN_MEMCPY);
  timeline_release(&timeline);
  struct results *results = analyse(model, &options);
  assert_true(fabs(path_ms(results, "compute") - 0.5) < 1e-9);
  results_free(results);
  model_free(model);
}

/* The host puts work on stream 7 that begins 5 ms later, and in that time nothing runs; a little
 * kernel ran on stream 8 before. What the device did meanwhile was launched earlier. If it computes
 * meanwhile, the work waited for that. */
static void what_a_stream_did_before_is_not_known(void **state) {
#define ON_8(at, dur)                                                                              \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"other\",\"pid\":0,\"tid\":8,\"ts\":" at             \
  ",\"dur\":" dur ",\"args\":{\"device\":0,\"stream\":8,\"correlation\":1}}"
  struct model *model =
      read_text(*state, "{\"traceEvents\":[" LAUNCH("10", "1") "," ON_8("16", "2") "," LAUNCH(
                            "20", "2") "," KERNEL("a", "5020", "400", "2") "]}");
  const struct rank *rank = &model->ranks[0];
  assert_false(model_gpu_seen(rank, rank->begin, rank->begin + 4000000));
  assert_true(model_gpu_seen(rank, rank->begin + 5010000, rank->begin + 5400000));
  model_free(model);
  model =
      read_text(*state, "{\"traceEvents\":[" LAUNCH("10", "1") "," ON_8("16", "5000") "," LAUNCH(
                            "20", "2") "," KERNEL("a", "5020", "400", "2") "]}");
  assert_true(
      model_gpu_seen(&model->ranks[0], model->ranks[0].begin, model->ranks[0].begin + 4000000));
  model_free(model);
}

static bool is(double value, double wanted) {
  return fabs(value - wanted) < 1e-9;
}

/* Computed by hand: work at [10,30) [60,80) [85,95) [110,111) us, launched by calls that return at
 * 5, 55, 83 and 107. */
static void gpu_time_and_launches_add_up(void **state) {
  static const struct analyse_options options = {
      .flops_per_step = NAN, .params = NAN, .tokens_per_step = NAN, .peak_tflops = NAN};
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" LAUNCH("0", "1") "," KERNEL("a", "10", "20", "1") "," LAUNCH(
          "50", "2") "," KERNEL("b", "60", "20",
                                "2") ","
                                     "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                                     "\"cudaMemcpyAsync\",\"pid\":1,\"tid\":1,"
                                     "\"ts\":81,\"dur\":2,\"args\":{\"correlation\":3}},"
                                     "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD "
                                     "(Pinned -> Device)\",\"tid\":7,"
                                     "\"ts\":85,\"dur\":10,\"args\":{\"device\":0,\"stream\":7,"
                                     "\"correlation\":3,\"bytes\":4096}},"
                                     "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::zero_\","
                                     "\"pid\":1,\"tid\":1,\"ts\":100,"
                                     "\"dur\":20,\"args\":{\"Input Dims\":[[4, 4]]}}," LAUNCH(
                                         "102", "4") "," KERNEL("fill", "110", "1", "4") "]}");
  struct results *results = analyse(model, &options);
  const struct gpu_timeline_result *gpu = &results->gpu_timeline;
  assert_true(is(gpu->compute_ms, 0.041) && is(gpu->exposed_memcpy_ms, 0.010));
  assert_true(gpu->exposed_comm_ms == 0);
  assert_true(is(gpu->idle_ms, 0.050) && is(gpu->total_ms, 0.101));
  assert_true(is(gpu->host_bound_ms, 0.040) && is(gpu->kernel_gap_ms, 0.010));
  assert_true(gpu->other_ms == 0);
  assert_true(results->launch.kernels == 3 && results->launch.short_kernels == 1);
  assert_true(is(results->launch.delay_max_us, 5) && results->launch.queue_max == 1);
  assert_int_equal(results->launch.n_memcpys, 1);
  assert_string_equal(results->launch.memcpys[0].direction, "host to device");
  assert_true(results->launch.memcpys[0].bytes == 4096 &&
              is(results->launch.memcpys[0].gbps, 0.4096));
  assert_int_equal(results->launch.n_fills, 1);
  assert_string_equal(results->launch.fills[0].name, "aten::zero_ [[4, 4]]");
  assert_true(results->launch.fills[0].count == 1 && is(results->launch.fills[0].sum_ms, 0.001));
  assert_true(isnan(results->launch.recompute_ms));
  results_free(results);
  model_free(model);
}

/* The backward pass of a checkpoint runs the forward pass again before its own work. */
static void recomputation_is_separated_from_backward(void **state) {
  static const struct analyse_options options = {
      .flops_per_step = NAN, .params = NAN, .tokens_per_step = NAN, .peak_tflops = NAN};
  struct model *model =
      read_text(*state, "{\"traceEvents\":["
                        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"CheckpointFunctionBackward\","
                        "\"pid\":1,\"tid\":1,"
                        "\"ts\":0,\"dur\":100}," LAUNCH("10", "1") "," KERNEL(
                            "forward", "20", "7",
                            "1") ","
                                 "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"autograd::engine::"
                                 "evaluate_function: Mm\","
                                 "\"pid\":1,\"tid\":1,\"ts\":40,\"dur\":50}," LAUNCH(
                                     "50", "2") "," KERNEL("backward", "60", "20", "2") "]}");
  struct results *results = analyse(model, &options);
  assert_true(is(results->launch.recompute_ms, 0.007));
  results_free(results);
  model_free(model);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_fixture, drop_fixture)

#define ON_HOST(category, name, tid, at, dur, arguments)                                           \
  "{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid            \
  ",\"ts\":" at ",\"dur\":" dur ",\"args\":{" arguments "}},"
#define NUMBERED(number, thread) "\"Sequence number\":" number ",\"Fwd thread id\":" thread
#define ON_GPU(at, correlation)                                                                    \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":" at                 \
  ",\"dur\":4,\"args\":{\"device\":0,\"stream\":7,\"correlation\":" correlation "}},"

/* Two functions call one operator each on thread 1. On thread 2 autograd runs their backward and
 * that of an operator that is not in the trace. An operator without a backward used the sequence
 * number before. */
static void lines_are_of_functions_and_backward_is_of_its_forward(void **state) {
  struct model *model = read_text(
      *state,
      "{\"traceEvents\":[" ON_HOST("python_function", "train.py(10): main", "1", "0", "400",
                                   "\"Python id\":1")
          ON_HOST("python_function", "model.py(20): first", "1", "10", "40", "") ON_HOST(
              "python_function", "torch/nn/functional.py(5): relu", "1", "12", "36",
              "") ON_HOST("python_function", "<built-in method relu>", "1", "13", "34",
                          "") ON_HOST("cpu_op", "aten::relu", "1", "15", "20", NUMBERED("7", "0"))
              ON_HOST("cuda_runtime", "cudaLaunchKernel", "1", "20", "5", "\"correlation\":1")
                  ON_HOST("cpu_op", "aten::empty", "1", "40", "2", NUMBERED("8", "0")) ON_HOST(
                      "python_function", "model.py(30): second", "1", "60", "40",
                      "") ON_HOST("cpu_op", "aten::mul", "1", "65", "20", NUMBERED("8", "0"))
                      ON_HOST("cuda_runtime", "cudaLaunchKernel", "1", "70", "5",
                              "\"correlation\":2")
                          ON_HOST("cpu_op", "autograd::engine::evaluate_function: MulBackward0",
                                  "2", "200", "30",
                                  NUMBERED("8", "1")) ON_HOST("cpu_op", "MulBackward0", "2",
                                                              "205", "20", NUMBERED("8", "1"))
                              ON_HOST("cuda_runtime", "cudaLaunchKernel", "2", "210", "5",
                                      "\"correlation\":3") ON_HOST("cpu_op", "ReluBackward0", "2",
                                                                   "240", "20", NUMBERED("7", "1"))
                                  ON_HOST("cuda_runtime", "cudaLaunchKernel", "2", "245", "5",
                                          "\"correlation\":4") ON_HOST("cpu_op", "SinBackward0",
                                                                       "2", "270",
                                                                       "20", NUMBERED("3", "1"))
                                      ON_HOST("cuda_runtime", "cudaLaunchKernel", "2", "275", "5",
                                              "\"correlation\":5") ON_GPU("22", "1")
                                          ON_GPU("72", "2") ON_GPU("212", "3") ON_GPU("247", "4")
                                              ON_GPU("277", "5") "{\"ph\":\"M\"}]}");
  struct timeline t = timeline_of(model, 0);
  const struct call_sites *sites = t.call_sites;
  assert_non_null(sites);
  assert_true(sites->of_functions);
  static const u32 lines[] = {20, 30, 30, 20, 0};
  u32 launches = 0;
  for (u32 i = 0; i < t.n_spans; i++) {
    if (t.spans[i].kind != SPAN_LAUNCH)
      continue;
    u32 site = sites->of_span[i], wanted = lines[launches];
    assert_int_equal(site == INDEX_NONE, wanted == 0);
    if (wanted) {
      u32 frame = call_stack_line(sites, &sites->stacks[sites->sites[site].stack]);
      assert_int_equal(sites->frames[frame].line, wanted);
      assert_string_equal(sites->frames[frame].file, "model.py");
      assert_string_equal(sites->frames[frame].function, wanted == 20 ? "first" : "second");
      assert_int_equal(sites->sites[site].of_forward, launches >= 2);
    }
    launches++;
  }
  assert_int_equal(launches, 5);
  timeline_release(&t);
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(waits_of_mtia_are_known),
      WITH_FOLDER(fractions_are_nanoseconds),
      WITH_FOLDER(whole_nanoseconds_are_known),
      WITH_FOLDER(old_and_amd_traces_are_read),
      WITH_FOLDER(broken_files_are_read_as_far_as_they_go),
      WITH_FOLDER(false_claims_are_not_believed),
      WITH_FOLDER(traces_that_begin_later_are_matched),
      WITH_FOLDER(ranks_are_found_without_distributed_info),
      WITH_FOLDER(steps_are_the_profilers),
      WITH_FOLDER(steps_without_names_are_rounds_of_launches),
      WITH_FOLDER(steps_are_an_engines_iterations),
      WITH_FOLDER(the_path_of_a_recording_that_begins_amid_work),
      WITH_FOLDER(a_quick_look_that_never_reached_the_gpu_says_so),
      WITH_FOLDER(waits_are_edges),
      WITH_FOLDER(a_copy_to_pageable_memory_is_a_wait),
      WITH_FOLDER(what_a_stream_did_before_is_not_known),
      WITH_FOLDER(gpu_time_and_launches_add_up),
      WITH_FOLDER(recomputation_is_separated_from_backward),
      WITH_FOLDER(lines_are_of_functions_and_backward_is_of_its_forward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
