/* SPDX-License-Identifier: MIT
 *
 * Where the host loads its input, in a job that does not say so. The model infers how long this
 * takes (the pause before a step's first copy to the GPU); this file says where it is on the
 * timeline.
 */

#include "analyses/queries.h"

/* A copy that follows the previous one at once is no sign of loading. */
#define SHORTEST_PAUSE 100000 /* ns */

static bool launches_input(const struct timeline *t, const struct span *span) {
  return span->kind == SPAN_LAUNCH && span->link != INDEX_NONE &&
         t->spans[span->link].kind == SPAN_MEMCPY &&
         t->spans[span->link].category == TSCOPE_MEMCPY_H2D;
}

static i64 inferred(const struct analysis *a, u32 rank, u32 step) {
  i64 data = a->model->phases[cell_of_step(a->model, step, rank)].data;
  return data == NS_UNKNOWN ? 0 : data;
}

/* The first step from this one on before which there is a pause; its length in `ns`. */
static u32 next_pause(const struct analysis *a, u32 rank, u32 step, i64 *ns) {
  while (step < a->model->steps.n && (*ns = inferred(a, rank, step)) < SHORTEST_PAUSE)
    step++;
  return step;
}

void input_pauses(const struct analysis *a, const struct timeline *t, struct arena *arena,
                  struct input_pause **pauses, u32 *n) {
  u32 steps = a->model->steps.n;
  i64 pause = 0;
  *n = 0;
  *pauses = NULL;
  if (!a->model->phases || a->whole_run || !t->on_gpu || a->ranks[t->rank].spans[SPAN_PHASE])
    return;
  u32 step = next_pause(a, t->rank, 0, &pause);
  if (step == steps)
    return;
  *pauses = arena_array(arena, steps, sizeof(**pauses));
  i64 *idle_since = arena_array(arena, t->n_lanes, sizeof(i64));
  /* Steps and copies are both in order: each step's pause is before the first copy that fits it. */
  for (u32 i = 0; i < t->n_spans && step < steps; i++) {
    const struct span *span = &t->spans[i];
    if (SPAN_ON_DEVICE(span->kind))
      continue;
    i64 *idle = &idle_since[span->lane];
    if (span->start - *idle >= pause - SHORTEST_PAUSE && launches_input(t, span)) {
      i64 begin = span->start - pause;
      (*pauses)[(*n)++] = (struct input_pause){MAX(begin, *idle), span->start, i};
      step = next_pause(a, t->rank, step + 1, &pause);
    }
    *idle = MAX(span->end, *idle);
  }
}
