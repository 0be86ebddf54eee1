/* SPDX-License-Identifier: MIT */
#include "torch/torch_family.h"

#include "resolve/linker_work.h"
#include "resolve/search.h"
#include "torch/tensor_memory.h"
#include "torch/torch_version.h"

struct torch_family torch_family;

static const struct torch_function {
  const char *name;
  size_t offset;    /* in struct torch_family */
  const char *lost; /* what cannot be recorded without it */
} torch_functions[] = {
    {"_ZNK2at14RecordFunction4nameEv", offsetof(struct torch_family, range_name), "phases"},
    {"_ZNK4c10d4Work14retrieveOpTypeEv", offsetof(struct torch_family, op_type),
     "gloo collectives"},
    {"_ZN2at15sequence_number4peekEv", offsetof(struct torch_family, next_number),
     "lines of the backward pass"},
    {"_ZN2at14RecordFunction15currentThreadIdEv", offsetof(struct torch_family, thread_number),
     "lines of the backward pass"},
    {"aoti_torch_get_numel", offsetof(struct torch_family, tensor_numel), "sizes of collectives"},
    {"aoti_torch_get_dtype", offsetof(struct torch_family, tensor_dtype), "sizes of collectives"},
};

static void find_functions(struct tscope_thread *thread) {
  const size_t n = LENGTH_OF(torch_functions);
  for (const struct torch_function *function = torch_functions; function < torch_functions + n;
       function++) {
    void *address = tscope_first_definition(function->name);
    *(void **)(void *)((char *)&torch_family + function->offset) = address;
    if (!address)
      tscope_info(thread, TSCOPE_INFO_FEATURE, "not exported by this PyTorch", function->lost);
  }
}

static void set_up(struct tscope_thread *thread) {
  torch_family.gloo_run = tscope_string(thread, "c10d::ProcessGroupGloo::AsyncWork");
  torch_family.backward = tscope_string(thread, "torch::autograd::Engine::execute");
  find_functions(thread);
  torch_phases_install(thread);
  operators_init(thread);
}

static u8 done;

/* Calls functions of PyTorch. While somebody holds the linker's lock, PyTorch's own constructors
 * may not have run yet: that is why it is work for the linker. */
static void find_torch(struct tscope_thread *thread) {
  if (!torch_loaded() || __atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
    return;
  torch_version_find(thread);
  set_up(thread);
}

static void torch_wake(struct tscope_thread *thread) {
  static struct tscope_linker_work at_wake = {.run = find_torch};
  torch_listening_again();
  tscope_linker_work(thread, &at_wake);
}

void torch_init(struct tscope_thread *thread) {
  static struct tscope_linker_work loaded = {.run = find_torch};
  if (TSCOPE_UNLIKELY(!__atomic_load_n(&done, __ATOMIC_RELAXED)))
    tscope_linker_work(thread, &loaded);
}

const struct tscope_family tscope_torch_family = {
    .thread_bytes = sizeof(struct torch_thread),
    .wake = torch_wake,
    .tick = tensor_memory_record,
    .end = tensor_memory_record,
};
