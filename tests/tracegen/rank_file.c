/* SPDX-License-Identifier: MIT */
#include "rank_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank_hang.h"
#include "trace_writer.h"

#define TICK_HZ 2500000000ull
#define TICK_SHIFT 2u
#define ANCHOR_EVERY_NS 1000000000ull
#define COMM 1u

static const struct trace_place host_retained = {0, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS};
static const struct trace_place host_ring = {0, TSCOPE_RING, TSCOPE_CLOCK_TICKS};
static const struct trace_place gpu_retained = {1, TSCOPE_RETAINED, TSCOPE_CLOCK_MONOTONIC};
static const struct trace_place gpu_ring = {1, TSCOPE_RING, TSCOPE_CLOCK_MONOTONIC};
static const struct trace_place worker_retained = {2, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS};

static const char *const kernels[] = {"gemm_forward",     "gelu_forward",  "norm_forward",
                                      "gemm_backward",    "gelu_backward", "norm_backward",
                                      "multi_tensor_adam"};
#define KERNELS LENGTH_OF(kernels)
#define NCCL_KERNEL "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

struct rank_file {
  const struct tracegen_options *options;
  struct tracegen_rank *truth;
  struct trace_writer *writer;
  struct emitter emitter;
  u32 rank, correlation, next_seq;
  u32 kernel_names[KERNELS], collective_name, phase_names[8];
  u64 next_anchor;
  const u64 *last_start; /* of this step's collectives: the arrival of the last rank */
  u64 slept;             /* gloo: until now, the main thread's time without use of the CPU */
  u64 wait_start;        /* gloo: when the backward pass begins to wait, 0 if it does not */
  u64 comm_start[256], comm_end[256]; /* of this step, to compute the overlap with computation */
  u32 n_comm;
};

static u64 local_ns(const struct rank_file *file, u64 at) {
  return tracegen_clock(file->truth, at);
}

static u64 tick_of(u64 monotonic) {
  return monotonic / 2 * 5 + monotonic % 2 * 5 / 2;
}

static u64 local_units(const struct rank_file *file, u64 at) {
  return tick_of(local_ns(file, at)) >> TICK_SHIFT;
}

static u64 units_between(const struct rank_file *file, u64 start, u64 end) {
  return local_units(file, end) - local_units(file, start);
}

static void *add(struct rank_file *file, struct trace_place place, u64 at, u8 type, u16 tag,
                 size_t bytes) {
  u64 time = place.clock == TSCOPE_CLOCK_TICKS ? local_units(file, at) : local_ns(file, at);
  return trace_add(file->writer, place, time, type, tag, bytes);
}

/* What the wall clock of the rank's host shows at an instant of the schedule. */
static u64 wall_ns(const struct tracegen_options *options, u32 rank, u64 at) {
  return options->start_realtime_ns + rank / options->ranks_per_host * options->wall_ahead_ns + at;
}

static void anchor(struct rank_file *file, u64 at) {
  u64 monotonic = local_ns(file, at);
  struct tscope_anchor_record *record =
      add(file, host_retained, at, TSCOPE_REC_ANCHOR, 0, sizeof(*record));
  record->ticks = tick_of(monotonic);
  record->monotonic_ns = monotonic;
  record->realtime_ns = wall_ns(file->options, file->rank, at);
  if (at >= TRACEGEN_START_NS + 1000000000)
    record->realtime_ns += file->rank / file->options->ranks_per_host * file->options->wall_step_ns;
  record->error_ticks = 100;
}

/* Adds one interval of computation to the truth, and subtracts its overlap with this step's
 * communication from the exposed communication. Both come in order of time. */
static void count_compute(struct rank_file *file, u64 start, u64 end) {
  file->truth->compute_ns += end - start;
  for (u32 i = 0; i < file->n_comm; i++) {
    u64 from = MAX(start, file->comm_start[i]);
    u64 to = MIN(end, file->comm_end[i]);
    if (from < to)
      file->truth->exposed_ns -= to - from;
  }
}

static void on_step(void *user, u32 step, u64 at) {
  struct rank_file *file = user;
  while (file->next_anchor <= at) {
    anchor(file, at);
    file->next_anchor = at + ANCHOR_EVERY_NS;
  }
  if (!file->options->step_marks)
    return;
  struct tscope_step_record *record =
      add(file, host_retained, at, TSCOPE_REC_STEP, 0, sizeof(*record));
  record->step = step;
}

static void on_phase(void *user, enum tscope_phase phase, u64 start, u64 end) {
  struct rank_file *file = user;
  if (file->options->flavour == TRACEGEN_GLOO && phase != TSCOPE_PHASE_DATA)
    count_compute(file, start,
                  phase == TSCOPE_PHASE_BACKWARD && file->wait_start ? file->wait_start : end);
  if (!file->options->phases)
    return;
  struct tscope_phase_record *record =
      add(file, host_retained, start, TSCOPE_REC_PHASE, (u16)phase, sizeof(*record));
  record->dur = units_between(file, start, end);
  record->name = file->phase_names[phase];
}

static bool has_kernel_times(const struct rank_file *file) {
  return file->options->gpu_spans && !file->options->event_pairs;
}

static void on_copy(void *user, u64 call, u64 call_end, u64 start, u64 end) {
  struct rank_file *file = user;
  struct tscope_memcpy_record *record =
      add(file, host_ring, call, TSCOPE_REC_MEMCPY, 0, sizeof(*record));
  record->dur = (u32)units_between(file, call, call_end);
  record->kind = TSCOPE_MEMCPY_H2D | TSCOPE_MEMCPY_ASYNC;
  record->bytes = 1 << 20;
  if (!has_kernel_times(file))
    return;
  struct tscope_gpu_memcpy_record *ran =
      add(file, gpu_ring, start, TSCOPE_REC_GPU_MEMCPY, 0, sizeof(*ran));
  ran->dur = (u32)(local_ns(file, end) - local_ns(file, start));
  ran->kind = TSCOPE_MEMCPY_H2D;
  ran->bytes = 1 << 20;
  ran->correlation = ++file->correlation;
}

static void on_kernel(void *user, u32 which, u64 call, u64 call_end, u64 start, u64 end) {
  struct rank_file *file = user;
  struct tscope_launch_record *record =
      add(file, host_ring, call, TSCOPE_REC_LAUNCH, 0, sizeof(*record));
  record->dur = (u32)units_between(file, call, call_end);
  record->shape = which + 1;
  count_compute(file, start, end);
  if (!has_kernel_times(file))
    return;
  struct tscope_gpu_kernel_record *ran =
      add(file, gpu_ring, start, TSCOPE_REC_GPU_KERNEL, 0, sizeof(*ran));
  ran->dur = (u32)(local_ns(file, end) - local_ns(file, start));
  ran->name = file->kernel_names[which];
  ran->correlation = ++file->correlation;
}

static void on_order(void *user, u32 from_stream, u32 to_stream, u64 at) {
  struct rank_file *file = user;
  struct tscope_event_record_record *mark =
      add(file, host_ring, at, TSCOPE_REC_EVENT_RECORD, (u16)from_stream, sizeof(*mark));
  mark->event = 0x1000 + from_stream;
  struct tscope_event_wait_record *wait =
      add(file, host_ring, at, TSCOPE_REC_EVENT_WAIT, (u16)to_stream, sizeof(*wait));
  wait->event = 0x1000 + from_stream;
}

static void add_collective_run(struct rank_file *file, u64 start, u64 end, u32 seq) {
  bool gloo = file->options->flavour == TRACEGEN_GLOO;
  u32 host = tracegen_host_from_last(file->options, file->rank);
  if ((!gloo && !file->options->gpu_spans) ||
      (host >= file->options->lone_hosts &&
       host - file->options->lone_hosts < file->options->mute_hosts))
    return;
  struct tscope_collective_run_record *run =
      add(file, gloo ? worker_retained : gpu_retained, start, TSCOPE_REC_COLLECTIVE_RUN,
          gloo ? TSCOPE_NO_STREAM : 1, sizeof(*run));
  run->dur = gloo ? units_between(file, start, end) : local_ns(file, end) - local_ns(file, start);
  run->comm = gloo ? COMM : TSCOPE_UNKNOWN;
  run->seq = gloo ? seq : TSCOPE_UNKNOWN;
  run->name = file->collective_name;
  run->correlation = gloo ? 0 : ++file->correlation;
}

static void on_collective(void *user, u32 bucket, u64 call, u64 call_end, u64 start, u64 end) {
  struct rank_file *file = user;
  const struct tracegen_options *options = file->options;
  struct tscope_collective_record *record =
      add(file, host_retained, call, TSCOPE_REC_COLLECTIVE, TSCOPE_OP_ALLREDUCE, sizeof(*record));
  record->dur = units_between(file, call, call_end);
  record->count = tracegen_bucket_count(options, bucket);
  record->bytes = record->count * 4;
  record->comm = COMM;
  record->seq = file->next_seq++;
  record->peer = -1;
  record->stream = options->flavour == TRACEGEN_GLOO ? TSCOPE_NO_STREAM : 1;
  record->dtype = TSCOPE_DTYPE_F32;
  record->redop = TSCOPE_REDOP_SUM;
  u64 last =
      file->last_start[bucket * tracegen_islands(options) + tracegen_island(options, file->rank)];
  file->truth->comm_ns += end - start;
  file->truth->exposed_ns += end - start;
  file->truth->wait_ns += last - start;
  if (file->n_comm < LENGTH_OF(file->comm_start)) {
    file->comm_start[file->n_comm] = start;
    file->comm_end[file->n_comm++] = end;
  }
  add_collective_run(file, start, end, record->seq);
}

static void on_sync(void *user, u64 start, u64 end) {
  struct rank_file *file = user;
  struct tscope_sync_record *record =
      add(file, host_ring, start, TSCOPE_REC_SYNC, TSCOPE_SYNC_STREAM, sizeof(*record));
  record->dur = (u32)units_between(file, start, end);
  record->object = 0;
}

static void on_asleep(void *user, u64 start, u64 end) {
  struct rank_file *file = user;
  file->slept += end - start;
}

static void on_wait(void *user, u32 bucket, u64 start, u64 end) {
  struct rank_file *file = user;
  (void)bucket;
  file->wait_start = start;
  struct tscope_thread_cpu_record *cpu =
      add(file, host_retained, start, TSCOPE_REC_THREAD_CPU, 0, sizeof(*cpu));
  cpu->cpu_ns = start - TRACEGEN_START_NS - file->slept;
  file->slept += end - start;
  struct tscope_comm_wait_record *record =
      add(file, host_retained, start, TSCOPE_REC_COMM_WAIT, 0, sizeof(*record));
  record->dur = units_between(file, start, end);
  record->comm = COMM;
  record->seq = file->next_seq - 1;
}

static void define_process(struct rank_file *file) {
  const struct tracegen_options *options = file->options;
  struct trace_writer *writer = file->writer;
  char text[32];
  snprintf(text, sizeof(text), "%u", file->rank);
  trace_info(writer, TSCOPE_INFO_RANK, text, NULL);
  trace_info(writer, TSCOPE_INFO_COMMAND, "python train.py --synthetic", NULL);
  trace_info(writer, TSCOPE_INFO_TSCOPE, "0.1.0", NULL);
  if (options->skew_hosts) {
    snprintf(text, sizeof(text), "boot-of-%u 0 0", file->rank / options->ranks_per_host);
    trace_info(writer, TSCOPE_INFO_CLOCK, text, NULL);
  }
  if (options->flavour == TRACEGEN_NCCL)
    trace_info(writer, TSCOPE_INFO_GPU_NAME, "NVIDIA H100 80GB HBM3", NULL);
  u32 reason = trace_string(writer, options->gpu_spans ? "opened" : "switched off");
  struct tscope_gpu_clock_record *clock =
      add(file, host_retained, TRACEGEN_START_NS, TSCOPE_REC_GPU_CLOCK,
          options->flavour != TRACEGEN_NCCL || !options->gpu_spans ? TSCOPE_GPU_CLOCK_NONE
          : options->event_pairs                                   ? TSCOPE_GPU_CLOCK_EVENTS
                                                                   : TSCOPE_GPU_CLOCK_CUPTI,
          sizeof(*clock));
  clock->reason = reason;
}

static void define_threads(struct rank_file *file) {
  static const char *const names[] = {"main", "tscope", "gloo worker"};
  for (u32 i = 0; i < LENGTH_OF(names); i++) {
    u32 name = trace_string(file->writer, names[i]);
    struct tscope_thread_record *thread =
        add(file, host_retained, TRACEGEN_START_NS, TSCOPE_REC_THREAD, 0, sizeof(*thread));
    thread->thread = i;
    thread->tid = 1000 + i;
    thread->name = name;
  }
}

static void define_comm(struct rank_file *file) {
  const struct tracegen_options *options = file->options;
  u32 island = tracegen_island(options, file->rank);
  u32 of_host = options->ranks_per_host, first = file->rank / of_host * of_host;
  bool lone = island >= options->islands;
  u32 shared = options->ranks - (options->lone_hosts ? (options->lone_hosts - 1) * of_host +
                                                           (options->ranks - 1) % of_host + 1
                                                     : 0);
  u32 name = trace_string(file->writer, "default_pg");
  struct tscope_comm_record *comm = add(
      file, host_retained, TRACEGEN_START_NS, TSCOPE_REC_COMM,
      options->flavour == TRACEGEN_GLOO ? TSCOPE_BACKEND_GLOO : TSCOPE_BACKEND_NCCL, sizeof(*comm));
  comm->identity = 0xc0ffee00 + island;
  comm->comm = COMM;
  comm->rank = lone ? file->rank - first : file->rank / options->islands;
  comm->size = lone ? (options->ranks - first < of_host ? options->ranks - first : of_host)
                    : (shared - island + options->islands - 1) / options->islands;
  comm->device = options->flavour == TRACEGEN_GLOO ? -1 : 0;
  comm->color = -1;
  comm->name = name;
}

static void define_gpu(struct rank_file *file) {
  for (u16 stream = 0; stream < 2; stream++) {
    struct tscope_stream_record *record =
        add(file, host_retained, TRACEGEN_START_NS, TSCOPE_REC_STREAM, stream, sizeof(*record));
    record->handle = stream ? 0x7f0000001000 : 0;
    record->gpu_stream = stream ? 20 : 7;
  }
  for (u32 i = 0; i < KERNELS; i++) {
    u32 name = trace_string(file->writer, kernels[i]);
    file->kernel_names[i] = name;
    struct tscope_shape_record *shape =
        add(file, host_retained, TRACEGEN_START_NS, TSCOPE_REC_SHAPE, 0, sizeof(*shape));
    shape->shape = i + 1;
    shape->kernel = name;
    shape->grid_x = 64;
    shape->grid_y = shape->grid_z = shape->block_y = shape->block_z = 1;
    shape->block_x = 256;
  }
}

static void define_names(struct rank_file *file) {
  static const char *const phases[] = {
      [TSCOPE_PHASE_DATA] = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
      [TSCOPE_PHASE_FORWARD] = "DistributedDataParallel.forward",
      [TSCOPE_PHASE_BACKWARD] = "backward",
      [TSCOPE_PHASE_OPTIMIZER] = "Optimizer.step#Adam.step"};
  for (u32 i = TSCOPE_PHASE_DATA; i <= TSCOPE_PHASE_OPTIMIZER; i++)
    file->phase_names[i] = trace_string(file->writer, phases[i]);
  file->collective_name = trace_string(
      file->writer, file->options->flavour == TRACEGEN_GLOO ? "gloo:all_reduce" : NCCL_KERNEL);
}

struct rank_file *rank_file_new(const struct tracegen_options *options, struct tracegen_rank *truth,
                                u32 rank) {
  struct rank_file *file = calloc(1, sizeof(*file));
  if (!file)
    return NULL;
  *file = (struct rank_file){.options = options, .truth = truth, .rank = rank};
  u64 start = tracegen_clock(truth, TRACEGEN_START_NS);
  struct tscope_file_header facts = {.header_bytes = options->header_bytes,
                                     .chunk_bytes = options->chunk_bytes,
                                     .tick_source = TSCOPE_TICK_TSC,
                                     .tick_shift = TICK_SHIFT,
                                     .tick_hz = TICK_HZ,
                                     .pid = 10000 + rank,
                                     .rank = rank,
                                     .world_size = options->ranks,
                                     .local_rank = rank % options->ranks_per_host,
                                     .start_ticks = tick_of(start),
                                     .start_monotonic_ns = start,
                                     .start_realtime_ns =
                                         wall_ns(options, rank, TRACEGEN_START_NS)};
  snprintf(facts.host, sizeof(facts.host), "node%03u", rank / options->ranks_per_host);
  if (options->words.n)
    snprintf(facts.host, sizeof(facts.host), "%s",
             options->words.at[rank / options->ranks_per_host % options->words.n]);
  snprintf(facts.run, sizeof(facts.run), "%s", options->run);
  file->writer = trace_writer_new(&facts);
  if (options->words.n)
    trace_writer_words(file->writer, &options->words);
  file->next_anchor = TRACEGEN_START_NS;
  file->emitter = (struct emitter){.user = file,
                                   .step = on_step,
                                   .phase = on_phase,
                                   .copy = on_copy,
                                   .kernel = on_kernel,
                                   .order = on_order,
                                   .collective = on_collective,
                                   .sync = on_sync,
                                   .asleep = on_asleep,
                                   .wait = on_wait};
  define_process(file);
  define_threads(file);
  define_comm(file);
  define_names(file);
  if (options->flavour == TRACEGEN_NCCL)
    define_gpu(file);
  return file;
}

void rank_file_step(struct rank_file *file, const u64 *last_start) {
  file->last_start = last_start;
  file->n_comm = 0;
  file->wait_start = 0;
}

const struct emitter *rank_file_emitter(struct rank_file *file) {
  return &file->emitter;
}

/* Writes the end of a run in which one rank hangs. Returns the time at which the job was killed. */
static u64 hang(struct rank_file *file, u64 end) {
  u64 looked = end + TRACEGEN_STALL_MS * 1000000ull;
  rank_hang_write(file->writer,
                  &(struct rank_hang){.culprit = file->rank == file->options->hang_rank,
                                      .comm = COMM,
                                      .seq = file->next_seq,
                                      .name = file->collective_name,
                                      .since = local_units(file, end),
                                      .looked = local_units(file, looked),
                                      .since_ticks = tick_of(local_ns(file, end)),
                                      .looked_ticks = tick_of(local_ns(file, looked))});
  return looked + 1000000;
}

int rank_file_save(struct rank_file *file, const char *folder, u64 end) {
  const struct tracegen_options *options = file->options;
  bool hangs = options->hang_rank != TSCOPE_UNKNOWN_RANK;
  if (hangs)
    end = hang(file, end);
  anchor(file, end);
  struct tscope_cost_record *cost =
      add(file, host_retained, end, TSCOPE_REC_COST, 0, sizeof(*cost));
  cost->records = trace_writer_records(file->writer);
  cost->helper_cpu_ns = 1000000;
  cost->startup_ns = 2000000;
  cost->hook_ns_per_record = 30;
  file->truth->events = trace_writer_records(file->writer);
  struct tscope_file_header *header = trace_writer_header(file->writer);
  header->closed_realtime_ns = hangs ? 0 : wall_ns(options, file->rank, end);
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s-%u-%llu" TSCOPE_FILE_SUFFIX, folder,
           options->words.n ? "host" : header->host, header->pid,
           (unsigned long long)header->start_ticks);
  return trace_writer_save(file->writer, path,
                           file->rank == options->cut_rank ? options->cut_bytes : SIZE_MAX);
}

void rank_file_free(struct rank_file *file) {
  if (!file)
    return;
  trace_writer_free(file->writer);
  free(file);
}
