/* SPDX-License-Identifier: MIT
 *
 * Traces of PyTorch's profiler (Kineto), one file for each rank.
 */
#include "import/kineto/kineto.h"
#include "join/join_ranks.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/quantity.h"
#include "import/file_budget.h"

/* A document of PyTorch's profiler, or a bare list of events; by its first bytes. */
bool probe_kineto(const struct input *input) {
  if (input->head_bytes == 0)
    return false;
  _Static_assert(INPUT_HEAD_PADDING >= SCAN_PADDING, "it is scanned");
  const char *head = (const char *)input->head;
  if ((u8)*head == 0xef)
    head += 3;
  head = scan_space(head);
  if (*head == '[') {
    head = scan_space(head + 1);
    if (*head == '{' && strcasestr(input->name, "trace") && strcasestr(input->name, ".json") &&
        !head_has(input, "\"pg_config\"") && !head_has(input, "\"entries\""))
      return true; /* whatever the exporter wrote before the events */
    return *head == '{' && head_has(input, "\"ph\"") && head_has(input, "\"ts\"");
  }
  return *head == '{' &&
         (head_has(input, "\"traceEvents\"") || head_has(input, "\"schemaVersion\"") ||
          head_has(input, "\"deviceProperties\"") || head_has(input, "\"baseTimeNanoseconds\""));
}

struct kineto_reading {
  struct import *import;
  const struct input *inputs;
  struct kineto_trace *traces;
  char (*why)[256];
  int *errors;
  u32 n;
  atomic_uint done;
};

static void read_one(void *user, u32 index, unsigned worker) {
  struct kineto_reading *reading = user;
  const struct model_options *options = reading->import->options;
  struct kineto_trace *trace = &reading->traces[index];
  char *why = reading->why[index];
  struct budget budget;
  budget_begin(&budget, BUDGET_MEMORY, reading->inputs[index].bytes);
  int error = kineto_trace_read(trace, reading->inputs[index].path, options, why,
                                sizeof(reading->why[index]));
  reading->errors[index] = budget_end(&budget, error, why, sizeof(reading->why[index]));
  if (!error && reading->errors[index])
    kineto_trace_free(trace);
  u32 done = atomic_fetch_add(&reading->done, 1) + 1;
  if (worker == 0)
    model_report_progress(options, "reading", (double)done / reading->n);
}

static void free_traces(void *imported) {
  struct kineto_traces *traces = imported;
  FOR_EACH_CHANGED(traces->at, traces->n, trace)
    kineto_trace_free(trace);
  free(traces->at);
  free(traces);
}

/* With --quick all GPU events may be after the last one that was read: exporters write them after
 * those of the host. */
static bool ends_before_gpu(const struct kineto_reading *reading,
                            const struct kineto_trace *trace) {
  u32 calls = 0;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    if (kineto_is_device_item(item))
      return false;
    calls += item->kind == KINETO_ITEM_CALL;
  }
  return reading->import->options->quick && trace->events >= reading->import->options->quick &&
         calls;
}

/* Whether calls of more than one process put work on devices, as where the traces
 * of several ranks were joined into one file. */
static bool has_several_processes(const struct kineto_trace *trace) {
  i64 process = NS_UNKNOWN;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    if (item->kind != KINETO_ITEM_CALL || kineto_item_name(trace, item)->call != KINETO_CALL_LAUNCH)
      continue;
    i64 of_call = trace->lanes.at[item->lane].gpu;
    if (process != NS_UNKNOWN && of_call != process)
      return true;
    process = of_call;
  }
  return false;
}

/* Keeps what could be read. */
static int keep_readable(struct kineto_reading *reading, struct kineto_traces *traces) {
  for (u32 i = 0; i < reading->n; i++) {
    u64 malformed = reading->errors[i] == 0 ? reading->traces[i].malformed : 0;
    if (reading->errors[i] == 0)
      traces->at[traces->n++] = reading->traces[i];
    if (malformed)
      model_note(reading->import->model,
                 "%s: %s not valid JSON (trailing commas, NaN, bad escapes); what has a time was "
                 "read as intended",
                 reading->inputs[i].path, plural_is((double)malformed, "event").text);
    if (reading->errors[i] == 0 && ends_before_gpu(reading, &reading->traces[i]))
      model_note(reading->import->model,
                 "%s: the first %llu events, which --quick allows, have NO GPU WORK: it comes "
                 "later in the file; give a larger --quick, or none",
                 reading->inputs[i].path, (unsigned long long)reading->import->options->quick);
    if (reading->errors[i] == 0 && reading->traces[i].lost_since != NS_UNKNOWN)
      model_note(reading->import->model,
                 "%s has NO WORK OF DEVICES after its first %.3f s: it counts as ending there",
                 reading->inputs[i].path,
                 ns_to_s(reading->traces[i].lost_since - reading->traces[i].begin));
    if (reading->errors[i] == 0 && has_several_processes(&reading->traces[i]))
      model_note(reading->import->model,
                 "%s has the launches of SEVERAL PROCESSES; all count as one rank: give a file for "
                 "each rank",
                 reading->inputs[i].path);
    if (reading->errors[i])
      import_leave_out(reading->import, reading->inputs[i].path, reading->why[i]);
  }
  return traces->n ? 0 : -ENODATA;
}

static int read_all(struct import *import, const struct input *inputs, u32 n,
                    struct kineto_traces *traces) {
  struct kineto_reading reading = {.import = import,
                                   .inputs = inputs,
                                   .traces = memory_zeroed(n, sizeof(*reading.traces)),
                                   .why = memory_zeroed(n, sizeof(*reading.why)),
                                   .errors = memory_zeroed(n, sizeof(*reading.errors)),
                                   .n = n};
  traces->at = memory_zeroed(n, sizeof(*traces->at));
  FILL(reading.errors, n, -ECANCELED);
  parallel_for(n, import->options->threads, read_one, &reading);
  int error = keep_readable(&reading, traces);
  FREE_EACH(&reading, traces, why, errors);
  return error;
}

static const char *number_text(struct arena *arena, u64 number) {
  return number ? arena_printf(arena, "%llu", (unsigned long long)number) : NULL;
}

static struct rank describe(const struct kineto_trace *trace, const struct rank_events *events,
                            struct arena *arena) {
  struct rank rank = {.local_rank = INDEX_NONE,
                      .closed = trace->damage == NULL,
                      .records = trace->events,
                      .launches = events->launches,
                      .gpu_kernels = events->gpu_kernels,
                      .collective_calls = events->calls.n,
                      .collective_runs = events->calls.n - events->unpaired_calls,
                      .gpu_clock =
                          events->gpu_kernels ? TSCOPE_GPU_CLOCK_CUPTI : TSCOPE_GPU_CLOCK_NONE,
                      .gpu_clock_reason = events->gpu_kernels ? NULL : "the trace has no kernels",
                      SAME(trace, rank, path, damage, file_bytes)};
  rank.info[TSCOPE_INFO_GPU_NAME] = trace->gpu_name;
  rank.info[TSCOPE_INFO_GPU_MEMORY] = number_text(arena, trace->gpu_memory);
  rank.info[TSCOPE_INFO_NCCL] = trace->nccl;
  return rank;
}

static void make_events(struct import *import, const struct kineto_traces *traces) {
  struct model *model = import->model;
  u32 world = MOST_OF(u32, traces->at, traces->n, one, one->world_size);
  model->world_size = world;
  model_make_ranks(model, traces->n);
  for (u32 r = 0; r < traces->n; r++) {
    const struct kineto_trace *trace = &traces->at[r];
    kineto_events(trace, trace->rank, world ? world : traces->n, model_events(model, r));
    model->ranks[r] = describe(trace, model_events(model, r), import->arena);
  }
  u32 left_out = traces->n ? kineto_keep_one_part(model_events(model, 0), traces->n) : 0;
  if (left_out)
    model_note(model,
               "the recording pauses between steps: only the part of which all ranks have most has "
               "steps here; left out of other parts: %s",
               plural(left_out, "step").text);
}

int load_kineto(struct import *import, const struct input *inputs, u32 n) {
  struct model *model = import->model;
  if (model->timelines) {
    model_note(model, "PyTorch profiler traces are left out: tscope's own traces have the times");
    return 0;
  }
  struct kineto_traces *traces = memory_zeroed(1, sizeof(*traces));
  model_set_imported(model, traces, free_traces);
  int error = read_all(import, inputs, n, traces);
  if (error)
    return error;
  kineto_find_ranks(import, traces);
  make_events(import, traces);
  kineto_number_collectives(model);
  model->timelines = &kineto_timelines;
  model->recorder = "PyTorch's profiler";
  model_name_marks(model, "ProfilerStep annotations");
  join_ranks(model, import->options);
  return 0;
}
