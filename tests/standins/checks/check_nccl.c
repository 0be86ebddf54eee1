/* SPDX-License-Identifier: MIT
 *
 * The stand-in NCCL across four processes: every collective's data against closed forms, for every
 * type and reduction; groups, splits, shrinking, errors and aborts. check_law.py checks the times.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { RANKS = 4, COUNT = 1000 };

/* In a child process: prints what failed and ends the process. */
#define MUST(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #condition);                       \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)
#define CUDA(call) MUST((call) == cudaSuccess)
#define NCCL(call) MUST((call) == ncclSuccess)

static ncclUniqueId *shared_id;

/* Runs `body` for each rank in its own process. No process uses CUDA before it forks. */
static void on_ranks(void (*body)(int rank)) {
  pid_t children[RANKS];
  shared_id =
      mmap(NULL, sizeof(*shared_id), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(shared_id, MAP_FAILED);
  assert_int_equal(ncclGetUniqueId(shared_id), ncclSuccess);
  for (int rank = 0; rank < RANKS; rank++) {
    children[rank] = fork();
    assert_true(children[rank] >= 0);
    if (children[rank] == 0) {
      body(rank);
      _exit(0);
    }
  }
  int failed = 0, status;
  for (int rank = 0; rank < RANKS; rank++)
    failed += waitpid(children[rank], &status, 0) < 0 || status != 0;
  munmap(shared_id, sizeof(*shared_id));
  assert_int_equal(failed, 0);
}

static ncclComm_t join(int rank) {
  ncclComm_t comm;
  NCCL(ncclCommInitRank(&comm, RANKS, *shared_id, rank));
  return comm;
}

/* The bits of a small number in the given type. The numbers below have an exact form in each. */
static uint64_t encode(double value, ncclDataType_t dtype) {
  static const struct {
    int exponent, mantissa;
  } floats[] = {[ncclFloat16] = {5, 10}, [ncclFloat32] = {8, 23},   [ncclFloat64] = {11, 52},
                [ncclBfloat16] = {8, 7}, [ncclFloat8e4m3] = {4, 3}, [ncclFloat8e5m2] = {5, 2}};
  if (dtype < ncclFloat16)
    return (uint64_t)(int64_t)value;
  int exponent;
  double fraction = frexp(value, &exponent); /* in [0.5, 1) */
  int mantissa = floats[dtype].mantissa, bias = (1 << (floats[dtype].exponent - 1)) - 1;
  return ((uint64_t)(exponent - 1 + bias) << mantissa) +
         (uint64_t)((fraction * 2 - 1) * (double)(1ull << mantissa));
}

static size_t bytes_of(ncclDataType_t dtype) {
  static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return bytes[dtype];
}

static void set_element(void *array, size_t i, double value, ncclDataType_t dtype) {
  uint64_t bits = encode(value, dtype);
  memcpy((char *)array + i * bytes_of(dtype), &bits, bytes_of(dtype));
}

static void check_element(int rank, const void *array, size_t i, double value,
                          ncclDataType_t dtype) {
  uint64_t wanted = encode(value, dtype);
  if (memcmp((const char *)array + i * bytes_of(dtype), &wanted, bytes_of(dtype)) != 0) {
    fprintf(stderr, "rank %d: element %zu of type %d is not %g\n", rank, i, (int)dtype, value);
    _exit(1);
  }
}

/* Rank r has r + 1 at even indices and r + 2 at odd ones. */
static double input_value(int rank, size_t i) {
  return rank + 1 + (double)(i % 2);
}

static double reduced(ncclRedOp_t redop, size_t i, bool whole) {
  double odd = (double)(i % 2);
  switch (redop) {
  case ncclSum:
    return 10 + 4 * odd;
  case ncclProd:
    return odd != 0 ? 120 : 24;
  case ncclMax:
    return 4 + odd;
  case ncclMin:
    return 1 + odd;
  default:
    return whole ? 2 + odd : 2.5 + odd;
  }
}

static void reductions(int rank) {
  ncclComm_t comm = join(rank);
  char *source, *target;
  CUDA(cudaMalloc((void **)&source, COUNT * 8));
  CUDA(cudaMalloc((void **)&target, COUNT * 8));
  for (int type = 0; type < ncclNumTypes; type++)
    for (int op = 0; op < ncclNumOps; op++) {
      ncclDataType_t dtype = (ncclDataType_t)type;
      ncclRedOp_t redop = (ncclRedOp_t)op;
      if (dtype == ncclFloat8e5m2 && redop == ncclProd)
        continue; /* 120 has no exact form in it */
      for (size_t i = 0; i < COUNT; i++)
        set_element(source, i, input_value(rank, i), dtype);
      NCCL(ncclAllReduce(source, target, COUNT, dtype, redop, comm, NULL));
      CUDA(cudaStreamSynchronize(NULL));
      for (size_t i = 0; i < COUNT; i++)
        check_element(rank, target, i, reduced(redop, i, dtype < ncclFloat16), dtype);
    }
  NCCL(ncclCommDestroy(comm));
}

static void every_type_and_reduction(void **state) {
  (void)state;
  on_ranks(reductions);
}

static void fill(int rank, int *array, size_t n) {
  for (size_t i = 0; i < n; i++)
    array[i] = rank * 100000 + (int)i;
}

static void movements(int rank) {
  ncclComm_t comm = join(rank);
  cudaStream_t stream;
  int *source, *target;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMalloc((void **)&source, RANKS * COUNT * sizeof(int)));
  CUDA(cudaMalloc((void **)&target, RANKS * COUNT * sizeof(int)));
  fill(rank, source, RANKS * COUNT);

  NCCL(ncclAllGather(source, target, COUNT, ncclInt, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < RANKS * COUNT; i++)
    MUST(target[i] == i / COUNT * 100000 + i % COUNT);

  NCCL(ncclReduceScatter(source, target, COUNT, ncclInt, ncclSum, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < COUNT; i++)
    MUST(target[i] == 600000 + RANKS * (rank * COUNT + i));

  NCCL(ncclAlltoAll(source, target, COUNT, ncclInt, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < RANKS * COUNT; i++)
    MUST(target[i] == i / COUNT * 100000 + rank * COUNT + i % COUNT);

  NCCL(ncclBroadcast(source, target, COUNT, ncclInt, 2, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < COUNT; i++)
    MUST(target[i] == 200000 + i);

  NCCL(ncclReduce(source, target, COUNT, ncclInt, ncclMax, 1, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < COUNT; i++)
    MUST(target[i] == (rank == 1 ? 300000 : 200000) + i);

  NCCL(ncclScatter(source, target, COUNT, ncclInt, 3, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < COUNT; i++)
    MUST(target[i] == 300000 + rank * COUNT + i);

  memset(target, 0, RANKS * COUNT * sizeof(int));
  NCCL(ncclGather(source, target, COUNT, ncclInt, 0, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < RANKS * COUNT; i++)
    MUST(target[i] == (rank == 0 ? i / COUNT * 100000 + i % COUNT : 0));

  /* two in-place calls of different types in one group: one kernel, in the order of the calls */
  fill(rank, source, 2);
  double value = rank;
  NCCL(ncclGroupStart());
  NCCL(ncclAllReduce(source, source, 2, ncclInt, ncclSum, comm, stream));
  NCCL(ncclAllReduce(&value, &value, 1, ncclDouble, ncclMax, comm, stream));
  NCCL(ncclGroupEnd());
  CUDA(cudaStreamSynchronize(stream));
  MUST(source[1] == 600004 && value == 3);

  double scale = 0.5;
  ncclRedOp_t half_sum;
  value = rank;
  NCCL(ncclRedOpCreatePreMulSum(&half_sum, &scale, ncclDouble, ncclScalarHostImmediate, comm));
  NCCL(ncclAllReduce(&value, &value, 1, ncclDouble, half_sum, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  MUST(value == 3);
  NCCL(ncclRedOpDestroy(half_sum, comm));
  NCCL(ncclCommDestroy(comm));
}

static void every_data_movement(void **state) {
  (void)state;
  on_ranks(movements);
}

/* Each rank sends to the next around the ring, and to itself. */
static void messages(int rank) {
  ncclComm_t comm = join(rank);
  int next = (rank + 1) % RANKS, before = (rank + RANKS - 1) % RANKS;
  for (int round = 0; round < 300; round++) { /* more rounds than slots */
    int out = rank * 1000 + round, in = -1, self = -1;
    NCCL(ncclGroupStart());
    NCCL(ncclSend(&out, 1, ncclInt, next, comm, NULL));
    NCCL(ncclRecv(&in, 1, ncclInt, before, comm, NULL));
    NCCL(ncclSend(&out, 1, ncclInt, rank, comm, NULL));
    NCCL(ncclRecv(&self, 1, ncclInt, rank, comm, NULL));
    NCCL(ncclGroupEnd());
    CUDA(cudaDeviceSynchronize());
    MUST(in == before * 1000 + round && self == out);
  }
  NCCL(ncclCommDestroy(comm));
}

static void messages_go_around(void **state) {
  (void)state;
  on_ranks(messages);
}

static int sum_of_ranks(int rank, ncclComm_t comm, int own) {
  int value = own;
  NCCL(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, NULL));
  CUDA(cudaDeviceSynchronize());
  return value;
}

static void splits(int rank) {
  ncclComm_t comm = join(rank), half, none, three = NULL;
  int count, own;
  NCCL(ncclCommSplit(comm, rank % 2, -rank, &half, NULL)); /* the key reverses the order */
  NCCL(ncclCommCount(half, &count));
  NCCL(ncclCommUserRank(half, &own));
  MUST(count == 2 && own == (rank < 2));
  MUST(sum_of_ranks(rank, half, rank) == (rank % 2 ? 4 : 2));
  NCCL(ncclCommSplit(comm, rank == 3 ? NCCL_SPLIT_NOCOLOR : 7, rank, &none, NULL));
  MUST((none == NULL) == (rank == 3));
  int excluded = 1;
  if (rank != 1) {
    NCCL(ncclCommShrink(comm, &excluded, 1, &three, NULL, NCCL_SHRINK_DEFAULT));
    NCCL(ncclCommCount(three, &count));
    MUST(count == 3 && sum_of_ranks(rank, three, 1) == 3);
    NCCL(ncclCommDestroy(three));
  }
  if (none)
    NCCL(ncclCommDestroy(none));
  NCCL(ncclCommDestroy(half));
  MUST(sum_of_ranks(rank, comm, 1) == 4);
  NCCL(ncclCommFinalize(comm));
  NCCL(ncclCommDestroy(comm));
}

static void communicators_split_and_shrink(void **state) {
  (void)state;
  on_ranks(splits);
}

/* Rank 3 never makes the call. The others abort, and their streams end. */
static void aborts(int rank) {
  ncclComm_t comm = join(rank);
  cudaStream_t stream;
  int value = 1;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (rank != 3) {
    NCCL(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, stream));
    MUST(cudaStreamQuery(stream) == cudaErrorNotReady);
    NCCL(ncclCommAbort(comm));
    CUDA(cudaStreamSynchronize(stream));
    return;
  }
  ncclResult_t error = ncclSuccess;
  while (error == ncclSuccess) { /* until the abort of the others is visible here */
    NCCL(ncclCommGetAsyncError(comm, &error));
    usleep(1000);
  }
  MUST(error == ncclRemoteError);
  NCCL(ncclCommAbort(comm));
}

static void an_abort_ends_a_collective_that_cannot_end(void **state) {
  (void)state;
  on_ranks(aborts);
}

static void one_process(int rank) {
  if (rank)
    return;
  ncclComm_t comms[RANKS];
  cudaStream_t streams[RANKS];
  int values[RANKS];
  NCCL(ncclCommInitAll(comms, RANKS, NULL));
  NCCL(ncclGroupStart());
  for (int i = 0; i < RANKS; i++) {
    CUDA(cudaSetDevice(i));
    CUDA(cudaStreamCreate(&streams[i]));
    values[i] = i;
    NCCL(ncclAllReduce(&values[i], &values[i], 1, ncclInt, ncclSum, comms[i], streams[i]));
  }
  NCCL(ncclGroupEnd());
  for (int i = 0; i < RANKS; i++) {
    CUDA(cudaStreamSynchronize(streams[i]));
    MUST(values[i] == 6);
  }
}

static void one_process_can_have_all_ranks(void **state) {
  (void)state;
  on_ranks(one_process);
}

static void wrong_calls(int rank) {
  ncclComm_t comm = join(rank), other;
  int value = 0;
  MUST(ncclCommInitRank(&other, RANKS, *shared_id, RANKS) == ncclInvalidArgument);
  MUST(ncclAllReduce(&value, &value, 1, (ncclDataType_t)99, ncclSum, comm, NULL) ==
       ncclInvalidArgument);
  MUST(ncclBroadcast(&value, &value, 1, ncclInt, RANKS, comm, NULL) == ncclInvalidArgument);
  MUST(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, NULL, NULL) == ncclInvalidArgument);
  MUST(ncclGroupEnd() == ncclInvalidUsage);
  NCCL(ncclCommDestroy(comm));
}

static void wrong_calls_are_refused(void **state) {
  (void)state;
  on_ranks(wrong_calls);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_and_reduction),
      cmocka_unit_test(every_data_movement),
      cmocka_unit_test(messages_go_around),
      cmocka_unit_test(communicators_split_and_shrink),
      cmocka_unit_test(an_abort_ends_a_collective_that_cannot_end),
      cmocka_unit_test(one_process_can_have_all_ranks),
      cmocka_unit_test(wrong_calls_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
