/* SPDX-License-Identifier: MIT
 *
 * Collectives that a worker of the host runs, in recordings of PyTorch's profiler: when the thread
 * that called them waits for them, and where it is meanwhile. Each recording is written here
 * together with the expected result.
 */
#include "importing.h"
#include "model_support.h"

#include "model/span_call_sites.h"

/* The program's thread is 1, the worker's 2. Microseconds. */
struct event {
  const char *category, *name;
  u32 thread, at, took;
};

#define OP(name, at, took)                                                                         \
  { "cpu_op", name, 1, at, took }
#define FUNCTION(name, at, took)                                                                   \
  { "python_function", name, 1, at, took }
#define RUN(at, took)                                                                              \
  { "user_annotation", "gloo:all_reduce", 2, at, took }

static struct model *record(const struct fixture *fixture, const struct event *events, u32 n) {
  char path[512];
  snprintf(path, sizeof(path), "%s/rank0.trace.json", fixture->directory);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("{\"traceEvents\":[", file);
  for (u32 i = 0; i < n; i++)
    fprintf(file,
            "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%u,\"ts\":%u,\"dur\":%"
            "u,\"args\":{}},",
            events[i].category, events[i].name, events[i].thread, events[i].at, events[i].took);
  fputs("{\"ph\":\"M\"}]}", file);
  fclose(file);
  return import_file(path);
}

/* The one wait of the recording, from its first event on; nothing if `to` is 0. */
static void waits(void **state, const struct event *events, u32 n, i64 from, i64 to) {
  struct model *model = record(*state, events, n);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  u32 found = 0;
  i64 begin = timeline.spans[0].start;
  for (u32 i = 0; i < timeline.n_spans; i++) {
    const struct span *span = &timeline.spans[i];
    if (span->kind == SPAN_COLLECTIVE && to)
      assert_true(span->end - begin <= to * 1000);
    if (span->kind != SPAN_COMM_WAIT)
      continue;
    found++;
    assert_int_equal(span->start - begin, from * 1000);
    assert_int_equal(span->end - begin, to * 1000);
  }
  assert_int_equal(found, to > 0);
  timeline_release(&timeline);
  model_free(model);
}
#define WAITS(state, from, to, ...)                                                                \
  do {                                                                                             \
    const struct event events[] = {__VA_ARGS__};                                                   \
    waits(state, events, LENGTH_OF(events), from, to);                                             \
  } while (0)

/* Nanoseconds in samples of each line of train.py. */
static void look_at_lines(const struct fixture *fixture, const struct event *events, u32 n,
                          i64 of_line[40]) {
  struct model *model = record(fixture, events, n);
  struct timeline timeline;
  assert_int_equal(timeline_load(model, 0, &timeline), 0);
  const struct call_sites *sites = timeline.call_sites;
  assert_non_null(sites);
  for (u32 i = 0; i < sites->n_samples; i++) {
    const struct line_sample *sample = &sites->samples[i];
    u32 frame = call_stack_line(sites, &sites->stacks[sample->stack]);
    assert_string_equal(sites->frames[frame].file, "train.py");
    of_line[sites->frames[frame].line] += sample->represented_ns;
  }
  timeline_release(&timeline);
  model_free(model);
}

static void the_thread_goes_on_when_it_has_ended(void **state) {
  WAITS(state, 130, 9020, OP("aten::mm", 0, 100), OP("c10d::allreduce_", 110, 20), RUN(130, 8870),
        OP("aten::add", 9020, 50), OP("aten::mul", 9100, 50));
}

/* gloo has no reduce_scatter of its own: PyTorch lets it reduce all, and keeps a part. */
static void a_reduce_scatter_is_run_as_an_all_reduce(void **state) {
  WAITS(state, 130, 9020, OP("aten::mm", 0, 100), OP("c10d::_reduce_scatter_base_", 110, 20),
        RUN(130, 8870), OP("aten::add", 9020, 50), OP("aten::mul", 9100, 50));
}

/* The worker notes its end later than the thread goes on: not later than the thread is the end. */
static void a_worker_notes_its_end_late(void **state) {
  WAITS(state, 130, 9000, OP("aten::mm", 0, 100), OP("c10d::allreduce_", 110, 20), RUN(130, 9870),
        OP("aten::add", 9000, 50), OP("aten::mul", 9060, 900), OP("aten::mm", 9970, 60),
        OP("aten::mm", 10040, 60));
}

/* The worker takes the core of the call, which then has nothing to do but to return. */
static void a_call_loses_its_core_to_the_worker(void **state) {
  WAITS(state, 120, 9000, OP("aten::mm", 0, 100), OP("c10d::allreduce_", 110, 6000), RUN(120, 8870),
        OP("aten::add", 9000, 50));
}

/* A thread that goes on long after the end did something of its own. */
static void a_thread_that_sleeps_does_not_wait(void **state) {
  WAITS(state, 0, 0, OP("aten::mm", 0, 100), OP("c10d::allreduce_", 110, 20), RUN(130, 400),
        OP("aten::add", 9000, 50));
}

/* But PyTorch's engine does nothing of its own: it waits until the end, and has no core then. A
 * function of the program that it calls does. */
static void an_engine_that_goes_on_late_has_waited(void **state) {
  WAITS(state, 130, 9000, FUNCTION("train.py(10): main", 0, 10000), OP("aten::mm", 0, 50),
        FUNCTION("torch/autograd/graph.py(860): _engine_run_backward", 60, 9900),
        OP("c10d::allreduce_", 110, 20), RUN(130, 400), OP("aten::add", 9000, 50));
  WAITS(state, 0, 0, FUNCTION("train.py(10): main", 0, 10000), OP("aten::mm", 0, 50),
        FUNCTION("torch/autograd/graph.py(860): _engine_run_backward", 60, 9900),
        OP("c10d::allreduce_", 110, 20), RUN(130, 400), FUNCTION("train.py(30): hook", 125, 8870),
        OP("aten::add", 9000, 50));
  WAITS(state, 130, 7000, FUNCTION("train.py(10): main", 0, 10000), OP("aten::mm", 0, 50),
        FUNCTION("torch/autograd/graph.py(860): _engine_run_backward", 60, 9900),
        OP("c10d::allreduce_", 110, 20), RUN(130, 400), FUNCTION("train.py(30): hook", 7000, 500),
        OP("aten::add", 9000, 50));
}

/* A pause of the range that ends in it is no wait. */
static void a_range_that_ends_is_something_done(void **state) {
  WAITS(state, 8000, 9000, OP("aten::mm", 0, 100), OP("c10d::allreduce_", 110, 20),
        {"user_annotation", "metrics", 1, 140, 7860}, RUN(130, 8860), OP("aten::add", 9000, 50));
}

/* Functions of the thread that trains are looked at every 100 us; others' are not. */
static void functions_are_looked_at(void **state) {
  const struct event events[] = {FUNCTION("train.py(10): main", 0, 10000),
                                 OP("aten::mm", 10, 900),
                                 OP("aten::mm", 9900, 100),
                                 FUNCTION("train.py(30): log", 2000, 6000),
                                 {"python_function", "watch.py(1): beat", 2, 0, 10000}};
  i64 of_line[40] = {0};
  look_at_lines(*state, events, LENGTH_OF(events), of_line);
  assert_int_equal(of_line[10], 4000000);
  assert_int_equal(of_line[30], 6000000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(the_thread_goes_on_when_it_has_ended),
      WITH_FOLDER(a_reduce_scatter_is_run_as_an_all_reduce),
      WITH_FOLDER(a_worker_notes_its_end_late),
      WITH_FOLDER(a_call_loses_its_core_to_the_worker),
      WITH_FOLDER(a_thread_that_sleeps_does_not_wait),
      WITH_FOLDER(an_engine_that_goes_on_late_has_waited),
      WITH_FOLDER(a_range_that_ends_is_something_done),
      WITH_FOLDER(functions_are_looked_at),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
