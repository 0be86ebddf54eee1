/* SPDX-License-Identifier: MIT */
#include "inside_torch.h"

#include <string.h>

#include "torch/torch_hooks.def"

#define TORCH __attribute__((visibility("default")))

TORCH struct torch_call torch_last;
TORCH struct torch_object torch_returned;
TORCH struct torch_callback torch_callback;
TORCH void *torch_work;
TORCH void (*torch_inside)(void);
TORCH bool torch_done;

void torch_enqueue(void *group, void *work) __asm__(TORCH_ENQUEUE);
TORCH void torch_enqueue(void *group, void *work) {
  (void)group, (void)work;
}

static struct torch_object called(const char *name, const word words[TORCH_WORDS]) {
  static word calls;
  torch_last.name = name;
  memcpy(torch_last.words, words, sizeof(torch_last.words));
  if (torch_work && strstr(name, "9allreduce"))
    torch_enqueue((void *)words[0], &torch_work);
  if (torch_inside)
    torch_inside();
  torch_returned = (struct torch_object){torch_work, {++calls, 2 * calls, 3 * calls}};
  return torch_returned;
}

#define NOT_HERE(...)
#define CLASS(function, since, until, type, params, args, recorder, what)                          \
  struct torch_object torch_##function(word, word, word, word, word, word,                         \
                                       word) __asm__(#function);                                   \
  TORCH struct torch_object torch_##function(word a, word b, word c, word d, word e, word f,       \
                                             word g) {                                             \
    return called(#function, (word[]){a, b, c, d, e, f, g});                                       \
  }
TSCOPE_TORCH_HOOKS(NOT_HERE, NOT_HERE, CLASS)

word torch_add_callback(struct torch_callback callback) __asm__(
    "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
TORCH word torch_add_callback(struct torch_callback callback) {
  torch_callback = callback;
  return 1;
}

const char *torch_range_name(const void *range) __asm__("_ZNK2at14RecordFunction4nameEv");
TORCH const char *torch_range_name(const void *range) {
  return range;
}

uint8_t torch_op_type(const void *work) __asm__("_ZNK4c10d4Work14retrieveOpTypeEv");
TORCH uint8_t torch_op_type(const void *work) {
  (void)work;
  return 1; /* ALLREDUCE */
}

bool torch_is_completed(void *work) __asm__("_ZN4c10d4Work11isCompletedEv");
TORCH bool torch_is_completed(void *work) {
  (void)work;
  return torch_done;
}

TORCH int aoti_torch_get_numel(const void *tensor, int64_t *elements);
TORCH int aoti_torch_get_numel(const void *tensor, int64_t *elements) {
  *elements = **(const int64_t *const *)tensor;
  return 0;
}

TORCH int aoti_torch_get_dtype(const void *tensor, int32_t *type);
TORCH int aoti_torch_get_dtype(const void *tensor, int32_t *type) {
  (void)tensor;
  *type = 6; /* Float */
  return 0;
}

TORCH uint64_t aoti_torch_abi_version(void);
TORCH uint64_t aoti_torch_abi_version(void) {
  return 2ull << 56 | 11ull << 48;
}

void torch_group_made(void *group, const void *store, int rank, int size, void *options) __asm__(
    "_ZN4c10d16ProcessGroupGlooC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_"
    "default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE");
TORCH void torch_group_made(void *group, const void *store, int rank, int size, void *options) {
  (void)group, (void)store, (void)rank, (void)size, (void)options;
}
