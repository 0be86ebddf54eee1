/* SPDX-License-Identifier: MIT
 *
 * What some steps contain more of than the others, whatever time it takes: collectives of a kind
 * (communicator, operation, type, size) that a usual step has fewer of, and forward passes without
 * a backward pass. Kinds that the same steps have are one.
 */
#include "analyses/steps/step_extras.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/queries.h"
#include "base/hash.h"
#include "base/sorting.h"
#include "base/vector.h"

/* A shorter period is rather part of training: an optimizer that steps every fourth batch, as many
 * loader workers. */
#define MOST_OFTEN 5u

/* Of a kind of collective. */
struct call_kind {
  u64 key;
  i32 step;  /* the one that is being counted */
  u32 count; /* in it */
  u32 usual; /* of how many there are in most of the steps that have any: by vote */
  u32 votes;
  u32 steps; /* that have any */
  u32 extra; /* that have more than usual */
  u64 bytes;
  u8 op;
};

struct extra_call {
  u32 kind, step;
};

struct counting {
  const struct analysis *a;
  struct call_kind *kinds;
  u64 slots;
  VECTOR(struct extra_call) extras;
};

static struct call_kind *kind_of(struct counting *c, const struct collective *collective) {
  const u64 words[] = {collective->comm, collective->op, collective->dtype, collective->bytes};
  u64 key = hash_bytes(HASH_SEED, words, sizeof(words)) | 1, at = key & (c->slots - 1);
  while (c->kinds[at].key && c->kinds[at].key != key)
    at = (at + 1) & (c->slots - 1);
  c->kinds[at].key = key;
  c->kinds[at].op = collective->op;
  c->kinds[at].bytes = collective->bytes;
  return &c->kinds[at];
}

/* The majority of the counts, by Boyer and Moore's vote. */
static void vote(struct call_kind *kind) {
  if (kind->votes == 0)
    kind->usual = kind->count;
  kind->votes += kind->count == kind->usual ? 1 : -1u;
  kind->steps += kind->count > 0;
}

static void note_extra(struct counting *c, struct call_kind *kind) {
  if (kind->count <= kind->usual)
    return;
  kind->extra++;
  struct extra_call extra = {(u32)(kind - c->kinds), (u32)kind->step};
  if (!(kind->extra > c->a->n_steps / MOST_OFTEN))
    VECTOR_PUSH(&c->extras, extra);
}

/* Collectives come in order of time, so those of one kind and step follow each other. */
static void count_calls(struct counting *c, bool voting) {
  const struct model *model = c->a->model;
  for (u64 i = 0; i < c->slots; i++)
    c->kinds[i].count = 0;
  for (u32 i = 0; i < model->n_collectives; i++) {
    const struct collective *collective = &model->collectives[i];
    if (collective->step < (i32)c->a->first_step)
      continue;
    struct call_kind *kind = kind_of(c, collective);
    if (kind->count && kind->step != collective->step) {
      if (voting)
        vote(kind);
      else
        note_extra(c, kind);
      kind->count = 0;
    }
    kind->step = collective->step;
    kind->count++;
  }
  for (u64 i = 0; i < c->slots; i++) {
    struct call_kind *kind = &c->kinds[i];
    if (kind->count && voting)
      vote(kind);
    else if (kind->count)
      note_extra(c, kind);
    if (voting && 2 * kind->steps <= c->a->n_steps)
      kind->usual = 0;
  }
}

ORDER_BY(by_kind, struct extra_call, UP(kind) UP(step))

/* The distance of the steps if it is always the same; of two, if the first step of the run is as
 * far. 0: there is none. */
static u32 period_of(const struct analysis *a, const u32 *steps, u32 n) {
  u32 distance = n > 1 ? steps[1] - steps[0] : 0;
  for (u32 i = 2; i < n; i++)
    if (steps[i] - steps[i - 1] != distance)
      return 0;
  u32 before = n ? a->model->steps.first + steps[0] : 0;
  bool fits = n > 2 || before == distance || before + 1 == distance;
  return fits && distance >= MOST_OFTEN ? distance : 0;
}

/* Adds one kind; if other kinds have the same steps, to those. */
static void add_extra(const struct analysis *a, struct arena *arena, struct step_extras *out,
                      const u32 *steps, u32 n, u8 op, u64 bytes) {
  for (u32 i = 0; i < out->n; i++) {
    struct step_extra *same = &out->at[i];
    if (same->n == n && memcmp(same->steps, steps, n * sizeof(*steps)) == 0) {
      same->op = same->op ? same->op : op;
      same->bytes = bytes > same->bytes ? bytes : same->bytes;
      return;
    }
  }
  if (out->n == MOST_EXTRAS)
    return;
  u32 *copy = arena_array(arena, size_sum(n, 1), sizeof(*copy));
  memcpy(copy, steps, n * sizeof(*steps));
  for (u32 i = 0; i < n; i++)
    out->of_step[steps[i]] |= 1ull << out->n;
  out->at[out->n++] = (struct step_extra){.steps = copy,
                                          .n = n,
                                          .period = period_of(a, steps, n),
                                          .op = op,
                                          .bytes = bytes,
                                          .forward = op == 0};
}

/* If more than a fifth of the steps have calls of their own at no fixed distance, as when sizes are
 * never the same, these say nothing. */
static bool irregular_calls_say_something(const struct counting *c, u32 *steps, u8 *seen) {
  u32 with = 0;
  for (u32 i = 0, n; i < c->extras.n; i += n) {
    for (n = 0; i + n < c->extras.n && c->extras.at[i + n].kind == c->extras.at[i].kind; n++)
      steps[n] = c->extras.at[i + n].step;
    bool regular = period_of(c->a, steps, n) > 0;
    for (u32 k = 0; k < n && !regular; k++) {
      with += !seen[steps[k]];
      seen[steps[k]] = 1;
    }
  }
  return with <= c->a->n_steps / MOST_OFTEN;
}

static void group_calls(struct counting *c, struct arena *arena, struct step_extras *out) {
  u32 kept = 0;
  for (u32 i = 0; i < c->extras.n; i++)
    if (c->kinds[c->extras.at[i].kind].extra <= c->a->n_steps / MOST_OFTEN)
      c->extras.at[kept++] = c->extras.at[i];
  c->extras.n = kept;
  SORT(c->extras.at, kept, by_kind);
  u32 *steps = arena_array(arena, size_sum(c->a->n_steps, 1), sizeof(*steps));
  u8 *seen = arena_array(arena, size_sum(c->a->model->steps.n, 1), sizeof(*seen));
  bool irregular = irregular_calls_say_something(c, steps, seen);
  for (u32 i = 0, n; i < kept; i += n) {
    for (n = 0; i + n < kept && c->extras.at[i + n].kind == c->extras.at[i].kind; n++)
      steps[n] = c->extras.at[i + n].step;
    if (irregular || period_of(c->a, steps, n))
      add_extra(c->a, arena, out, steps, n, c->kinds[c->extras.at[i].kind].op,
                c->kinds[c->extras.at[i].kind].bytes);
  }
}

static void list_calls(const struct analysis *a, struct arena *arena, struct step_extras *out) {
  struct counting c = {.a = a, .slots = 64};
  while (c.slots < 2ull * a->model->n_collectives)
    c.slots *= 2;
  c.kinds = memory_zeroed(c.slots, sizeof(*c.kinds));
  count_calls(&c, true);
  count_calls(&c, false);
  group_calls(&c, arena, out);
  free(c.kinds);
  free(c.extras.at);
}

/* Passes of one kind in a step that one rank has more than its usual step. */
static i32 more_passes(const struct analysis *a, u32 rank, u32 step, const u32 *usual,
                       bool forward) {
  const struct phase_times *t = &a->model->phases[(size_t)step * a->model->n_ranks + rank];
  return (i32)(forward ? t->forwards : t->backwards) - (i32)usual[forward];
}

static u32 usual_passes(const struct analysis *a, u32 rank, bool forward, u32 *values) {
  static const u32 none[2];
  for (u32 i = 0; i < a->n_steps; i++)
    values[i] = (u32)more_passes(a, rank, a->first_step + i, none, forward);
  SORT(values, a->n_steps, by_u32);
  return a->n_steps ? values[a->n_steps / 2] : 0;
}

/* Steps with more forward passes than usual, and no more backward passes, on any rank. */
static void list_forward_only(const struct analysis *a, struct arena *arena,
                              struct step_extras *out) {
  u32 *steps = arena_array(arena, size_sum(a->n_steps, 1), sizeof(*steps)), n = 0;
  u8 *has = arena_array(arena, size_sum(a->model->steps.n, 1), sizeof(*has));
  for (u32 rank = 0; a->model->phases && rank < a->model->n_ranks; rank++) {
    u32 usual[2] = {usual_passes(a, rank, false, steps), usual_passes(a, rank, true, steps)};
    for (u32 i = 0; i < a->n_steps; i++)
      has[a->first_step + i] |= more_passes(a, rank, a->first_step + i, usual, true) > 0 &&
                                more_passes(a, rank, a->first_step + i, usual, false) <= 0;
  }
  for (u32 i = 0; i < a->n_steps; i++)
    if (has[a->first_step + i])
      steps[n++] = a->first_step + i;
  if (n && n <= a->n_steps / MOST_OFTEN)
    add_extra(a, arena, out, steps, n, 0, 0);
}

void step_extras_list(const struct analysis *a, struct arena *arena, struct step_extras *out) {
  *out = (struct step_extras){
      .of_step = arena_array(arena, size_sum(a->model->steps.n, 1), sizeof(*out->of_step))};
  list_forward_only(a, arena, out);
  list_calls(a, arena, out);
  for (u32 i = 0; i < a->model->n_collectives && !out->usual_calls; i++) {
    i32 step = a->model->collectives[i].step;
    out->usual_calls = step >= (i32)a->first_step && !out->of_step[step];
  }
}
