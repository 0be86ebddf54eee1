/* SPDX-License-Identifier: MIT
 *
 * Real names of kernels (from recordings of training runs, and from libtorch_cuda, cuBLAS, cuDNN
 * and NCCL) are demangled, shortened and sorted into categories.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/each.h"
#include "kernels/kernel_text.h"
#include "kernels/kernels.h"

static const struct {
  unsigned category;
  const char *name;
} known[] = {
    {KERNEL_COMMUNICATION,
     "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"},
    {KERNEL_COMMUNICATION,
     "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE"},
    {KERNEL_COMMUNICATION,
     "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs4K)"},
    {KERNEL_COMMUNICATION, "nccl_symk_AllGather_LL"},
    {KERNEL_COMMUNICATION, "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>) [clone .kd]"},
    {KERNEL_COMMUNICATION,
     "void two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**, unsigned)"},
    {KERNEL_MEMCPY, "Memcpy DtoH (Device -> Pinned)"},
    {KERNEL_MEMCPY, "CopyDeviceToHost"},
    {KERNEL_MEMCPY, "__amd_rocclr_copyBuffer.kd"},
    {KERNEL_MEMSET, "Memset (Device)"},
    {KERNEL_MEMSET, "__amd_rocclr_fillBufferAligned.kd"},
    {KERNEL_FUSED, "triton_poi_fused_add_cos_sin_0"},
    {KERNEL_FUSED, "triton_red_fused__log_softmax_nll_loss_backward_4"},
    {KERNEL_FUSED, "triton_per_fused__scaled_dot_product_flash_attention_native_layer_norm_1"},
    {KERNEL_FUSED, "triton_for_fused_adam_0"},
    {KERNEL_GEMM, "_scatter2scatter"},
    {KERNEL_GEMM, "_groupXtY"},
    {KERNEL_GEMM, "_cce_lse_forward_kernel"},
    {KERNEL_GEMM, "_cce_backward_kernel"},
    {KERNEL_GEMM, "_indexed_neg_dot_forward_kernel"},
    {KERNEL_GEMM, "_lora_shrink_kernel"},
    {KERNEL_GEMM, "_sgmv_expand_slice_kernel"},
    {KERNEL_GEMM, "void bgmv_shrink_kernel<1, 16>(half*)"},
    {KERNEL_NORMALISATION, "_fused_dora_norm_kernel"},
    {KERNEL_ELEMENTWISE, "_fused_dora_compose_forward_kernel"},
    {KERNEL_GEMM, "triton_tem_fused_addmm_2"},
    {KERNEL_ATTENTION, "triton_tem_fused_flex_attention_0"},
    {KERNEL_GEMM, "ampere_sgemm_32x32_sliced1x4_tn"},
    {KERNEL_GEMM, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"},
    {KERNEL_GEMM, "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"},
    {KERNEL_GEMM, "nvjet_sm100_tst_mma_128x256x64_2_128x128x64_cg2_tmaAB_bz_TNN"},
    {KERNEL_GEMM, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_"
                  "execute_segment_k_off_kernel__5x_cublas"},
    {KERNEL_GEMM,
     "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_"
     "align2>(cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2::Params)"},
    {KERNEL_GEMM, "cutlass3x_sm100_tensorop_s256x128x16gemm_bf16_bf16_f32_bf16_bf16_256x128x64_0_"
                  "tnn_align8_2sm_bias_bf16_relu"},
    {KERNEL_GEMM,
     "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, "
     "false, false>(cublasLt::cublasSplitKParams<float>, float const*)"},
    {KERNEL_GEMM, "void gemvNSP_kernel<float, float, float, float, 1, 16, 4, 1024, false, "
                  "cublasGemvParams<cublasGemvTensorStridedBatched<float const>>>(float)"},
    {KERNEL_GEMM, "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0_APM1.kd"},
    {KERNEL_GEMM, "void marlin::Marlin<256, 4, 16, 4, 4, false, 8>(int4 const*, int4 const*)"},
    {KERNEL_CONVOLUTION, "cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1"},
    {KERNEL_CONVOLUTION,
     "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_"
     "tilesize64x64x64_stage4_warpsize2x2x1_g1_tensor16x8x8_execute_kernel_cudnn"},
    {KERNEL_CONVOLUTION,
     "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_"
     "128x128_16x4_nhwc_unity_stride_align4>(int)"},
    {KERNEL_CONVOLUTION, "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, "
                         "(cudnnKernelDataType_t)2>(cudnn::ops::nchw2nhwc_params_t<float>)"},
    {KERNEL_CONVOLUTION, "void at::native::im2col_kernel<float>(long, float const*, long)"},
    {KERNEL_CONVOLUTION, "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1"},
    {KERNEL_ATTENTION,
     "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, "
     "false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, 128, 128, 4, "
     "cutlass::bfloat16_t> >, false, false, false, false, false, true, false>("
     "pytorch_flash::Flash_fwd_params)"},
    {KERNEL_ATTENTION, "void pytorch_flash::flash_bwd_convert_dq_kernel<float>(float)"},
    {KERNEL_ATTENTION, "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwd"
                       "Sm90<flash::CollectiveMainloopFwdSm90<2>>>>(int)"},
    {KERNEL_ATTENTION, "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::Params)"},
    {KERNEL_ATTENTION,
     "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128"},
    {KERNEL_ATTENTION, "attn_fwd"},
    {KERNEL_ATTENTION, "void vllm::paged_attention_v2_kernel<__nv_bfloat16, 128>(float*)"},
    {KERNEL_NORMALISATION, "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<"
                           "c10::BFloat16, float>(int, float, c10::BFloat16 const*)"},
    {KERNEL_NORMALISATION,
     "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, "
     "true, false>(float*, float const*, int, int, int, bool const*, int, bool)"},
    {KERNEL_NORMALISATION,
     "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, "
     "float, float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>"
     "(float*, float const*, int)"},
    {KERNEL_NORMALISATION, "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(int)"},
    {KERNEL_NORMALISATION,
     "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<int>(int)"},
    {KERNEL_NORMALISATION, "_layer_norm_fwd_1pass_kernel"},
    {KERNEL_ELEMENTWISE,
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
     "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>)"},
    {KERNEL_ELEMENTWISE,
     "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::"
     "binary_cross_entropy_cuda(at::Tensor&)::{lambda()#1}, std::array<char*, 3ul>>(int)"},
    {KERNEL_ELEMENTWISE,
     "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned "
     "int, 2, 128, 1>(float*)"},
    {KERNEL_ELEMENTWISE, "_rope_fwd_kernel"},
    {KERNEL_CONVERSION,
     "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
     "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}, "
     "std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, "
     "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)"},
    {KERNEL_CONVERSION, "void at::native::vectorized_elementwise_kernel<4, at::native::"
                        "bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, "
                        "std::array<char*, 2ul>>(int)"},
    {KERNEL_REDUCTION,
     "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
     "at::native::MeanOps<float, "
     "float, float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)"},
    {KERNEL_REDUCTION,
     "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int*>(int*)"},
    {KERNEL_REDUCTION,
     "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<"
     "float, float, long>(float*)"},
    {KERNEL_REDUCTION, "liger_cross_entropy_kernel"},
    {KERNEL_OPTIMIZER,
     "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
     "namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::"
     "FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false> >(int)"},
    {KERNEL_OPTIMIZER, "void kOptimizerStatic8bit2StateBlockwise<__nv_bfloat16, 0, 256, 1>(int)"},
    {KERNEL_GATHER,
     "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, "
     "unsigned int, 2, 2, -2, true>(int)"},
    {KERNEL_GATHER, "void split_embedding_backward_codegen_adagrad_unweighted_kernel_cta_per_row_1<"
                    "float, float, float, 1ul, 8>(int)"},
    {KERNEL_GATHER, "void at::native::vectorized_gather_kernel<16, long>(char*)"},
    {KERNEL_SORT, "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"},
    {KERNEL_SORT,
     "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<int, false, long, int>(int*)"},
    {KERNEL_QUANTISATION, "void kQuantizeBlockwise<float, 4096, 4, 0, 0>(float*)"},
    {KERNEL_QUANTISATION,
     "void transformer_engine::detail::cast_transpose_general_kernel<int>(int)"},
    {KERNEL_MOE, "fused_moe_kernel"},
    {KERNEL_MOE, "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32>(float const*)"},
    {KERNEL_COMMUNICATION, "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)"},
    {KERNEL_SPIN, "void at::cuda::(anonymous namespace)::spin_kernel(long)"},
    {KERNEL_CONVERSION, "void memcpyWithTypeConversion<float, __half>(float*)"},
    {KERNEL_ELEMENTWISE, "void tensorTransformGeneric<float, float, float>(int)"},
    {KERNEL_ELEMENTWISE, "void op_generic_tensor_kernel<2, float, float, float, 256>(int)"},
    {KERNEL_REDUCTION, "void full_reduce_tensor_index_kernel<double, 256, 1, 1, 256>(double*)"},
    {KERNEL_GEMM, "void trmm2_kernel_core<float, 128, true>(int)"},
    {KERNEL_GEMM, "void symv_up_direct_kernel<float>(float*)"},
    {KERNEL_CONVOLUTION, "void nhwcAddPaddingKernel<float, float>(float*)"},
    {KERNEL_COMPUTING_COMMUNICATION,
     "void "
     "flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::"
     "trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 2, true, true>(flashinfer::"
     "trtllm_allreduce_fusion::AllReduceFusionParams<__nv_bfloat16>)"},
    {KERNEL_OTHER, "my_own_kernel_7"},
    {KERNEL_OTHER, "f"}, /* not the type float */
    {KERNEL_OTHER, ""},
};

static struct kernel_names *names(void) {
  static struct kernel_names *made;
  char why[256];
  if (!made)
    made = kernel_names_new(NULL, why, sizeof(why));
  assert_non_null(made);
  return made;
}

static void real_names_have_their_category(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(known); i++) {
    unsigned category = kernel_category(names(), known[i].name);
    if (category != known[i].category)
      fail_msg("%s is %s, not %s", known[i].name, kernel_category_name(names(), category),
               kernel_category_name(names(), known[i].category));
  }
}

static void every_category_has_a_name_above(void **state) {
  (void)state;
  for (unsigned category = 0; category < KERNEL_CATEGORIES; category++) {
    size_t i = 0;
    while (i < LENGTH_OF(known) && known[i].category != category)
      i++;
    assert_true(i < LENGTH_OF(known));
  }
}

static void a_second_query_gives_the_same(void **state) {
  (void)state;
  char copy[] = "ampere_sgemm_128x64_nn";
  const struct kernel *first = kernel_lookup(names(), "ampere_sgemm_128x64_nn");
  assert_ptr_equal(first, kernel_lookup(names(), copy));
  char many[32];
  for (int i = 0; i < 5000; i++) {
    snprintf(many, sizeof(many), "sgemm_%d", i);
    assert_int_equal(kernel_category(names(), many), KERNEL_GEMM);
  }
  assert_ptr_equal(first, kernel_lookup(names(), copy));
}

static void names_are_demangled(void **state) {
  (void)state;
  const struct kernel *kernel = kernel_lookup(names(), "_ZN2at6native13reduce_kernelILi512EEEvT_i");
  assert_string_equal(kernel->raw, "_ZN2at6native13reduce_kernelILi512EEEvT_i");
  kernel = kernel_lookup(
      names(), "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE");
  assert_string_equal(kernel->demangled,
                      "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  assert_string_equal(kernel->shortened, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
  kernel = kernel_lookup(names(), "_Znot_a_mangled_name");
  assert_ptr_equal(kernel->demangled, kernel->raw);
}

static void shortened_names_are_still_meaningful(void **state) {
  (void)state;
  static const struct {
    const char *whole, *shortened;
  } cases[] = {
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
       "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
       "vectorized_elementwise_kernel<CUDAFunctor_add<float>>"},
      {"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::"
       "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::"
       "{lambda()#7}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)::"
       "{lambda(int)#1}>(int, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&))",
       "elementwise_kernel<direct_copy_kernel_cuda>"},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
       "at::native::MeanOps<float, "
       "float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)",
       "reduce_kernel<MeanOps<float, float>>"},
      {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, "
       "4, "
       "false>, false>(pytorch_flash::Flash_fwd_params)",
       "flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>"},
      {"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)",
       "cutlass_80_simt_sgemm_128x32_8x5_nn_align1"},
      {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(float)",
       "gemvx::kernel<int, int, float>"},
      {"std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
       "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)",
       "fused_add_rms_norm_kernel<c10::BFloat16, 8>"},
      {"void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>(dpsk::"
       "grouped_gemm::cuda::fp8_ptp128c::GemmKernel::Params)",
       "fp8_ptp128c::GemmKernel"},
      {"Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH (Device -> Pinned)"},
      {"__amd_rocclr_copyBuffer.kd", "__amd_rocclr_copyBuffer"},
      {"", ""},
      {"(((", "((("},
      {"void )", "void )"},
  };
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    char out[KERNEL_SHORT + 1];
    char *stripped = kernel_strip(cases[i].whole);
    kernel_shorten(stripped, out);
    free(stripped);
    assert_string_equal(out, cases[i].shortened);
  }
}

/* What a name says about communication: the names are those of the libraries' own sources, which
 * communication.def lists. */
static void names_tell_what_communicates(void **state) {
  (void)state;
  static const struct {
    const char *name, *operation; /* NULL: none */
    bool fused;
  } cases[] = {
      {"void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*)", "DeepEP dispatch", false},
      {"void deep_ep::internode_ll::combine<true, 7168>(void*)", "DeepEP combine", false},
      {"void deep_ep::elastic::hybrid_dispatch_impl<4>(int*)", "DeepEP dispatch", false},
      {"void deep_ep::elastic::dispatch_copy_epilogue_impl<4>(int*)", "DeepEP layout", false},
      {"void deep_ep::legacy::intranode::cached_notify_combine<8>(void**)", "DeepEP notify", false},
      {"void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long*)", "DeepEP layout", false},
      {"void nccl_ep::internode_ll::dispatch<true>(int)", "NCCL EP dispatch", false},
      {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
       "symm_mem all_reduce", false},
      {"_ZN4c10d16symmetric_memory26two_shot_all_reduce_kernelIfLi16EEEvPT_", "symm_mem all_reduce",
       false},
      {"void exchangeSplitAndOffset_2d<true>(long*)", "symm_mem split exchange", false},
      {"void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(int)", "custom all_reduce", false},
      {"void aiter::cross_device_reduce_1stage<__half, 2>(int)", "custom all_reduce", false},
      {"void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 8>, "
       "true>, __half>(int)",
       "quick all_reduce", false},
      {"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<"
       "(flashinfer::AllReduceFusionPattern)1, __half, 8>(int)",
       "FlashInfer all_reduce and norm", true},
      {"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<1, "
       "int>(int)",
       "TensorRT-LLM all_reduce and norm", true},
      {"void tensorrt_llm::kernels::moe_alltoall::moeA2ACombineKernel<int>(int)",
       "TensorRT-LLM combine", false},
      {"userbuffers_fp16_sum_inplace_gpu_rr_rs_oop(int)", "userbuffers reduce_scatter", false},
      {"kuserbuffers_pushrecv(int, int, int*)", "userbuffers receive", false},
      {"void mscclpp::executionKernel<mscclpp::LL16Packet>(int)", "MSCCL++ plan", false},
      {"void meta::comms::ddaAllReduceFlatIpc<float, 8>(int)", "torchcomms all_reduce", false},
      {"void nccl_ep_jit_ht_dispatch_kernel<4>(int)", "NCCL EP dispatch", false},
      {"nccl_ep_jit_ht_permute_kernel", "NCCL EP layout", false},
      {"void uccl::internode::combine<true, 8>(int4*)", "DeepEP combine", false},
      {"void primus_turbo::deep_ep::intranode::dispatch<8>(int4*)", "DeepEP dispatch", false},
      {"void mori::moe::EpDispatchIntraNodeKernel<float, false>(int)", "MORI dispatch", false},
      {"EpCombineInterNodeV1Kernel_bf16", "MORI combine", false},
      {"void mscclpp::collective::allgatherFullmesh2<true>(int*)", "MSCCL++ all_gather", false},
      {"_Z36barrier_on_stream_kernel_threadgroupIL13threadgroup_t1EEvii", "NVSHMEM barrier", false},
      {"_Z21rdxn_on_stream_kernelI13__nv_bfloat16L8rdxn_ops4EEviPT_PKS2_mi", "NVSHMEM reduce",
       false},
      {"_Z25fcollect_on_stream_kernelIfEviPT_PKS0_mi", "NVSHMEM collect", false},
      {"_Z43nvshmemi_signal_wait_until_on_stream_kernelPVmim", "NVSHMEM wait for signal", false},
      {"nvshmemi_proxy_rma_entrypoint_blocking(void*, void*)", "NVSHMEM put or get", false},
      {"void c10d::nccl_extension::lsa_put_kernel(void**)", "symm_mem put or get", false},
      {"void c10d::nvshmem_extension::tile_reduce_kernel<float>(float*)", "symm_mem reduce", false},
      {"void (anonymous namespace)::multimem_one_shot_reduce_kernel<float, 4>(float*)",
       "symm_mem reduce", false},
      {"ncclSymkDevKernel_ReduceScatter_LL_sum_f32(ncclSymkDevWorkArgs4K)", "reduce_scatter",
       false},
      {"void a2a_kernels::a2a_dispatch_send_kernel<true, 16ul, 8ul>(int)", "pplx send", false},
      {"void a2a_kernels::a2a_combine_recv_kernel<16ul>(int)", "pplx combine", false},
      {"void deep_gemm::sm100_fp8_fp4_mega_moe_impl<128u>(void*)", "dispatch, experts and combine",
       true},
      {"two_shot_all_reduce_bias_rms_norm_kernel", "symm_mem all_reduce and norm", true},
      {"persistent_all_gather_ring", "custom all_gather", false},
      {"persistent_gemm_all_scatter", "symm_mem GEMM with communication", true},
      {"kernel_local_copy_and_barrier_all", "custom barrier", false},
      {"void stream_executor::gpu::AllReduceKernelImpl<float, 1>(float*)", "custom all_reduce",
       false},
      /* the kernel is the argument of what launches it */
      {"void ns::kernel_wrapper<vllm::cross_device_reduce_2stage<__nv_bfloat16, 4>, int>(int)",
       "custom all_reduce", false},
      {"void launch<ncclSymkDevKernel_AllGather_LL>(int)", "all_gather", false},
      /* names of compilers list what they fused; the collective itself runs elsewhere */
      {"triton_red_fused_all_reduce_native_layer_norm_5", NULL, false},
      {"triton_poi_fused_all_gather_into_tensor_wait_tensor_3", NULL, false},
      /* a word in a template argument, or of another meaning, says nothing */
      {"void ns::cast<ns::multimem_all_reduce_kernel, 4>(int)", NULL, false},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)", NULL, false},
      {"void moe::combine_tokens<4>(int)", NULL, false},
      {"void at::native::vectorized_gather_kernel<16, long>(char*)", NULL, false},
      {"cuda::reduce_fused_impl(int4 const*)", NULL, false},
      {"void cub::DeviceReduceKernel<int, int*>(int*)", NULL, false},
      {"Memcpy PtoP (Device -> Device)", "copy between GPUs", false},
      {"Memcpy DtoD (Device -> Device)", NULL, false},
      {"gather_indexes_kernel", NULL, false},
      {"void fbgemm_gpu::broadcast_on_dim<float>(float*)", NULL, false},
      {"void tree::node_split_kernel<float>(float*)", NULL, false},
      {"lamport_clock", NULL, false},
  };
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct communication is = communication_of_kernel(cases[i].name);
    const char *operation = is.library ? comm_op_name(is.op) : NULL;
    bool fused = is.library && comm_op_part(is.op) == COMM_PART_FUSED;
    if (!operation != !cases[i].operation ||
        (operation && (strcmp(operation, cases[i].operation) || fused != cases[i].fused)))
      fail_msg("%s is %s, %d", cases[i].name, operation ? operation : "nothing", fused);
  }
}

/* The category and short form of a name that is too long for the demangler; Kineto leaves such
 * names mangled too. */
static void names_too_long_to_demangle_are_still_read(void **state) {
  (void)state;
  char name[4096] =
      "_ZN7cutlassL13device_kernelIN2at4cuda6detail25enable_3x_kernel_for_sm9xINS_4gemm6"
      "kernel13GemmUniversalIN4cute5tupleIJiiiEEE";
  for (int i = 0; i < 200; i++)
    strcat(name, "NS4_1CILi4EEE");
  strcat(name, "EEEEEvNT_6ParamsE");
  const struct kernel *kernel = kernel_lookup(names(), name);
  assert_ptr_equal(kernel->demangled, kernel->raw);
  assert_string_equal(kernel->shortened, "GemmUniversal");
  assert_int_equal(kernel->category, KERNEL_GEMM);
  static const char *const broken[] = {"_ZN",   "_ZN9",        "_ZN99x",
                                       "_ZN0x", "_ZN5short99", "_ZN1a2bcI3d"};
  for (size_t i = 0; i < LENGTH_OF(broken); i++)
    assert_int_equal(kernel_category(names(), broken[i]), KERNEL_OTHER);
}

static void long_names_are_cut_in_the_middle(void **state) {
  (void)state;
  char name[20000];
  memset(name, 'a', sizeof(name) - 1);
  memcpy(name, "begin", 5);
  memcpy(name + sizeof(name) - 4, "end", 4);
  const struct kernel *kernel = kernel_lookup(names(), name);
  assert_int_equal(strlen(kernel->shortened), KERNEL_SHORT);
  assert_memory_equal(kernel->shortened, "begin", 5);
  assert_string_equal(kernel->shortened + KERNEL_SHORT - 3, "end");
}

/* Reads patterns from a file written for one test. */
static struct kernel_names *from_file(const char *text, char *why, size_t why_bytes) {
  char path[] = "/tmp/kernels.XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
  close(file);
  struct kernel_names *made = kernel_names_new(path, why, why_bytes);
  unlink(path);
  return made;
}

static void a_file_comes_before_the_table(void **state) {
  (void)state;
  char why[256] = "";
  struct kernel_names *own =
      from_file("# mine\n\n  attention : ^my_sgemm\nray tracing: bvh_(build|walk)\n"
                "gemm: ^nccl_but_not\nray Tracing: ::trace$\n",
                why, sizeof(why));
  assert_non_null(own);
  assert_int_equal(kernel_category(own, "my_sgemm"), KERNEL_ATTENTION);
  assert_int_equal(kernel_category(own, "not_my_sgemm"), KERNEL_GEMM);
  assert_int_equal(kernel_category(own, "nccl_but_not"), KERNEL_GEMM);
  unsigned tracing = kernel_category(own, "void BVH_walk<4>(int)");
  assert_int_equal(tracing, KERNEL_CATEGORIES);
  assert_string_equal(kernel_category_name(own, tracing), "ray tracing");
  assert_int_equal(kernel_category(own, "void rays::trace(int)"), tracing);
  assert_int_equal(kernel_category_count(own), KERNEL_CATEGORIES + 1);
  kernel_names_free(own);
}

static void bad_lines_are_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *line, *cause;
  } cases[] = {
      {"GEMM: good\nno colon here\n", ":2: ", "CATEGORY: PATTERN"},
      {"GEMM:\n", ":1: ", "CATEGORY: PATTERN"},
      {": pattern\n", ":1: ", "CATEGORY: PATTERN"},
      {"\n\nGEMM: (unbalanced\n", ":3: ", ""},
  };
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    char why[256] = "";
    assert_null(from_file(cases[i].text, why, sizeof(why)));
    assert_non_null(strstr(why, cases[i].line));
    assert_non_null(strstr(why, cases[i].cause));
  }
  char why[256] = "";
  assert_null(kernel_names_new("/nonexistent/file", why, sizeof(why)));
  assert_non_null(strstr(why, "/nonexistent/file: "));
}

/* docs/kernels.md lists the categories of the table, in the same order and words. */
static void the_page_lists_every_category(void **state) {
  const char *path = *state;
  static char page[1 << 16];
  FILE *in = fopen(path, "r");
  assert_non_null(in);
  page[fread(page, 1, sizeof(page) - 1, in)] = '\0';
  fclose(in);
  const char *at = strstr(page, "| Kind |");
  assert_non_null(at);
#define C(ID, name, what)                                                                          \
  at = strstr(at, "\n| `" name "` | " what " |");                                                  \
  assert_non_null(at);
  TSCOPE_KERNEL_CATEGORIES(C)
#undef C
}

int main(int argc, char **argv) {
  assert_int_equal(argc, 2);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(real_names_have_their_category),
      cmocka_unit_test(every_category_has_a_name_above),
      cmocka_unit_test(a_second_query_gives_the_same),
      cmocka_unit_test(names_are_demangled),
      cmocka_unit_test(shortened_names_are_still_meaningful),
      cmocka_unit_test(names_tell_what_communicates),
      cmocka_unit_test(names_too_long_to_demangle_are_still_read),
      cmocka_unit_test(long_names_are_cut_in_the_middle),
      cmocka_unit_test(a_file_comes_before_the_table),
      cmocka_unit_test(bad_lines_are_named),
      cmocka_unit_test_prestate(the_page_lists_every_category, argv[1]),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  kernel_names_free(names());
  return failed;
}
