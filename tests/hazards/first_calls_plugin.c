/* SPDX-License-Identifier: MIT
 *
 * A library whose constructor waits for a thread that calls CUDA, NCCL, cuBLAS and a function of
 * PyTorch: each for the first time, and each again, which is when the second look-up would wait.
 */
#include <pthread.h>
#include <stdio.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

unsigned long _ZN2at15sequence_number17get_and_incrementEv(void);

static int failed;

static void expect(const char *what, int error) {
  if (!error)
    return;
  failed = 1;
  printf("%s: error %d\n", what, error);
}

static void call_cuda(void) {
  static const char kernel;
  void *data;
  expect("malloc", cudaMalloc(&data, 1024));
  expect("launch", cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL));
  expect("synchronize", cudaDeviceSynchronize());
  expect("free", cudaFree(data));
}

static void call_nccl(void) {
  static float in[8], out[8];
  ncclUniqueId id = {.internal = "first"};
  ncclComm_t comm;
  expect("init", ncclCommInitRank(&comm, 1, id, 0));
  expect("all_reduce", ncclAllReduce(in, out, 8, ncclFloat, ncclSum, comm, NULL));
  expect("destroy", ncclCommDestroy(comm));
}

static void call_cublas(void) {
  static float a[4], b[4], c[4];
  const float one = 1;
  cublasHandle_t handle;
  expect("handle", cublasCreate_v2(&handle));
  expect("gemm",
         cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, b, 2, &one, c, 2));
  expect("destroy handle", cublasDestroy_v2(handle));
}

static void *call_all(void *unused) {
  for (int i = 0; i < 2; i++) {
    call_cuda();
    call_nccl();
    call_cublas();
    printf("operator %lu\n", _ZN2at15sequence_number17get_and_incrementEv());
  }
  return unused;
}

__attribute__((constructor)) static void wait_for_calls(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, call_all, NULL);
  pthread_join(thread, NULL);
  printf("%s\n", failed ? "calls failed" : "all calls returned");
  fflush(stdout);
}
