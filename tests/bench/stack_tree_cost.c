/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of merging the stacks of a job that hangs: stacks of 40 frames, most ranks in
 * one collective, one rank elsewhere, and on each rank threads of a data loader at three places.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "analyses/stalls/stack_tree.h"
#include "base/arena.h"
#include "format/clock_ns.h"

enum { FRAMES = 40, PLACES = 4, THREADS = 3 };

static struct call_frame frames[PLACES][FRAMES];
static const struct call_frame *stacks_of[PLACES][FRAMES];

static double now_ms(void) {
  return (double)clock_ns(CLOCK_MONOTONIC) / 1e6;
}

/* The stacks differ only in their four innermost frames. */
static void make_frames(void) {
  for (u32 p = 0; p < PLACES; p++)
    for (u32 i = 0; i < FRAMES; i++) {
      frames[p][i] = (struct call_frame){
          .file = "/job/train.py", .function = "step", .line = 10 + i + (i < 4 ? 1000 * p : 0)};
      stacks_of[p][i] = &frames[p][i];
    }
}

static void measure(u32 ranks) {
  struct arena arena = {0};
  struct stack_tree tree;
  struct rusage usage;
  u32 n = 0, lines;
  struct tree_stack *stacks = calloc((size_t)ranks * (1 + THREADS), sizeof(*stacks));
  for (u32 r = 0; r < ranks && stacks; r++)
    for (u32 t = 0; t <= THREADS; t++)
      stacks[n++] = (struct tree_stack){.rank = r,
                                        .thread = t ? "other threads" : NULL,
                                        .frames = stacks_of[t ? t : r == ranks / 2],
                                        .n = FRAMES};
  double begin = now_ms();
  if (!stacks)
    exit(1);
  stack_tree_make(&arena, stacks, n, &tree);
  stack_tree_lines(&arena, &tree, 64, &lines);
  double took = now_ms() - begin;
  getrusage(RUSAGE_SELF, &usage);
  printf("%6u ranks, %6u stacks: %8.1f ms, %3u nodes, %2u lines, %5ld MiB at most\n", ranks, n,
         took, tree.n, lines, usage.ru_maxrss >> 10);
  arena_release(&arena);
  free(stacks);
}

int main(void) {
  make_frames();
  measure(64);
  measure(1000);
  measure(10000);
  return 0;
}
