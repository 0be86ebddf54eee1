/* SPDX-License-Identifier: MIT
 *
 * How a product becomes a kernel.
 */
#include "blas.h"

#include "../gpu/engine.h"

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

int blas_launch(void *handle, struct blas_product product) {
  if (product.m < 0 || product.n < 0 || product.k < 0 || product.batch < 0)
    return BLAS_INVALID_VALUE;
  if (!product.m || !product.n || !product.batch)
    return BLAS_SUCCESS;
  static double flops_per_ns;
  if (!flops_per_ns)
    flops_per_ns = sim_setting("TFLOPS", 400) * 1e3;
  double flops =
      2.0 * (double)product.m * (double)product.n * (double)product.k * (double)product.batch;
  const char *name = kernel_name(product.type);
  int64_t least = sim_kernel_duration(name), ns = (int64_t)(flops / flops_per_ns);
  sim_lock();
  struct CUstream_st *stream = sim_stream((cudaStream_t)handle, false);
  bool known = sim_stream_is(stream);
  if (known) {
    struct sim_op *op = sim_op_new(stream, SIM_KERNEL, NULL);
    const struct sim_activity *activity = sim_activity();
    op->name = name;
    op->duration = ns > least ? ns : least;
    op->grid[0] = (unsigned)((product.m + 127) / 128);
    op->grid[1] = (unsigned)((product.n + 127) / 128);
    op->grid[2] = (unsigned)product.batch;
    op->block[0] = 128;
    op->block[1] = op->block[2] = 1;
    op->correlation = activity && activity->launch ? activity->launch() : 0;
    sim_enqueue(op);
  }
  sim_unlock();
  return known ? BLAS_SUCCESS : BLAS_INVALID_VALUE;
}
