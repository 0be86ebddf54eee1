/* SPDX-License-Identifier: MIT
 *
 * All-reduces and exchanges that run as kernels of other libraries, without a call of NCCL: with
 * --family NAME each all-reduce of the training program is the kernels that the library of that
 * name launches for one, under their names and in their order. The names are those that profiles of
 * these libraries have; analyzer/kernels/communication.def says where the libraries' sources are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

/* Kernels that prepare or unpack on one GPU what is moved run for so long. */
#define ALONE_MS 0.03
/* Those that meet the other ranks move this share of the bytes. */
struct part {
  double share; /* ALONE: meets nobody */
  const char *kernel;
};

enum { ALONE = -1, MAX_PARTS = 6 };

#define EP "void deep_ep::"
#define FI "void flashinfer::trtllm_"

static const struct family {
  const char *name;
  struct part parts[MAX_PARTS];
} families[] = {
    {"deepep",
     {{ALONE, EP "internode::get_dispatch_layout<256, 32, 8>(long const*, int*, int*, int*, bool*, "
                 "int, int, int, int)"},
      {0.01, EP "internode::notify_dispatch<false, 8>(int const*, int*, int, int const*, int*)"},
      {0.5, EP "internode::dispatch<false, 8, false, 16384, 7>(int4*, float*, long*, float*)"},
      {0.01, EP "internode::cached_notify<false, 2>(int, int, int, int, int*, int)"},
      {0.5, EP "internode::combine<false, 8, __nv_bfloat16, 7, 8>(int4*, float*, bool const*)"}}},
    {"deepep-intranode",
     {{0.01, EP "intranode::notify_dispatch<8>(int const*, int*, int const*, int*, int, int)"},
      {0.5, EP "intranode::dispatch<8, 768, 8192>(int4*, float*, int*, long*, float*, int*)"},
      {0.01, EP "intranode::cached_notify_combine<8>(void**, int*, int, int, int, int**, int)"},
      {0.5, EP "intranode::combine<__nv_bfloat16, 8, 768, 4096>(__nv_bfloat16*, float*)"}}},
    {"deepep-low-latency",
     {{0.5, EP "internode_ll::dispatch<true, false, 7168>(void*, void*, int*, long*, int*)"},
      {0.5, EP "internode_ll::combine<false, 7168, 9, 4>(void*, void*, int*, void*)"}}},
    {"nccl-ep",
     {{0.5, "void nccl_ep::internode_ll::dispatch<false, false, 7168, (ncclEpLayout_t)1, "
            "true>(void*, int)"},
      {0.5, "void nccl_ep::internode_ll::combine<false, 7168, 9, 4, (ncclEpLayout_t)1>(void*)"}}},
    {"mori",
     {{0.5, "void mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16, false>(mori::moe::"
            "EpDispatchCombineArgs<hip_bfloat16>)"},
      {0.5, "EpCombineIntraNodeKernel_bf16"}}},
    {"symmetric",
     {{1, "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, "
          "8>(c10::BFloat16**, unsigned long, unsigned long, unsigned int**, unsigned long)"}}},
    {"symmetric-multimem",
     {{1, "void c10d::symmetric_memory::multimem_all_reduce_kernel<c10::BFloat16, "
          "16>(c10::BFloat16*, unsigned long, unsigned int**, unsigned long, unsigned long)"},
      {0.01, "c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned)"}}},
    {"nvshmem",
     {{1, "void rdxn_on_stream_kernel<float, (rdxn_ops)4>(int, float*, float const*, unsigned "
          "long, int)"},
      {0.01, "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)"}}},
    {"userbuffers",
     {{0.5, "void userbuffers_fp16_sum_inplace_gpu_rr_rs<8>(int, int, int, int, int, int, int, "
            "void**, int, unsigned long)"},
      {0.5, "void userbuffers_fp16_sum_inplace_gpu_rw_ag<8>(int, int, int, int, int, int, int, "
            "void**, int, unsigned long)"}}},
    {"vllm",
     {{1, "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*, "
          "vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)"}}},
    {"sglang",
     {{1, "void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8>(sglang::RankData*, "
          "sglang::RankSignals, sglang::Signal*, __nv_bfloat16*, int, int)"}}},
    {"quick",
     {{1, "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<__half, "
          "quickreduce::CodecFP<__half, 8>, false>, __half>(__half const*, __half*, int, int)"}}},
    {"tensorrt",
     {{1, "void tensorrt_llm::kernels::twoShotAllReduceKernel<__nv_bfloat16, 8, true, false, "
          "true>(tensorrt_llm::kernels::AllReduceParams)"}}},
    {"tensorrt-experts",
     {{ALONE, "tensorrt_llm::kernels::moe_comm::moeA2APrepareDispatchKernel(int*, int*, int)"},
      {0.5, "void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<8, false, false, "
            "false>(int const*, tensorrt_llm::kernels::moe_comm::DispatchKernelPointers)"},
      {0.5, "void tensorrt_llm::kernels::moe_comm::moeA2ACombineKernel<__nv_bfloat16, 8>(int)"}}},
    {"flashinfer",
     {{1, FI "allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::"
             "trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false, "
             "false>(flashinfer::trtllm_allreduce_fusion::AllReduceFusionParams<__nv_bfloat16>)"}}},
    {"mscclpp",
     {{1, "void mscclpp::collective::allreducePacket<(mscclpp::ReduceOp)0, __half, "
          "true>(__half*, __half*, __half*, mscclpp::DeviceHandle<mscclpp::MemoryChannel>*)"}}},
    {"torchcomms",
     {{1, "void meta::comms::ddaAllReduceFlatIpc<__nv_bfloat16, 8, false>(__nv_bfloat16* const*, "
          "__nv_bfloat16*, unsigned long, __nv_bfloat16 const*, int, meta::comms::IpcBarrier)"}}},
    {"device-api", {{1, "void simpleAllReduceKernel(ncclWindow_t, unsigned long, ncclDevComm)"}}},
};

enum { FAMILIES = sizeof(families) / sizeof(families[0]) };

void family_names(void) {
  for (int i = 0; i < FAMILIES; i++)
    printf("%s%s", i ? " " : "", families[i].name);
}

static const struct family *family_called(const char *name) {
  for (int i = 0; i < FAMILIES; i++)
    if (!strcmp(families[i].name, name))
      return &families[i];
  fprintf(stderr, "train: no family %s; see train --help\n", name);
  exit(2);
}

const char *family_preparation(const char *name) {
  const struct family *family = family_called(name);
  for (int i = 0; i < MAX_PARTS && family->parts[i].kernel; i++)
    if (family->parts[i].share < 0)
      return family->parts[i].kernel;
  return NULL;
}

void family_all_reduce(struct rank *rank, size_t bytes, ncclComm_t comm, cudaStream_t stream) {
  const struct family *family = family_called(rank->options->family);
  for (int i = 0; i < MAX_PARTS && family->parts[i].kernel; i++) {
    const struct part *part = &family->parts[i];
    size_t count = (size_t)((double)bytes * part->share) / sizeof(float);
    if (part->share < 0) {
      standin_next_kernel_ns((int64_t)(ALONE_MS * 1e6));
      CUDA(launch_kernel(PREPARATION, stream));
      continue;
    }
    standin_next_collective_name(part->kernel);
    NCCL(pncclAllReduce(rank->gradients, rank->gradients, count, ncclFloat, ncclSum, comm, stream));
  }
}
