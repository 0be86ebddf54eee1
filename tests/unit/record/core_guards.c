/* SPDX-License-Identifier: MIT
 *
 * Hooks that are left by a jump, and hooks on other stacks. Calls from inside a hooked call are not
 * recorded, not even calls of a signal handler on any stack. After a hook was left, all later calls
 * are recorded, at any stack depth. Counts are exact. Each scene runs once before the thread's own
 * stack is known, and once after. A lock that was left by a jump is given back, whichever
 * instruction the jump came after.
 */
#include "core_child.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "record/lock.h"
#include "record/stack.h"

enum { OUTER = 1, INNER = 2, DEPTHS = 60 };

static const u32 launches_per_sweep = DEPTHS;

__attribute__((noinline)) static void at_depth(int depth, void (*what)(void)) {
  volatile char frame[48] = {0};
  if (depth)
    at_depth(depth - 1, what);
  else
    what();
  frame[0]++;
}

static void launch_outer(void) {
  CHILD_CHECK(hooked_launch(OUTER));
}

static void launch_inner(void) {
  CHILD_CHECK(!hooked_launch(INNER));
}

/* Launches from each depth: all must be recorded. */
static void sweep(void) {
  for (int depth = 0; depth < DEPTHS; depth++)
    at_depth(depth, launch_outer);
}

static sigjmp_buf back;

static void jump(void) {
  siglongjmp(back, 1);
}

/* A hook in progress, whose real function calls `inside`. */
static void (*volatile inside)(void);
__attribute__((noinline)) static void hook(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  CHILD_CHECK(thread);
  inside();
  tscope_leave(thread);
}

static void hook_around(void (*what)(void)) {
  inside = what;
  hook();
}

static void jump_from_depths(void) {
  static const int depths[] = {0, 1, 7, 30, DEPTHS, 3 * DEPTHS};
  for (size_t i = 0; i < LENGTH_OF(depths); i++) {
    inside = jump;
    if (!sigsetjmp(back, 1))
      at_depth(depths[i], hook);
    sweep();
  }
}

static void jump_from_inside_nested_calls(void) {
  inside = jump;
  if (!sigsetjmp(back, 1))
    hook_around(launch_inner), hook_around(jump);
  sweep();
}

static void (*volatile in_handler)(void);
static void handle(int number) {
  (void)number;
  in_handler();
}

static void raise_here(void) {
  raise(SIGUSR1);
}

static void hook_and_jump(void) {
  inside = jump;
  hook();
}

static void handlers(void) {
  in_handler = launch_inner; /* interrupts a hook */
  hook_around(raise_here);
  for (int depth = 0; depth < DEPTHS; depth += 10) {
    inside = raise_here;
    at_depth(depth, hook);
  }
  in_handler = launch_outer; /* runs while no hook is in progress */
  for (int i = 0; i < DEPTHS; i++)
    raise_here();
  in_handler = hook_and_jump; /* leaves a hook and the handler's stack */
  for (int depth = 0; depth <= DEPTHS; depth += DEPTHS / 2) {
    if (!sigsetjmp(back, 1))
      at_depth(depth, raise_here);
    sweep();
  }
  in_handler = jump; /* leaves the hook that it interrupted */
  if (!sigsetjmp(back, 1))
    hook_around(raise_here);
  sweep();
}

static void handlers_on(void *stack, size_t bytes) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  CHILD_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  CHILD_CHECK(sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = bytes}, NULL) == 0);
  handlers();
  CHILD_CHECK(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL) == 0);
}
static const u32 launches_of_handlers = DEPTHS + 4 * DEPTHS;

/* The same before the thread's own stack is known, for handlers that return. */
static void brief_handlers_on(void *stack, size_t bytes) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  CHILD_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  CHILD_CHECK(sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = bytes}, NULL) == 0);
  in_handler = launch_inner; /* interrupts a hook */
  for (int depth = 0; depth < DEPTHS; depth += 10) {
    inside = raise_here;
    at_depth(depth, hook);
  }
  in_handler = launch_outer;
  for (int i = 0; i < DEPTHS; i++)
    raise_here();
  CHILD_CHECK(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL) == 0);
}

static ucontext_t main_context, coroutine;

static void switch_back(void) {
  swapcontext(&coroutine, &main_context);
}

/* A hook in progress on the stack of a coroutine that never continues. */
static void hook_and_switch_back(void) {
  inside = switch_back;
  hook();
}

static void sweep_and_end(void) {
  hook_around(launch_inner);
  sweep();
}

static void run_on(void *stack, size_t bytes, void (*what)(void)) {
  CHILD_CHECK(getcontext(&coroutine) == 0);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = bytes;
  coroutine.uc_link = &main_context;
  makecontext(&coroutine, what, 0);
  CHILD_CHECK(swapcontext(&main_context, &coroutine) == 0);
}

enum { STACK_BYTES = 512 << 10, GAP = 64 << 10, PLACES = 3 };

static u8 *place(u8 *region, int number) {
  return region + (size_t)number * (STACK_BYTES + GAP);
}

struct play {
  u8 *region;
  bool stack_known; /* whether the thread's own stack is found before the scene begins */
};

static const int below = 0, own = 1, above = 2;

static void *play_in_thread(void *more) {
  const struct play *play = more;
  CHILD_CHECK(hooked_launch(OUTER));
  if (play->stack_known)
    tscope_stacks_find();
  jump_from_depths();
  jump_from_inside_nested_calls();
  brief_handlers_on(place(play->region, below), STACK_BYTES);
  brief_handlers_on(place(play->region, above), STACK_BYTES);
  if (play->stack_known) {
    handlers_on(place(play->region, below), STACK_BYTES);
    handlers_on(place(play->region, above), STACK_BYTES);
    run_on(place(play->region, above), STACK_BYTES, hook_and_switch_back);
    sweep();
    run_on(place(play->region, below), STACK_BYTES, hook_and_switch_back);
    sweep();
    run_on(place(play->region, above), STACK_BYTES, hook_and_switch_back);
    run_on(place(play->region, below), STACK_BYTES, sweep_and_end);
    run_on(place(play->region, above), STACK_BYTES, hook_and_switch_back);
    munmap(place(play->region, above), STACK_BYTES);
    run_on(place(play->region, below), STACK_BYTES, sweep_and_end);
    sweep();
  }
  return NULL;
}

static void play_thread(void *more) {
  struct play *play = more;
  size_t bytes = PLACES * (size_t)(STACK_BYTES + GAP);
  play->region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHILD_CHECK(play->region != MAP_FAILED);
  for (int i = 0; i < PLACES; i++)
    CHILD_CHECK(mprotect(place(play->region, i) + STACK_BYTES, GAP, PROT_NONE) == 0);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, place(play->region, own), STACK_BYTES);
  CHILD_CHECK(pthread_create(&thread, &attributes, play_in_thread, play) == 0);
  pthread_join(thread, NULL);
}

static void play_first_thread(void *more) {
  const struct play *play = more;
  size_t bytes = 64 << 10;
  CHILD_CHECK(hooked_launch(OUTER));
  if (play->stack_known)
    tscope_stacks_find();
  jump_from_depths();
  jump_from_inside_nested_calls();
  if (play->stack_known) {
    u8 *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_CHECK(stack != MAP_FAILED);
    handlers_on(stack, bytes);
  }
}

static void counts_are(void (*play)(void *), bool stack_known, u32 expected) {
  struct scene scene;
  struct play how = {.stack_known = stack_known};
  u64 counts[4] = {0};
  scene_play(&scene, play, &how);
  assert_true(trace_walk(&scene.trace, count_launches, counts) > 0);
  assert_int_equal(counts[OUTER], expected);
  assert_int_equal(counts[INNER], 0);
  scene_end(&scene);
}

static const u32 launches_of_jumps = 1 + 7 * DEPTHS, launches_between = 2 * DEPTHS;

static void on_a_stack_that_is_not_known_yet(void **state) {
  (void)state;
  counts_are(play_first_thread, false, launches_of_jumps);
  counts_are(play_thread, false, launches_of_jumps + launches_between);
}

static void in_the_first_thread(void **state) {
  (void)state;
  counts_are(play_first_thread, true, launches_of_jumps + launches_of_handlers);
}

static void in_a_thread_between_other_stacks(void **state) {
  (void)state;
  counts_are(play_thread, true,
             launches_of_jumps + launches_between + 2 * launches_of_handlers +
                 5 * launches_per_sweep);
}

#if defined(__x86_64__)
/* From here on, or no longer, the processor raises SIGTRAP after each instruction. Below the red
 * zone. */
#define STEP(change)                                                                               \
  __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" change                                   \
                   " (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::                                 \
                       : "cc", "memory")

static struct tscope_lock lock;
static volatile int steps_left;

static void jump_out_after_steps(int number) {
  if (steps_left-- == 0)
    siglongjmp(back, number);
}

__attribute__((noinline)) static void take_and_give_back_in_steps(void) {
  volatile char more[256];
  STEP("orq $0x100,");
  more[0] = tscope_lock(&lock);
  if (more[0])
    tscope_unlock(&lock);
  STEP("andq $~0x100,");
}

/* How often it was left. Before that, the dynamic linker finds what is called. */
static int leave_after_each_instruction(const struct tscope_thread *thread, const char *here) {
  assert_true(tscope_lock(&lock));
  tscope_unlock(&lock);
  for (volatile int steps = 0;; steps++) {
    steps_left = steps;
    if (!sigsetjmp(back, 1)) {
      take_and_give_back_in_steps();
      return steps;
    }
    tscope_locks_left(thread, here);
    assert_int_equal(tscope_locks_held(), 0);
    assert_int_equal(lock.holder, 0);
  }
}
#endif

static void a_jump_out_of_any_instruction_leaves_no_lock(void **state) {
  (void)state;
#if defined(__x86_64__)
  const char *here = __builtin_frame_address(0);
  struct tscope_thread thread = {.stack = {.low = here - (256 << 10), .high = here + (4 << 10)}};
  signal(SIGTRAP, jump_out_after_steps);
  int left = leave_after_each_instruction(&thread, here);
  signal(SIGTRAP, SIG_DFL);
  if (left > 40)
    return;
  assert_int_equal(left, 0);
#endif
  print_message("skipped: this processor does not step here\n");
  skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(on_a_stack_that_is_not_known_yet),
      cmocka_unit_test(in_the_first_thread),
      cmocka_unit_test(in_a_thread_between_other_stacks),
      cmocka_unit_test(a_jump_out_of_any_instruction_leaves_no_lock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
