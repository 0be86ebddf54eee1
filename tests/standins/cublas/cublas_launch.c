/* SPDX-License-Identifier: MIT
 *
 * Launches the kernel of a GEMM.
 */
#include "blas.h"

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>

#include "../gpu/engine.h"
#include "../standin.h"

/* Names as the real libraries give them on an H100. */
static const char *kernel_name(int type) {
  enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
  switch (type) {
  case R_64F:
    return "sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16_stage3_warpsize2x2x1_"
           "tensor16x8x16_execute_kernel__5x_cublas";
  case R_16F:
    return "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT";
  case R_16BF:
    return "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT";
  default:
    return "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_"
           "aligna4_alignc4_execute_kernel__5x_cublas";
  }
}

/* The driver's functions, which cuBLAS too looks up in the driver's library. */
static struct {
  CUresult (*load)(CUmodule *, const void *);
  CUresult (*get)(CUfunction *, CUmodule, const char *);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void **, void **);
  CUmodule module;
} driver;

static bool open_driver(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (!driver.module) {
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    driver.load = library ? dlsym(library, "cuModuleLoadData") : NULL;
    driver.get = library ? dlsym(library, "cuModuleGetFunction") : NULL;
    driver.launch = library ? dlsym(library, "cuLaunchKernel") : NULL;
    if (driver.load && driver.get && driver.launch)
      driver.load(&driver.module, "");
  }
  pthread_mutex_unlock(&lock);
  return driver.module;
}

/* Uniformly distributed between 1 - jitter and 1 + jitter, with the same sequence in every run. */
static double time_factor(void) {
  static __thread uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  double jitter = sim_setting("GEMM_JITTER", 0);
  return 1 + jitter * (2 * ((double)(state >> 11) / 9007199254740992.0) - 1);
}

int blas_launch(void *stream, struct blas_gemm gemm) {
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || gemm.batch < 0)
    return BLAS_INVALID_VALUE;
  if (!gemm.m || !gemm.n || !gemm.batch)
    return BLAS_SUCCESS;
  static double flops_per_ns;
  if (!flops_per_ns)
    flops_per_ns = sim_setting("TFLOPS", 400) * 1e3;
  double flops = 2.0 * (double)gemm.m * (double)gemm.n * (double)gemm.k * (double)gemm.batch;
  const char *name = kernel_name(gemm.type);
  int64_t least = sim_kernel_duration(name), ns = (int64_t)(flops / flops_per_ns * time_factor());
  CUfunction function;
  if (!open_driver() || driver.get(&function, driver.module, name) != CUDA_SUCCESS)
    return BLAS_NOT_INITIALIZED;
  standin_next_kernel_ns(ns > least ? ns : least);
  CUresult result =
      driver.launch(function, (unsigned)((gemm.m + 127) / 128), (unsigned)((gemm.n + 127) / 128),
                    (unsigned)gemm.batch, 128, 1, 1, 0, stream, NULL, NULL);
  return result == CUDA_SUCCESS ? BLAS_SUCCESS : BLAS_INVALID_VALUE;
}
