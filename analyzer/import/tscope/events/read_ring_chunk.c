/* SPDX-License-Identifier: MIT
 *
 * The ring: launches, kernels, copies. Most are only counted; the timeline reads them again where
 * it shows them.
 */
#include "import/tscope/events/reading.h"

/* What kernels of that name communicate. */
static struct communication communication_of(struct reading *reading, u32 string) {
  const struct definitions *definitions = reading->events->definitions;
  if (string >= definitions->n_strings || !definitions->strings[string])
    return (struct communication){0};
  struct communication *is = &reading->events->communications[string];
  if (!reading->communication_known[string])
    *is = kernel_communication(reading->kernel_names, definitions->strings[string]);
  reading->communication_known[string] = true;
  return *is;
}

/* Kernels of collectives are launched inside calls that have records of their own. */
static bool launches_collective(struct reading *reading, const struct tscope_record *record) {
  const struct definitions *definitions = reading->events->definitions;
  u32 shape = ((const struct tscope_launch_record *)record)->shape;
  u32 name = shape < definitions->n_shapes ? definitions->shapes[shape].kernel : 0;
  return communication_of(reading, name).library == COMM_LIBRARY_NCCL;
}

/* Keeps a kernel that communicates without a call. */
static void read_kernel(struct reading *reading, const struct tscope_record *record, u64 time) {
  const struct tscope_gpu_kernel_record *kernel = (const void *)record;
  struct communication is = communication_of(reading, kernel->name);
  if (is.library == COMM_LIBRARY_NONE || is.library == COMM_LIBRARY_NCCL)
    return;
  i64 start = chunk_ns(&reading->clock, time);
  i64 end = chunk_ns(&reading->clock, time + trace_dur(record));
  VECTOR_PUSH(&reading->events->kernels,
              (struct rank_kernel){.start = start,
                                   .end = MAX(start, end),
                                   .call_start = NS_UNKNOWN,
                                   .call_end = NS_UNKNOWN,
                                   .comm = INDEX_NONE,
                                   .stream = record->tag,
                                   .op = is.op,
                                   SAME(kernel, name, correlation, graph)});
}

/* Keeps a copy that copy engines may have made for a collective. */
static void read_copy(struct reading *reading, const struct tscope_record *record, u64 time) {
  const struct tscope_gpu_memcpy_record *copy = (const void *)record;
  bool between_gpus = copy->kind == TSCOPE_MEMCPY_D2D || copy->kind == TSCOPE_MEMCPY_P2P;
  if (between_gpus)
    VECTOR_PUSH(&reading->events->copies,
                (struct rank_copy){.start = chunk_ns(&reading->clock, time),
                                   .end = chunk_ns(&reading->clock, time + trace_dur(record)),
                                   .stream = record->tag,
                                   SAME(copy, bytes, graph, correlation)});
}

/* Keeps where the host and its GPU meet. */
static void read_meeting(struct reading *reading, const struct tscope_record *record, u64 time) {
  const struct tscope_memcpy_record *copy = (const void *)record;
  bool copies = record->type == TSCOPE_REC_MEMCPY;
  u8 what = !copies                                    ? MEETING_WAIT
            : (copy->kind & 0xff) == TSCOPE_MEMCPY_H2D ? MEETING_COPY_IN
            : (copy->kind & 0xff) == TSCOPE_MEMCPY_D2H ? MEETING_COPY_OUT
                                                       : 0;
  if (what)
    VECTOR_PUSH(&reading->events->meetings,
                (struct rank_meeting){.start = chunk_ns(&reading->clock, time),
                                      .end = chunk_ns(&reading->clock, time + trace_dur(record)),
                                      .bytes = copies ? copy->bytes : 0,
                                      .what = what});
}

/* The kernels of one replay are the run of one launch. */
static bool begins_run(struct reading *reading, const struct tscope_record *record) {
  const struct tscope_gpu_kernel_record *kernel = (const void *)record;
  if (!kernel->graph)
    return true;
  bool begins = kernel->correlation != reading->replay;
  reading->replay = kernel->correlation;
  return begins;
}

/* Only counts, except for kernels that communicate; the times of the first and the last record
 * bound what is between. */
void read_ring_chunk(struct reading *reading, const struct trace_chunk *chunk) {
  struct trace_cursor cursor = trace_records(chunk);
  u64 earliest = UINT64_MAX, latest = 0, gpu_latest = 0, counts[256] = {0};
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    u64 time = trace_time(&cursor, record);
    earliest = MIN(time, earliest);
    latest = MAX(time, latest);
    bool counted = record->type == TSCOPE_REC_LAUNCH       ? !launches_collective(reading, record)
                   : record->type == TSCOPE_REC_GPU_KERNEL ? begins_run(reading, record)
                                                           : true;
    counts[record->type] += counted;
    if (record->type == TSCOPE_REC_GPU_KERNEL)
      read_kernel(reading, record, time);
    if (record->type == TSCOPE_REC_GPU_MEMCPY)
      read_copy(reading, record, time);
    if (reading->keeps_meetings &&
        (record->type == TSCOPE_REC_MEMCPY || record->type == TSCOPE_REC_SYNC))
      read_meeting(reading, record, time);
    if (record->type >= TSCOPE_REC_GPU_KERNEL && record->type <= TSCOPE_REC_GPU_MEMSET) {
      u64 end = time + trace_dur(record);
      gpu_latest = MAX(end, gpu_latest);
    }
    if (record->type == TSCOPE_REC_TENSOR || record->type == TSCOPE_REC_TENSOR_TOTALS)
      add_memory_device(reading->events, record->tag);
  }
  struct rank_events *events = reading->events;
  events->launches += counts[TSCOPE_REC_LAUNCH] + counts[TSCOPE_REC_GRAPH_LAUNCH];
  events->gpu_kernels += counts[TSCOPE_REC_GPU_KERNEL];
  events->named_ranges += counts[TSCOPE_REC_RANGE];
  if (earliest != UINT64_MAX) {
    extend_time_range(events, chunk_ns(&reading->clock, earliest));
    extend_time_range(events, chunk_ns(&reading->clock, latest));
  }
  if (gpu_latest) {
    update_last_gpu_work(reading, chunk_ns(&reading->clock, gpu_latest));
    extend_time_range(events, chunk_ns(&reading->clock, gpu_latest));
  }
}
