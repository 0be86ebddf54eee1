/* SPDX-License-Identifier: MIT */
#include "analyses/lines/line_stacks.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "base/carrier.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "base/tree_order.h"
#include "base/vector.h"

enum { LISTED = 400 };
#define MOST_FRAMES 200000u /* kept in memory; what is deeper counts for its caller */

/* A frame below another one, for all stacks that are the same up to here. */
struct tree_frame {
  const char *file, *function;
  u64 hash;
  struct stack_cost cost; /* with what it calls */
  u32 line, parent;       /* index, INDEX_NONE of the outermost */
  u32 depth;
  u32 of_rank; /* index + 1 in line_tree.of_ranks: the latest for this frame */
  bool own;
};

/* What was sampled in a frame on one rank. */
struct sampled_on_rank {
  u32 frame, rank;
  i64 ns;
};

struct line_tree {
  pthread_mutex_t lock;
  struct arena arena;
  HASHED(struct tree_frame) frames;
  VECTOR(struct sampled_on_rank) of_ranks;
};

struct line_tree *line_tree_new(void) {
  struct line_tree *tree = memory_zeroed(1, sizeof(*tree));
  pthread_mutex_init(&tree->lock, NULL);
  return tree;
}

void line_tree_free(struct line_tree *tree) {
  if (!tree)
    return;
  pthread_mutex_destroy(&tree->lock);
  arena_release(&tree->arena);
  FREE_EACH(tree, frames.at, of_ranks.at, frames.index.slots);
  free(tree);
}

static bool is_same(const struct tree_frame *known, u32 parent, const struct call_frame *frame) {
  return known->parent == parent && known->line == frame->line &&
         strcmp(known->file, text_or_empty(frame->file)) == 0 &&
         strcmp(known->function, text_or_empty(frame->function)) == 0;
}

/* Index of a frame below `parent`, which is made if there is none; the parent's index if there are
 * too many. */
static u32 frame_below(struct line_tree *tree, u32 parent, const struct call_frame *frame) {
  u64 above = parent == INDEX_NONE ? 0 : tree->frames.at[parent].hash;
  u64 hash = call_frame_hash(above, frame);
  u32 known = HASHED_INDEX(&tree->frames, hash, one, is_same(one, parent, frame));
  if (known != INDEX_NONE || tree->frames.n == MOST_FRAMES)
    return known != INDEX_NONE ? known : parent;
  struct tree_frame new = {.file = arena_text(&tree->arena, text_or_empty(frame->file)),
                           .function = arena_text(&tree->arena, text_or_empty(frame->function)),
                           .hash = hash,
                           .line = frame->line,
                           .parent = parent,
                           .depth = parent == INDEX_NONE ? 0 : tree->frames.at[parent].depth + 1,
                           .own = call_frame_is_user_code(frame)};
  return HASHED_ADD(&tree->frames, hash, new);
}

static i64 sum_of(const struct stack_cost *cost) {
  return cost->host + cost->idle + cost->exposed + cost->gpu + cost->sampled;
}

static void add_sampled(struct line_tree *tree, u32 frame, u32 rank, i64 ns) {
  u32 *at = &tree->frames.at[frame].of_rank;
  if (!*at || tree->of_ranks.at[*at - 1].rank != rank) {
    VECTOR_PUSH(&tree->of_ranks, (struct sampled_on_rank){frame, rank, 0});
    *at = tree->of_ranks.n;
  }
  tree->of_ranks.at[*at - 1].ns += ns;
}

static void add_stack(struct line_tree *tree, u32 rank, const struct call_sites *sites,
                      const struct call_stack *stack, const struct stack_cost *cost) {
  u32 at = INDEX_NONE;
  for (u32 i = stack->n; i-- > 0;) { /* innermost first */
    u32 next = frame_below(tree, at, &sites->frames[stack->frames[i]]);
    if (next == at)
      break;
    at = next;
    struct stack_cost *sum = &tree->frames.at[at].cost;
    ADD_EACH(sum, cost, host, idle, exposed, gpu, sampled);
    if (cost->sampled)
      add_sampled(tree, at, rank, cost->sampled);
  }
}

void line_tree_add(struct line_tree *tree, u32 rank, const struct call_sites *sites,
                   const struct stack_cost *costs) {
  pthread_mutex_lock(&tree->lock);
  for (u32 i = 0; i < sites->n_stacks; i++)
    if (sum_of(&costs[i]) > 0)
      add_stack(tree, rank, sites, &sites->stacks[i], &costs[i]);
  pthread_mutex_unlock(&tree->lock);
}

/* Of ranks that are reduced: frames, then stacks of them. */

static void carry_tree_frame(struct carrier *c, struct call_frame *frame) {
  CARRY_EACH(c, frame, file, function, line, others, library, native_own, runs_training);
}

static void carry_cost(struct carrier *c, struct stack_cost *cost) {
  CARRY_EACH(c, cost, host, idle, exposed, gpu, sampled);
}

void line_tree_write(const struct call_sites *sites, const struct stack_cost *costs,
                     struct carrier *c) {
  SCOPED u32 *number_of = memory_zeroed(size_sum(sites->n_frames, 1), sizeof(*number_of));
  u32 frames = 0, stacks = 0;
  for (u32 i = 0; i < sites->n_stacks; i++) {
    stacks += sum_of(&costs[i]) > 0;
    for (u32 k = 0; sum_of(&costs[i]) > 0 && k < sites->stacks[i].n; k++)
      number_of[sites->stacks[i].frames[k]] = 1;
  }
  FOR_EACH_CHANGED(number_of, sites->n_frames, one)
    *one = *one ? frames++ : INDEX_NONE;
  carry_count(c, frames, 7);
  for (u32 i = 0; i < sites->n_frames; i++)
    if (number_of[i] != INDEX_NONE)
      carry_tree_frame(c, &sites->frames[i]);
  carry_count(c, stacks, 5);
  for (u32 i = 0; i < sites->n_stacks; i++) {
    struct stack_cost cost = costs[i];
    if (sum_of(&cost) <= 0)
      continue;
    carry_cost(c, &cost);
    carry_count(c, sites->stacks[i].n, 1);
    for (u32 k = 0; k < sites->stacks[i].n; k++)
      CARRY(c, &number_of[sites->stacks[i].frames[k]]);
  }
}

void line_tree_read(struct line_tree *tree, u32 rank, struct carrier *c) {
  struct call_sites sites = {0};
  CARRY_LIST(c, sites.frames, sites.n_frames, 7, carry_tree_frame);
  struct stack_cost *costs = NULL;
  sites.n_stacks = carry_count(c, 0, 5);
  CARRY_ARRAY(c, sites.stacks, sites.n_stacks);
  CARRY_ARRAY(c, costs, sites.n_stacks);
  for (u32 i = 0; i < sites.n_stacks; i++) {
    u32 n, *frames = NULL;
    carry_cost(c, &costs[i]);
    n = carry_count(c, 0, 1);
    CARRY_ARRAY(c, frames, n);
    FOR_EACH_CHANGED(frames, n, frame) {
      CARRY(c, frame);
      c->bad |= *frame >= sites.n_frames;
    }
    sites.stacks[i] = (struct call_stack){.frames = frames, .n = n};
  }
  if (!c->bad)
    line_tree_add(tree, rank, &sites, costs);
}

/* Listing: in an order that does not depend on which rank came first. */

ORDER_BY(by_text, struct tree_frame, BY_TEXT(file) UP(line) BY_TEXT(function))

/* The frames that cost most; a caller comes before what it calls. */
ORDER_INDICES_BY(by_cost, struct tree_frame,
                 LESS_FIRST(sum_of(&b->cost), sum_of(&a->cost)) UP(depth) THEN(by_text(a, b)))

struct listing {
  struct analysis *a;
  const struct line_tree *tree;
  struct line_steps steps;
  i64 *late_ns, *peers_ns; /* by frame: sampled on the worst straggler, and on its peers */
  double late_steps, peers_steps;
};

/* What was sampled on the worst straggler and on those that are none. */
static void split_ranks(struct listing *l) {
  struct analysis *a = l->a;
  struct results *r = a->results;
  u32 worst = r->n_straggler_groups ? r->straggler_groups[0].worst : INDEX_NONE;
  l->late_ns = memory_zeroed(size_sum(l->tree->frames.n, 1), sizeof(*l->late_ns));
  l->peers_ns = memory_zeroed(size_sum(l->tree->frames.n, 1), sizeof(*l->peers_ns));
  r->lines.stacks_rank = worst == INDEX_NONE ? INDEX_NONE : a->model->ranks[worst].rank;
  l->late_steps = l->peers_steps = NAN;
  if (worst == INDEX_NONE)
    return;
  l->peers_steps = 0;
  for (u32 rank = 0; rank < r->n_ranks; rank++)
    if (rank == worst)
      l->late_steps = line_steps_of(a, rank);
    else if (!r->ranks[rank].straggler && a->line_sums[rank].samples)
      l->peers_steps += line_steps_of(a, rank);
  FOR_EACH(l->tree->of_ranks.at, l->tree->of_ranks.n, of) {
    if (of->rank == worst)
      l->late_ns[of->frame] += of->ns;
    else if (!r->ranks[of->rank].straggler)
      l->peers_ns[of->frame] += of->ns;
  }
}

static void list_frame(struct listing *l, const struct tree_frame *frame) {
  struct lines_result *lines = &l->a->results->lines;
  const struct stack_cost *cost = &frame->cost;
  lines->stacks[lines->n_stacks] = (struct line_stack){
      .depth = frame->depth,
      .place = line_place(l->a, frame->file, frame->line, frame->function),
      .function = arena_text(l->a->arena, frame->function),
      .own = frame->own ? ANSWER_YES : ANSWER_NO,
      .host_ms = ns_to_ms(cost->host) / l->steps.calls,
      .idle_ms = ns_to_ms(cost->idle) / l->steps.idle,
      .exposed_ms = ns_to_ms(cost->exposed) / l->steps.exposed,
      .gpu_ms = ns_to_ms(cost->gpu) / l->steps.on_gpu,
      .sampled_ms = ns_to_ms(cost->sampled) / l->steps.all,
      .late_ms = ns_to_ms(l->late_ns[frame - l->tree->frames.at]) / l->late_steps,
      .peers_ms = ns_to_ms(l->peers_ns[frame - l->tree->frames.at]) / l->peers_steps,
  };
  lines->n_stacks++;
}

void line_tree_list(struct line_tree *tree, struct analysis *a, const struct line_steps *steps) {
  struct tree_frame *frames = tree->frames.at;
  u32 n = tree->frames.n, n_kept = MIN(n, LISTED);
  struct listing l = {.a = a, .tree = tree, .steps = *steps};
  SCOPED u32 *kept = memory_array(size_sum(n, 1), sizeof(*kept));
  a->results->lines.stacks = arena_array(a->arena, n_kept, sizeof(*a->results->lines.stacks));
  for (u32 i = 0; i < n; i++)
    kept[i] = i;
  split_ranks(&l);
  SORT_INDICES(kept, n, frames, by_cost);
  ORDER_AS_TREE(kept, n_kept, n, i, frames[i].parent);
  FOR_EACH(kept, n_kept, frame)
    list_frame(&l, &frames[*frame]);
  FREE_EACH(&l, late_ns, peers_ns);
}
