/* SPDX-License-Identifier: MIT
 *
 * What a host and its GPU do together in some steps more than in a usual one: a checkpoint copies
 * parameters from the GPU, a validation copies batches to it, a loss that is logged makes the host
 * wait. Most of that is no call that other ranks take part in, so each rank is held against itself.
 */
#include "analyses/steps/step_extras.h"
#include "base/sorting.h"

struct met {
  u64 bytes;
  u32 step;
  u8 what;
};

ORDER_BY(by_kind, struct met, UP(what) UP(bytes) UP(step))

struct rank_meetings {
  const struct analysis *a;
  struct arena *arena;
  struct step_extras *out;
  u32 rank;            /* looked at */
  u32 known;           /* analysed steps that the rank's ring still has */
  u32 *counts, *steps; /* [a->n_steps] */
};

static u32 list_met(const struct rank_meetings *m, u32 rank, struct met *met) {
  const struct rank *of = &m->a->model->ranks[rank];
  u32 n = 0;
  FOR_EACH(of->meetings, of->n_meetings, meeting) {
    i32 step = model_step_at(m->a->model, rank, meeting->start);
    if (step >= (i32)m->a->first_step)
      met[n++] = (struct met){meeting->bytes, (u32)step, meeting->what};
  }
  return n;
}

static u32 known_steps(const struct analysis *a, u32 rank, const struct met *met, u32 n) {
  u32 first = a->first_step + a->n_steps;
  if (!a->model->ranks[rank].lost[TSCOPE_LOSS_RING])
    return a->n_steps;
  FOR_EACH(met, n, one)
    first = MIN(one->step, first);
  return a->first_step + a->n_steps - first;
}

/* How often most steps have it; `counts` are those of the `n` steps that have it at all. */
static u32 usual_count(const struct rank_meetings *m, u32 n) {
  u32 without = m->known > n ? m->known - n : 0;
  SORT(m->counts, n, by_u32);
  return m->known / 2 < without || n == 0 ? 0 : m->counts[(m->known / 2 - without) % n];
}

static u32 in_one_step(const struct met *met, u32 n) {
  return ROW_OF_EQUALS(met, n, first, one, one->step == first->step);
}

/* One kind of meeting. */
static void add_kind(const struct rank_meetings *m, const struct met *met, u32 n) {
  u32 with = 0, extra = 0;
  for (u32 i = 0; i < n; i += m->counts[with++])
    m->counts[with] = in_one_step(met + i, n - i);
  u32 usual = usual_count(m, with), more = 0;
  for (u32 i = 0, same; i < n; i += same) {
    same = in_one_step(met + i, n - i);
    if (same > usual) {
      m->steps[extra++] = met[i].step;
      more = same - usual;
    }
  }
  if (extra * MOST_OFTEN > m->known + MOST_OFTEN || !step_extras_period(m->a, m->steps, extra))
    return; /* a loader may fetch a batch a step earlier or later at any time */
  step_extras_add(
      m->a, m->arena, m->out,
      &(struct step_extra){.steps = m->steps,
                           .n = extra,
                           .meets = met->what,
                           .rank = m->rank,
                           .copied = met->what == MEETING_COPY_OUT ? more * met->bytes : 0});
}

static void look_at(struct rank_meetings *m, u32 rank) {
  SCOPED_ARENA struct arena scratch = {0};
  struct met *met = arena_array(&scratch, m->a->model->ranks[rank].n_meetings, sizeof(*met));
  u32 n = list_met(m, rank, met);
  m->rank = rank;
  m->known = known_steps(m->a, rank, met, n);
  SORT(met, n, by_kind);
  for (u32 i = 0, kind; i < n; i += kind) {
    kind = ROW_OF_EQUALS(met + i, n - i, first, one,
                         one->what == first->what && one->bytes == first->bytes);
    add_kind(m, met + i, kind);
  }
}

void step_meetings_list(const struct analysis *a, struct arena *arena, struct step_extras *out) {
  struct rank_meetings m = {.a = a, .arena = arena, .out = out};
  m.counts = arena_array(arena, a->n_steps, sizeof(*m.counts));
  m.steps = arena_array(arena, a->n_steps, sizeof(*m.steps));
  for (u32 rank = 0, seen = 0; rank < a->model->n_ranks && seen < MEETING_RANKS; rank++)
    if (a->model->ranks[rank].n_meetings) {
      look_at(&m, rank);
      seen++;
    }
}
