/* SPDX-License-Identifier: MIT */
#include "driver/driver_types.h"

#include "blas/blas_hooks.def"
#include "cuda/cuda_hooks.def"
#include "driver/driver_hooks.def"
#include "nccl/nccl_hooks.def"

#include "hooks_fakes.h"
#include "hooks_page.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

FAKE_EXPORT int (*fake_behaviour)(const struct fake_call *call);
FAKE_EXPORT __thread struct fake_call fake_last;

static void note(struct fake_call *call, const void *arg, size_t bytes) {
  if (call->n == FAKE_MAX_ARGS)
    return;
  call->bytes[call->n] = bytes;
  memcpy(call->args[call->n++], arg, bytes);
}

static int answer(const struct fake_call *call) {
  fake_last = *call;
  return fake_behaviour ? fake_behaviour(call) : 0;
}

/* NOTE_ALL(a, b, ...) notes each argument. */
#define NOTE_1(a) note(&call, &a, sizeof(a));
#define NOTE_2(a, ...) NOTE_1(a) NOTE_1(__VA_ARGS__)
#define NOTE_3(a, ...) NOTE_1(a) NOTE_2(__VA_ARGS__)
#define NOTE_4(a, ...) NOTE_1(a) NOTE_3(__VA_ARGS__)
#define NOTE_5(a, ...) NOTE_1(a) NOTE_4(__VA_ARGS__)
#define NOTE_6(a, ...) NOTE_1(a) NOTE_5(__VA_ARGS__)
#define NOTE_7(a, ...) NOTE_1(a) NOTE_6(__VA_ARGS__)
#define NOTE_8(a, ...) NOTE_1(a) NOTE_7(__VA_ARGS__)
#define NOTE_9(a, ...) NOTE_1(a) NOTE_8(__VA_ARGS__)
#define NOTE_10(a, ...) NOTE_1(a) NOTE_9(__VA_ARGS__)
#define NOTE_11(a, ...) NOTE_1(a) NOTE_10(__VA_ARGS__)
#define NOTE_12(a, ...) NOTE_1(a) NOTE_11(__VA_ARGS__)
#define NOTE_13(a, ...) NOTE_1(a) NOTE_12(__VA_ARGS__)
#define NOTE_14(a, ...) NOTE_1(a) NOTE_13(__VA_ARGS__)
#define NOTE_15(a, ...) NOTE_1(a) NOTE_14(__VA_ARGS__)
#define NOTE_16(a, ...) NOTE_1(a) NOTE_15(__VA_ARGS__)
#define NOTE_17(a, ...) NOTE_1(a) NOTE_16(__VA_ARGS__)
#define NOTE_18(a, ...) NOTE_1(a) NOTE_17(__VA_ARGS__)
#define NOTE_19(a, ...) NOTE_1(a) NOTE_18(__VA_ARGS__)
#define NOTE_20(a, ...) NOTE_1(a) NOTE_19(__VA_ARGS__)
#define NOTE_21(a, ...) NOTE_1(a) NOTE_20(__VA_ARGS__)
#define NOTE_22(a, ...) NOTE_1(a) NOTE_21(__VA_ARGS__)
#define NOTE_23(a, ...) NOTE_1(a) NOTE_22(__VA_ARGS__)
#define NOTE_24(a, ...) NOTE_1(a) NOTE_23(__VA_ARGS__)
#define NOTE_0()
#define PICK(none, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, pick,   \
             ...)                                                                                  \
  pick
#define NOTE_ALL(...)                                                                              \
  PICK(none, ##__VA_ARGS__, NOTE_24, NOTE_23, NOTE_22, NOTE_21, NOTE_20, NOTE_19, NOTE_18,         \
       NOTE_17, NOTE_16, NOTE_15, NOTE_14, NOTE_13, NOTE_12, NOTE_11, NOTE_10, NOTE_9, NOTE_8,     \
       NOTE_7, NOTE_6, NOTE_5, NOTE_4, NOTE_3, NOTE_2, NOTE_1, NOTE_0)                             \
  (__VA_ARGS__)

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type fake_##name_ params __asm__(#name_);                                                        \
  FAKE_EXPORT type fake_##name_ params {                                                           \
    struct fake_call call = {.name = #name_};                                                      \
    NOTE_ALL args return (type)answer(&call);                                                      \
  }
TSCOPE_CUDA_HOOKS(HOOK)
TSCOPE_NCCL_HOOKS(HOOK)
TSCOPE_BLAS_HOOKS(HOOK)
TSCOPE_DRIVER_HOOKS(HOOK)
PAGE_HOOKS(HOOK)
#undef HOOK

/* Queries by tscope do not change `fake_last`, the last call of the job. */
#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type fake_##name_ params __asm__(#name_);                                                        \
  FAKE_EXPORT type fake_##name_ params {                                                           \
    struct fake_call call = {.name = #name_};                                                      \
    NOTE_ALL args return (type)(fake_behaviour ? fake_behaviour(&call) : 0);                       \
  }
FAKE_QUERIES(HOOK)
