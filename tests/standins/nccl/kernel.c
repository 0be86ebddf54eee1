/* SPDX-License-Identifier: MIT
 *
 * One kernel of NCCL: the calls of one group on one communicator and stream. Its collectives run
 * one after the other, its messages all at once; comm.h has the formula for their times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "../driver_pointer.h"
#include "../gpu/order.h"
#include "../standin.h"
#include "comm.h"

struct kernel {
  struct ncclComm *comm;
  const char *name; /* of another library's kernel; NULL: NCCL's own */
  bool copies;      /* copy engines run it */
  size_t n;
  struct call calls[];
};

static bool is_message(const struct call *call) {
  return call->kind == CALL_SEND || call->kind == CALL_RECV;
}

static struct cell *collective_cell(const struct call *call, int rank) {
  return &call->comm
              ->collectives[call->sequence % SLOTS * (size_t)call->comm->nranks + (size_t)rank];
}

static struct lane *lane(const struct ncclComm *comm, int from, int to) {
  return &comm->lanes[from * comm->nranks + to];
}

static struct cell *own_cell(const struct call *call) {
  const struct ncclComm *comm = call->comm;
  size_t slot = call->sequence % SLOTS;
  if (call->kind == CALL_SEND)
    return &lane(comm, comm->rank, call->peer)->send[slot];
  if (call->kind == CALL_RECV)
    return &lane(comm, call->peer, comm->rank)->receive[slot];
  return collective_cell(call, comm->rank);
}

static struct cell *peer_cell(const struct call *call) {
  const struct ncclComm *comm = call->comm;
  size_t slot = call->sequence % SLOTS;
  return call->kind == CALL_SEND ? &lane(comm, comm->rank, call->peer)->receive[slot]
                                 : &lane(comm, call->peer, comm->rank)->send[slot];
}

static uint32_t signature(const struct call *call) {
  return (uint32_t)call->kind * 0x9e3779b1u ^ (uint32_t)call->dtype * 0x85ebca6bu ^
         (uint32_t)call->count * 0xc2b2ae35u;
}

/* Writes this rank's arrival time into the segment. False while other ranks still read the cell's
 * previous content. */
static bool announce_arrival(struct call *call, int64_t arrival) {
  struct cell *cell = own_cell(call);
  struct ncclComm *comm = call->comm;
  if (call->announced)
    return true;
  if (atomic_load(&cell->unread)) {
    atomic_store(&comm->segment->members[comm->rank].waits_for_space, 1);
    if (atomic_load(&cell->unread))
      return false;
  }
  call->arrival = arrival;
  call->announced = true;
  cell->arrival = arrival;
  cell->signature = signature(call);
  cell->bytes = 0;
  atomic_store(&cell->unread, is_message(call) ? 1 : (uint32_t)comm->nranks);
  atomic_store(&cell->arrived, call->sequence);
  return true;
}

/* Computes the end of a call; false while an arrival time is missing. */
static bool find_end(struct call *call, bool *found) {
  const struct ncclComm *comm = call->comm;
  int64_t last = call->arrival;
  if (is_message(call)) {
    struct cell *peer_side = peer_cell(call);
    if (atomic_load(&peer_side->arrived) < call->sequence)
      return false;
    if (peer_side->arrival > last)
      last = peer_side->arrival;
  } else {
    for (int rank = 0; rank < comm->nranks; rank++) {
      struct cell *cell = collective_cell(call, rank);
      if (atomic_load(&cell->arrived) < call->sequence)
        return false;
      if (cell->signature != signature(call))
        call->comm->error = ncclInvalidUsage;
      if (cell->arrival > last)
        last = cell->arrival;
    }
  }
  call->end = last + law_transfer_ns(call);
  *found = true;
  return true;
}

/* For each call in turn: announces the arrival, then computes the end. All messages arrive when the
 * kernel starts. */
static bool settle(struct sim_op *op) {
  struct kernel *kernel = op->user;
  int64_t at = op->start, end = op->start;
  bool known = true, completed = false;
  for (size_t i = 0; i < kernel->n; i++) {
    struct call *call = &kernel->calls[i];
    if (is_message(call))
      known &= announce_arrival(call, op->start);
  }
  for (size_t i = 0; i < kernel->n && (known || is_message(&kernel->calls[i])); i++) {
    struct call *call = &kernel->calls[i];
    if (!call->end) {
      known &= announce_arrival(call, is_message(call) ? op->start : at);
      known &= call->announced && find_end(call, &completed);
    }
    if (!call->end)
      continue;
    if (!is_message(call))
      at = call->end;
    if (call->end > end)
      end = call->end;
  }
  if (completed) /* the others may be waiting for this rank */
    comm_ring_others(kernel->comm);
  if (kernel->comm->aborted) {
    int64_t now = clock_now();
    op->end = now > op->start ? now : op->start;
    return true;
  }
  op->end = end;
  op->copies.from = end - law_transfer_ns(&kernel->calls[0]);
  return known;
}

static size_t bytes_to_send(const struct call *call) {
  const struct ncclComm *comm = call->comm;
  size_t bytes = call->count * dtype_bytes(call->dtype);
  switch (call->kind) {
  case CALL_RECV:
    return 0;
  case CALL_BROADCAST:
    return comm->rank == call->peer ? bytes : 0;
  case CALL_SCATTER:
    return comm->rank == call->peer ? bytes * (size_t)comm->nranks : 0;
  case CALL_REDUCESCATTER:
  case CALL_ALLTOALL:
    return bytes * (size_t)comm->nranks;
  default:
    return bytes;
  }
}

void comm_read_fault(struct ncclComm *comm) {
  const char *text = getenv("STANDIN_ASYNC_ERROR");
  int rank, error;
  unsigned long long number;
  if (!text || sscanf(text, "%d@%llu:%d", &rank, &number, &error) != 3 ||
      (rank >= 0 && comm->segment->members[comm->rank].global_rank != rank))
    return;
  comm->fails_at = number;
  comm->fails_with = (ncclResult_t)error;
}

/* Whether the call must never end. Its data is never staged, so no other rank can end it either. */
static bool fails(const struct call *call) {
  struct ncclComm *comm = call->comm;
  if (!comm->fails_at || is_message(call) || call->sequence < comm->fails_at)
    return false;
  comm->error = comm->fails_with;
  return true;
}

static bool begin(struct sim_op *op) {
  struct kernel *kernel = op->user;
  struct ncclComm *comm = kernel->comm;
  if (comm->aborted)
    return true;
  for (size_t i = 0; i < kernel->n; i++) {
    struct call *call = &kernel->calls[i];
    if (call->staged)
      continue;
    if (fails(call))
      return false;
    struct cell *cell = own_cell(call);
    size_t bytes = bytes_to_send(call);
    if (!call->announced || !staging_get(comm, cell, bytes))
      return false;
    if (bytes)
      memcpy(comm->staging + (size_t)comm->rank * comm->staging_bytes + cell->offset, call->source,
             bytes);
    atomic_store(&cell->ready, call->sequence);
    call->staged = true;
  }
  /* If the end has passed, other ranks already wait for this data; see finish(). */
  if (!op->settled || clock_now() >= op->end)
    comm_ring_others(comm);
  return true;
}

static const void *staged_by(const struct ncclComm *comm, int rank, const struct cell *cell) {
  return comm->staging + (size_t)rank * comm->staging_bytes + cell->offset;
}

static bool is_ready(const struct call *call) {
  if (call->kind == CALL_SEND)
    return true;
  if (call->kind == CALL_RECV)
    return atomic_load(&peer_cell(call)->ready) >= call->sequence;
  for (int rank = 0; rank < call->comm->nranks; rank++)
    if (atomic_load(&collective_cell(call, rank)->ready) < call->sequence)
      return false;
  return true;
}

static void write_reduced(const struct call *call, size_t first, size_t count) {
  const void *sources[MAX_RANKS];
  const struct ncclComm *comm = call->comm;
  for (int rank = 0; rank < comm->nranks; rank++)
    sources[rank] = (const char *)staged_by(comm, rank, collective_cell(call, rank)) +
                    first * dtype_bytes(call->dtype);
  reduce(call->target, sources, comm->nranks, count, call->dtype, comm, call->redop);
}

static void write_result(const struct call *call) {
  const struct ncclComm *comm = call->comm;
  size_t bytes = call->count * dtype_bytes(call->dtype), own = (size_t)comm->rank;
  switch (call->kind) {
  case CALL_ALLREDUCE:
    write_reduced(call, 0, call->count);
    break;
  case CALL_REDUCE:
    if (comm->rank == call->peer)
      write_reduced(call, 0, call->count);
    break;
  case CALL_REDUCESCATTER:
    write_reduced(call, own * call->count, call->count);
    break;
  case CALL_BROADCAST:
    memcpy(call->target, staged_by(comm, call->peer, collective_cell(call, call->peer)), bytes);
    break;
  case CALL_SCATTER:
    memcpy(call->target,
           (const char *)staged_by(comm, call->peer, collective_cell(call, call->peer)) +
               own * bytes,
           bytes);
    break;
  case CALL_ALLGATHER:
  case CALL_ALLTOALL:
  case CALL_GATHER:
    if (call->kind == CALL_GATHER && comm->rank != call->peer)
      break;
    for (int rank = 0; rank < comm->nranks; rank++)
      memcpy((char *)call->target + (size_t)rank * bytes,
             (const char *)staged_by(comm, rank, collective_cell(call, rank)) +
                 (call->kind == CALL_ALLTOALL ? own * bytes : 0),
             bytes);
    break;
  case CALL_RECV: {
    const struct cell *peer_side = peer_cell(call);
    memcpy(call->target, staged_by(comm, call->peer, peer_side),
           peer_side->bytes < bytes ? peer_side->bytes : bytes);
    break;
  }
  case CALL_SEND:
    break;
  }
}

static void release_cell(const struct ncclComm *comm, struct cell *cell, int owner) {
  struct member *member = &comm->segment->members[owner];
  if (atomic_fetch_sub(&cell->unread, 1) == 1 && atomic_exchange(&member->waits_for_space, 0))
    sim_ring(&member->bell);
}

/* Each rank's start is before the end, so the data is nearly always staged. If a rank's thread ran
 * late, it rings the doorbell after staging. */
static bool finish(struct sim_op *op) {
  struct kernel *kernel = op->user;
  struct ncclComm *comm = kernel->comm;
  if (comm->aborted)
    return true;
  for (size_t i = 0; i < kernel->n; i++)
    if (!is_ready(&kernel->calls[i]))
      return false;
  for (size_t i = 0; i < kernel->n; i++) {
    struct call *call = &kernel->calls[i];
    write_result(call);
    if (!kernel->copies)
      profiler_call_ran(call);
    if (is_message(call))
      release_cell(comm, peer_cell(call), call->peer);
    else
      for (int rank = 0; rank < comm->nranks; rank++)
        release_cell(comm, collective_cell(call, rank), rank);
  }
  return true;
}

static void drop(struct sim_op *op) {
  struct kernel *kernel = op->user;
  comm_release(kernel->comm);
  free(kernel);
}

static void describe(const struct sim_op *op, FILE *log) {
  static const char *const names[] = {"all_reduce",     "broadcast",  "reduce", "all_gather",
                                      "reduce_scatter", "all_to_all", "gather", "scatter",
                                      "send",           "recv"};
  const struct kernel *kernel = op->user;
  fprintf(log, ",\"comm\":\"%s\",\"calls\":[", kernel->comm->identity);
  for (size_t i = 0; i < kernel->n; i++) {
    const struct call *call = &kernel->calls[i];
    fprintf(log,
            "%s{\"call\":\"%s\",\"sequence\":%llu,\"peer\":%d,\"rank\":%d,\"ranks\":%d,"
            "\"bytes\":%zu,\"arrival\":%lld,\"end\":%lld}",
            i ? "," : "", names[call->kind], (unsigned long long)call->sequence, call->peer,
            kernel->comm->rank, kernel->comm->nranks, call_bytes(call), (long long)call->arrival,
            (long long)call->end);
  }
  fputc(']', log);
}

static const char *reduction_name(ncclRedOp_t redop) {
  static const char *const names[] = {"Sum", "Prod", "MinMax", "MinMax", "SumPostDiv"};
  return redop < ncclNumOps ? names[redop] : "PreMulSum";
}

static __thread const char *next_name;

NCCL_API void standin_next_collective_name(const char *name) {
  next_name = name;
}

/* Kernel names of NCCL 2.2x, mangled as CUPTI reports them. Each is kept once and never freed. */
static const char *kernel_name(const struct call *call) {
  static const char *const kinds[] = {"AllReduce", "Broadcast", "Reduce", "AllGather",
                                      "ReduceScatter"};
  static const char *const dtypes[] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                       "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
  static char *known[64];
  char plain[96], mangled[160];
  switch (call->kind) {
  case CALL_ALLREDUCE:
  case CALL_REDUCE:
  case CALL_REDUCESCATTER:
    snprintf(plain, sizeof(plain), "ncclDevKernel_%s_%s_%s_RING_LL", kinds[call->kind],
             reduction_name(call->redop), dtypes[call->dtype]);
    break;
  case CALL_BROADCAST:
  case CALL_ALLGATHER:
    snprintf(plain, sizeof(plain), "ncclDevKernel_%s_RING_LL", kinds[call->kind]);
    break;
  default:
    snprintf(plain, sizeof(plain), "ncclDevKernel_SendRecv");
  }
  snprintf(mangled, sizeof(mangled), "_Z%zu%s24ncclDevKernelArgsStorageILm4096EE", strlen(plain),
           plain);
  size_t i = 0;
  for (; i < sizeof(known) / sizeof(*known) - 1 && known[i]; i++)
    if (!strcmp(known[i], mangled))
      return known[i];
  if (known[i])
    return "ncclDevKernel_Generic";
  return known[i] = strdup(mangled);
}

static void assign_sequence(struct call *call) {
  struct ncclComm *comm = call->comm;
  if (call->kind == CALL_SEND)
    call->sequence = ++comm->sent[call->peer];
  else if (call->kind == CALL_RECV)
    call->sequence = ++comm->received[call->peer];
  else
    call->sequence = ++comm->sequence;
}

static void enqueue(void *user, struct CUstream_st *stream, uint32_t correlation, uint64_t graph) {
  static const struct sim_work work = {
      .settle = settle, .begin = begin, .finish = finish, .drop = drop, .describe = describe};
  struct kernel *kernel = user;
  struct ncclComm *comm = kernel->comm;
  for (size_t i = 0; i < kernel->n; i++)
    assign_sequence(&kernel->calls[i]);
  if (kernel->copies)
    profiler_copies_launched(&kernel->calls[0], stream);
  else if (!kernel->name)
    profiler_calls_launched(kernel->calls, kernel->n);
  comm->references++;
  struct sim_op *op = sim_op_new(stream, SIM_COLLECTIVE, &work);
  op->user = kernel;
  op->name = kernel->name ? kernel->name : kernel_name(kernel->calls);
  op->grid[0] = op->grid[1] = op->grid[2] = 1;
  op->block[0] = 512;
  op->block[1] = op->block[2] = 1;
  op->correlation = correlation;
  op->graph = graph;
  if (kernel->copies) {
    op->copies.peers = (unsigned)comm->nranks - 1;
    op->copies.bytes = kernel->calls[0].count * dtype_bytes(kernel->calls[0].dtype);
  }
  if (comm->last && comm->last->stream != stream)
    sim_op_after(op, comm->last);
  sim_op_release(comm->last);
  comm->last = sim_op_keep(op);
  sim_enqueue(op);
}

/* Each launch of a graph needs a copy. */
static void *copy_kernel(const void *user) {
  const struct kernel *kernel = user;
  size_t bytes = sizeof(*kernel) + kernel->n * sizeof(*kernel->calls);
  void *copy = malloc(bytes);
  return copy ? memcpy(copy, kernel, bytes) : NULL;
}

/* NCCL looks up the driver itself, and does not use the program's CUDA runtime. */
static CUresult launch(const struct order *order, CUstream stream) {
  static CUresult (*get_kernel)(CUkernel *, CUlibrary, const char *);
  static CUresult (*launch_kernel)(const CUlaunchConfig *, CUfunction, void **, void **);
  if (!launch_kernel) {
    *(void **)&get_kernel = driver_pointer("cuLibraryGetKernel", false);
    *(void **)&launch_kernel = driver_pointer("cuLaunchKernelEx", false);
  }
  CUkernel function;
  if (!launch_kernel || !get_kernel || get_kernel(&function, NULL, order->name))
    return CUDA_ERROR_NOT_INITIALIZED;
  void *extra[] = {STANDIN_ORDER, (void *)order};
  CUlaunchConfig config = {.gridDimX = 1,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = 512,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .hStream = stream};
  return launch_kernel(&config, (CUfunction)function, NULL, extra);
}

/* As in NCCL: what only moves data, to buffers that the peers can reach. */
static bool is_copied(const struct call *calls, size_t n) {
  const struct call *call = &calls[0];
  bool moves = call->kind == CALL_ALLGATHER || call->kind == CALL_ALLTOALL ||
               call->kind == CALL_GATHER || call->kind == CALL_SCATTER;
  return n == 1 && moves && call->comm->nranks > 1 && (call->comm->copies || call->copies);
}

/* All calls have the same communicator and stream; the lock is held. */
ncclResult_t kernel_launch(struct call *calls, size_t n) {
  if (!sim_stream_is(sim_stream(calls->stream, false)))
    return ncclInvalidUsage;
  struct kernel *kernel = calloc(1, sizeof(*kernel) + n * sizeof(*calls));
  if (!kernel)
    return ncclSystemError;
  kernel->comm = calls->comm;
  kernel->n = n;
  kernel->copies = is_copied(calls, n);
  kernel->name = next_name;
  next_name = NULL;
  memcpy(kernel->calls, calls, n * sizeof(*calls));
  struct order order = {.kind = SIM_COLLECTIVE,
                        .name = kernel->name ? kernel->name : kernel_name(calls),
                        .user = kernel,
                        .copy_user = copy_kernel,
                        .enqueue = enqueue};
  sim_unlock();
  CUresult result = kernel->copies ? (CUresult)sim_submit(calls->stream, false, &order, false)
                                   : launch(&order, calls->stream);
  sim_lock();
  return result ? ncclUnhandledCudaError : ncclSuccess;
}
