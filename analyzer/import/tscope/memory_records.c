/* SPDX-License-Identifier: MIT
 *
 * Memory histories from tscope's own records: events of tensors from the ring, and where those were
 * overwritten, totals and peaks from the retained records, ten times a second. The source of an
 * allocation is the training phase in which it was made and, if the trace has its call site, the
 * line of the program.
 */

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "import/tscope/events/stacks_of_calls.h"
#include "import/tscope/files/visit.h"
#include "import/tscope/memory_sources.h"
#include "import/tscope/trace_source.h"
#include "model/block_table.h"
#include "model/building.h"
#include "model/memory_history.h"

#define DEVICE_CPU 0u /* c10::DeviceType, in the low byte of the tag */

static bool is_cpu(u16 tag) {
  return (tag & 0xff) == DEVICE_CPU;
}

struct recorded_device {
  u32 rank; /* index into model.ranks */
  u16 tag;
};

/* An event as recorded; those at the same instant stay in the order they were written in. */
struct found {
  struct memory_event event;
  u32 order;
  u32 stack; /* index into sites.stacks, INDEX_NONE */
};

struct recorded_totals {
  struct tscope_memory_record record;
  i64 time;
};

struct memory_collecting {
  const struct model *model;
  const struct recorded_device *device;
  const struct rank_clock *clock;
  struct arena *arena;
  struct memory_history *history;
  struct chunk_clock chunk;
  struct arena scratch;
  struct definitions definitions;
  struct call_sites sites; /* frames and stacks */
  i64 time;                /* of the record that is read */
  i64 site_time;           /* of the last call site in the chunk, and the stack there */
  u32 site_stack;
  u32 *stacks; /* [n_events] of the history's events, in scratch */
  VECTOR(struct found) events;
  VECTOR(struct recorded_totals) totals;
  i64 ring_begin; /* ring records before this were overwritten */
  u64 refused;    /* by CUDA, to any caller */
  u64 refused_bytes;
};

static bool has_total(u64 bytes) {
  return bytes <= INT64_MAX;
}

static i64 total(u64 bytes) {
  return has_total(bytes) ? (i64)bytes : MEMORY_UNKNOWN;
}

static void add_event(struct memory_collecting *collecting, struct memory_event event) {
  event.time = collecting->time;
  event.step = -1;
  VECTOR_PUSH(&collecting->events, (struct found){event, collecting->events.n, INDEX_NONE});
}

static void read_out_of_memory(struct memory_collecting *collecting,
                               const struct tscope_out_of_memory_record *refusal) {
  if (refusal->device != collecting->device->tag && refusal->device != TSCOPE_UNKNOWN)
    return;
  if (has_total(refusal->device_total) && refusal->device_total > 0)
    collecting->history->capacity = (i64)refusal->device_total;
  if (refusal->header.tag != TSCOPE_REFUSAL_ALLOCATOR) {
    /* PyTorch then gives back what it holds in reserve, and asks again. */
    collecting->refused++;
    collecting->refused_bytes = refusal->bytes;
    return;
  }
  add_event(collecting, (struct memory_event){
                            .address = has_total(refusal->device_free) ? refusal->device_free : 0,
                            .bytes = total(refusal->bytes),
                            .allocated = total(refusal->allocated),
                            .reserved = total(refusal->reserved),
                            .kind = MEMORY_OUT_OF_MEMORY});
}

static void read_totals(struct memory_collecting *collecting,
                        const struct tscope_memory_record *record) {
  u16 tag = record->header.tag;
  if (tag == collecting->device->tag && !is_cpu(tag))
    VECTOR_PUSH(&collecting->totals, (struct recorded_totals){*record, collecting->time});
}

/* PyTorch reports the CPU's shared memory, such as a batch from a loader's worker, with totals that
 * count this block alone or nothing: those of the CPU are counted here. */
static void read_tensor(struct memory_collecting *collecting,
                        const struct tscope_tensor_record *tensor) {
  const struct tscope_record *record = &tensor->header;
  const struct tscope_tensor_totals_record *totals = (const void *)tensor;
  if (record->tag != collecting->device->tag)
    return;
  bool known = record->type == TSCOPE_REC_TENSOR_TOTALS && !is_cpu(record->tag);
  struct memory_event event = {.address = tensor->address,
                               .bytes = MEMORY_UNKNOWN,
                               .allocated = known ? total(totals->allocated) : MEMORY_UNKNOWN,
                               .reserved = known ? total(totals->reserved) : MEMORY_UNKNOWN,
                               .kind = tensor->bytes > 0 ? MEMORY_ALLOC : MEMORY_FREE};
  if (tensor->bytes != 0 && tensor->bytes != INT64_MIN)
    event.bytes = tensor->bytes > 0 ? tensor->bytes : -tensor->bytes;
  add_event(collecting, event);
  collecting->events.at[collecting->events.n - 1].stack = collecting->site_stack;
}

/* The stack of a call site. The shim writes it right before the record of its call. */
static void read_call_site(struct memory_collecting *collecting,
                           const struct tscope_call_site_ring_record *site) {
  collecting->site_time = collecting->time;
  collecting->site_stack = stack_number(&collecting->definitions, site->stack);
}

static void add_segment(struct memory_collecting *collecting, u64 address, i64 bytes,
                        bool obtained) {
  if (!is_cpu(collecting->device->tag))
    add_event(collecting,
              (struct memory_event){.address = address,
                                    .bytes = bytes,
                                    .allocated = MEMORY_UNKNOWN,
                                    .reserved = MEMORY_UNKNOWN,
                                    .kind = obtained ? MEMORY_SEGMENT_ALLOC : MEMORY_SEGMENT_FREE});
}

/* CUDA's own calls do not say which device they are for: they are used for processes with one
 * device. */
static void read_alloc(struct memory_collecting *collecting,
                       const struct tscope_alloc_record *alloc) {
  if (alloc->header.tag == TSCOPE_MEMORY_DEVICE && alloc->result == 0)
    add_segment(collecting, alloc->address, total(alloc->bytes), true);
}

static void read_free(struct memory_collecting *collecting,
                      const struct tscope_free_record *release) {
  if (release->header.tag == TSCOPE_MEMORY_DEVICE && release->result == 0)
    add_segment(collecting, release->address, MEMORY_UNKNOWN, false);
}

/* Expandable segments grow and shrink by what is mapped; physical memory that is not mapped is of
 * no use to the allocator. */
static void read_mapping(struct memory_collecting *collecting,
                         const struct tscope_mapping_record *mapping) {
  bool mapped = mapping->header.tag == TSCOPE_MAPPING_MAP;
  if ((mapped || mapping->header.tag == TSCOPE_MAPPING_UNMAP) && mapping->result == 0)
    add_segment(collecting, mapping->address, total(mapping->bytes), mapped);
}

static void collect_record(struct memory_collecting *collecting,
                           const struct tscope_record *record) {
  if (record->type != TSCOPE_REC_CALL_SITE_RING && collecting->time != collecting->site_time)
    collecting->site_stack = INDEX_NONE;
  switch (record->type) {
    ON_RECORD(CALL_SITE_RING, read_call_site, collecting)
    ON_RECORD(OUT_OF_MEMORY, read_out_of_memory, collecting)
    ON_RECORD(MEMORY, read_totals, collecting)
    ON_RECORD(TENSOR, read_tensor, collecting)
    ON_RECORD(TENSOR_TOTALS, read_tensor, collecting)
    ON_RECORD(ALLOC, read_alloc, collecting)
    ON_RECORD(FREE, read_free, collecting)
    ON_RECORD(MAPPING, read_mapping, collecting)
  }
}

static void read_chunk(void *user, const struct trace_chunk *chunk) {
  struct memory_collecting *collecting = user;
  bool after_gap = chunk->after_gap;
  struct trace_cursor cursor = trace_records(chunk);
  collecting->site_stack = INDEX_NONE;
  collecting->chunk = chunk_clock(&collecting->definitions.ticks, &chunk->header);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    collecting->time =
        clock_to_axis(collecting->clock, chunk_ns(&collecting->chunk, trace_time(&cursor, record)));
    if (after_gap && collecting->time > collecting->ring_begin)
      collecting->ring_begin = collecting->time;
    after_gap = false;
    collect_record(collecting, record);
  }
}

static void read_file(struct memory_collecting *collecting, const struct trace_file *file) {
  struct trace_visit visit = {.chunks = TRACE_RETAINED | TRACE_RING,
                              .by_writer = true,
                              .on_chunk = read_chunk,
                              .user = collecting};
  definitions_read(&collecting->definitions, file, &collecting->scratch);
  stacks_copy(&collecting->definitions, &collecting->scratch, &collecting->sites);
  trace_visit(file, &visit);
}

/* Before the ring begins, each MEMORY record says what the most was since the one before it, and
 * what there is now. */
static void add_totals(struct memory_collecting *collecting) {
  i64 begin = collecting->ring_begin;
  u32 n_events = collecting->events.n;
  FOR_EACH(collecting->totals.at, collecting->totals.n, of) {
    const struct tscope_memory_record *record = &of->record;
    if (n_events && of->time >= begin)
      continue;
    collecting->time = of->time;
    add_event(collecting, (struct memory_event){.allocated = total(record->peak_allocated),
                                                .reserved = total(record->peak_reserved),
                                                .kind = MEMORY_MARK});
    add_event(collecting, (struct memory_event){.allocated = total(record->allocated),
                                                .reserved = total(record->reserved),
                                                .kind = MEMORY_MARK});
  }
}

ORDER_BY(by_time, struct found, UP(event.time) UP(order))

/* Puts events in order, and leaves out those of threads that go further back than others'. */
static void sort_events(struct memory_collecting *collecting) {
  struct memory_history *history = collecting->history;
  u32 n = collecting->events.n;
  SORT(collecting->events.at, n, by_time);
  history->events = arena_array(collecting->arena, n, sizeof(*history->events));
  collecting->stacks = arena_array(&collecting->scratch, n, sizeof(*collecting->stacks));
  FOR_EACH(collecting->events.at, n, one) {
    const struct memory_event *event = &one->event;
    bool detail = event->kind != MEMORY_MARK && event->kind != MEMORY_OUT_OF_MEMORY;
    if (detail && event->time < collecting->ring_begin)
      continue;
    collecting->stacks[history->n_events] = one->stack;
    history->events[history->n_events++] = *event;
  }
}

/* Totals that were not recorded are counted from what was there at the first event; sizes of frees
 * that were not recorded are those of what was allocated at that address. */
static void fill_totals(struct memory_history *history, bool counted) {
  struct block_table live = {0}, segments = {0};
  i64 allocated = counted ? 0 : history->allocated_before, reserved = history->reserved_before;
  FOR_EACH_CHANGED(history->events, history->n_events, event) {
    struct held_block block = {.address = event->address, .bytes = event->bytes};
    if (event->kind == MEMORY_ALLOC) {
      block_table_put(&live, block);
    } else if (event->kind == MEMORY_FREE) {
      bool known = block_table_remove(&live, event->address, &block);
      if (event->bytes == MEMORY_UNKNOWN && known)
        event->bytes = block.bytes;
    } else if (event->kind == MEMORY_SEGMENT_ALLOC) {
      block_table_put(&segments, block);
    } else if (event->kind == MEMORY_SEGMENT_FREE && event->bytes == MEMORY_UNKNOWN &&
               block_table_remove(&segments, event->address, &block)) {
      event->bytes = block.bytes;
    }
    i64 change = MAX(event->bytes, 0);
    if (counted && event->kind == MEMORY_ALLOC)
      allocated = memory_add(allocated, change);
    else if (counted && event->kind == MEMORY_FREE)
      allocated = memory_add(allocated, allocated > change ? -change : -allocated);
    if (event->allocated == MEMORY_UNKNOWN)
      event->allocated = allocated;
    if (event->reserved == MEMORY_UNKNOWN)
      event->reserved = reserved;
    allocated = event->allocated;
    reserved = event->reserved;
  }
  history->allocated_at_end = allocated;
  history->reserved_at_end = reserved;
  block_table_free(&live);
  block_table_free(&segments);
}

static void find_totals_before(struct memory_history *history) {
  history->allocated_before = history->reserved_before = MEMORY_UNKNOWN;
  FOR_EACH(history->events, history->n_events, event) {
    if (event->allocated == MEMORY_UNKNOWN)
      continue;
    i64 before = memory_add(event->allocated, -memory_allocated_by(event));
    history->allocated_before = MAX(before, 0);
    history->reserved_before = event->reserved;
    return;
  }
}

static void number_steps(struct memory_collecting *collecting) {
  struct memory_history *history = collecting->history;
  const struct steps *steps = &collecting->model->steps;
  if (!steps->n)
    return;
  FOR_EACH_CHANGED(history->events, history->n_events, event)
    event->step = model_step_at(collecting->model, collecting->device->rank, event->time);
  history->n_steps = steps->n;
  history->steps_method = steps->method;
  history->steps_are_certain = !steps->by_pattern;
}

static void add_notes(struct memory_collecting *collecting, bool counted) {
  struct memory_history *history = collecting->history;
  struct arena *arena = collecting->arena;
  i64 begin = collecting->model->ranks[collecting->device->rank].begin;
  if (counted)
    MEMORY_NOTE(
        history, arena,
        "memory allocated before the recording is not known: totals count from its beginning");
  if (collecting->ring_begin != INT64_MIN)
    MEMORY_NOTE(history, arena,
                "events before %.1f s were overwritten at the disk limit; before that only totals "
                "and peaks are known",
                ns_to_s(collecting->ring_begin - begin));
  if (collecting->refused)
    MEMORY_NOTE(history, arena,
                "CUDA allocations failed %s, the last time for %llu bytes; PyTorch then frees its "
                "cached memory and tries again",
                plural((double)collecting->refused, "time").text,
                (unsigned long long)collecting->refused_bytes);
}

static void finish_history(struct memory_collecting *collecting) {
  struct memory_history *history = collecting->history;
  add_totals(collecting);
  sort_events(collecting);
  bool counted = is_cpu(collecting->device->tag);
  if (counted)
    history->allocated_before = 0, history->reserved_before = MEMORY_UNKNOWN;
  else
    find_totals_before(history);
  fill_totals(history, counted);
  memory_name_sources(&(struct memory_sources_of){.rank = collecting->device->rank,
                                                  .history = history,
                                                  .sites = &collecting->sites,
                                                  .scratch = &collecting->scratch,
                                                  SAME(collecting, model, stacks, arena)});
  number_steps(collecting);
  add_notes(collecting, counted);
}

static int read_records(const struct model *model, const struct memory_origin *origin,
                        struct arena *arena, struct memory_history *history) {
  const struct recorded_device *device = origin->data;
  const struct rank *rank = &model->ranks[device->rank];
  struct memory_collecting collecting = {.model = model,
                                         .device = device,
                                         .clock = model_clock(model, device->rank),
                                         .arena = arena,
                                         .history = history,
                                         .ring_begin = INT64_MIN};
  struct trace_file file;
  *history = (struct memory_history){.rank = origin->rank,
                                     .device = origin->device,
                                     .origin = "tscope's records of tensors",
                                     .path = rank->path,
                                     .pending_at_end = MEMORY_UNKNOWN,
                                     .requested_at_end = MEMORY_UNKNOWN};
  int error = trace_file_open(&file, rank->path, NULL, 0);
  if (error)
    return error;
  read_file(&collecting, &file);
  trace_file_close(&file);
  finish_history(&collecting);
  definitions_free_text(&collecting.definitions);
  arena_release(&collecting.scratch);
  FREE_EACH(&collecting, events.at, totals.at);
  return 0;
}

/* If a GPU's memory was recorded, that of tensors on the CPU is not of interest. */
static bool is_recorded_device(const struct rank_events *events, u16 tag) {
  return !is_cpu(tag) ||
         ALL(events->memory_devices.at, events->memory_devices.n, one, is_cpu(*one));
}

void list_memories(struct model *model) {
  u32 n = 0;
  for (u32 r = 0; r < model->n_ranks; r++)
    n += model_events(model, r)->memory_devices.n;
  struct memory_origin *origins = arena_array(model_arena(model), n, sizeof(*origins));
  struct recorded_device *devices = arena_array(model_arena(model), n, sizeof(*devices));
  for (u32 r = 0; r < model->n_ranks; r++)
    for (u32 d = 0; d < model_events(model, r)->memory_devices.n; d++) {
      u16 tag = model_events(model, r)->memory_devices.at[d], index = tag >> 8;
      if (!is_recorded_device(model_events(model, r), tag))
        continue;
      struct recorded_device *device = &devices[model->n_memories];
      *device = (struct recorded_device){.rank = r, .tag = tag};
      origins[model->n_memories++] = (struct memory_origin){.rank = model->ranks[r].rank,
                                                            .device = is_cpu(tag)     ? -1
                                                                      : index == 0xff ? 0
                                                                                      : index,
                                                            .read = read_records,
                                                            .on_axis = true,
                                                            .data = device};
    }
  model->memories = origins;
}
