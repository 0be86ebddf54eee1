/* SPDX-License-Identifier: MIT
 *
 * Where the time of the analysed steps went, mean over ranks: lines that add up to the wall time.
 */
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_replay.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"

#define MAX_LINES 13

/* What each rank keeps of its time outside the phases without that in which it is asleep there. Its
 * waits for others are in neither; a rank without phases is always outside. */
static const double *awake_outside(const struct analysis *a) {
  u32 ranks = a->model->n_ranks;
  double *left = arena_array(a->arena, ranks, sizeof(*left)), least = lines_unmarked_training(a);
  for (u32 rank = 0; rank < ranks; rank++) {
    double asleep = (double)rank_idle_outside(&a->ranks[rank]),
           outside = (double)a->ranks[rank].outside;
    left[rank] = outside > 0 ? fmin(1, fmax(least, 1 - asleep / outside)) : 1;
  }
  return left;
}

/* `change`: what the line is made of, and how much of it would be left; 0 for not told. */
static void add_line(struct analysis *a, enum budget_part part, double seconds,
                     enum change_kind change, double left) {
  struct results *r = a->results;
  struct cure cure = cure_by(
      a, (struct cure_change){.kind = change,
                              .left = left,
                              .left_of = change == CHANGE_ASLEEP ? awake_outside(a) : NULL});
  cure.n = change && seconds > 0;
  r->budget[r->n_budget++] =
      (struct budget_line){part, seconds, r->wall_s > 0 ? seconds / r->wall_s : NAN, NAN, cure};
}

/* Sums over the ranks whose overlap is known; all ranks that were read if none is. */
static struct rank_summary add_ranks(const struct analysis *a, u32 *n, bool known) {
  struct rank_summary sum;
  memset(&sum, 0, sizeof(sum));
  for (u32 i = *n = 0; i < a->model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    if (known ? !rank_overlap_known(rank) : !rank->loaded || !rank->steps)
      continue;
    ++*n;
    ADD_EACH(&sum, rank, total, steps, other_steps, compute, exposed_comm, all.comm, all.wait,
             all.transfer, exposed_memcpy, idle, begun_late, capturing, data_stall, host_bound);
    sum.has_phases |= rank->has_phases;
    sum.has_cpu_times = (*n == 1 || sum.has_cpu_times) && rank->has_cpu_times;
    sum.has_input |= rank->has_input;
    sum.on_gpu |= rank->on_gpu;
  }
  return sum;
}

/* What a CPU job does outside its phases is compute, as far as CPU clocks say so; the rest of that
 * time is waiting. Without CPU clocks it is unknown. */
static enum budget_part outside_phases(const struct rank_summary *sum) {
  if (sum->on_gpu)
    return BUDGET_OUTSIDE_PHASES;
  return sum->has_cpu_times ? BUDGET_ASLEEP_OUTSIDE : BUDGET_OUTSIDE_UNKNOWN;
}

/* If it is known how much arithmetic the model needs: the time that this takes at the devices'
 * peak, and the rest, of which tuned jobs show how much can be saved. */
static void add_compute(struct analysis *a, double seconds, double training_s) {
  double at_peak = a->results->mfu * training_s;
  if (!(at_peak > 0) || !(at_peak < seconds)) {
    add_line(a, BUDGET_COMPUTE, seconds, 0, 0);
    return;
  }
  add_line(a, BUDGET_COMPUTE_AT_PEAK, at_peak, 0, 0);
  double left = fmin(1, at_peak / MFU_TUNED / seconds);
  add_line(a, BUDGET_COMPUTE_BEYOND, seconds - at_peak, CHANGE_COMPUTE, left);
}

static void known_lines(struct analysis *a, const struct rank_summary *sum, double n) {
  double to_s = 1e-9 / n;
  i64 unsplit = sum->exposed_comm - sum->all.wait - sum->all.transfer;
  double transfer = (double)sum->all.transfer * to_s;
  /* Transfers can only be hidden by compute that does not hide any yet. */
  double room = (double)(sum->compute - (sum->all.comm - sum->exposed_comm)) * to_s;
  double stays = transfer > 0 ? fmax(0, 1 - fmax(0, room) / transfer) : 0;
  /* Where forward passes are not marked, nothing says what a GPU's host does outside the phases. */
  bool has_phases = sum->has_phases && (!sum->on_gpu || a->results->forward_ms > 0);
  i64 of_host = sum->idle - sum->begun_late - sum->capturing - sum->data_stall;
  i64 other = has_phases ? rank_idle_outside(sum) : 0;
  i64 launch = of_host - other;
  enum budget_part outside = outside_phases(sum);
  const struct {
    enum budget_part part;
    i64 ns;
    bool applies;
    enum change_kind change;
    double left;
  } lines[] = {
      {BUDGET_INPUT, sum->data_stall, sum->has_input, CHANGE_INPUT, 0},
      {BUDGET_RANKS, sum->all.wait, true, CHANGE_EVERY_RANK, 0},
      {BUDGET_COMMUNICATION, sum->all.transfer, true, CHANGE_COMMUNICATION, stays},
      {BUDGET_COMMUNICATION_OR_WAIT, unsplit, unsplit != 0, 0, 0},
      {BUDGET_MEMCPYS, sum->exposed_memcpy, true, CHANGE_COPIES, 0},
      {BUDGET_BEGUN_LATE, sum->begun_late, sum->begun_late > 0, CHANGE_GPU_AWAY, 0},
      {BUDGET_CAPTURING, sum->capturing, sum->capturing > 0, 0, 0},
      {sum->on_gpu ? BUDGET_LAUNCH_AND_IDLE : BUDGET_IDLE_IN_PHASES, launch, true,
       sum->on_gpu ? CHANGE_LAUNCHES : 0, 0},
      {outside, other, has_phases,
       outside == BUDGET_ASLEEP_OUTSIDE ? CHANGE_ASLEEP : CHANGE_OUTSIDE,
       lines_unmarked_training(a)},
  };
  add_compute(a, (double)sum->compute * to_s, (double)sum->total * to_s);
  FOR_EACH(lines, LENGTH_OF(lines), line)
    if (line->applies)
      add_line(a, line->part, (double)line->ns * to_s, line->change, line->left);
}

/* What keeps devices from work, taken away together. */
static struct cure cure_of_idle_devices(struct analysis *a) {
  struct cure_change *changes = arena_array(a->arena, MAX_LINES, sizeof(*changes));
  struct cure cure = {changes, 0};
  FOR_EACH(a->results->budget, a->results->n_budget, line)
    if (line->cure.n && (line->part == BUDGET_MEMCPYS || line->part == BUDGET_LAUNCH_AND_IDLE))
      changes[cure.n++] = line->cure.changes[0];
  return cure;
}

/* What a step takes without what each line is made of, in seconds of the run like the lines. */
static void fill_recoverable(struct analysis *a, double steps) {
  struct results *r = a->results;
  struct cure cures[MAX_LINES + 1];
  struct saving savings[MAX_LINES + 1];
  r->idle_devices = cure_of_idle_devices(a);
  for (u32 i = 0; i < r->n_budget; i++)
    cures[i] = r->budget[i].cure;
  cures[r->n_budget] = r->idle_devices; /* is asked again for the finding, and then known */
  replay_savings(a, cures, r->n_budget + 1, false, savings);
  for (u32 i = 0; i < r->n_budget; i++) {
    struct budget_line *line = &r->budget[i];
    if (cures[i].n)
      line->recoverable = savings[i].ms * steps / 1e3;
  }
}

void budget_analyse(struct analysis *a) {
  struct results *r = a->results;
  u32 n;
  struct rank_summary sum = add_ranks(a, &n, true);
  r->budget = arena_array(a->arena, MAX_LINES, sizeof(*r->budget));
  bool known = n > 0;
  if (!known)
    sum = add_ranks(a, &n, false);
  if (n == 0)
    return;
  double other_s = ns_to_s((double)sum.other_steps / n);
  r->wall_s = ns_to_s((double)sum.total / n) + other_s;
  r->analysed_s = a->whole_run ? r->wall_s : r->analysed_s;
  if (known) {
    known_lines(a, &sum, n);
  } else {
    add_line(a, BUDGET_NOT_SEEN, r->wall_s - other_s, 0, 0);
  }
  if (other_s > 0)
    add_line(a, BUDGET_OTHER_THAN_TRAINING, other_s, 0, 0);
  r->residual_s = r->wall_s;
  FOR_EACH(r->budget, r->n_budget, line)
    r->residual_s -= line->seconds;
  fill_recoverable(a, (double)sum.steps / n);
}
