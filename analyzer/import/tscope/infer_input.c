/* SPDX-License-Identifier: MIT
 *
 * How long the host loaded input, if no range says so: its pause before each step's first copy to
 * the GPU.
 */

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/files/visit.h"
#include "import/tscope/trace_source.h"
#include "model/building.h"

/* The host calls of one rank, thread by thread. */
struct pauses {
  const struct model *model;
  u32 rank;
  const struct rank_events *events;
  struct chunk_clock clock;
  i64 *begin; /* [n] when the host turned to each step */
  u32 n;      /* steps, up to the last that it turned to */
  u32 thread, next_call;
  i64 idle_since; /* end of the thread's last call */
  u64 latest;     /* end of the chunk's last call since then; 0: none */
  bool found;
};

/* The host turns to a step when it has made the last collective call of the one before: a loader
 * may fetch the input before the step is marked. */
static void find_host_begins(struct pauses *pauses) {
  const struct model *model = pauses->model;
  const struct rank_events *events = pauses->events;
  for (u32 s = 0; s < model->steps.n; s++)
    pauses->begin[s] = model->steps.host_begin[cell_of_step(model, s, pauses->rank)];
  FOR_EACH(events->calls.at, events->calls.n, each) {
    i32 step = model->arrivals[each->arrival].step;
    i64 end = each->end;
    if (step >= 0 && (u32)step + 1 < model->steps.n && end != NS_UNKNOWN)
      pauses->begin[step + 1] = end;
  }
  while (pauses->n > 0 && pauses->begin[pauses->n - 1] == NS_UNKNOWN)
    pauses->n--;
}

static i32 host_step_at(const struct pauses *pauses, i64 time) {
  i32 step = LAST_BEGUN(pauses->n, s, pauses->begin[s], time);
  bool ends = step + 1 == (i32)pauses->n || pauses->begin[step + 1] != NS_UNKNOWN;
  return ends ? step : -1; /* else it may be over: when the host turned to the next is not known */
}

/* Collective calls are among the retained records: those that were over by `time` ended a pause
 * too. */
static void add_earlier_calls(struct pauses *pauses, i64 time) {
  while (pauses->next_call < pauses->events->calls.n &&
         pauses->events->calls.at[pauses->next_call].start < time) {
    const struct rank_call *call = &pauses->events->calls.at[pauses->next_call++];
    if (call->thread == pauses->thread && call->end > pauses->idle_since)
      pauses->idle_since = call->end;
  }
}

static i64 axis_time(struct pauses *pauses, u64 time) {
  return clock_to_axis(model_clock(pauses->model, pauses->rank), chunk_ns(&pauses->clock, time));
}

static void end_pause(struct pauses *pauses) {
  i64 end = pauses->latest ? axis_time(pauses, pauses->latest) : NS_UNKNOWN;
  pauses->idle_since = MAX(end, pauses->idle_since);
  pauses->latest = 0;
}

static void read_call(struct pauses *pauses, const struct tscope_record *record, u64 time) {
  const struct model *model = pauses->model;
  const struct tscope_memcpy_record *copy = (const void *)record;
  bool to_device = record->type == TSCOPE_REC_MEMCPY && (copy->kind & 0xff) == TSCOPE_MEMCPY_H2D;
  if (to_device) {
    i64 start = axis_time(pauses, time);
    i32 step = host_step_at(pauses, start);
    i64 *data = step < 0 ? NULL : &model->phases[cell_of_step(model, step, pauses->rank)].data;
    if (data && *data == NS_UNKNOWN) {
      i64 begin = pauses->begin[step];
      end_pause(pauses);
      add_earlier_calls(pauses, start);
      i64 since = MAX(pauses->idle_since, begin);
      *data = start > since ? start - since : 0;
      pauses->found = true;
    }
  }
  u64 end = time + trace_dur(record);
  pauses->latest = MAX(end, pauses->latest);
}

static void read_chunk(void *user, const struct trace_chunk *chunk) {
  struct pauses *pauses = user;
  struct trace_cursor cursor = trace_records(chunk);
  pauses->clock = chunk_clock(&pauses->events->definitions->ticks, &chunk->header);
  if (pauses->thread != chunk->header.thread) {
    pauses->thread = chunk->header.thread;
    pauses->idle_since = NS_UNKNOWN;
    pauses->next_call = 0;
  }
  for (const struct tscope_record *record; (record = trace_next(&cursor));)
    if (record->type >= TSCOPE_REC_LAUNCH && record->type <= TSCOPE_REC_EVENT_WAIT)
      read_call(pauses, record, trace_time(&cursor, record));
  end_pause(pauses);
}

bool trace_infer_input(const struct model *model, u32 rank) {
  struct trace_file file;
  if (trace_file_open(&file, model->ranks[rank].path, NULL, 0) < 0)
    return false; /* the file went away since: nothing is known */
  const struct rank_events whole = rank_events_whole(model_events(model, rank));
  struct pauses pauses = {.model = model,
                          .rank = rank,
                          .events = &whole,
                          .begin = memory_array(size_sum(model->steps.n, 1), sizeof(i64)),
                          .n = model->steps.n,
                          .thread = TSCOPE_UNKNOWN};
  find_host_begins(&pauses);
  trace_visit(&file, &(struct trace_visit){.chunks = TRACE_RING_TICKS,
                                           .by_writer = true,
                                           .on_chunk = read_chunk,
                                           .user = &pauses});
  free(pauses.begin);
  trace_file_close(&file);
  return pauses.found;
}
