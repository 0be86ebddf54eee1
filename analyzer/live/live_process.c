/* SPDX-License-Identifier: MIT */
#include "live/live_records.h"

#include <errno.h>
#include <stdio.h>

enum { ANCHORS_KEPT = 64, STRING_KEPT = 160, STRINGS_MAX = 1 << 18, SPANS_KEPT = 1 << 20 };

const char *live_string(const struct live_process *process, u32 number) {
  return number && number < process->strings.n ? process->strings.at[number] : NULL;
}

const char *live_info(const struct live_process *process, enum tscope_info key) {
  u32 index = (u32)key;
  return index < sizeof(process->info) / sizeof(*process->info)
             ? live_string(process, process->info[index])
             : NULL;
}

i64 live_ticks_ns(const struct live_process *process, u64 ticks) {
  return ticks ? tick_map_ns(&process->clock, ticks >> process->clock.shift) : LIVE_UNKNOWN_NS;
}

i64 live_time_ns(const struct live_process *process, const struct live_record *record, u64 units) {
  return record->clock == TSCOPE_CLOCK_MONOTONIC ? tick_map_sane(&process->clock, (i64)units)
                                                 : tick_map_ns(&process->clock, units);
}

static u64 dur_of(const struct live_record *record) {
  u64 dur;
  memcpy(&dur, record->record + 1, sizeof(dur));
  return dur;
}

/* LIVE_UNKNOWN_NS while it is pending. */
i64 live_end_ns(const struct live_process *process, const struct live_record *record) {
  u64 dur = dur_of(record);
  return dur == TSCOPE_DUR_PENDING ? LIVE_UNKNOWN_NS
                                   : live_time_ns(process, record, record->time + dur);
}

/* --- Spans that are open --- */

static void opens_add(struct live_opens *opens, struct live_open open) {
  if (opens->n == LIVE_OPEN)
    memmove(opens->at, opens->at + 1, --opens->n * sizeof(*opens->at));
  opens->at[opens->n++] = open;
}

static void opens_remove(struct live_opens *opens, u64 place) {
  for (u32 i = 0; i < opens->n; i++)
    if (opens->at[i].place == place) {
      memmove(opens->at + i, opens->at + i + 1, (--opens->n - i) * sizeof(*opens->at));
      return;
    }
}

/* Keeps the span in the list for as long as it is open. */
void live_update_open(struct live_opens *opens, const struct live_record *record,
                      struct live_open open) {
  opens_remove(opens, record->place);
  open.place = record->place;
  open.thread = record->thread;
  if (dur_of(record) == TSCOPE_DUR_PENDING)
    opens_add(opens, open);
}

static void times_add(struct live_times *times, i64 at, u32 token) {
  times->at[times->n % LIVE_STEP_ENDS] = at;
  times->token[times->n % LIVE_STEP_ENDS] = token;
  times->n++;
}

/* --- Steps and phases --- */

static void read_phase(struct live_process *process, const struct live_record *record) {
  const struct tscope_phase_record *phase = (const void *)record->record;
  i64 end = live_end_ns(process, record);
  live_update_open(&process->phases, record,
                   (struct live_open){.start = live_time_ns(process, record, record->time),
                                      .name = phase->name,
                                      .kind = (u8)phase->header.tag});
  if (end == LIVE_UNKNOWN_NS)
    return;
  process->phase = (u8)phase->header.tag;
  process->phase_name = phase->name;
  if (phase->header.tag == TSCOPE_PHASE_OPTIMIZER)
    times_add(&process->optimizers, end, phase->name);
}

static void read_step_range(struct live_process *process, const struct live_record *record) {
  const struct tscope_step_range_record *range = (const void *)record->record;
  if (record->again)
    return;
  times_add(&process->ranges, live_time_ns(process, record, record->time), range->name);
  process->range_number = range->number == TSCOPE_UNKNOWN ? LIVE_NONE : range->number;
}

/* --- Definitions and facts --- */

static void read_string(struct live_process *process, const struct tscope_string_record *string) {
  if (string->string >= STRINGS_MAX || !VECTOR_REACH(&process->strings, string->string))
    return;
  u32 bytes;
  const char *text = trace_text(&string->header, sizeof(*string), string->bytes, &bytes);
  char **place = &process->strings.at[string->string];
  free(*place);
  *place = strndup(text, bytes < STRING_KEPT ? bytes : STRING_KEPT);
}

/* A long run has more anchors than are worth keeping: of the older ones every second is dropped. */
static void read_anchor(struct live_process *process, const struct tscope_anchor_record *anchor) {
  if (process->anchors.n >= ANCHORS_KEPT) {
    u32 kept = 1;
    for (u32 i = 2; i < process->anchors.n; i += 2)
      process->anchors.at[kept++] = process->anchors.at[i];
    process->anchors.n = kept;
  }
  process->short_of_memory |=
      !VECTOR_PUSH(&process->anchors, (struct tick_anchor){anchor->ticks, anchor->monotonic_ns});
  process->realtime_minus_monotonic = (i64)(anchor->realtime_ns - anchor->monotonic_ns);
  process->anchors_new = true;
}

static int map_ticks(struct live_process *process) {
  arena_release(&process->clock_memory);
  process->clock_memory = (struct arena){0};
  process->anchors_new = false;
  return tick_map_build(&process->clock, &process->trace.file.header, process->anchors.at,
                        process->anchors.n, &process->clock_memory);
}

static void read_memory(struct live_process *process, const struct tscope_memory_record *memory) {
  u32 i = 0;
  while (i < process->n_memory && process->memory[i].device != memory->header.tag)
    i++;
  if (i == LIVE_DEVICES)
    return;
  process->n_memory += i == process->n_memory;
  u64 peak = process->memory[i].peak;
  process->memory[i] =
      (struct live_memory){.device = memory->header.tag,
                           .allocated = memory->allocated,
                           .reserved = memory->reserved,
                           .peak = memory->peak_allocated > peak ? memory->peak_allocated : peak};
}

static void read_kernel(struct live_process *process, const struct live_record *record) {
  const struct tscope_gpu_kernel_record *kernel = (const void *)record->record;
  i64 start = live_time_ns(process, record, record->time);
  u64 dur = trace_dur(record->record, kernel->dur, sizeof(*kernel));
  if (process->spans.n < SPANS_KEPT)
    process->short_of_memory |=
        !VECTOR_PUSH(&process->spans,
                     (struct interval){start, live_time_ns(process, record, record->time + dur)});
}

static void read_record(struct live_process *process, const struct live_record *record) {
  const struct tscope_record *raw = record->record;
  if (record->thread == 0 && process->anchors_new && raw->type != TSCOPE_REC_ANCHOR)
    map_ticks(process);
  switch (raw->type) {
  case TSCOPE_REC_STRING:
    read_string(process, (const void *)raw);
    return;
  case TSCOPE_REC_ANCHOR:
    read_anchor(process, (const void *)raw);
    return;
  case TSCOPE_REC_INFO:
    if (raw->tag < sizeof(process->info) / sizeof(*process->info))
      process->info[raw->tag] = ((const struct tscope_info_record *)(const void *)raw)->value;
    return;
  case TSCOPE_REC_COMM:
    live_read_comm(process, (const void *)raw);
    break;
  case TSCOPE_REC_COMM_END: {
    u32 index =
        live_comm_index(process, ((const struct tscope_comm_end_record *)(const void *)raw)->comm);
    if (index != LIVE_NONE)
      process->comms.at[index].ended = true;
    break;
  }
  case TSCOPE_REC_COLLECTIVE:
    live_read_call(process, record);
    break;
  case TSCOPE_REC_GRAPH_REPLAY:
    live_read_graph_replay(process, record);
    break;
  case TSCOPE_REC_COLLECTIVE_RUN:
    live_read_run(process, record);
    break;
  case TSCOPE_REC_COMM_WAIT:
    live_read_comm_wait(process, record);
    break;
  case TSCOPE_REC_PHASE:
    read_phase(process, record);
    break;
  case TSCOPE_REC_STEP_RANGE:
    read_step_range(process, record);
    break;
  case TSCOPE_REC_STEP:
    process->mark = ((const struct tscope_step_record *)(const void *)raw)->step;
    times_add(&process->marks, live_time_ns(process, record, record->time), 0);
    break;
  case TSCOPE_REC_MEMORY:
    read_memory(process, (const void *)raw);
    break;
  case TSCOPE_REC_OUT_OF_MEMORY:
    process->out_of_memory++;
    break;
  case TSCOPE_REC_GPU_CLOCK:
    process->gpu_clock = (u8)raw->tag;
    process->gpu_clock_known = true;
    return;
  case TSCOPE_REC_FAILED_CALL:
    process->failed_call = ((const struct tscope_failed_call_record *)(const void *)raw)->what;
    process->failed_result = ((const struct tscope_failed_call_record *)(const void *)raw)->result;
    break;
  case TSCOPE_REC_GPU_KERNEL:
    read_kernel(process, record);
    break;
  case TSCOPE_REC_GROUP:
  case TSCOPE_REC_SCALAR:
    break;
  case TSCOPE_REC_FRAME:
  case TSCOPE_REC_STACK:
  case TSCOPE_REC_STALL:
  case TSCOPE_REC_STALL_END:
  case TSCOPE_REC_THREAD_STATE:
  case TSCOPE_REC_THREAD_STACK:
  case TSCOPE_REC_COMM_STATE:
    live_read_stall(process, record);
    return;
  default: /* nothing to be read of it, or written by tscope's own threads: no sign of the job */
    return;
  }
  i64 time = live_time_ns(process, record, record->time);
  if (time > process->newest)
    process->newest = time;
}

static int read_chunk(void *user, const struct trace_chunk *chunk) {
  struct live_process *process = user;
  struct trace_cursor cursor = trace_records(chunk);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    process->records += !chunk->again;
    read_record(process, &(struct live_record){.record = record,
                                               .time = trace_time(&cursor, record),
                                               .place = chunk->place +
                                                        (u64)((const u8 *)record - chunk->records),
                                               .thread = chunk->header.thread,
                                               .clock = chunk->header.clock,
                                               .again = chunk->again});
  }
  return 0;
}

/* --- The process --- */

int live_process_open(struct live_process *process, const char *path, char *why, size_t why_bytes) {
  *process = (struct live_process){.rank = TSCOPE_UNKNOWN_RANK,
                                   .range_number = LIVE_NONE,
                                   .last_call_end = LIVE_UNKNOWN_NS,
                                   .spans_to = LIVE_UNKNOWN_NS,
                                   .newest = LIVE_UNKNOWN_NS};
  int error = trace_follow_open(&process->trace, path, why, why_bytes);
  if (error)
    return error;
  const struct tscope_file_header *header = &process->trace.file.header;
  process->rank = header->rank;
  process->realtime_minus_monotonic = (i64)(header->start_realtime_ns - header->start_monotonic_ns);
  error = map_ticks(process);
  if (error) {
    snprintf(why, why_bytes, "%s", strerror(-error));
    live_process_close(process);
  }
  return error;
}

void live_process_close(struct live_process *process) {
  for (u32 i = 0; i < process->strings.n; i++)
    free(process->strings.at[i]);
  free(process->strings.at);
  free(process->anchors.at);
  for (u32 i = 0; i < process->comms.n; i++)
    free(process->comms.at[i].recent);
  free(process->comms.at);
  free(process->frames.at);
  free(process->stacks.at);
  free(process->stack_frames.at);
  free(process->spans.at);
  free(process->unpaired.at);
  free(process->runs.at);
  arena_release(&process->clock_memory);
  trace_follow_close(&process->trace);
}

/* A launcher that does not say ranks: the largest communicator does. */
static void find_rank(struct live_process *process) {
  u32 size = 0;
  if (process->trace.file.header.rank != TSCOPE_UNKNOWN_RANK)
    return;
  for (u32 i = 0; i < process->comms.n; i++) {
    const struct live_comm *comm = &process->comms.at[i];
    if (comm->rank != TSCOPE_UNKNOWN_RANK && comm->size > size) {
      size = comm->size;
      process->rank = comm->rank;
    }
  }
}

int live_process_poll(struct live_process *process, struct ring_share ring) {
  process->spans.n = 0;
  int error = trace_follow_look(&process->trace, ring, read_chunk, process);
  if (process->trace.gap)
    process->spans_to = LIVE_UNKNOWN_NS;
  if (process->anchors_new && map_ticks(process) < 0)
    return -ENOMEM;
  find_rank(process);
  live_pair_runs(process);
  live_gpu_window(process);
  return process->short_of_memory ? -ENOMEM : error;
}
