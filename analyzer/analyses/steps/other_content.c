/* SPDX-License-Identifier: MIT
 *
 * Steps that take much longer than the typical one, and what they have more of: by the phases of
 * the rank that waited least for others, and by collectives that hardly any other step has.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/queries.h"
#include "analyses/steps/other_work.h"
#include "analyses/thresholds.h"
#include "base/hash.h"
#include "base/statistics.h"

enum { DATA, FORWARD, BACKWARD, OPTIMIZER, OTHER, PHASES };

struct listing {
  struct analysis *a;
  struct arena *arena;
  struct long_steps *out;
  double *typical; /* [rank * PHASES + phase] ms, median; NAN */
  double *waited;  /* [long step * n_ranks + rank] ms, the longest in one collective */
  u32 *long_at;    /* [steps.n] index into out->at, INDEX_NONE */
};

static double phase_ms(const struct analysis *a, u32 rank, u32 step, u32 phase) {
  const struct phase_times *t = &a->model->phases[(size_t)step * a->model->n_ranks + rank];
  const i64 times[PHASES] = {t->data, t->forward, t->backward, t->optimizer, t->other};
  return times[phase] == NS_UNKNOWN ? NAN : ns_to_ms(times[phase]);
}

/* Mean over ranks; NAN if it is known of none. */
static double length_ms(const struct analysis *a, u32 step) {
  double sum = 0;
  u32 n = 0;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    const struct rank *of = &a->model->ranks[rank];
    u8 known = a->ends_known[(size_t)step * a->model->n_ranks + rank];
    struct window window;
    bool on_gpu = of->launches || of->gpu_kernels;
    if (!analysis_window(a, rank, step, &window) ||
        (on_gpu && known != (STEP_BEGIN_KNOWN | STEP_END_KNOWN)))
      continue;
    sum += ns_to_ms(window.end - window.begin);
    n++;
  }
  return n ? sum / n : NAN;
}

static int list_long_steps(struct listing *l) {
  struct analysis *a = l->a;
  struct long_steps *out = l->out;
  u32 n = 0;
  double *lengths = arena_array(l->arena, a->n_steps + 1u, sizeof(double));
  double *known = arena_array(l->arena, a->n_steps + 1u, sizeof(double));
  l->long_at = arena_array(l->arena, a->model->steps.n + 1u, sizeof(u32));
  out->at = arena_array(l->arena, a->n_steps + 1u, sizeof(*out->at));
  if (!lengths || !known || !l->long_at || !out->at)
    return -ENOMEM;
  for (u32 i = 0; i < a->n_steps; i++) {
    lengths[i] = length_ms(a, a->first_step + i);
    if (!isnan(lengths[i]))
      known[n++] = lengths[i];
  }
  out->typical_ms = median_of(known, n);
  for (u32 step = 0; step < a->model->steps.n; step++)
    l->long_at[step] = INDEX_NONE;
  for (u32 i = 0; i < a->n_steps; i++)
    if (lengths[i] >= (1 + OTHER_WORK_OF_STEP) * out->typical_ms) {
      l->long_at[a->first_step + i] = out->n;
      out->at[out->n++] = (struct long_step){
          .step = a->first_step + i, .rank = INDEX_NONE, .excess_ms = lengths[i] - out->typical_ms};
    }
  return 0;
}

static int find_typical_phases(struct listing *l) {
  const struct analysis *a = l->a;
  double *values = arena_array(l->arena, a->n_steps + 1u, sizeof(double));
  l->typical = arena_array(l->arena, (size_t)a->model->n_ranks * PHASES + 1, sizeof(double));
  if (!values || !l->typical)
    return -ENOMEM;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++)
    for (u32 phase = 0; phase < PHASES; phase++) {
      u32 n = 0;
      for (u32 i = 0; a->model->phases && i < a->n_steps; i++) {
        double ms = phase_ms(a, rank, a->first_step + i, phase);
        if (!isnan(ms))
          values[n++] = ms;
      }
      l->typical[(size_t)rank * PHASES + phase] = median_of(values, n);
    }
  return 0;
}

static int find_waits(struct listing *l) {
  const struct model *model = l->a->model;
  l->waited = arena_array(l->arena, (size_t)l->out->n * model->n_ranks + 1, sizeof(double));
  if (!l->waited)
    return -ENOMEM;
  for (u32 i = 0; i < model->n_collectives && model->clock_aligned; i++) {
    const struct collective *collective = &model->collectives[i];
    u32 at = collective->step >= 0 ? l->long_at[collective->step] : INDEX_NONE;
    if (at == INDEX_NONE || collective->last_start == NS_UNKNOWN ||
        !op_is_barrier_like(collective->op))
      continue;
    for (u32 k = 0; k < collective->n_arrivals; k++) {
      const struct arrival *arrival = &model->arrivals[collective->first_arrival + k];
      double *most = &l->waited[(size_t)at * model->n_ranks + arrival->rank];
      *most = fmax(*most, ns_to_ms(collective->last_start - arrival->start));
    }
  }
  return 0;
}

/* A kind of collective, and the number of steps that have one. */
struct call_kind {
  u64 key;
  i32 last_step;
  u32 steps;
};

static struct call_kind *kind_of(struct call_kind *kinds, u64 slots, u64 key) {
  u64 at = key & (slots - 1);
  while (kinds[at].key && kinds[at].key != key)
    at = (at + 1) & (slots - 1);
  kinds[at].key = key;
  return &kinds[at];
}

static u64 key_of(const struct collective *c) {
  const u64 words[] = {c->comm, c->op, c->dtype, c->bytes};
  return hash_bytes(HASH_SEED, words, sizeof(words)) | 1;
}

/* Collectives that at most a fifth of the steps have. If more steps than that have such
 * collectives, as when sizes are never the same, they say nothing. */
static int find_rare_calls(struct listing *l) {
  const struct analysis *a = l->a;
  const struct model *model = a->model;
  u64 slots = 64;
  while (slots < 2ull * model->n_collectives)
    slots *= 2;
  struct call_kind *kinds = calloc(slots, sizeof(*kinds));
  u8 *rare = calloc(model->steps.n + 1u, 1); /* by step, an op */
  u32 most = a->n_steps / 5, with_rare = 0;
  for (u32 i = 0; kinds && rare && i < model->n_collectives; i++) {
    const struct collective *c = &model->collectives[i];
    struct call_kind *kind = kind_of(kinds, slots, key_of(c));
    if (c->step < (i32)a->first_step || (kind->steps && kind->last_step == c->step))
      continue;
    kind->last_step = c->step;
    kind->steps++;
  }
  for (u32 i = 0; kinds && rare && i < model->n_collectives; i++) {
    const struct collective *c = &model->collectives[i];
    if (c->step < (i32)a->first_step || kind_of(kinds, slots, key_of(c))->steps > most)
      continue;
    with_rare += rare[c->step] == 0;
    rare[c->step] = c->op;
  }
  for (u32 i = 0; rare && i < l->out->n && with_rare <= most; i++)
    l->out->at[i].op = rare[l->out->at[i].step];
  bool room = kinds && rare;
  free(kinds);
  free(rare);
  return room ? 0 : -ENOMEM;
}

/* How much more than typical the rank has in a phase; 0 if nothing is known. */
static double excess_in_phase(const struct listing *l, u32 rank, u32 step, u32 phase) {
  double more = phase_ms(l->a, rank, step, phase) - l->typical[(size_t)rank * PHASES + phase];
  return more > 0 ? more : 0;
}

/* The rank that waited least for the others: what it did took the time. */
static u32 busiest_rank(const struct listing *l, u32 at) {
  u32 best = 0, n = l->a->model->n_ranks;
  double least = INFINITY;
  for (u32 rank = 0; rank < n; rank++) {
    double idle = l->waited[(size_t)at * n + rank];
    if (!l->a->model->clock_aligned && l->a->model->phases)
      idle = excess_in_phase(l, rank, l->out->at[at].step, BACKWARD); /* waits lie in it mostly */
    if (idle < least) {
      least = idle;
      best = rank;
    }
  }
  return best;
}

static bool all_others_wait(const struct listing *l, u32 at, u32 rank) {
  u32 n = l->a->model->n_ranks;
  for (u32 i = 0; i < n; i++)
    if (i != rank && !(l->waited[(size_t)at * n + i] >= REASON_SHARE * l->out->at[at].excess_ms))
      return false;
  return n > 1;
}

static void classify(struct listing *l, u32 at) {
  struct long_step *step = &l->out->at[at];
  u32 rank = busiest_rank(l, at);
  if (!l->a->model->phases || isnan(phase_ms(l->a, rank, step->step, OTHER))) {
    step->content = step->op ? CONTENT_CALLS : CONTENT_UNKNOWN;
    return;
  }
  double half = REASON_SHARE * step->excess_ms, data = excess_in_phase(l, rank, step->step, DATA);
  double forward = excess_in_phase(l, rank, step->step, FORWARD);
  double backward = excess_in_phase(l, rank, step->step, BACKWARD);
  bool only_forward = forward >= half / 2 && backward <= forward / 4;
  if (backward + excess_in_phase(l, rank, step->step, OPTIMIZER) >= half ||
      (data >= half && !only_forward))
    step->content = CONTENT_TRAINING;
  else if (only_forward)
    step->content = CONTENT_FORWARD;
  else if (excess_in_phase(l, rank, step->step, OTHER) < half / 2)
    step->content = CONTENT_TRAINING;
  else
    step->content = all_others_wait(l, at, rank) ? CONTENT_ONE_RANK : CONTENT_OUTSIDE;
  if (step->content == CONTENT_ONE_RANK)
    step->rank = rank;
}

int other_content_list(struct analysis *a, struct arena *arena, struct long_steps *out) {
  struct listing l = {.a = a, .arena = arena, .out = out};
  *out = (struct long_steps){.first = a->first_step, .end = a->first_step + a->n_steps};
  int error = list_long_steps(&l);
  if (error || out->n == 0)
    return error;
  error = find_typical_phases(&l);
  if (!error)
    error = find_waits(&l);
  if (!error)
    error = find_rare_calls(&l);
  for (u32 i = 0; i < out->n && !error; i++)
    classify(&l, i);
  return error;
}
