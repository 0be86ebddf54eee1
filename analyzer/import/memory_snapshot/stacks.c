/* SPDX-License-Identifier: MIT */
#include "import/memory_snapshot/stacks.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash_index.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "format/own_code.h"
#include "import/memory_snapshot/allocation_categories.def"
#include "model/span_call_sites.h"

enum tier { TIER_ROLE, TIER_OP, TIER_REST };

static const struct pattern {
  enum tier tier;
  enum allocation_category category;
  const char *name, *file;
} patterns[] = {
#define ROLE(category, name, file) {TIER_ROLE, ALLOCATION_##category, name, file},
#define OP(category, name, file) {TIER_OP, ALLOCATION_##category, name, file},
#define REST(category, name, file) {TIER_REST, ALLOCATION_##category, name, file},
    TSCOPE_MEMORY_CATEGORIES(ROLE, OP, REST)
#undef ROLE
#undef OP
#undef REST
};
#define PATTERNS LENGTH_OF(patterns)

/* How precisely a frame shows the place in the user's program. */
enum priority {
  PRIORITY_NONE,
  PRIORITY_NATIVE,
  PRIORITY_NODE,
  PRIORITY_TORCH,
  PRIORITY_STRING,
  PRIORITY_PROGRAM
};

struct frame {
  const char *name, *file;
  const char *place; /* in words; NULL for PRIORITY_NONE */
  i64 line;
  u32 first[3]; /* by tier: the first pattern that matches; PATTERNS if none does */
  enum priority priority;
};

ORDER_BY(by_address, struct stack, UP(frames))
ORDER_BY(by_address_and_place, struct stack, UP(frames) UP(nth))
ORDER_INDICES_BY(as_recorded, struct stack, UP(nth))

static bool contains(const char *text, const char *part) {
  return !*part || strcasestr(text, part) != NULL;
}

static bool matches_pattern(const struct pattern *pattern, const struct frame *frame) {
  const char *file = !strchr(pattern->file, '/')        ? last_part(frame->file)
                     : tscope_is_generated(frame->file) ? TSCOPE_GENERATED_FOLDER
                                                        : frame->file;
  return contains(frame->name, pattern->name) && contains(file, pattern->file);
}

static const char operator[] = "at::_ops::";

/* The node of the autograd graph whose gradient is computed, such as MmBackward0. */
static const char *node_part(const char *name, size_t *length) {
  static const char *const nodes[] = {"torch::autograd::generated::",
                                      "torch::autograd::Accumulate"};
  for (size_t i = 0; i < LENGTH_OF(nodes); i++)
    if (text_starts_with(name, nodes[i]) && strstr(name, "::apply")) {
      const char *node = name + strlen(i == 0 ? nodes[0] : "torch::autograd::");
      *length = strcspn(node, ":");
      return node;
    }
  return NULL;
}

/* PyTorch, installed or built from its sources, what it has generated, and Python's own modules
 * that lie between. Files are whole paths here. */
static bool is_framework_file(const char *file) {
  static const char *const parts[] = {"-packages/torch/", "/contextlib.py", "/functools.py",
                                      "/threading.py"};
  bool of_python = strstr(file, "/lib/python3") && !tscope_installed_package(file);
  return of_python || tscope_is_in_torch(file) || tscope_is_generated(file) ||
         MATCHES_ANY(file, parts, text_contains);
}

static enum priority find_priority(const struct frame *frame) {
  size_t ignored;
  if (text_ends_with(frame->file, ".py"))
    return is_framework_file(frame->file) ? PRIORITY_TORCH : PRIORITY_PROGRAM;
  /* Programs given on the command line or in a notebook, and code that Python generated. */
  if (frame->file[0] == '<' && !text_starts_with(frame->file, "<frozen"))
    return PRIORITY_STRING;
  return node_part(frame->name, &ignored)          ? PRIORITY_NODE
         : text_starts_with(frame->name, operator) ? PRIORITY_NATIVE
                                                   : PRIORITY_NONE;
}

static struct frame frame_of(const struct value *value) {
  struct frame frame = {.name = value_text(value_get(value, "name")),
                        .file = value_text(value_get(value, "filename")),
                        .first = {PATTERNS, PATTERNS, PATTERNS}};
  frame.name = text_or_empty(frame.name);
  frame.file = text_or_empty(frame.file);
  value_integer(value_get(value, "line"), &frame.line);
  for (u32 p = 0; p < PATTERNS; p++) {
    u32 *first = &frame.first[patterns[p].tier];
    if (*first == PATTERNS && matches_pattern(&patterns[p], &frame))
      *first = p;
  }
  frame.priority = find_priority(&frame);
  return frame;
}

/* "cs336_basics/model.py:101 (forward)" */
static const char *place_of(const struct frame *frame, struct arena *arena) {
  if (frame->priority == PRIORITY_NATIVE) {
    const char *op = frame->name + strlen(operator);
    return arena_printf(arena, "%.*s", (int)strcspn(op, ":"), op);
  }
  if (frame->priority == PRIORITY_NODE) {
    size_t length = 0;
    const char *node = node_part(frame->name, &length);
    return arena_printf(arena, "%.*s", (int)length, node);
  }
  const struct call_frame line = {.file = frame->file, .line = (u32)frame->line};
  return place_with_function(arena, call_frame_place(arena, &line, NULL), frame->name);
}

/* Every frame of the file once, by its address in memory. */
typedef HASHED(struct frame) frame_list;

static bool is_frame(const struct value *value) {
  return value && value->kind == VALUE_DICT;
}

static const struct frame *find_frame(const frame_list *frames, const struct value *value) {
  u32 found =
      is_frame(value) ? hash_index_first(&frames->index, (uintptr_t)value->items) : INDEX_NONE;
  return found == INDEX_NONE ? NULL : &frames->at[found];
}

static void add_frame(frame_list *frames, const struct value *value, struct arena *arena) {
  if (find_frame(frames, value))
    return;
  struct frame frame = frame_of(value);
  frame.place = frame.priority > PRIORITY_NONE ? place_of(&frame, arena) : NULL;
  HASHED_ADD(frames, (uintptr_t)value->items, frame);
}

static void list_frames(const struct stacks *stacks, frame_list *frames, struct arena *arena) {
  FOR_EACH(stacks->all.at, stacks->all.n, each) {
    const struct value_items *stack = each->frames;
    FOR_EACH(stack->at, stack->n, one)
      if (is_frame(one))
        add_frame(frames, one, arena);
  }
}

static struct memory_source describe(const struct value_items *stack, const frame_list *frames) {
  const struct frame *best = NULL;
  bool in_backward = false;
  u32 role = PATTERNS, op = PATTERNS, rest = PATTERNS;
  FOR_EACH(stack->at, stack->n, each) {
    const struct frame *frame = find_frame(frames, each);
    if (!frame)
      continue;
    role = MIN(frame->first[TIER_ROLE], role);
    rest = MIN(frame->first[TIER_REST], rest);
    op = op == PATTERNS ? frame->first[TIER_OP] : op;
    in_backward |= frame->priority == PRIORITY_NODE;
    /* The innermost frame of the program. Of PyTorch's own operators, the one that was called
     * first. */
    enum priority priority = best ? best->priority : PRIORITY_NONE;
    if (frame->priority > priority || (priority == PRIORITY_NATIVE && frame->priority == priority))
      best = frame;
  }
  /* What an operator of the backward pass allocates is a gradient, and no result that the forward
   * pass keeps. */
  op = in_backward ? PATTERNS : op;
  u32 decides = role < PATTERNS ? role : op < PATTERNS ? op : rest;
  return (struct memory_source){.place = best ? best->place : NULL,
                                .category = decides < PATTERNS ? patterns[decides].category
                                                               : ALLOCATION_UNKNOWN};
}

void stacks_add(struct stacks *stacks, const struct value *frames) {
  if (!value_is_sequence(frames) || value_count(frames) == 0)
    return;
  /* Most stacks come from the same place as the one before. */
  if (stacks->all.n && stacks->all.at[stacks->all.n - 1].frames == frames->items)
    return;
  VECTOR_PUSH(&stacks->all, (struct stack){.frames = frames->items, .nth = stacks->all.n});
}

struct described {
  struct memory_source source;
  u32 stack;
};

ORDER_BY(by_text, struct described,
         BY_TEXT(source.place) THEN(compare_texts(allocation_category_name(a->source.category),
                                                  allocation_category_name(b->source.category))))

/* Stacks with the same place and category have one source. */
static void number_sources(struct stacks *stacks, struct described *described,
                           struct arena *arena) {
  u32 n = stacks->all.n;
  stacks->sources = arena_array(arena, n, sizeof(*stacks->sources));
  stacks->n_sources = 1;
  SORT(described, n, by_text);
  for (u32 i = 0; i < n; i++) {
    const struct memory_source *source = &described[i].source;
    if (!source->place && !source->category)
      continue; /* the unknown one */
    if (!i || by_text(&described[i - 1], &described[i]) != 0)
      stacks->sources[stacks->n_sources++] = *source;
    stacks->all.at[described[i].stack].source = stacks->n_sources - 1;
  }
}

/* Frames that show a place: all Python frames, and of the others operators and autograd's nodes.
 * A stack without any of these keeps all frames that have a name. */
static void grow_tree(struct stacks *stacks, struct stack *stack, const frame_list *frames,
                      struct arena *arena) {
  bool any = false;
  for (u32 i = 0; i < stack->frames->n && !any; i++) {
    const struct frame *frame = find_frame(frames, &stack->frames->at[i]);
    any = frame && frame->place;
  }
  for (u32 i = stack->frames->n; i-- > 0;) { /* innermost first */
    const struct frame *frame = find_frame(frames, &stack->frames->at[i]);
    const char *name = !frame ? NULL : any ? frame->place : frame->name;
    if (!name || !*name)
      continue;
    if (!any)
      name = arena_text(arena, name);
    stack->stack = memory_frames_find_or_add(&stacks->tree, stack->stack, name,
                                             frame->priority >= PRIORITY_STRING);
  }
}

void stacks_resolve(struct stacks *stacks, struct arena *arena) {
  SORT(stacks->all.at, stacks->all.n, by_address_and_place);
  u32 kept = stacks->all.n =
      KEEP_FIRST(stacks->all.at, stacks->all.n, last, one, last->frames == one->frames);
  frame_list frames = {0};
  SCOPED struct described *described = memory_zeroed(size_sum(kept, 1), sizeof(*described));
  list_frames(stacks, &frames, arena);
  for (u32 i = 0; i < kept; i++)
    described[i] = (struct described){describe(stacks->all.at[i].frames, &frames), i};
  number_sources(stacks, described, arena);
  SCOPED u32 *order = memory_array(size_sum(kept, 1), sizeof(*order));
  LIST_WHERE(order, 0, kept, i, true, i);
  SORT_INDICES(order, kept, stacks->all.at, as_recorded);
  for (u32 i = 0; i < kept; i++) /* addresses differ from run to run */
    grow_tree(stacks, &stacks->all.at[order[i]], &frames, arena);
  FREE_EACH(&frames, at, index.slots);
}

const struct stack *stacks_find(const struct stacks *stacks, const struct value *frames) {
  static const struct stack unknown = {0};
  if (!value_is_sequence(frames) || !stacks->all.n)
    return &unknown;
  const struct stack key = {.frames = frames->items};
  const struct stack *found = FIND_SORTED(stacks->all.at, stacks->all.n, &key, by_address);
  return found ? found : &unknown;
}

void stacks_free(struct stacks *stacks) {
  free(stacks->all.at);
  memory_frames_free(&stacks->tree);
  *stacks = (struct stacks){0};
}
