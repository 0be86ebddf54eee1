/* SPDX-License-Identifier: MIT
 *
 * A library that runs the training loop: its code counts as the user's own, and only its.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "model/training_calls.h"

#define SITE "/opt/env/lib/python3.12/site-packages/"

enum frame {
  MAIN,    /* own: calls everything below */
  OTHER,   /* own: another line */
  THIRD,   /* own: one more */
  LOOP,    /* of the trainer */
  STEP,    /* of the trainer */
  METRICS, /* of the trainer */
  WRAPPER, /* of a second library */
  MODEL,   /* of a third library: called by a module, calls one */
  BAR,     /* of a fourth, which trains nothing */
  CALL,    /* the parts of training */
  BACKWARD,
  OPTIMIZER,
  FRAMES
};

static const struct call_frame frames[FRAMES] = {
    [MAIN] = {.file = "/home/me/train.py", .function = "main", .line = 9},
    [OTHER] = {.file = "/home/me/train.py", .function = "main", .line = 10},
    [THIRD] = {.file = "/home/me/train.py", .function = "main", .line = 11},
    [LOOP] = {.file = SITE "trainer/loop.py", .function = "Trainer.train", .line = 20},
    [STEP] = {.file = SITE "trainer/loop.py", .function = "Trainer.step", .line = 30},
    [METRICS] = {.file = SITE "trainer/metrics.py", .function = "accuracy", .line = 3},
    [WRAPPER] = {.file = SITE "speed/wrap.py", .function = "backward", .line = 2},
    [MODEL] = {.file = SITE "models/llama.py", .function = "Layer.forward", .line = 7},
    [BAR] = {.file = SITE "bar.py", .function = "show", .line = 4},
    [CALL] = {.file = SITE "torch/nn/modules/module.py", .function = "Module._call_impl"},
    [BACKWARD] = {.file = SITE "torch/_tensor.py", .function = "Tensor.backward"},
    [OPTIMIZER] = {.file = SITE "torch/optim/optimizer.py",
                   .function = "Optimizer.profile_hook_step.<locals>.wrapper"},
};

enum { MOST_STACKS = 8, MOST_DEPTH = 8, END = FRAMES };

/* Stacks, innermost first, each ended by END; which frames are own in the end, a bit each. */
static u32 own_of(const u32 (*stacks)[MOST_DEPTH], u32 n, const struct call_frame **loop) {
  static struct call_frame copy[FRAMES];
  struct call_stack list[MOST_STACKS];
  u32 own = 0;
  memcpy(copy, frames, sizeof(copy));
  for (u32 i = 0; i < n; i++) {
    list[i] = (struct call_stack){.frames = stacks[i]};
    while (stacks[i][list[i].n] != END)
      list[i].n++;
  }
  struct call_sites sites = {.frames = copy, .n_frames = FRAMES, .stacks = list, .n_stacks = n};
  call_sites_find_library(&sites);
  for (u32 i = 0; i < FRAMES; i++)
    own |= (u32)call_frame_is_user_code(&copy[i]) << i;
  *loop = sites.loop ? &frames[sites.loop - copy] : NULL;
  return own;
}

#define OWN(name) (1u << (name))
#define USER (OWN(MAIN) | OWN(OTHER) | OWN(THIRD))
#define STACKS(list) list, LENGTH_OF(list)

static void a_library_that_trains_counts_as_own(void **state) {
  (void)state;
  static const u32 stacks[][MOST_DEPTH] = {{CALL, MODEL, CALL, STEP, LOOP, MAIN, END},
                                           {BACKWARD, WRAPPER, STEP, LOOP, MAIN, END},
                                           {OPTIMIZER, LOOP, MAIN, END},
                                           {METRICS, LOOP, MAIN, END},
                                           {BAR, LOOP, MAIN, END},
                                           {OTHER, END}};
  const struct call_frame *loop;
  assert_int_equal(own_of(STACKS(stacks), &loop),
                   USER | OWN(LOOP) | OWN(STEP) | OWN(METRICS) | OWN(WRAPPER) | OWN(MODEL));
  assert_ptr_equal(loop, &frames[MAIN]);
}

/* Models and wrappers of libraries in a loop of the user's own; the backward pass calls modules
 * again where activations are made anew. */
static void libraries_in_a_loop_of_ones_own_do_not(void **state) {
  (void)state;
  static const u32 stacks[][MOST_DEPTH] = {
      {CALL, MODEL, CALL, MAIN, END},   {CALL, WRAPPER, MAIN, END},
      {BACKWARD, WRAPPER, OTHER, END},  {CALL, MODEL, BACKWARD, WRAPPER, OTHER, END},
      {OPTIMIZER, WRAPPER, THIRD, END}, {METRICS, MAIN, END}};
  const struct call_frame *loop;
  assert_int_equal(own_of(STACKS(stacks), &loop), USER);
  assert_null(loop);
}

static void without_own_code_the_library_is_the_program(void **state) {
  (void)state;
  static const u32 stacks[][MOST_DEPTH] = {
      {CALL, STEP, LOOP, END}, {BACKWARD, STEP, LOOP, END}, {METRICS, LOOP, END}};
  static const u32 inference[][MOST_DEPTH] = {{CALL, STEP, LOOP, END}, {METRICS, LOOP, END}};
  const struct call_frame *loop;
  assert_int_equal(own_of(STACKS(stacks), &loop), USER | OWN(LOOP) | OWN(STEP) | OWN(METRICS));
  assert_null(loop);
  assert_int_equal(own_of(STACKS(inference), &loop), USER);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_library_that_trains_counts_as_own),
      cmocka_unit_test(libraries_in_a_loop_of_ones_own_do_not),
      cmocka_unit_test(without_own_code_the_library_is_the_program),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
