/* SPDX-License-Identifier: MIT
 *
 * Kernels of wheels, each with its wheel, as of November 2026: names that cuobjdump or strings show
 * in the libraries, or that the sources inside say. What each does is from the library's sources,
 * or what its parameters are.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/each.h"
#include "kernels/kernels.h"

static const struct {
  const char *wheel, *name, *operation; /* NULL: does not communicate */
} cases[] = {
    {"vllm 0.33.0",
     "void vllm::cross_device_all_gather<2>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, "
     "vllm::array_t<unsigned long, 2>*, int, int)",
     "custom all_gather"},
    {"vllm 0.33.0", "void vllm::cross_device_reduce_scatter<__half, 4>(vllm::RankData*)",
     "custom reduce_scatter"},
    {"vllm 0.33.0", "void vllm::mnnvl_lamport_all_gather<float, 8>(vllm::RankData*, float const*)",
     "custom all_gather"},
    {"vllm 0.33.0", "void vllm::mnnvl_lamport_reduce_scatter_kernel<__half, 16>(vllm::RankData*)",
     "custom reduce_scatter"},
    {"vllm 0.33.0", "void vllm::mnnvl_multimem_barrier_kernel<false, 2>(vllm::Signal*)",
     "custom barrier"},
    {"vllm 0.33.0",
     "void vllm::tensorrt_llm::minimax_reduce_qk_rms_kernel_lamport_float4<__half, 8, 6144, "
     "1024>(vllm::tensorrt_llm::MiniMaxReduceRMSParams)",
     "custom all_reduce and norm"},
    {"vllm 0.33.0", "(anonymous namespace)::direct_dcp_q_gather_multimem_kernel(uint4 const*)",
     "custom all_gather"},
    {"vllm 0.33.0", "void vllm::beam::oneshot<2, false, false>(vllm::beam::Params)", NULL},
    {"vllm 0.33.0",
     "void smxx::decode::flash_fwd_mla_combine_kernel<cutlass::half_t, 512, 8, 96>()", NULL},
    {"sglang-kernel 0.4.10",
     "void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 16, 64, 1>>()", NULL},
    {"sglang-kernel 0.4.10",
     "void sglang::cross_device_reduce_2stage<__nv_bfloat16, 6>(sglang::RankData*)",
     "custom all_reduce"},
    {"lmdeploy 0.18.0",
     "void turbomind::comm::Allgather2D_NVLS_V2<uint2, 10, std::integral_constant<bool, true> "
     ">(uint2*, uint2*, turbomind::comm::SystemSemaphoreInfo*)",
     "custom all_gather"},
    {"lmdeploy 0.18.0", "void turbomind::comm::Allreduce_LL16_V2<__half, int>(__half*)",
     "custom all_reduce"},
    {"lmdeploy 0.18.0",
     "void turbomind::comm::AllreduceResidualBiasRMSnorm_Simple_Push<__half, 8, 1024>(__half*)",
     "custom all_reduce and norm"},
    {"lmdeploy 0.18.0", "void turbomind::comm::Broadcast_NVLS_V2<uint4, bool>(uint4 const*)",
     "custom communication"},
    {"lmdeploy 0.18.0",
     "void turbomind::MoeA2ASharedCombineKernel<__nv_bfloat16, 8>(__nv_bfloat16*, __nv_bfloat16 "
     "const*, __nv_bfloat16 const*, float const*, int)",
     NULL},
    {"lmdeploy 0.18.0", "void turbomind::quant_symm_row<8, 128, float>(float*)", NULL},
    {"nvidia-cublasmp-cu13 0.10.0",
     "void cublasmp::mc_reduce_kernel<__nv_bfloat16>(int*, long, long, ncclWindow_vidmem*, "
     "unsigned "
     "long, float4*, ncclDevComm)",
     "kernel on NCCL's device API"},
    {"nccl-extensions 0.1.0", "reshardKernelUserWindow(ncclReshardParams, ncclDevComm)",
     "kernel on NCCL's device API"},
    {"nccl-extensions 0.1.0", "_Z27StagingReshardKernel_DirectP19StagingKernelParams11ncclDevComm",
     "kernel on NCCL's device API"},
    {"jax-cuda13-pjrt 0.12.0",
     "void stream_executor::gpu::RaggedAllToAllDeviceKernelImpl<16l>(ncclDevComm, "
     "ncclWindow_vidmem*)",
     "custom all_to_all"},
    {"jax-cuda13-pjrt 0.12.0",
     "stream_executor::gpu::MultiGpuBarrierWithNcclKernelImpl(long, long, ncclWindow_vidmem*)",
     "custom barrier"},
    {"mooncake-transfer-engine-cuda13 0.3.14",
     "void mooncake::(anonymous namespace)::ringAllReduceKernel<float, (mooncake::ReduceOp)0>(int)",
     "custom all_reduce"},
    {"mooncake-transfer-engine-cuda13 0.3.14", "mooncake::barrier_kernel(int*)", "custom barrier"},
    {"tokenspeed-deepep 2.1.0", "void deep_ep::internode::dispatch<true, 8>(int4*)",
     "DeepEP dispatch"},
    {"tokenspeed-kernel 0.1.4", "iris_stage_one_shot_allreduce_kernel", "custom all_reduce"},
    {"tokenspeed-kernel 0.1.4", "iris_attention_reduce_scatter_gluon_kernel",
     "custom communication that computes"},
    {"tokenspeed-kernel 0.1.4", "nvidia_rsag_all_gather_kernel", "custom all_gather"},
    {"tokenspeed-kernel 0.1.4", "lamport_a2a", "custom all_to_all"},
    {"tokenspeed-kernel 0.1.4", "_stage_mxfp4_mega_moe_inputs_kernel", NULL},
    {"tokenspeed-iris 0.0.0", "_fused_matmul_reduce_scatter_kernel",
     "custom communication that computes"},
    {"tokenspeed-iris 0.0.0", "_device_barrier_kernel", "custom barrier"},
    {"flashinfer-python 0.7.2", "kernel_cake_all_gather_matmul_05d590fb05d9692b74a8",
     "custom communication that computes"},
    {"flashinfer-python 0.7.2", "kernel_cake_dcp_alltoall_335c14a7e34177967411",
     "custom all_to_all"},
    {"flashinfer-python 0.7.2", "kernel_cake_mxfp8_megamoe_ep16_2670aaff9ad59db52e36",
     "dispatch, experts and combine"},
    {"flashinfer-python 0.7.2", "kernel_cake_mxfp8_megamoe_ep16_topk_reduce", NULL},
    {"flashinfer-python 0.7.2", "kernel_flashinfer_mnnvl_moe_alltoall_dispatch",
     "FlashInfer all_to_all"},
    {"flashinfer-python 0.7.2", "kernel_flashinfer_mnnvl_moe_alltoall_sanitize_expert_ids",
     "FlashInfer layout"},
    {"flashinfer-python 0.7.2", "flashinfer::comm::recursive_doubling_kernel<8>(int)",
     "FlashInfer communication"},
    {"flashinfer-python 0.7.2", "flashinfer::comm::ce_add_kernel(float*)", "FlashInfer layout"},
    {"nvidia-nccl-cu13 2.32.3", "ncclSymkDevKernel_AllGather_TmaSTMC(ncclSymkDevWorkArgs4K)",
     "all_gather"},
    {"nvidia-nvshmem-cu13 3.8.0", "_Z25fcollect_on_stream_kernelIfEviPT_PKS0_mi",
     "NVSHMEM collect"},
    {"torch 2.15.0",
     "c10d::symmetric_memory::multimem_barrier_kernel(unsigned int*, unsigned int*, int, int, int)",
     "symm_mem barrier"},
    {"torch 2.15.0",
     "c10d::nccl_extension::nccl_wait_for_signal_kernel(void**, int, unsigned long)",
     "symm_mem wait for signal"},
    {"torch 2.15.0", "c10d::cuda::detail::kernel_barrier(int*, unsigned long)", NULL},
    {"transformer-engine-cu12 2.20.2",
     "void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop_fp8<__nv_fp8_e5m2>(int)",
     "userbuffers reduce_scatter"},
    {"transformer-engine-cu12 2.20.2", "void reduce_dbias_kernel<4, __half>(__half*)", NULL},
};

static void names_in_wheels(void **state) {
  char why[200];
  struct kernel_names *names = kernel_names_new(NULL, why, sizeof(why));
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    const struct kernel *kernel = kernel_lookup(names, cases[i].name);
    const char *is = kernel->communication.library ? comm_op_name(kernel->communication.op) : NULL;
    bool communicates = kernel->category == KERNEL_COMMUNICATION ||
                        kernel->category == KERNEL_COMPUTING_COMMUNICATION;
    if (!is != !cases[i].operation || (is && strcmp(is, cases[i].operation)) ||
        communicates != (is != NULL))
      fail_msg("%s: %s is %s", cases[i].wheel, cases[i].name, is ? is : "no communication");
  }
  kernel_names_free(names);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_in_wheels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
