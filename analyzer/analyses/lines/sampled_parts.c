/* SPDX-License-Identifier: MIT */
#include "analyses/lines/sampled_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/queries.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "base/vector.h"
#include "model/training_calls.h"

/* A path is kept of parts with at least this share of the samples. */
static const double path_least_share = 0.01;

/* Stacks with the same callers of the user's own. */
struct open_path {
  u64 key;
  u32 stack; /* the first of them */
  i64 ns;
};

ORDER_BY(most_first, struct open_path, DOWN(ns) UP(stack))

/* While it is collected. */
struct open_part {
  u64 key;
  enum part_kind kind;
  u32 frame, last_step;
  i64 ns;
  i64 activity_ns[ACTIVITIES], gil_ns, compiling_ns;
  VECTOR(struct part_time) times;
  HASHED(struct open_path) paths; /* by key */
};

struct part_collector {
  const struct call_sites *sites;
  HASHED(struct open_part) parts; /* by key */
  i64 *stack_ns;                  /* [n_stacks], not waiting */
  u32 *line_part;                 /* [n_stacks] index + 1 of the part of its line */
  bool *compiles;                 /* [n_stacks] */
  bool *is_schedule;              /* [n_frames] */
  i64 ns;
  u64 samples;
};

u32 slice_of_step(const struct analysis *a, u32 step) {
  u32 slices = MIN(a->n_steps, TRAINING_SLICES);
  if (a->other_work_of && a->other_work_of[step])
    return TRAINING_SLICES + a->other_work_of[step] - 1u;
  return a->whole_run ? 0 : (u32)((u64)(step - a->first_step) * slices / a->n_steps);
}

void part_persistence(const struct rank_parts *parts, const struct sampled_part *part,
                      const bool *without, double sign, struct persistence *to) {
  double values[TRAINING_SLICES] = {0};
  struct persistence p = {0};
  FOR_EACH(part->times, part->n_times, time)
    if (time->slice < TRAINING_SLICES)
      values[time->slice] = (double)time->ns;
  u32 n = LIST_WHERE(values, 0, TRAINING_SLICES, s, parts->steps[s] && !(without && without[s]),
                     values[s] / parts->steps[s]);
  persistence_add(&p, values, n);
  persistence_join(to, &p, sign);
}

/* Whether each stack is inside of what PyTorch's compiler does when it meets new code, or new
 * shapes of what it knows. */
static bool *stacks_that_compile(const struct call_sites *sites, struct arena *scratch) {
  bool *compiles = arena_array(scratch, sites->n_stacks, sizeof(*compiles));
  bool *frames = arena_array(scratch, sites->n_frames, sizeof(*frames));
  for (u32 i = 0; i < sites->n_frames; i++)
    frames[i] = text_ends_with(sites->frames[i].file, "torch/_dynamo/convert_frame.py");
  for (u32 s = 0; s < sites->n_stacks; s++)
    compiles[s] = ANY(sites->stacks[s].frames, sites->stacks[s].n, one, frames[*one]);
  return compiles;
}

struct part_collector *parts_collect_new(const struct call_sites *sites, struct arena *scratch) {
  struct part_collector *c = arena_alloc(scratch, sizeof(*c));
  *c = (struct part_collector){.sites = sites};
  c->stack_ns = arena_array(scratch, sites->n_stacks, sizeof(*c->stack_ns));
  c->line_part = arena_array(scratch, sites->n_stacks, sizeof(*c->line_part));
  c->is_schedule = arena_array(scratch, sites->n_frames, sizeof(*c->is_schedule));
  c->compiles = stacks_that_compile(sites, scratch);
  for (u32 i = 0; i < sites->n_frames; i++)
    c->is_schedule[i] = frame_training_part(&sites->frames[i]) == TRAINING_SCHEDULE;
  return c;
}

static u64 key_of(enum part_kind kind, const struct call_frame *frame) {
  u64 line = kind == OWN_FUNCTION ? 0 : frame->line;
  return hash_text(hash_text(HASH_SEED ^ line << 3 ^ kind, frame->file), frame->function);
}

/* Where a line calls a pipeline's schedule. */
static bool calls_schedule(const struct part_collector *c, const struct part_sample *sample) {
  const struct call_stack *stack = &c->sites->stacks[sample->stack];
  for (u32 i = 0; i < stack->n && stack->frames[i] != sample->line; i++)
    if (c->is_schedule[stack->frames[i]])
      return true;
  return false;
}

/* The first stage, the last and those between call their schedule at lines of their own. What it
 * does for them is compared as if it were one line. */
static u64 key_of_line(const struct part_collector *c, const struct part_sample *sample) {
  bool own = sample->kind == OWN_LINE || sample->kind == WAIT_LINE;
  return own && calls_schedule(c, sample) ? hash_text(HASH_SEED ^ sample->kind, "schedule")
                                          : key_of(sample->kind, &c->sites->frames[sample->line]);
}

/* `frame`: of an activity, which. */
static u32 find_part(struct part_collector *c, enum part_kind kind, u32 frame, u64 key) {
  struct open_part part = {.key = key, .kind = kind, .frame = frame, .last_step = INDEX_NONE};
  return HASHED_OR_ADD(&c->parts, key, one, one->key == key, part);
}

/* A slice of training comes once; one of other work may come again. */
static struct part_time *time_of(struct open_part *part, u32 slice) {
  for (u32 i = part->times.n; i-- > 0;)
    if (part->times.at[i].slice == slice)
      return &part->times.at[i];
    else if (slice < TRAINING_SLICES && part->times.at[i].slice < TRAINING_SLICES)
      break;
  VECTOR_PUSH(&part->times, (struct part_time){.slice = slice});
  return &part->times.at[part->times.n - 1];
}

static void add(const struct part_collector *c, struct open_part *part, const struct analysis *a,
                struct part_sample sample) {
  struct part_time *time = time_of(part, slice_of_step(a, sample.step));
  time->ns += sample.ns;
  time->steps += part->last_step != sample.step;
  part->last_step = sample.step;
  part->ns += sample.ns;
  part->activity_ns[sample.activity % ACTIVITIES] += sample.ns;
  part->gil_ns += sample.holds_gil ? sample.ns : 0;
  part->compiling_ns += c->compiles[sample.stack] ? sample.ns : 0;
}

/* The functions and lines of the user's own on the stack, each once. */
static void add_callers(struct part_collector *c, const struct analysis *a,
                        struct part_sample sample) {
  const struct call_stack *stack = &c->sites->stacks[sample.stack];
  u32 seen[128], n = 0;
  for (u32 i = 0; i < stack->n && n + 2 <= LENGTH_OF(seen); i++) {
    const struct call_frame *frame = &c->sites->frames[stack->frames[i]];
    if (!call_frame_is_user_code(frame) || !frame->function)
      continue;
    for (u32 kind = OWN_FUNCTION; kind <= CALLING_LINE; kind++) {
      u32 part = find_part(c, kind, stack->frames[i], key_of(kind, frame));
      if (ANY(seen, n, one, *one == part))
        continue;
      seen[n++] = part;
      add(c, &c->parts.at[part], a, sample);
    }
  }
}

void parts_collect(struct part_collector *c, const struct analysis *a, struct part_sample sample) {
  u32 part = find_part(c, sample.kind, sample.line, key_of_line(c, &sample));
  add(c, &c->parts.at[part], a, sample);
  if (sample.kind == OWN_LINE || sample.kind == WAIT_LINE) {
    c->ns += sample.ns;
    c->samples++;
  }
  if (sample.kind != OWN_LINE)
    return;
  c->stack_ns[sample.stack] += sample.ns;
  c->line_part[sample.stack] = part + 1;
  add_callers(c, a, sample);
  if (!sample.activity)
    return;
  part = find_part(c, OWN_ACTIVITY, sample.activity, sample.activity); /* it may move them all */
  add(c, &c->parts.at[part], a, sample);
}

static void copy_frame(struct arena *arena, struct call_frame *to, const struct call_frame *from) {
  *to = (struct call_frame){.file = arena_text(arena, from->file ? from->file : "?"),
                            .function = arena_text(arena, text_or_empty(from->function)),
                            .line = from->line};
}

/* The callers of the innermost frame of the user's own: indices of frames. */
static u32 list_callers(const struct part_collector *c, const struct open_part *part, u32 stack,
                        u32 callers[PATH_FRAMES]) {
  const struct call_stack *of = &c->sites->stacks[stack];
  bool inside = false;
  u32 n = 0;
  for (u32 i = 0; i < of->n && n < PATH_FRAMES; i++) {
    bool own = call_frame_is_user_code(&c->sites->frames[of->frames[i]]);
    if (inside && own)
      callers[n++] = of->frames[i];
    inside |= of->frames[i] == part->frame || own;
  }
  return n;
}

static void add_path(const struct part_collector *c, struct open_part *part, u32 stack) {
  u32 callers[PATH_FRAMES], n = list_callers(c, part, stack, callers);
  u64 key = HASH_SEED;
  FOR_EACH(callers, n, caller)
    key = call_frame_hash(key, &c->sites->frames[*caller]);
  struct open_path path = {key, stack, 0};
  u32 i = HASHED_OR_ADD(&part->paths, key, one, one->key == key, path);
  part->paths.at[i].ns += c->stack_ns[stack];
}

static void copy_path(const struct part_collector *c, const struct open_part *part,
                      const struct open_path *path, struct arena *arena, struct sampled_path *out) {
  u32 callers[PATH_FRAMES], n = list_callers(c, part, path->stack, callers);
  *out = (struct sampled_path){arena_array(arena, n, sizeof(*out->frames)), n, path->ns};
  for (u32 i = 0; i < n; i++)
    copy_frame(arena, &out->frames[i], &c->sites->frames[callers[i]]);
}

static void copy_paths(const struct part_collector *c, const struct open_part *part,
                       struct arena *arena, struct sampled_part *out) {
  out->n_paths = MIN(part->paths.n, PATHS);
  out->paths = arena_array(arena, out->n_paths, sizeof(*out->paths));
  for (u32 i = 0; i < out->n_paths; i++)
    copy_path(c, part, &part->paths.at[i], arena, &out->paths[i]);
}

static void copy_part(const struct part_collector *c, const struct open_part *part,
                      struct arena *arena, struct sampled_part *out) {
  struct call_frame frame = {.file = "", .function = "", .line = part->frame};
  if (part->kind != OWN_ACTIVITY)
    copy_frame(arena, &frame, &c->sites->frames[part->frame]);
  if (part->kind == OWN_FUNCTION && c->sites->frames[part->frame].first_line)
    frame.line = c->sites->frames[part->frame].first_line;
  *out = (struct sampled_part){.n_times = part->times.n,
                               SAME(part, key, kind, gil_ns, compiling_ns),
                               SAME(&frame, file, function, line)};
  memcpy(out->activity_ns, part->activity_ns, sizeof(out->activity_ns));
  out->times = VECTOR_KEPT(&part->times, arena);
  if ((double)part->ns >= path_least_share * (double)c->ns)
    copy_paths(c, part, arena, out);
}

/* What is in most steps is no line that some steps alone call. */
static bool is_kept(const struct open_part *part, u64 steps) {
  return part->kind != CALLING_LINE ||
         2 * TOTAL(u64, part->times.at, part->times.n, one, one->steps) < steps;
}

bool part_is_inside(const struct sampled_part *part, double ms, const struct sampled_part *other,
                    double other_ms) {
  return ms < other_ms || (ms == other_ms && part < other);
}

void parts_collect_end(struct part_collector *c, const struct analysis *a, u32 rank,
                       struct arena *arena, struct rank_parts *out) {
  for (u32 i = 0; i < c->sites->n_stacks; i++)
    if (c->line_part[i])
      add_path(c, &c->parts.at[c->line_part[i] - 1], i);
  FOR_EACH(c->parts.at, c->parts.n, part)
    SORT(part->paths.at, part->paths.n, most_first);
  out->at = arena_array(arena, c->parts.n, sizeof(*out->at));
  out->sample_ns = c->samples ? (double)c->ns / (double)c->samples : NAN;
  FOR_EACH_STEP(a, step)
    out->steps[slice_of_step(a, step)] += analysis_has_step(a, rank, step);
  u64 steps = TOTAL(u64, out->steps, SLICES, one, *one);
  FOR_EACH(c->parts.at, c->parts.n, each)
    if (is_kept(each, steps))
      copy_part(c, each, arena, &out->at[out->n++]);
  FOR_EACH(c->parts.at, c->parts.n, part)
    FREE_EACH(part, times.at, paths.at, paths.index.slots);
  FREE_EACH(c, parts.at, parts.index.slots);
}
