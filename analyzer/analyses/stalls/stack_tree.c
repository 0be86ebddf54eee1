/* SPDX-License-Identifier: MIT
 *
 * Frames get numbers, and stacks are sorted by the numbers of their frames, outermost first. Then
 * all stacks below a node are next to each other.
 */
#include "analyses/stalls/stack_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/hash_index.h"
#include "base/rank_list.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "base/vector.h"

enum { FRAMES_MOST = 4096 };

/* A stack as numbers of frames, outermost first. */
struct path {
  u32 rank;
  u32 n;
  const u32 *frames;
};

/* A range of the paths that go on with the same frame. */
struct fork {
  u32 first, n, n_ranks, lowest;
};

struct tree_builder {
  struct arena *arena;
  const char *folder;
  HASHED(struct call_frame) frames; /* by their numbers */
  struct path *paths;
  VECTOR(struct stack_node) nodes;
};

static u32 frame_number(struct tree_builder *g, const struct call_frame *frame) {
  return HASHED_OR_ADD(&g->frames, call_frame_hash(0, frame), one, call_frame_is_same(one, frame),
                       *frame);
}

static int by_frames(const void *left, const void *right) {
  const struct path *a = left, *b = right;
  for (u32 i = 0; i < a->n && i < b->n; i++)
    if (a->frames[i] != b->frames[i])
      return a->frames[i] < b->frames[i] ? -1 : 1;
  if (a->n != b->n)
    return a->n < b->n ? -1 : 1;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void number_frames(struct tree_builder *g, const struct tree_stack *stacks, u32 n) {
  u64 all = TOTAL(u64, stacks, n, one, one->n + 1u);
  if (all > UINT32_MAX / 4)
    memory_is_short(all, sizeof(u32));
  u32 *numbers = arena_array(g->arena, all, sizeof(*numbers));
  g->paths = arena_array(g->arena, n, sizeof(*g->paths));
  for (u32 i = 0; i < n; i++) {
    struct path *path = &g->paths[i];
    *path = (struct path){.rank = stacks[i].rank, .frames = numbers};
    if (stacks[i].thread)
      numbers[path->n++] = frame_number(g, &(struct call_frame){.function = stacks[i].thread});
    for (u32 k = stacks[i].n; k-- > 0 && path->n < FRAMES_MOST;)
      numbers[path->n++] = frame_number(g, stacks[i].frames[k]);
    numbers += path->n;
  }
  SORT(g->paths, n, by_frames);
}

/* The ranks of a range, sorted, each once. */
static u32 *ranks_of(struct tree_builder *g, u32 first, u32 n, u32 *n_ranks) {
  u32 *ranks = arena_array(g->arena, n, sizeof(*ranks));
  for (u32 i = 0; i < n; i++)
    ranks[i] = g->paths[first + i].rank;
  *n_ranks = SORT_AND_JOIN(ranks, n, by_u32, rank, same, (void)same);
  return ranks;
}

ORDER_BY(by_size, struct fork, DOWN(n_ranks) UP(lowest))

static void add_subtree(struct tree_builder *g, u32 first, u32 n, u32 depth, u32 above);

/* "libc.so.6 poll (poll.c:29)". */
static void name_native(struct tree_builder *g, const struct call_frame *frame,
                        struct stack_node *node) {
  if (frame->line)
    node->function = say(g, "%s (%s)", frame->function, node->place);
  node->place = arena_text(g->arena, last_part(frame->library));
}

static void add_node(struct tree_builder *g, const struct fork *fork, u32 depth, u32 above) {
  const struct call_frame *frame = &g->frames.at[g->paths[fork->first].frames[depth]];
  bool thread = !frame->file && !frame->line && frame->function;
  struct stack_node node = {.file = frame->file,
                            .function = thread ? NULL : frame->function,
                            .line = frame->line ? frame->line : (double)NAN,
                            .depth = depth,
                            .native = frame->library != NULL,
                            .own = call_frame_is_user_code(frame) ? ANSWER_YES : ANSWER_NO};
  const struct call_frame place = {.file = frame->file, .line = frame->line};
  node.place = thread ? frame->function : call_frame_place(g->arena, &place, g->folder);
  if (frame->library)
    name_native(g, frame, &node);
  u32 n_ranks = fork->n_ranks;
  const struct stack_node *up = above == INDEX_NONE ? NULL : &g->nodes.at[above];
  if (up && (u32)up->ranks_in == n_ranks) {
    node.rank_numbers = up->rank_numbers;
    node.ranks = up->ranks;
  } else {
    node.rank_numbers = ranks_of(g, fork->first, fork->n, &n_ranks);
    node.ranks = rank_list_in(g->arena, node.rank_numbers, n_ranks);
  }
  node.ranks_in = n_ranks;
  VECTOR_PUSH(&g->nodes, node);
  if (up)
    g->nodes.at[above].children++;
  add_subtree(g, fork->first, fork->n, depth + 1, g->nodes.n - 1);
}

/* What is below a node whose range is [first, first + n). Recursion is as deep as the stacks. */
static void add_subtree(struct tree_builder *g, u32 first, u32 n, u32 depth, u32 above) {
  SCOPED VECTOR(struct fork) forks = {0};
  u32 end = first + n;
  while (first < end && g->paths[first].n <= depth) /* these end here */
    first++;
  while (first < end) {
    struct fork fork = {.first = first, .lowest = UINT32_MAX};
    u32 frame = g->paths[first].frames[depth];
    while (first < end && g->paths[first].frames[depth] == frame)
      first++;
    fork.n = first - fork.first;
    u32 *ranks = ranks_of(g, fork.first, fork.n, &fork.n_ranks);
    fork.lowest = ranks[0];
    VECTOR_PUSH(&forks, fork);
  }
  SORT(forks.at, forks.n, by_size);
  FOR_EACH(forks.at, forks.n, one)
    add_node(g, one, depth, above);
}

void stack_tree_make(struct arena *arena, struct tree_stack *stacks, u32 n,
                     struct stack_tree *tree) {
  struct tree_builder g = {.arena = arena, .folder = n ? stacks[0].folder : NULL};
  *tree = (struct stack_tree){0};
  number_frames(&g, stacks, n);
  add_subtree(&g, 0, n, 0, INDEX_NONE);
  tree->nodes = VECTOR_KEPT(&g.nodes, arena);
  tree->n = g.nodes.n;
  FREE_EACH(&g, nodes.at, frames.at, frames.index.slots);
}

/* Whether all ranks of a node go on to the next node. */
static bool has_single_child(const struct stack_tree *tree, u32 i) {
  return tree->nodes[i].children == 1 && tree->nodes[i].ranks_in == tree->nodes[i + 1].ranks_in;
}

/* The frames of [first, last] that are worth reading: the user's own, the frames that these call,
 * frames of C and C++, which are there only when asked for, and the last one if the stack ends
 * there. */
static bool is_listed(const struct stack_tree *tree, u32 first, u32 i, u32 last) {
  const struct stack_node *node = &tree->nodes[i];
  bool users = node->own == ANSWER_YES;
  bool called = i > 0 && i > first && tree->nodes[i - 1].own == ANSWER_YES;
  return users || called || node->native || (i == last) || (i == first && node->depth == 0);
}

static char *describe_stretch(struct arena *arena, const struct stack_tree *tree, u32 first,
                              u32 last) {
  char *text = arena_text(arena, "");
  bool left_out = false;
  for (u32 i = first; i <= last; i++) {
    const struct stack_node *node = &tree->nodes[i];
    if (!is_listed(tree, first, i, last)) {
      left_out = true;
      continue;
    }
    text = arena_list(arena, text, left_out ? " > ... > " : " > ", "%s%s%s", node->place,
                      node->function ? " " : "", text_or_empty(node->function));
    left_out = false;
  }
  return text;
}

struct stack_line *stack_tree_lines(struct arena *arena, const struct stack_tree *tree, u32 most,
                                    u32 *n) {
  struct stack_line *lines = arena_array(arena, tree->n, sizeof(*lines));
  unsigned *forks = arena_array(arena, FRAMES_MOST + 2, sizeof(*forks)); /* above each depth */
  *n = 0;
  for (u32 i = 0; i < tree->n && *n < most; i++) {
    u32 first = i;
    unsigned depth = (unsigned)tree->nodes[first].depth;
    while (has_single_child(tree, i))
      i++;
    unsigned below = (unsigned)tree->nodes[i].depth + 1;
    forks[below] = forks[depth] + 1;
    struct stack_line *line = &lines[(*n)++];
    *line = (struct stack_line){.depth = forks[depth],
                                .ranks = tree->nodes[first].ranks,
                                .n_ranks = tree->nodes[first].ranks_in,
                                .text = describe_stretch(arena, tree, first, i)};
  }
  return lines;
}
