/* SPDX-License-Identifier: MIT */
#include "import/kineto/kineto_names.h"

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/texts.h"
#include "format/range_names.h"
#include "model/model.h"

#define MOST_STEP INT64_MAX /* of what a file claims: the steps after it have numbers, too */

/* Calls of CUDA's runtime and driver and of HIP, without the prefix that distinguishes them. The
 * first match counts. */
static const struct word calls[] = {
    {"LaunchHostFunc", KINETO_CALL_OTHER},
    {"Launch", KINETO_CALL_LAUNCH}, /* LaunchKernel, LaunchKernelExC, LaunchCooperativeKernel */
    {"ExtLaunch", KINETO_CALL_LAUNCH},
    {"ExtModuleLaunchKernel", KINETO_CALL_LAUNCH},
    {"HccModuleLaunchKernel", KINETO_CALL_LAUNCH},
    {"ModuleLaunch", KINETO_CALL_LAUNCH},
    {"GraphLaunch", KINETO_CALL_LAUNCH},
    {"Memcpy", KINETO_CALL_MEMCPY},
    {"Memset", KINETO_CALL_MEMSET},
    {"DeviceSynchronize", KINETO_CALL_SYNC_DEVICE},
    {"CtxSynchronize", KINETO_CALL_SYNC_DEVICE},
    {"ThreadSynchronize", KINETO_CALL_SYNC_DEVICE},
    {"StreamSynchronize", KINETO_CALL_SYNC_STREAM},
    {"EventSynchronize", KINETO_CALL_SYNC_EVENT},
    {"EventRecord", KINETO_CALL_EVENT_RECORD},
    {"StreamWaitEvent", KINETO_CALL_STREAM_WAIT},
    {"GraphInstantiate", KINETO_CALL_INSTANTIATE},
    {"StreamBeginCapture", KINETO_CALL_CAPTURE_BEGIN},
    {"StreamEndCapture", KINETO_CALL_CAPTURE_END},
};

/* Calls of other devices: Intel's (Unified Runtime, Level Zero), Huawei's (ACL), MTIA's. */
static const struct word calls_of_others[] = {
    {"urEnqueueKernelLaunch", KINETO_CALL_LAUNCH},
    {"urEnqueueUSMMemcpy", KINETO_CALL_MEMCPY},
    {"urEnqueueUSMFill", KINETO_CALL_MEMSET},
    {"urQueueFinish", KINETO_CALL_SYNC_STREAM},
    {"urEventWait", KINETO_CALL_SYNC_EVENT},
    {"zeCommandListAppendLaunch", KINETO_CALL_LAUNCH},
    {"zeCommandListAppendMemoryCopy", KINETO_CALL_MEMCPY},
    {"zeCommandListAppendMemoryFill", KINETO_CALL_MEMSET},
    {"zeCommandListHostSynchronize", KINETO_CALL_SYNC_STREAM},
    {"zeCommandQueueSynchronize", KINETO_CALL_SYNC_STREAM},
    {"zeEventHostSynchronize", KINETO_CALL_SYNC_EVENT},
    {"aclrtLaunch", KINETO_CALL_LAUNCH},
    {"aclrtMemcpy", KINETO_CALL_MEMCPY},
    {"aclrtMemset", KINETO_CALL_MEMSET},
    {"aclrtSynchronizeDevice", KINETO_CALL_SYNC_DEVICE},
    {"aclrtSynchronizeStream", KINETO_CALL_SYNC_STREAM},
    {"aclrtSynchronizeEvent", KINETO_CALL_SYNC_EVENT},
    {"runFunction", KINETO_CALL_LAUNCH},
};

static u8 call_of(const char *text) {
  if (same_text(text, "synchronizeStream") || same_text(text, "synchronize"))
    /* of MTIA: a thread of the program, and one of its driver for it */
    return KINETO_CALL_SYNC_STREAM;
  static const char *const prefixes[] = {"cuda", "hip", "cu"};
  FOR_EACH(prefixes, LENGTH_OF(prefixes), prefixe)
    if (text_starts_with(text, *prefixe))
      return MEANING_OF(text + strlen(*prefixe), calls, text_starts_with);
  return MEANING_OF(text, calls_of_others, text_starts_with);
}

static u8 phase_of(const char *text) {
  return text_starts_with(text, "autograd::engine::evaluate_function")
             ? TSCOPE_PHASE_BACKWARD
             : tscope_phase_of_range(text, strlen(text));
}

/* In either word order: "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice". */
static u8 copy_of(const char *text) {
  static const struct word words[] = {
      {"HtoD", TSCOPE_MEMCPY_H2D},         {"DtoH", TSCOPE_MEMCPY_D2H},
      {"DtoD", TSCOPE_MEMCPY_D2D},         {"PtoP", TSCOPE_MEMCPY_P2P},
      {"HtoH", TSCOPE_MEMCPY_H2H},         {"HostToDevice", TSCOPE_MEMCPY_H2D},
      {"DeviceToHost", TSCOPE_MEMCPY_D2H}, {"DeviceToDevice", TSCOPE_MEMCPY_D2D},
      {"PeerToPeer", TSCOPE_MEMCPY_P2P},   {"HostToHost", TSCOPE_MEMCPY_H2H}};
  return MEANING_OF(text, words, text_contains);
}

/* An engine's iteration, by how it is annotated. vLLM (vllm/v1/worker/gpu_worker.py):
 * "execute_context_1(888)_generation_0(0)", in some versions with a number of tokens before
 * "context"; SGLang (managers/scheduler.py): "step[EXTEND bs=1 toks=107]". */
static u8 iteration_of(const char *text) {
  const char *context = text_starts_with(text, "execute_") ? strstr(text, "context_") : NULL;
  const char *generation = context ? strstr(context, "_generation_") : NULL;
  if (generation) {
    bool prompts = leading_number(context + strlen("context_"), UINT32_MAX, NULL) > 0;
    bool answers = leading_number(generation + strlen("_generation_"), UINT32_MAX, NULL) > 0;
    return prompts ? answers ? STEP_MIXED : STEP_PREFILL : STEP_DECODE;
  }
  return text_starts_with(text, "step[EXTEND ")   ? STEP_PREFILL
         : text_starts_with(text, "step[DECODE ") ? STEP_DECODE
         : text_starts_with(text, "step[MIXED ")  ? STEP_MIXED
                                                  : STEP_TRAINING;
}

/* gloo has no reduce_scatter: PyTorch lets it reduce all, and keeps a part. */
static u8 op_of_worker(u8 op) {
  return op == TSCOPE_OP_REDUCE_SCATTER ? TSCOPE_OP_ALLREDUCE : op;
}

static void describe(struct kineto_name *name) {
  static const char *const libraries[] = {
      "nccl:", "gloo:", "mpi:", "ucc:", "rccl:", "hccl:", "xccl:"};
  const char *text = name->text;
  name->call = call_of(text);
  name->phase = phase_of(text);
  name->copy = copy_of(text);
  name->copies = strcmp(text, "dma_request") == 0; /* of MTIA */
  const char *colon = strchr(text, ':');
  name->comm_range = MATCHES_ANY(text, libraries, text_starts_with);
  name->comm_worker = text_starts_with(text, "gloo:");
  if (text_starts_with(text, "c10d::"))
    name->worker_op = op_of_worker(op_named(strstr(text, "::")));
  name->waits = text_contains(text, "::wait_tensor");
  name->waits_inside = text_starts_with(text, "torch/autograd/") ||
                       text_starts_with(text, "torch/distributed/distributed_c10d.py(");
  if (name->comm_range)
    name->op = op_named(colon + 1);
  name->param_comms = strcmp(text, "record_param_comms") == 0;
  name->is_step = text_starts_with(text, "ProfilerStep#");
  if (name->is_step) {
    const char *number = text + strlen("ProfilerStep#"), *end;
    u64 step = leading_number(number, MOST_STEP, &end);
    name->step = end > number ? step : MOST_STEP; /* as of -1 */
  }
  name->iteration = iteration_of(text);
  name->backward = text_starts_with(text, "autograd::engine::");
  name->fill = strcmp(text, "aten::fill_") == 0 || strcmp(text, "aten::zero_") == 0;
}

/* Looked up as it is written in the text; a name with escapes is also kept without them. */
static struct kineto_name name_like(struct kineto_names *names, struct json_text text) {
  struct kineto_name name = {.raw = arena_copy(&names->arena, text.at, text.n),
                             .raw_bytes = text.n};
  name.text = name.raw;
  if (text.escaped) {
    char *plain = arena_alloc(&names->arena, size_sum(text.n, 1));
    name.text = plain;
    names->bad_escapes += scan_unescape(text, plain) > 0;
  }
  describe(&name);
  return name;
}

u32 kineto_name_of(struct kineto_names *names, struct json_text text) {
  if (names->list.n == 0)
    VECTOR_PUSH(&names->list, (struct kineto_name){.text = ""});
  if (text.n == 0)
    return 0;
  return HASHED_OR_ADD(&names->list, table_hash(0, text.at, text.n), one,
                       one->raw_bytes == text.n && !memcmp(one->raw, text.at, text.n),
                       name_like(names, text));
}

struct communication kineto_communication(struct kineto_names *names, u32 number) {
  struct kineto_name *name = &names->list.at[number];
  if (!name->communication_known)
    name->communication = kernel_communication(names->kernel_names, name->text);
  name->communication_known = true;
  return name->communication;
}

void kineto_names_free(struct kineto_names *names) {
  FREE_EACH(names, list.at, list.index.slots);
  arena_release(&names->arena);
}
