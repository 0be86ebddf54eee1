/* SPDX-License-Identifier: MIT
 *
 * Activity records in the layout of the installed CUPTI headers.
 */
#include <string.h>

#include "cupti_standin.h"

size_t record_bytes(CUpti_ActivityKind kind) {
  switch (kind) {
  case CUPTI_ACTIVITY_KIND_KERNEL:
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    return sizeof(kernel_record);
  case CUPTI_ACTIVITY_KIND_MEMCPY:
    return sizeof(memcpy_record);
  case CUPTI_ACTIVITY_KIND_MEMCPY2:
    return sizeof(CUpti_ActivityMemcpyPtoP4);
  case CUPTI_ACTIVITY_KIND_MEMSET:
    return sizeof(CUpti_ActivityMemset4);
  case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
    return sizeof(CUpti_ActivityExternalCorrelation);
  case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
    return sizeof(CUpti_ActivityGraphTrace2);
  case CUPTI_ACTIVITY_KIND_OVERHEAD:
    return sizeof(CUpti_ActivityOverhead2);
  case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    return sizeof(wait_record);
  case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
    return sizeof(event_record);
  default:
    return sizeof(struct standin_record);
  }
}

static void set_kernel(kernel_record *record, const struct sim_op *op) {
  record->start = (uint64_t)op->start;
  record->end = (uint64_t)op->end;
  record->deviceId = (uint32_t)op->stream->device;
  record->contextId = 1;
  record->streamId = op->stream->id;
  record->gridX = (int32_t)op->grid[0];
  record->gridY = (int32_t)op->grid[1];
  record->gridZ = (int32_t)op->grid[2];
  record->blockX = (int32_t)op->block[0];
  record->blockY = (int32_t)op->block[1];
  record->blockZ = (int32_t)op->block[2];
  record->correlationId = op->correlation;
  record->gridId = (int64_t)op->id;
  record->name = op->name;
  record->graphId = (uint32_t)op->graph;
  record->graphNodeId = op->node;
  record->registersPerThread = 32;
}

static void set_copy(memcpy_record *record, const struct sim_op *op) {
  static const uint8_t kinds[] = {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                                  CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD};
  record->copyKind = op->copy_kind < sizeof(kinds) ? kinds[op->copy_kind] : 0;
  record->bytes = op->bytes;
  record->start = (uint64_t)op->start;
  record->end = (uint64_t)op->end;
  record->deviceId = (uint32_t)op->stream->device;
  record->contextId = 1;
  record->streamId = op->stream->id;
  record->correlationId = op->correlation;
  record->graphId = (uint32_t)op->graph;
}

static void set_peer_copy(CUpti_ActivityMemcpyPtoP4 *record, const struct sim_op *op) {
  record->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  record->bytes = op->bytes;
  record->start = (uint64_t)op->start;
  record->end = (uint64_t)op->end;
  record->deviceId = record->srcDeviceId = record->dstDeviceId = (uint32_t)op->stream->device;
  record->contextId = record->srcContextId = record->dstContextId = 1;
  record->streamId = op->stream->id;
  record->correlationId = op->correlation;
  record->graphId = (uint32_t)op->graph;
}

static void set_memset(CUpti_ActivityMemset4 *record, const struct sim_op *op) {
  record->value = (uint32_t)op->value;
  record->bytes = op->bytes;
  record->start = (uint64_t)op->start;
  record->end = (uint64_t)op->end;
  record->deviceId = (uint32_t)op->stream->device;
  record->contextId = 1;
  record->streamId = op->stream->id;
  record->correlationId = op->correlation;
  record->graphId = (uint32_t)op->graph;
}

void record_set(struct standin_record *record, const struct sim_op *op) {
  switch (record->any.kind) {
  case CUPTI_ACTIVITY_KIND_MEMCPY:
    set_copy(&record->copy, op);
    break;
  case CUPTI_ACTIVITY_KIND_MEMCPY2:
    set_peer_copy(&record->peer, op);
    break;
  case CUPTI_ACTIVITY_KIND_MEMSET:
    set_memset(&record->fill, op);
    break;
  default:
    set_kernel(&record->kernel, op);
  }
}

/* 0 means that the time is not known. */
static uint64_t on_client_clock(uint64_t raw, const struct clock_map *map) {
  if (!raw)
    return 0;
  return (uint64_t)(map->client + (int64_t)((double)((int64_t)raw - map->raw) * map->slope));
}

/* A macro, because the records are packed: no pointer to their members may be passed. */
#define CONVERT_TIMES(record)                                                                      \
  do {                                                                                             \
    (record).start = on_client_clock((record).start, map);                                         \
    (record).end = on_client_clock((record).end, map);                                             \
  } while (0)

void record_on_client_clock(struct standin_record *record, const struct clock_map *map) {
  switch (record->any.kind) {
  case CUPTI_ACTIVITY_KIND_KERNEL:
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    CONVERT_TIMES(record->kernel);
    break;
  case CUPTI_ACTIVITY_KIND_MEMCPY:
    CONVERT_TIMES(record->copy);
    break;
  case CUPTI_ACTIVITY_KIND_MEMCPY2:
    CONVERT_TIMES(record->peer);
    break;
  case CUPTI_ACTIVITY_KIND_MEMSET:
    CONVERT_TIMES(record->fill);
    break;
  case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
    CONVERT_TIMES(record->graph);
    break;
  case CUPTI_ACTIVITY_KIND_OVERHEAD:
    CONVERT_TIMES(record->overhead);
    break;
  case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    CONVERT_TIMES(record->wait);
    break;
  default:
    break;
  }
}

void record_on_realtime_clock(struct standin_record *record) {
  struct timespec real;
  clock_gettime(CLOCK_REALTIME, &real);
  record_on_client_clock(
      record, &(struct clock_map){
                  .raw = clock_now(), .client = real.tv_sec * NS_PER_S + real.tv_nsec, .slope = 1});
}
