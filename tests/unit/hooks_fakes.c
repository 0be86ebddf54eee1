/* SPDX-License-Identifier: MIT */
#include "cuda/cuda_hooks.def"
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
#define NOTE_1(a) note(&call, &a, sizeof a);
#define NOTE_2(a, ...) NOTE_1(a) NOTE_1(__VA_ARGS__)
#define NOTE_3(a, ...) NOTE_1(a) NOTE_2(__VA_ARGS__)
#define NOTE_4(a, ...) NOTE_1(a) NOTE_3(__VA_ARGS__)
#define NOTE_5(a, ...) NOTE_1(a) NOTE_4(__VA_ARGS__)
#define NOTE_6(a, ...) NOTE_1(a) NOTE_5(__VA_ARGS__)
#define NOTE_7(a, ...) NOTE_1(a) NOTE_6(__VA_ARGS__)
#define NOTE_8(a, ...) NOTE_1(a) NOTE_7(__VA_ARGS__)
#define NOTE_9(a, ...) NOTE_1(a) NOTE_8(__VA_ARGS__)
#define NOTE_10(a, ...) NOTE_1(a) NOTE_9(__VA_ARGS__)
#define NOTE_0()
#define PICK(x, a, b, c, d, e, f, g, h, i, j, pick, ...) pick
#define NOTE_ALL(...)                                                                              \
  PICK(x, ##__VA_ARGS__, NOTE_10, NOTE_9, NOTE_8, NOTE_7, NOTE_6, NOTE_5, NOTE_4, NOTE_3, NOTE_2,  \
       NOTE_1, NOTE_0)                                                                             \
  (__VA_ARGS__)

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type fake_##name_ params __asm__(#name_);                                                        \
  FAKE_EXPORT type fake_##name_ params {                                                           \
    struct fake_call call = {.name = #name_};                                                      \
    NOTE_ALL args return (type)answer(&call);                                                      \
  }
TSCOPE_CUDA_HOOKS(HOOK)
TSCOPE_NCCL_HOOKS(HOOK)
FAKE_QUESTIONS(HOOK)
PAGE_HOOKS(HOOK)
