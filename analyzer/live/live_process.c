/* SPDX-License-Identifier: MIT */
#include "live/live_records.h"

#include "import/tscope/ranks/processes.h"
#include "kernels/kernels.h"

enum { SPANS_KEPT = 1 << 20 };

i64 live_end_ns(const struct live_record *record) {
  return chunk_end_ns(record->clock, record->time, trace_whole_dur(record->record));
}

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
  if (trace_whole_dur(record->record) == TSCOPE_DUR_PENDING)
    opens_add(opens, open);
}

/* Adds to a list of what tells steps. */
#define SEE(process, list, ...)                                                                    \
  do {                                                                                             \
    if ((process)->seen.list.n == LIVE_PHASES)                                                     \
      live_forget_steps(process);                                                                  \
    VECTOR_PUSH(&(process)->seen.list, __VA_ARGS__);                                               \
  } while (0)

/* In order of their begin: phases inside one are over before it. */
static void add_phase(struct live_process *process, struct rank_phase phase) {
  SEE(process, phases, phase);
  struct rank_phase *all = process->seen.phases.at;
  u32 at = process->seen.phases.n - 1;
  for (; at > 0 && all[at - 1].start > phase.start; at--)
    all[at] = all[at - 1];
  all[at] = phase;
}

static void read_phase(struct live_process *process, const struct live_record *record) {
  const struct tscope_phase_record *phase = (const void *)record->record;
  i64 end = live_end_ns(record);
  live_update_open(&process->phases, record,
                   (struct live_open){
                       .start = record->start, .name = phase->name, .kind = (u8)phase->header.tag});
  if (end == NS_UNKNOWN)
    return;
  process->phase = (u8)phase->header.tag;
  if (phase->header.tag != TSCOPE_PHASE_USER)
    add_phase(process, (struct rank_phase){.start = record->start,
                                           .end = end,
                                           .name = phase->name,
                                           .name_hash = phase->name, /* equal where names are */
                                           .thread = record->thread,
                                           .kind = process->phase});
}

static void read_step_range(struct live_process *process, const struct live_record *record) {
  const struct tscope_step_range_record *range = (const void *)record->record;
  struct rank_events *seen = &process->seen;
  i64 end = live_end_ns(record);
  if (record->again) {
    for (u32 i = seen->step_ranges.n; i-- > 0;)
      if (seen->step_ranges.at[i].start == record->start)
        seen->step_ranges.at[i].end = end;
    return;
  }
  SEE(process, step_ranges,
      (struct rank_step_range){record->start, end, range->number, record->thread});
  process->range_number = range->number == TSCOPE_UNKNOWN ? INDEX_NONE : range->number;
}

static void read_memory(struct live_process *process, const struct tscope_memory_record *memory) {
  u32 i = 0;
  while (i < process->n_memory && process->memory[i].device != memory->header.tag)
    i++;
  if (i == LIVE_DEVICES)
    return;
  process->n_memory += i == process->n_memory;
  u64 peak = process->memory[i].peak;
  process->memory[i] = (struct live_memory){.device = memory->header.tag,
                                            .allocated = memory->allocated,
                                            .reserved = memory->reserved,
                                            .peak = MAX(memory->peak_allocated, peak)};
}

/* Whether kernels of that name communicate: one that waits for another rank does no work. */
static bool communicates(struct live_process *process, u32 name) {
  enum { UNKNOWN, NO, YES };
  const char *text = live_string(process, name);
  if (!text)
    return false;
  while (process->communicates.n <= name)
    VECTOR_PUSH(&process->communicates, UNKNOWN);
  u8 *known = &process->communicates.at[name];
  if (*known == UNKNOWN)
    *known = kernel_communication(process->kernel_names, text).library ? YES : NO;
  return *known == YES;
}

static void read_kernel(struct live_process *process, const struct live_record *record) {
  u64 dur = trace_dur(record->record);
  const struct tscope_gpu_kernel_record *kernel = (const void *)record->record;
  if (process->spans.n < SPANS_KEPT && !communicates(process, kernel->name))
    VECTOR_PUSH(&process->spans,
                (struct interval){record->start, chunk_ns(record->clock, record->time + dur)});
}

static void read_look(struct live_process *process,
                      const struct tscope_line_sample_record *sample) {
  const u16 elsewhere = TSCOPE_SAMPLE_BESIDE | TSCOPE_SAMPLE_AFTER_CALL | TSCOPE_SAMPLE_ENDS;
  if (!(sample->header.tag & TSCOPE_SAMPLE_OF_THREAD) || sample->header.tag & elsewhere)
    return;
  process->looks.at[process->looks.n++ % LIVE_LOOKS] =
      (struct live_look){.at = definition_ns(&process->definitions.now, sample->at),
                         .ns = (i64)sample->stands_us * 1000,
                         .stack = sample->stack};
}

static void read_record(struct live_process *process, const struct live_record *record) {
  const struct tscope_record *raw = record->record;
  switch (raw->type) {
  case TSCOPE_REC_COMM_END: {
    u32 number = ((const struct tscope_comm_end_record *)(const void *)raw)->comm;
    u32 index = rank_comm_index(&process->called, number);
    if (index != INDEX_NONE)
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
    SEE(process, marks, (struct rank_mark){record->start, process->mark});
    break;
  case TSCOPE_REC_MEMORY:
    read_memory(process, (const void *)raw);
    break;
  case TSCOPE_REC_OUT_OF_MEMORY:
    process->out_of_memory++;
    break;
  case TSCOPE_REC_FAILED_CALL:
    process->failed_call = ((const struct tscope_failed_call_record *)(const void *)raw)->what;
    process->failed_result = ((const struct tscope_failed_call_record *)(const void *)raw)->result;
    break;
  case TSCOPE_REC_GPU_KERNEL:
    read_kernel(process, record);
    break;
  case TSCOPE_REC_COMM:
  case TSCOPE_REC_GROUP:
  case TSCOPE_REC_SCALAR:
    break;
  case TSCOPE_REC_LINE_SAMPLE:
    if (!record->again)
      read_look(process, (const void *)raw);
    return;
  default: /* nothing to be read of it, or written by tscope's own threads: no sign of the job */
    return;
  }
  process->newest = MAX(record->start, process->newest);
}

static void read_chunk(void *user, const struct trace_chunk *chunk) {
  struct live_process *process = user;
  struct trace_cursor cursor = trace_records(chunk);
  if (chunk->header.retention == TSCOPE_RETAINED && !chunk->again) {
    definitions_follow_chunk(&process->definitions, &process->trace.file, chunk);
    live_add_comms(process);
  }
  struct chunk_clock clock = chunk_clock(&process->definitions.now.ticks, &chunk->header);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    u64 time = trace_time(&cursor, record);
    process->records += !chunk->again;
    read_record(process, &(struct live_record){.record = record,
                                               .clock = &clock,
                                               .time = time,
                                               .start = chunk_ns(&clock, time),
                                               .place = chunk->place +
                                                        (u64)((const u8 *)record - chunk->records),
                                               .thread = chunk->header.thread,
                                               .again = chunk->again});
  }
}

int live_process_open(struct live_process *process, const char *path, char *why, size_t why_bytes) {
  *process = (struct live_process){.rank = TSCOPE_UNKNOWN_RANK,
                                   .range_number = INDEX_NONE,
                                   .last_call_end = NS_UNKNOWN,
                                   .spans_to = NS_UNKNOWN,
                                   .newest = NS_UNKNOWN};
  int error = trace_follow_open(&process->trace, path, why, why_bytes);
  if (error)
    return error;
  process->rank = process->trace.file.header.rank;
  definitions_follow_begin(&process->definitions, &process->trace.file);
  return 0;
}

void live_process_close(struct live_process *process) {
  FREE_EACH(process, communicates.at, comms.at, channels.at, channels.index.slots, received.at,
            spans.at, runs.at);
  rank_events_release(&process->called);
  rank_events_release(&process->seen);
  definitions_follow_end(&process->definitions);
  trace_follow_close(&process->trace);
}

int live_process_poll(struct live_process *process, struct ring_share ring) {
  process->spans.n = 0;
  int error = trace_follow_look(&process->trace, ring, read_chunk, process);
  if (process->trace.gap)
    process->spans_to = NS_UNKNOWN;
  definitions_follow_finish(&process->definitions, &process->trace.file);
  if (process->rank == TSCOPE_UNKNOWN_RANK)
    process->rank = rank_from_comms(&process->definitions.now);
  live_pair_runs(process);
  live_forget_calls(process);
  live_gpu_window(process);
  return error;
}
