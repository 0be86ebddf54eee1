/* SPDX-License-Identifier: MIT
 *
 * Every version of CUPTI's activity records, as NVIDIA's headers declare them, goes through the
 * decoder, which knows only their common parts. Also checks which kernels belong to a collective
 * library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>

#include "gpu/cupti_decode.h"

#ifdef CUPTI_OF_CUDA_12
_Static_assert(CUPTI_API_VERSION < 130000, "the headers of CUDA 12 come first");
#endif

static const char name[] = "_Z6kernelv";

static void assert_common(const struct cupti_record *out, enum gpu_span_kind kind) {
  const struct gpu_span *span = &out->span;
  assert_int_equal(out->kind, CUPTI_WORK);
  assert_int_equal(span->kind, kind);
  assert_int_equal(span->start, 1000000000007);
  assert_int_equal(span->end, 1000000000107);
  assert_int_equal(span->device, 3);
  assert_int_equal(span->stream, 21);
  assert_int_equal(span->correlation, 4242);
}

/* A record of a type with every byte set, so that a field read from the wrong place is noticed. */
#define RECORD(type, kind_)                                                                        \
  type record;                                                                                     \
  struct cupti_record out;                                                                         \
  const struct gpu_span *span = &out.span;                                                         \
  memset(&record, 0x5a, sizeof(record));                                                           \
  record.kind = (kind_);                                                                           \
  record.start = 1000000000007;                                                                    \
  record.end = 1000000000107;                                                                      \
  record.deviceId = 3;                                                                             \
  record.streamId = 21;                                                                            \
  record.correlationId = 4242;

/* For a version with a graph id. In a version without one the result is 0, whatever bytes are at
 * its place. */
#define KERNEL(type, set_graph, graph_)                                                            \
  do {                                                                                             \
    RECORD(type, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)                                            \
    record.name = name;                                                                            \
    set_graph;                                                                                     \
    assert_true(cupti_decode(&record, sizeof(record), &out));                                      \
    assert_common(&out, GPU_SPAN_KERNEL);                                                          \
    assert_ptr_equal(span->name, name);                                                            \
    assert_int_equal(span->graph, graph_);                                                         \
    assert_false(cupti_decode(&record, 111, &out)); /* cut before the end of the name */           \
  } while (0)

static void kernels_of_every_version(void **state) {
  (void)state;
  KERNEL(CUpti_ActivityKernel4, , 0);
  KERNEL(CUpti_ActivityKernel5, , 0);
  KERNEL(CUpti_ActivityKernel6, , 0);
  KERNEL(CUpti_ActivityKernel7, record.graphId = 77, 77);
  KERNEL(CUpti_ActivityKernel8, record.graphId = 77, 77);
  KERNEL(CUpti_ActivityKernel9, record.graphId = 77, 77);
#if CUPTI_API_VERSION >= 130000
  KERNEL(CUpti_ActivityKernel10, record.graphId = 77, 77);
#endif
}

#define COPY(type, kind_, copy_kind, set_graph, graph_, copy_)                                     \
  do {                                                                                             \
    RECORD(type, kind_)                                                                            \
    record.bytes = 1234567890123;                                                                  \
    record.copyKind = (copy_kind);                                                                 \
    set_graph;                                                                                     \
    assert_true(cupti_decode(&record, sizeof(record), &out));                                      \
    assert_common(&out, GPU_SPAN_MEMCPY);                                                          \
    assert_int_equal(span->bytes, 1234567890123);                                                  \
    assert_int_equal(span->copy, copy_);                                                           \
    assert_int_equal(span->graph, graph_);                                                         \
    assert_null(span->name);                                                                       \
    assert_false(cupti_decode(&record, 63, &out));                                                 \
  } while (0)

#define MEMCPY(type, ...) COPY(type, CUPTI_ACTIVITY_KIND_MEMCPY, __VA_ARGS__)
#define PEER(type, ...) COPY(type, CUPTI_ACTIVITY_KIND_MEMCPY2, __VA_ARGS__)

static void copies_of_every_version(void **state) {
  (void)state;
  MEMCPY(CUpti_ActivityMemcpy, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, , 0, TSCOPE_MEMCPY_H2D);
  MEMCPY(CUpti_ActivityMemcpy3, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, , 0, TSCOPE_MEMCPY_D2H);
  MEMCPY(CUpti_ActivityMemcpy4, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, , 0, TSCOPE_MEMCPY_D2D);
  MEMCPY(CUpti_ActivityMemcpy5, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, record.graphId = 9, 9,
         TSCOPE_MEMCPY_H2H);
#if CUPTI_API_VERSION >= 130000
  MEMCPY(CUpti_ActivityMemcpy6, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA, record.graphId = 9, 9,
         TSCOPE_MEMCPY_H2D);
#endif
  PEER(CUpti_ActivityMemcpyPtoP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, , 0, TSCOPE_MEMCPY_P2P);
  PEER(CUpti_ActivityMemcpyPtoP2, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, , 0, TSCOPE_MEMCPY_P2P);
  PEER(CUpti_ActivityMemcpyPtoP3, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, record.graphId = 9, 9,
       TSCOPE_MEMCPY_P2P);
  PEER(CUpti_ActivityMemcpyPtoP4, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, record.graphId = 9, 9,
       TSCOPE_MEMCPY_P2P);
}

#define FILL(type, set_graph, graph_)                                                              \
  do {                                                                                             \
    RECORD(type, CUPTI_ACTIVITY_KIND_MEMSET)                                                       \
    record.bytes = 1234567890123;                                                                  \
    set_graph;                                                                                     \
    assert_true(cupti_decode(&record, sizeof(record), &out));                                      \
    assert_common(&out, GPU_SPAN_MEMSET);                                                          \
    assert_int_equal(span->bytes, 1234567890123);                                                  \
    assert_int_equal(span->graph, graph_);                                                         \
    assert_false(cupti_decode(&record, 63, &out));                                                 \
  } while (0)

static void fills_of_every_version(void **state) {
  (void)state;
  FILL(CUpti_ActivityMemset, , 0);
  FILL(CUpti_ActivityMemset2, , 0);
  FILL(CUpti_ActivityMemset3, record.graphId = 9, 9);
  FILL(CUpti_ActivityMemset4, record.graphId = 9, 9);
}

static void a_graph_replay_is_one_piece_of_work(void **state) {
  (void)state;
#define GRAPH(type)                                                                                \
  do {                                                                                             \
    RECORD(type, CUPTI_ACTIVITY_KIND_GRAPH_TRACE)                                                  \
    record.graphId = 77;                                                                           \
    assert_true(cupti_decode(&record, sizeof(record), &out));                                      \
    assert_common(&out, GPU_SPAN_KERNEL);                                                          \
    assert_int_equal(span->graph, 77);                                                             \
    assert_string_equal(span->name, "CUDA graph");                                                 \
    assert_false(cupti_decode(&record, 39, &out));                                                 \
  } while (0)
  GRAPH(CUpti_ActivityGraphTrace);
  GRAPH(CUpti_ActivityGraphTrace2);
}

/* A record of a type whose fields differ from those of work, with every byte set. */
#define FILLED(type, kind_)                                                                        \
  type record;                                                                                     \
  struct cupti_record out;                                                                         \
  memset(&record, 0x5a, sizeof(record));                                                           \
  record.kind = (kind_);

static void only_cuptis_own_overhead_is_its_cost(void **state) {
  (void)state;
#define OVERHEAD(type_)                                                                            \
  do {                                                                                             \
    FILLED(type_, CUPTI_ACTIVITY_KIND_OVERHEAD)                                                    \
    record.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;                              \
    record.start = 1000000000007;                                                                  \
    record.end = 1000000000107;                                                                    \
    assert_true(cupti_decode(&record, sizeof(record), &out));                                      \
    assert_int_equal(out.kind, CUPTI_OVERHEAD);                                                    \
    assert_int_equal(out.type, TSCOPE_GPU_OVERHEAD_FLUSH);                                         \
    assert_int_equal(out.span.start, 1000000000007);                                               \
    assert_int_equal(out.span.end, 1000000000107);                                                 \
    record.overheadKind =                                                                          \
        CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER; /* a cost of the job, with or without tscope */   \
    assert_false(cupti_decode(&record, sizeof(record), &out));                                     \
  } while (0)
  OVERHEAD(CUpti_ActivityOverhead);
  OVERHEAD(CUpti_ActivityOverhead2);
#if CUPTI_API_VERSION >= 24
  OVERHEAD(CUpti_ActivityOverhead3);
#endif
}

static void other_records_are_passed_over(void **state) {
  (void)state;
  struct cupti_record out;
  u32 record[64] = {CUPTI_ACTIVITY_KIND_RUNTIME};
  assert_false(cupti_decode(record, sizeof(record), &out));
  record[0] = CUPTI_ACTIVITY_KIND_KERNEL;
  assert_false(cupti_decode(record, sizeof(record), &out));
  assert_false(cupti_decode(record, 3, &out));
}

static void collective_kernels_are_known_by_name(void **state) {
  (void)state;
  static const char *const collective[] = {
      "ncclKernel_AllReduce_RING_LL_Sum_float",
      "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
      "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
      "ncclSymkDevKernel_AllGather_ST",
      "nccl_symk_all_reduce",
      "_ZL20rcclGenericKernelILi1EEv",
  };
  static const char *const other[] = {
      "_Z8a_kernelPf", "ampere_sgemm_128x64_tn", "_ZN2at6native12mynccl_thingEv", "", "_Z",
      "not_nccl",
  };
  for (size_t i = 0; i < LENGTH_OF(collective); i++)
    assert_true(gpu_kernel_is_collective(collective[i]));
  for (size_t i = 0; i < LENGTH_OF(other); i++)
    assert_false(gpu_kernel_is_collective(other[i]));
  assert_false(gpu_kernel_is_collective(NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_of_every_version),
      cmocka_unit_test(copies_of_every_version),
      cmocka_unit_test(fills_of_every_version),
      cmocka_unit_test(a_graph_replay_is_one_piece_of_work),
      cmocka_unit_test(only_cuptis_own_overhead_is_its_cost),
      cmocka_unit_test(other_records_are_passed_over),
      cmocka_unit_test(collective_kernels_are_known_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
