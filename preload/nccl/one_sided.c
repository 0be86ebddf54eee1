/* SPDX-License-Identifier: MIT
 *
 * One-sided calls: a rank writes into another rank's memory, announces it by a signal, and waits
 * for signals.
 */
#include <stddef.h>

#include "cuda/graphs/cuda_graphs.h"
#include "nccl/nccl_record.h"

struct nccl_span one_sided_begin(struct tscope_thread *thread, enum tscope_one_sided kind,
                                 size_t count, int datatype, int peer, ncclComm_t comm,
                                 cudaStream_t stream) {
  struct nccl_span span = {.start = tscope_ticks()};
  struct communicator *communicator = communicator_get(thread, comm);
  thread->launches_inside = true;
  if (graph_known_capture(TSCOPE_STREAM_LEGACY, stream))
    return span; /* it runs with its graph, if ever */
  struct tscope_one_sided_record record = {
      .count = count,
      .bytes = nccl_bytes(datatype, count),
      .comm = communicator ? communicator->number : TSCOPE_UNKNOWN,
      .peer = peer,
      .stream = stream_index(thread, TSCOPE_STREAM_LEGACY, stream),
      .dtype = nccl_dtype(datatype),
  };
  span.dur = tscope_span_open(thread, span.start, TSCOPE_REC_ONE_SIDED, (u16)kind, &record,
                              sizeof(record));
  return span;
}

void one_sided_end(struct tscope_thread *thread, struct nccl_span *span, ncclResult_t result) {
  struct tscope_one_sided_record *record = tscope_span_record(span->dur);
  nccl_call_end(thread, span, record ? &record->result : NULL, "a one-sided call", result);
}
