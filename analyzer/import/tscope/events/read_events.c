/* SPDX-License-Identifier: MIT */
#include "import/tscope/events/read_events.h"

#include "base/hash.h"
#include "base/sorting.h"
#include "format/gpu_reasons.h"
#include "import/file_budget.h"
#include "import/tscope/events/reading.h"
#include "kernels/kernels.h"

#include "base/checked_memory.h"
#include "import/tscope/files/visit.h"

#define MOST_MEMORY_DEVICES 64u

void extend_time_range(struct rank_events *events, i64 time) {
  events->begin = least_known(time, events->begin);
  events->end = MAX(time, events->end);
}

/* Start and end of a retained record whose first field is its u64 duration. */
static struct interval span_of(struct reading *reading, const struct tscope_record *record) {
  i64 end = chunk_end_ns(&reading->clock, reading->time, trace_whole_dur(record));
  struct interval span = {reading->start, end};
  if (span.end != NS_UNKNOWN && span.end < span.start)
    span.end = span.start;
  extend_time_range(reading->events, span.end);
  return span;
}

static void read_line_sample(struct reading *reading,
                             const struct tscope_line_sample_record *sample) {
  i64 time = tick_map_ns(&reading->events->definitions->ticks, sample->at);
  VECTOR_PUSH(&reading->events->line_samples,
              (struct rank_line_sample){time, time, sample->stack, sample->stands_us,
                                        reading->events->line_sampling.interval_us, sample->tid,
                                        sample->header.tag});
}

static void read_line_sampling(struct reading *reading,
                               const struct tscope_line_sampling_record *totals) {
  struct rank_line_sampling *sampling = &reading->events->line_sampling;
  i64 at = tick_map_ns(&reading->events->definitions->ticks, totals->at);
  if (sampling->interval_us) {
    double looks = ((double)at - (double)sampling->at) / 1e3 / sampling->first_us;
    sampling->looks += looks;
    sampling->missed += looks * (1 - (double)sampling->first_us / sampling->interval_us);
  } else {
    sampling->first_us = totals->interval_us;
  }
  sampling->at = at;
  COPY_EACH(sampling, totals, samples, unreadable, cpu_ns, interval_us);
  sampling->slowest_us = MAX(totals->interval_us, sampling->slowest_us);
}

/* A call that has not returned has not failed; nor has one that NCCL continues in the background.
 */
static bool is_failure(struct interval span, i32 result) {
  return span.end != NS_UNKNOWN && result != 0 && result != TSCOPE_RESULT_IN_PROGRESS;
}

struct rank_call collective_call(const struct tscope_collective_record *record,
                                 struct interval span, u32 comm, u32 thread) {
  return (struct rank_call){.start = span.start,
                            .end = span.end,
                            .launched = span.start,
                            .comm = comm,
                            .thread = thread,
                            .run = INDEX_NONE,
                            .op = (u8)record->header.tag,
                            .failed = is_failure(span, record->result),
                            SAME(record, count, bytes, seq, group, peer, stream, dtype, redop)};
}

static void read_call(struct reading *reading, const struct tscope_collective_record *call) {
  struct rank_events *events = reading->events;
  VECTOR_PUSH(&events->calls,
              collective_call(call, span_of(reading, &call->header),
                              rank_comm_index(events, call->comm), reading->thread));
}

void update_last_gpu_work(struct reading *reading, i64 end) {
  reading->gpu_last = MAX(end, reading->gpu_last);
}

static u8 op_of_string(struct reading *reading, u32 string) {
  const struct definitions *definitions = reading->events->definitions;
  if (string >= definitions->n_strings || !definitions->strings[string])
    return 0;
  u8 *op = &reading->op_of_string[string];
  if (!*op)
    *op = op_of_name(definitions->strings[string]) + 1;
  return *op - 1;
}

static void read_run(struct reading *reading, const struct tscope_collective_run_record *run) {
  struct rank_events *events = reading->events;
  struct interval span = span_of(reading, &run->header);
  update_last_gpu_work(reading, span.end);
  u8 op = op_of_string(reading, run->name);
  struct tscope_graph_node node = {0};
  if (8u * run->header.words >= sizeof(*run) + sizeof(node))
    memcpy(&node, run + 1, sizeof(node));
  VECTOR_PUSH(&events->runs, (struct rank_run){.start = span.start,
                                               .end = span.end,
                                               .node = node.node,
                                               .graph = node.graph,
                                               .first_call = INDEX_NONE,
                                               .thread = reading->thread,
                                               .stream = run->header.tag,
                                               .op = op,
                                               SAME(run, comm, seq, name, correlation)});
}

/* A string that is kept; NULL for none. */
static const char *intern_string(struct reading *reading, u32 string) {
  const char *text = definition_string(reading->events->definitions, string);
  if (!text)
    return NULL;
  if (!reading->words[string])
    reading->words[string] = arena_text(&reading->events->arena, text);
  return reading->words[string];
}

static void read_inside(struct reading *reading,
                        const struct tscope_collective_inside_record *inside) {
  struct interval span = span_of(reading, &inside->header);
  struct rank_inside item = {.start = span.start,
                             .end = span.end,
                             .call = INDEX_NONE,
                             .op = (u8)inside->header.tag,
                             .algorithm = intern_string(reading, inside->algorithm),
                             .protocol = intern_string(reading, inside->protocol),
                             SAME(inside, gpu_start, gpu_stop, comm, seq, channels)};
  VECTOR_PUSH(&reading->events->insides, item);
}

/* "ring, zero CTAs": the words of NCCL_CTA_POLICY_... */
static const char *asked_text(struct reading *reading, const char *algorithm, u32 policy) {
  static const char *const words[] = {"default CTA policy", "few CTAs", "no CTAs",
                                      "few or no CTAs"};
  const char *word = policy == TSCOPE_UNKNOWN ? NULL : policy < 4 ? words[policy] : "a CTA policy";
  if (!algorithm || !word)
    return algorithm ? algorithm : word;
  return arena_printf(&reading->events->arena, "%s, %s", algorithm, word);
}

static void read_config(struct reading *reading,
                        const struct tscope_collective_config_record *config) {
  struct rank_inside item = {.start = reading->start,
                             .end = reading->start,
                             .call = INDEX_NONE,
                             .op = (u8)config->header.tag,
                             SAME(config, comm, seq, user_tag)};
  item.asked = asked_text(reading, intern_string(reading, config->algorithm), config->cta_policy);
  VECTOR_PUSH(&reading->events->insides, item);
}

static void read_phase(struct reading *reading, const struct tscope_phase_record *phase) {
  const char *name = definition_string(reading->events->definitions, phase->name);
  struct interval span = span_of(reading, &phase->header);
  VECTOR_PUSH(&reading->events->phases,
              (struct rank_phase){.start = span.start,
                                  .end = span.end,
                                  .name = phase->name,
                                  .name_hash = (u32)hash_text(HASH_SEED, name),
                                  .thread = reading->thread,
                                  .kind = (u8)phase->header.tag});
}

static void read_scalar(struct reading *reading, const struct tscope_scalar_record *scalar) {
  struct rank_events *events = reading->events;
  struct rank_scalar item = {
      .time = reading->start,
      .step = scalar->step,
      .name = definition_string_kept(events->definitions, scalar->name, &events->arena)};
  memcpy(&item.value, &scalar->bits, sizeof(item.value));
  VECTOR_PUSH(&events->scalars, item);
}

void add_memory_device(struct rank_events *events, u16 device) {
  if (events->memory_devices.n < MOST_MEMORY_DEVICES &&
      !ANY(events->memory_devices.at, events->memory_devices.n, one, *one == device))
    VECTOR_PUSH(&events->memory_devices, device);
}

static void read_gpu_clock(struct reading *reading, const struct tscope_gpu_clock_record *clock) {
  VECTOR_PUSH(&reading->events->gpu_states,
              (struct rank_gpu_state){.time = reading->start,
                                      .reason_string = clock->reason,
                                      .clock = (u8)clock->header.tag});
}

static void read_look(struct reading *reading, const struct tscope_scheduling_record *look) {
  if (look->wait_ns == UINT64_MAX || look->training_wait_ns == UINT64_MAX)
    return;
  VECTOR_PUSH(
      &reading->events->looks,
      (struct rank_look){.time = (i64)look->at_ns, SAME(look, cpu_ns, wait_ns, training_wait_ns)});
}

/* Totals only grow: the largest of each kind counts. */
static void read_gpu_overhead(struct reading *reading,
                              const struct tscope_gpu_overhead_record *overhead) {
  u64 *most = &reading->gpu_overhead[overhead->header.tag % GPU_OVERHEADS];
  *most = MAX(overhead->ns, *most);
}

static void read_graph(struct reading *reading, const struct tscope_graph_record *graph) {
  reading->events->names_gpu_graphs |= graph->gpu_graph != 0;
  VECTOR_PUSH(&reading->events->graphs,
              (struct rank_graph){SAME(graph, graph, captured, gpu_graph)});
}

static void read_graph_body(struct reading *reading, const struct tscope_graph_body_record *body) {
  VECTOR_PUSH(&reading->events->graph_bodies, body->graph);
}

/* The communicators behind a record of `bytes`, which claims to have `claimed`. */
static struct graph_comms read_comms(struct reading *reading, const struct tscope_record *record,
                                     size_t bytes, u32 claimed) {
  u32 room = (u32)(8u * record->words - bytes) / (u32)sizeof(struct tscope_graph_comm);
  u32 n = MIN(claimed, room);
  struct tscope_graph_comm *comms = arena_array(&reading->events->arena, n, sizeof(*comms));
  memcpy(comms, (const u8 *)record + bytes, n * sizeof(*comms));
  return (struct graph_comms){comms, n};
}

static void read_graph_child(struct reading *reading,
                             const struct tscope_graph_child_record *child) {
  if (child->child != 0)
    VECTOR_PUSH(&reading->graphs.items,
                (struct captured_item){
                    .time = reading->start,
                    .order = reading->graphs.items.n,
                    .comms = read_comms(reading, &child->header, sizeof(*child), child->comms),
                    SAME(child, captured, child)});
}

static void read_graph_collective(struct reading *reading,
                                  const struct tscope_graph_collective_record *call) {
  VECTOR_PUSH(&reading->graphs.items, (struct captured_item){.time = reading->start,
                                                             .captured = call->captured,
                                                             .order = reading->graphs.items.n,
                                                             .call = *call});
}

static void read_replay(struct reading *reading, const struct tscope_graph_replay_record *launch) {
  struct interval span = span_of(reading, &launch->header);
  VECTOR_PUSH(&reading->graphs.replays,
              (struct called_replay){
                  .start = span.start,
                  .end = span.end,
                  .graph = launch->graph,
                  .thread = reading->thread,
                  .stream = launch->header.tag,
                  .failed = span.end != NS_UNKNOWN && launch->result != 0,
                  .comms = read_comms(reading, &launch->header, sizeof(*launch), launch->comms)});
}

static void read_capture(struct reading *reading, const struct tscope_record *record) {
  VECTOR_PUSH(&reading->events->captures, span_of(reading, record));
}

static void read_call_site(struct reading *reading, const struct tscope_call_site_record *site) {
  VECTOR_PUSH(&reading->events->sites,
              (struct rank_site){reading->start, reading->start, site->stack, reading->thread,
                                 site->header.tag});
}

static void read_gpu_anchor(struct reading *reading,
                            const struct tscope_gpu_anchor_record *anchor) {
  reading->events->gpu_event_error_ns = MAX(anchor->error_ns, reading->events->gpu_event_error_ns);
}

static void read_group(struct reading *reading, const struct tscope_group_record *group) {
  struct interval span = span_of(reading, &group->header);
  bool failed = group->header.tag == TSCOPE_GROUP_SIMULATED || is_failure(span, group->result);
  VECTOR_PUSH(&reading->events->groups,
              (struct rank_group){span.start, span.end, group->group, reading->thread, failed});
}

static void read_failed_call(struct reading *reading,
                             const struct tscope_failed_call_record *call) {
  struct rank_events *events = reading->events;
  if (events->failed.what && reading->start < events->failed.time)
    return;
  events->failed.time = reading->start;
  events->failed.result = call->result;
  events->failed.whose = (u8)call->header.tag;
  events->failed.what = intern_string(reading, call->what);
}

static void read_comm_wait(struct reading *reading, const struct tscope_comm_wait_record *wait) {
  struct interval span = span_of(reading, &wait->header);
  VECTOR_PUSH(&reading->events->waits, (struct rank_wait){span.start, span.end, wait->comm,
                                                          wait->seq, INDEX_NONE, reading->thread});
}

static void read_thread_cpu(struct reading *reading, const struct tscope_thread_cpu_record *cpu) {
  VECTOR_PUSH(&reading->events->cpu_times,
              (struct rank_cpu){reading->start, cpu->cpu_ns, reading->thread});
}

static void read_step_range(struct reading *reading, const struct tscope_step_range_record *range) {
  struct interval span = span_of(reading, &range->header);
  VECTOR_PUSH(&reading->events->step_ranges,
              (struct rank_step_range){span.start, span.end, range->number, reading->thread});
}

static void read_step(struct reading *reading, const struct tscope_step_record *mark) {
  VECTOR_PUSH(&reading->events->marks, (struct rank_mark){reading->start, mark->step});
}

static void read_memory(struct reading *reading, const struct tscope_record *memory) {
  add_memory_device(reading->events, memory->tag);
}

static void read_record(struct reading *reading, const struct tscope_record *record) {
  switch (record->type) {
    ON_RECORD(GRAPH, read_graph, reading)
    ON_RECORD(GRAPH_BODY, read_graph_body, reading)
    ON_RECORD(GRAPH_CHILD, read_graph_child, reading)
    ON_RECORD(GRAPH_COLLECTIVE, read_graph_collective, reading)
    ON_RECORD(COLLECTIVE, read_call, reading)
    ON_RECORD(GRAPH_REPLAY, read_replay, reading)
    ON_RECORD(CAPTURE, read_capture, reading)
    ON_RECORD(COLLECTIVE_RUN, read_run, reading)
    ON_RECORD(COLLECTIVE_INSIDE, read_inside, reading)
    ON_RECORD(COLLECTIVE_CONFIG, read_config, reading)
    ON_RECORD(PHASE, read_phase, reading)
    ON_RECORD(SCALAR, read_scalar, reading)
    ON_RECORD(CALL_SITE, read_call_site, reading)
    ON_RECORD(LINE_SAMPLE, read_line_sample, reading)
    ON_RECORD(LINE_SAMPLING, read_line_sampling, reading)
    ON_RECORD(GPU_CLOCK, read_gpu_clock, reading)
    ON_RECORD(SCHEDULING, read_look, reading)
    ON_RECORD(GPU_ANCHOR, read_gpu_anchor, reading)
    ON_RECORD(GPU_OVERHEAD, read_gpu_overhead, reading)
    ON_RECORD(GROUP, read_group, reading)
    ON_RECORD(FAILED_CALL, read_failed_call, reading)
    ON_RECORD(COMM_WAIT, read_comm_wait, reading)
    ON_RECORD(THREAD_CPU, read_thread_cpu, reading)
    ON_RECORD(STEP_RANGE, read_step_range, reading)
    ON_RECORD(STEP, read_step, reading)
    ON_RECORD(MEMORY, read_memory, reading)
  }
}

static void read_retained_chunk(struct reading *reading, const struct trace_chunk *chunk) {
  struct trace_cursor cursor = trace_records(chunk);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    if (record->type == TSCOPE_REC_STRING || record->type == TSCOPE_REC_SHAPE)
      continue;
    reading->time = trace_time(&cursor, record);
    reading->start = chunk_ns(&reading->clock, reading->time);
    if (record->type != TSCOPE_REC_LINE_SAMPLE) /* it has a time of its own */
      extend_time_range(reading->events, reading->start);
    read_record(reading, record);
  }
}

static void read_chunk(void *user, const struct trace_chunk *chunk) {
  struct reading *reading = user;
  reading->thread = chunk->header.thread;
  reading->clock = chunk_clock(&reading->events->definitions->ticks, &chunk->header);
  if (chunk->header.retention == TSCOPE_RING)
    read_ring_chunk(reading, chunk);
  else
    read_retained_chunk(reading, chunk);
}

/* Elements with a time start with it. */
#define SORT_BY_TIME(list, element) SORT(events->list.at, events->list.n, by_i64);

static void sort_lists(struct rank_events *events) {
  RANK_SPANS(SORT_BY_TIME)
  RANK_INSTANTS(SORT_BY_TIME)
}

/* A state is recorded again and again because of its counts: the first of each series is kept. */
static void number_gpu_sessions(struct rank_events *events) {
  u32 kept = 0, sessions = 0;
  FOR_EACH_CHANGED(events->gpu_states.at, events->gpu_states.n, state) {
    if (kept && events->gpu_states.at[kept - 1].clock == state->clock)
      continue;
    sessions += state->clock == TSCOPE_GPU_CLOCK_CUPTI;
    state->sessions = sessions;
    state->reason =
        definition_string_kept(events->definitions, state->reason_string, &events->arena);
    events->gpu_states.at[kept++] = *state;
  }
  events->gpu_states.n = kept;
}

/* CUPTI delivers its records from time to time: the last work of a process that was killed is not
 * in the trace, and its GPU would look idle. */
static void end_gpu_window(struct reading *reading) {
  struct rank_events *events = reading->events;
  u32 n = events->gpu_states.n;
  if (!events->cut_short || n == 0 ||
      events->gpu_states.at[n - 1].clock != TSCOPE_GPU_CLOCK_CUPTI ||
      reading->gpu_last == NS_UNKNOWN || reading->gpu_last < events->gpu_states.at[n - 1].time)
    return;
  struct rank_gpu_state over = {.time = reading->gpu_last,
                                .reason = TSCOPE_REASON_CUT_SHORT " the last GPU work",
                                .sessions = events->gpu_states.at[n - 1].sessions,
                                .clock = TSCOPE_GPU_CLOCK_HOST};
  VECTOR_PUSH(&events->gpu_states, over);
}

static void read_definitions(struct rank_events *events, const struct trace_file *file) {
  struct definitions *definitions = arena_alloc(&events->arena, sizeof(*definitions));
  events->definitions = definitions;
  definitions_read(definitions, file, &events->arena);
  COPY_EACH(events, definitions, comms, n_comms, realtime_minus_monotonic, last_anchor,
            anchor_error_ns);
}

void rank_events_read(struct rank_events *events, const struct trace_file *file,
                      struct kernel_names *kernel_names) {
  *events = (struct rank_events){
      .begin = NS_UNKNOWN, .end = NS_UNKNOWN, .cut_short = file->header.closed_realtime_ns == 0};
  struct reading reading = {.events = events, .gpu_last = NS_UNKNOWN, .kernel_names = kernel_names};
  reading.keeps_meetings = file->header.rank % (file->header.world_size / MEETING_RANKS + 1) == 0;
  read_definitions(events, file);
  const struct definitions *definitions = events->definitions;
  size_t strings = size_sum(definitions->n_strings, 1);
  /* A process that ends by a failure does not wait for its GPU. */
  events->end_lost = events->cut_short || definitions->lost[TSCOPE_LOSS_RETAINED] > 0 ||
                     file->header.end_status != 0;
  reading.op_of_string = memory_zeroed(strings, 1);
  reading.words = memory_zeroed(strings, sizeof(*reading.words));
  reading.communication_known = memory_zeroed(strings, sizeof(bool));
  events->communications = arena_array(&events->arena, strings, sizeof(*events->communications));
  trace_visit(file, &(struct trace_visit){.chunks = TRACE_RETAINED | TRACE_RING,
                                          .on_chunk = read_chunk,
                                          .user = &reading});
  graph_replays_expand(&reading.graphs, events);
  sort_lists(events);
  FOR_EACH(reading.gpu_overhead, GPU_OVERHEADS, one)
    events->gpu_overhead_ns += *one;
  number_gpu_sessions(events);
  end_gpu_window(&reading);
  runs_from_inside(events);
  SORT_BY_TIME(runs, )
  pair_runs(events);
  read_rounds(events, file);
  rank_events_complete(events);
  definitions_free_text(events->definitions);
  graph_replays_release(&reading.graphs);
  FREE_EACH(&reading, op_of_string, words, communication_known);
}

int rank_events_read_in_budget(struct rank_events *events, const struct trace_file *file,
                               struct kernel_names *kernel_names, char *why, size_t why_bytes) {
  struct budget budget;
  budget_begin(&budget, BUDGET_MEMORY, file->stored);
  rank_events_read(events, file, kernel_names);
  int over = budget_end(&budget, 0, why, why_bytes);
  if (over)
    rank_events_release(events);
  return over;
}
