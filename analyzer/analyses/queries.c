/* SPDX-License-Identifier: MIT */
#include "analyses/queries.h"

#include <math.h>

#include "base/rank_list.h"
#include "kernels/communication.h"

static i64 host_end(const struct analysis *a, u32 rank, u32 step) {
  return step_on_host(a->model, step, rank).end;
}

bool analysis_window(const struct analysis *a, u32 rank, u32 step, struct window *window) {
  i64 begin, end;
  if (a->whole_run) {
    begin = a->model->ranks[rank].begin;
    end = a->model->ranks[rank].end;
  } else {
    begin = a->begin[cell_of_step(a->model, step, rank)];
    end = a->end[cell_of_step(a->model, step, rank)];
  }
  *window = (struct window){begin, end, step};
  return begin != NS_UNKNOWN && end != NS_UNKNOWN && end > begin;
}

i64 analysis_step_length(const struct analysis *a, u32 rank, u32 step) {
  struct window window;
  return analysis_window(a, rank, step, &window) ? window.end - window.begin : NS_UNKNOWN;
}

struct rank_summary analysis_sums(const struct analysis *a) {
  struct rank_summary sum = {0};
  FOR_EACH(a->ranks, a->model->n_ranks, rank)
    ADD_EACH(&sum, rank, steps, steps_overwritten, steps_unseen, steps_untimed, steps_left_out,
             collective_kernels, collective_kernels_called, graph_launches, graph_launches_run,
             graph_launches_open);
  return sum;
}

bool *mark_ranks(const struct analysis *a, const u32 *ranks, u32 n) {
  bool *marks = arena_array(a->arena, a->model->n_ranks, sizeof(*marks));
  for (u32 i = 0; i < a->model->n_ranks; i++)
    marks[i] = ranks_have(ranks, n, a->model->ranks[i].rank);
  return marks;
}

bool analysis_has_step(const struct analysis *a, u32 rank, u32 step) {
  return host_end(a, rank, step) != NS_UNKNOWN;
}

i32 analysis_step_at(const struct analysis *a, u32 rank, i64 time) {
  struct window window;
  i32 step = LAST_BEGUN(a->model->steps.n, s,
                        analysis_window(a, rank, s, &window) ? window.begin : NS_UNKNOWN, time);
  bool known = step >= 0 && analysis_window(a, rank, (u32)step, &window);
  return known && time < window.end ? step : -1;
}

i64 analysis_host_ahead(const struct analysis *a, u32 rank, u32 step, u32 later) {
  size_t cell = cell_of_step(a->model, step, rank);
  i64 host = host_end(a, rank, later);
  bool known =
      (a->ends_known[cell] & STEP_END_KNOWN) && a->end[cell] != NS_UNKNOWN && host != NS_UNKNOWN;
  return known ? a->end[cell] - host : NS_UNKNOWN;
}

bool analysis_ends_on_gpu(const struct analysis *a, u32 rank, u32 step) {
  return !a->whole_run && analysis_host_ahead(a, rank, step, step) > 0;
}

/* What was launched while the GPU was watched is seen even where it runs on afterwards. */
static bool gpu_was_watched(const struct analysis *a, u32 rank, const struct window *window) {
  if (a->whole_run)
    return true;
  i64 launched =
      analysis_ends_on_gpu(a, rank, window->step) ? host_end(a, rank, window->step) : window->end;
  return model_gpu_seen(&a->model->ranks[rank], window->begin, launched);
}

/* Phases of a CPU job are never overwritten. */
enum gpu_step analysis_gpu_step(const struct analysis *a, u32 rank, const struct timeline *t,
                                const struct window *window) {
  bool on_gpu = !t || t->on_gpu;
  if (t && on_gpu && window->begin < t->ring_begin)
    return GPU_STEP_OVERWRITTEN;
  if (on_gpu && !gpu_was_watched(a, rank, window))
    return GPU_STEP_UNSEEN;
  if (analysis_times_of(a, (i32)window->step) != TIMES_KEPT)
    return GPU_STEP_LEFT_OUT;
  return on_gpu && analysis_untimed(a, rank, window->step) ? GPU_STEP_UNTIMED : GPU_STEP_KNOWN;
}

bool analysis_includes(const struct analysis *a, const struct collective *collective) {
  return a->whole_run ||
         (collective->step >= (i32)a->first_step && collective->step < (i32)a->model->steps.n &&
          analysis_is_training(a, (u32)collective->step));
}

u8 analysis_times_of(const struct analysis *a, i32 step) {
  const u8 *times = a->model->steps.times;
  return times && step >= 0 && !a->whole_run ? times[step] : TIMES_KEPT;
}

double analysis_length_ms(const struct analysis *a) {
  const struct results *r = a->results;
  if (!a->whole_run)
    return r->step_mean_ms;
  return isnan(r->ov_step_ms) ? r->path_length_ms : r->ov_step_ms;
}
