/* SPDX-License-Identifier: MIT
 *
 * Stacks of many ranks merged into one tree.
 */
#include "analyses/stalls/stack_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DEPTH = 30 };

static const struct call_frame program = {"/home/me/train.py", "<module>", 200, 1};
static const struct call_frame step = {"/home/me/train.py", "step", 120, 100};
static const struct call_frame reduce = {"/usr/lib/python3/dist-packages/torch/distributed.py",
                                         "all_reduce", 9, 1};
static const struct call_frame checkpoint = {"/home/me/ckpt.py", "save", 33, 30};

/* As the same frame is in two processes: different memory, the same text. */
static const struct call_frame *copy_of(struct arena *arena, const struct call_frame *frame) {
  struct call_frame *copy = arena_alloc(arena, sizeof(*copy));
  *copy = *frame;
  copy->file = arena_text(arena, frame->file);
  copy->function = arena_text(arena, frame->function);
  return copy;
}

static struct tree_stack stack_of(struct arena *arena, u32 rank, const char *thread,
                                  const struct call_frame *const *frames, u32 n) {
  const struct call_frame **own = arena_array(arena, n, sizeof(*own));
  for (u32 i = 0; i < n; i++)
    own[i] = copy_of(arena, frames[i]);
  return (struct tree_stack){
      .rank = rank, .folder = "/home/me", .thread = thread, .frames = own, .n = n};
}

static void ranks_are_where_their_stacks_differ(void **state) {
  (void)state;
  struct arena arena = {0};
  const struct call_frame *waits[] = {&reduce, &step, &program}, *saves[] = {&checkpoint, &program};
  struct tree_stack stacks[] = {
      stack_of(&arena, 3, NULL, waits, 3), stack_of(&arena, 1, NULL, saves, 2),
      stack_of(&arena, 0, NULL, waits, 3), stack_of(&arena, 2, NULL, waits, 3),
      stack_of(&arena, 2, "other threads", saves, 2)};
  struct stack_tree tree;
  stack_tree_make(&arena, stacks, 5, &tree);
  const struct {
    const char *place, *ranks;
    double depth;
  } expected[] = {{"train.py:200", "0-3", 0},
                  {"train.py:120", "0, 2, 3", 1},
                  {"torch/distributed.py:9", "0, 2, 3", 2},
                  {"ckpt.py:33", "1", 1},
                  {"other threads", "2", 0},
                  {"train.py:200", "2", 1},
                  {"ckpt.py:33", "2", 2}};
  assert_int_equal(tree.n, LENGTH_OF(expected));
  for (u32 i = 0; i < tree.n; i++) {
    assert_string_equal(tree.nodes[i].place, expected[i].place);
    assert_string_equal(tree.nodes[i].ranks, expected[i].ranks);
    assert_true(tree.nodes[i].depth == expected[i].depth);
  }
  assert_int_equal(tree.nodes[0].own, ANSWER_YES);
  assert_int_equal(tree.nodes[2].own, ANSWER_NO);
  u32 n;
  struct stack_line *lines = stack_tree_lines(&arena, &tree, 100, &n);
  assert_int_equal(n, 4);
  assert_string_equal(lines[1].text, "train.py:120 step > torch/distributed.py:9 all_reduce");
  assert_int_equal(lines[1].depth, 1);
  arena_release(&arena);
}

static void no_stacks_are_no_tree(void **state) {
  (void)state;
  struct arena arena = {0};
  struct stack_tree tree;
  u32 n;
  stack_tree_make(&arena, NULL, 0, &tree);
  assert_int_equal(tree.n, 0);
  assert_non_null(stack_tree_lines(&arena, &tree, 10, &n));
  assert_int_equal(n, 0);
  arena_release(&arena);
}

/* 10,000 ranks are all in one call, except one in a thousand, each of which is somewhere else. */
static void ten_thousand_ranks(void **state) {
  (void)state;
  enum { RANKS = 10000, APART = 1000 };
  struct arena arena = {0};
  struct tree_stack *stacks = calloc(RANKS, sizeof(*stacks));
  for (u32 r = 0; r < RANKS; r++) {
    u32 rank = (u32)((u64)r * 7919 % RANKS); /* unordered */
    struct call_frame frames[DEPTH];
    const struct call_frame *list[DEPTH];
    for (u32 i = 0; i < DEPTH; i++) {
      frames[i] = (struct call_frame){"/home/me/deep.py", "deeper", DEPTH - i, 1};
      list[i] = &frames[i];
    }
    if (rank % APART == 0)
      frames[0].line = 1000 + rank;
    stacks[r] = stack_of(&arena, rank, NULL, list, DEPTH);
  }
  struct stack_tree tree;
  stack_tree_make(&arena, stacks, RANKS, &tree);
  assert_int_equal(tree.n, DEPTH - 1 + 1 + RANKS / APART);
  const struct stack_node *most = &tree.nodes[DEPTH - 1];
  assert_true(most->ranks_in == RANKS - RANKS / APART);
  for (u32 r = 0, at = 0; r < RANKS; r++)
    if (r % APART)
      assert_int_equal(most->rank_numbers[at++], r);
  for (u32 i = 0; i < RANKS / APART; i++) {
    assert_true(most[1 + i].ranks_in == 1);
    assert_int_equal(most[1 + i].rank_numbers[0], i * APART);
    assert_true(most[1 + i].line == 1000 + i * APART);
  }
  free(stacks);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_are_where_their_stacks_differ),
      cmocka_unit_test(no_stacks_are_no_tree),
      cmocka_unit_test(ten_thousand_ranks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
