/* SPDX-License-Identifier: MIT
 *
 * What some steps contain more of than the others, whatever time it takes: collectives of a kind
 * (communicator, operation, type, size) that a usual step has fewer of, and forward passes without
 * a backward pass; step_meetings.c adds what the host and its GPU do together. Kinds that the same
 * steps have are one.
 */
#include "analyses/steps/step_extras.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/queries.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/vector.h"

/* Of a kind of collective. */
struct call_kind {
  u32 comm;
  i32 step;  /* the one that is being counted */
  u32 count; /* in it */
  u32 usual; /* of how many there are in most of the steps that have any: by vote */
  u32 votes;
  u32 steps; /* that have any */
  u32 extra; /* that have more than usual */
  i64 ns;    /* that a rank is longest in them, in the step that is being counted */
  u64 bytes;
  u8 op, dtype;
};

struct extra_call {
  u32 kind, step;
  double ms;
};

struct counting {
  const struct analysis *a;
  HASHED(struct call_kind) kinds;
  VECTOR(struct extra_call) extras;
};

static struct call_kind *kind_of(struct counting *c, const struct collective *collective) {
  const u64 words[] = {collective->comm, collective->op, collective->dtype, collective->bytes};
  u32 i = HASHED_OR_ADD(&c->kinds, table_hash(0, words, sizeof(words)), one,
                        one->comm == collective->comm && one->op == collective->op &&
                            one->dtype == collective->dtype && one->bytes == collective->bytes,
                        (struct call_kind){SAME(collective, comm, op, dtype, bytes)});
  return &c->kinds.at[i];
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
  struct extra_call extra = {(u32)(kind - c->kinds.at), (u32)kind->step, ns_to_ms(kind->ns)};
  if (!(kind->extra > c->a->n_steps / MOST_OFTEN))
    VECTOR_PUSH(&c->extras, extra);
}

/* How long the rank that came first is in it. */
static i64 longest_in(const struct model *model, const struct collective *collective) {
  return MOST_OF(i64, members_of(model, collective), collective->n_arrivals, one,
                 arrival_has_run(one) ? one->end - one->start : 0);
}

/* Collectives come in order of time, so those of one kind and step follow each other. */
static void count_calls(struct counting *c, bool voting) {
  const struct model *model = c->a->model;
  FOR_EACH_CHANGED(c->kinds.at, c->kinds.n, kind)
    kind->count = 0;
  FOR_EACH(model->collectives, model->n_collectives, collective) {
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
    kind->ns = (kind->count ? kind->ns : 0) + longest_in(model, collective);
    kind->step = collective->step;
    kind->count++;
  }
  FOR_EACH_CHANGED(c->kinds.at, c->kinds.n, kind) {
    if (kind->count && voting)
      vote(kind);
    else if (kind->count)
      note_extra(c, kind);
    if (voting && 2 * kind->steps <= c->a->n_steps)
      kind->usual = 0;
  }
}

ORDER_BY(by_kind, struct extra_call, UP(kind) UP(step))

u32 step_extras_period(const struct analysis *a, const u32 *steps, u32 n) {
  u32 distance = n > 1 ? steps[1] - steps[0] : 0;
  for (u32 i = 2; i < n; i++)
    if (steps[i] - steps[i - 1] != distance)
      return 0;
  u32 before = n ? a->model->steps.first + steps[0] : 0;
  bool fits = n > 2 || before == distance || before + 1 == distance;
  return fits && distance >= MOST_OFTEN ? distance : 0;
}

void step_extras_add(const struct analysis *a, struct arena *arena, struct step_extras *out,
                     const struct step_extra *extra) {
  size_t bytes = extra->n * sizeof(*extra->steps);
  FOR_EACH_CHANGED(out->at, out->n, same) {
    if (same->n == extra->n && memcmp(same->steps, extra->steps, bytes) == 0) {
      same->op = same->op ? same->op : extra->op;
      same->bytes = MAX(extra->bytes, same->bytes);
      same->forward |= extra->forward;
      same->meets |= extra->meets;
      same->ms += extra->ms;
      same->added = extra->copied + (same->rank == extra->rank ? same->added : 0);
      same->rank = extra->rank;
      same->copied = MAX(same->added, same->copied);
      return;
    }
  }
  if (out->n == MOST_EXTRAS)
    return;
  struct step_extra *added = &out->at[out->n];
  *added = *extra;
  added->added = extra->copied;
  added->period = step_extras_period(a, extra->steps, extra->n);
  added->steps = arena_array(arena, extra->n, sizeof(*added->steps));
  memcpy(added->steps, extra->steps, bytes);
  FOR_EACH(extra->steps, extra->n, step)
    out->of_step[*step] |= 1ull << out->n;
  out->n++;
}

/* Of the kind that the i-th is the first of. */
static u32 list_steps_of_kind(const struct counting *c, u32 i, u32 *steps) {
  u32 n = ROW_OF_EQUALS(&c->extras.at[i], c->extras.n - i, first, one, one->kind == first->kind);
  return LIST_WHERE(steps, i, i + n, k, true, c->extras.at[k].step);
}

/* If more than a fifth of the steps have calls of their own at no fixed distance, as when sizes are
 * never the same, these say nothing. */
static bool irregular_calls_say_something(const struct counting *c, u32 *steps, u8 *seen) {
  u32 with = 0;
  for (u32 i = 0, n; i < c->extras.n; i += n) {
    n = list_steps_of_kind(c, i, steps);
    bool regular = step_extras_period(c->a, steps, n) > 0;
    for (u32 k = 0; k < n && !regular; k++) {
      with += !seen[steps[k]];
      seen[steps[k]] = 1;
    }
  }
  return with <= c->a->n_steps / MOST_OFTEN;
}

static double median_call_ms(const struct counting *c, u32 i, u32 n, double *values) {
  return median_of(values, LIST_WHERE(values, i, i + n, k, true, c->extras.at[k].ms));
}

static void group_calls(struct counting *c, struct arena *arena, struct step_extras *out) {
  c->extras.n = KEEP_WHERE(c->extras.at, c->extras.n, one,
                           c->kinds.at[one->kind].extra <= c->a->n_steps / MOST_OFTEN);
  SORT(c->extras.at, c->extras.n, by_kind);
  u32 *steps = arena_array(arena, c->a->n_steps, sizeof(*steps));
  double *values = arena_array(arena, c->a->n_steps, sizeof(*values));
  u8 *seen = arena_array(arena, c->a->model->steps.n, sizeof(*seen));
  bool irregular = irregular_calls_say_something(c, steps, seen);
  for (u32 i = 0, n; i < c->extras.n; i += n) {
    n = list_steps_of_kind(c, i, steps);
    if (irregular || step_extras_period(c->a, steps, n))
      step_extras_add(c->a, arena, out,
                      &(struct step_extra){.steps = steps,
                                           .n = n,
                                           .ms = median_call_ms(c, i, n, values),
                                           .op = c->kinds.at[c->extras.at[i].kind].op,
                                           .bytes = c->kinds.at[c->extras.at[i].kind].bytes});
  }
}

static void list_calls(const struct analysis *a, struct arena *arena, struct step_extras *out) {
  struct counting c = {.a = a};
  count_calls(&c, true);
  count_calls(&c, false);
  group_calls(&c, arena, out);
  FREE_EACH(&c, kinds.at, kinds.index.slots, extras.at);
}

enum pass { PASS_FORWARD, PASS_BACKWARD, PASS_BATCH, PASSES };

/* Passes of one kind in a step that one rank has more than its usual step. */
static i32 more_passes(const struct analysis *a, u32 rank, u32 step, const u32 *usual,
                       enum pass pass) {
  const struct phase_times *t = &a->model->phases[cell_of_step(a->model, step, rank)];
  const u32 passes[PASSES] = {t->forwards, t->backwards, t->batches};
  return (i32)passes[pass] - (i32)usual[pass];
}

static u32 usual_passes(const struct analysis *a, u32 rank, enum pass pass, u32 *values) {
  static const u32 none[PASSES];
  for (u32 i = 0; i < a->n_steps; i++)
    values[i] = (u32)more_passes(a, rank, a->first_step + i, none, pass);
  SORT(values, a->n_steps, by_u32);
  return a->n_steps ? values[a->n_steps / 2] : 0;
}

/* More goes forward than backward. Where the model is not wrapped, its batches show it: one more
 * finds that there is no other. */
static bool has_forward_only(const struct analysis *a, u32 rank, u32 step, const u32 *usual) {
  return (more_passes(a, rank, step, usual, PASS_FORWARD) > 0 ||
          more_passes(a, rank, step, usual, PASS_BATCH) > 1) &&
         more_passes(a, rank, step, usual, PASS_BACKWARD) <= 0;
}

/* Steps with more forward passes than usual, and no more backward passes, on any rank. */
static void list_forward_only(const struct analysis *a, struct arena *arena,
                              struct step_extras *out) {
  u32 *steps = arena_array(arena, a->n_steps, sizeof(*steps));
  u8 *has = arena_array(arena, a->model->steps.n, sizeof(*has));
  for (u32 rank = 0; a->model->phases && rank < a->model->n_ranks; rank++) {
    u32 usual[PASSES];
    for (enum pass pass = 0; pass < PASSES; pass++)
      usual[pass] = usual_passes(a, rank, pass, steps);
    for (u32 i = 0; i < a->n_steps; i++)
      has[a->first_step + i] |= has_forward_only(a, rank, a->first_step + i, usual);
  }
  u32 n = LIST_WHERE(steps, a->first_step, a->first_step + a->n_steps, i, has[i], i);
  if (n && n <= a->n_steps / MOST_OFTEN)
    step_extras_add(a, arena, out, &(struct step_extra){.steps = steps, .n = n, .forward = true});
}

void step_extras_list(const struct analysis *a, struct arena *arena, struct step_extras *out) {
  *out =
      (struct step_extras){.of_step = arena_array(arena, a->model->steps.n, sizeof(*out->of_step))};
  list_forward_only(a, arena, out);
  list_calls(a, arena, out);
  step_meetings_list(a, arena, out);
  for (u32 i = 0; i < a->model->n_collectives && !out->usual_calls; i++) {
    i32 step = a->model->collectives[i].step;
    out->usual_calls = step >= (i32)a->first_step && !out->of_step[step];
  }
}
