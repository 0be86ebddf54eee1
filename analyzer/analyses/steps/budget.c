/* SPDX-License-Identifier: MIT
 *
 * Where the time of the analysed steps went, mean over ranks: lines that add up to the wall time.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"

#define MAX_LINES 12

static void add_line(struct results *r, enum budget_part part, double seconds, double recoverable) {
  r->budget[r->n_budget++] =
      (struct budget_line){part, seconds, r->wall_s > 0 ? seconds / r->wall_s : NAN, recoverable};
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
    sum.total += rank->total;
    sum.other_steps += rank->other_steps;
    sum.compute += rank->compute;
    sum.exposed_comm += rank->exposed_comm;
    sum.all.comm += rank->all.comm;
    sum.all.wait += rank->all.wait;
    sum.all.transfer += rank->all.transfer;
    sum.exposed_memcpy += rank->exposed_memcpy;
    sum.idle += rank->idle;
    sum.data_stall += rank->data_stall;
    sum.host_bound += rank->host_bound;
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
static void add_compute(struct results *r, double seconds, double training_s) {
  double at_peak = r->mfu * training_s;
  if (!(at_peak > 0) || !(at_peak < seconds)) {
    add_line(r, BUDGET_COMPUTE, seconds, NAN);
    return;
  }
  add_line(r, BUDGET_COMPUTE_AT_PEAK, at_peak, NAN);
  add_line(r, BUDGET_COMPUTE_BEYOND, seconds - at_peak, fmax(0, seconds - at_peak / MFU_TUNED));
}

static void known_lines(struct results *r, const struct rank_summary *sum, double n) {
  double to_s = 1e-9 / n;
  i64 unsplit = sum->exposed_comm - sum->all.wait - sum->all.transfer;
  double transfer = (double)sum->all.transfer * to_s;
  /* Transfers can only be hidden by compute that does not hide any yet. */
  double room = (double)(sum->compute - (sum->all.comm - sum->exposed_comm)) * to_s;
  i64 other = sum->has_phases ? sum->idle - sum->data_stall - sum->host_bound : 0;
  i64 launch = sum->idle - sum->data_stall - other;
  add_compute(r, (double)sum->compute * to_s, (double)sum->total * to_s);
  if (sum->has_input)
    add_line(r, BUDGET_INPUT, (double)sum->data_stall * to_s, (double)sum->data_stall * to_s);
  add_line(r, BUDGET_RANKS, (double)sum->all.wait * to_s, (double)sum->all.wait * to_s);
  add_line(r, BUDGET_COMMUNICATION, transfer, transfer < room ? transfer : room > 0 ? room : 0);
  if (unsplit)
    add_line(r, BUDGET_COMMUNICATION_OR_WAIT, (double)unsplit * to_s, NAN);
  add_line(r, BUDGET_MEMCPYS, (double)sum->exposed_memcpy * to_s,
           (double)sum->exposed_memcpy * to_s);
  add_line(r, sum->on_gpu ? BUDGET_LAUNCH_AND_IDLE : BUDGET_IDLE_IN_PHASES, (double)launch * to_s,
           sum->on_gpu ? (double)launch * to_s : NAN);
  if (sum->has_phases)
    add_line(r, outside_phases(sum), (double)other * to_s,
             sum->on_gpu ? (double)other * to_s : NAN);
}

static int list_lines(struct analysis *a) {
  struct results *r = a->results;
  u32 n;
  struct rank_summary sum = add_ranks(a, &n, true);
  r->wall_s = r->residual_s = NAN;
  r->budget = arena_array(a->arena, MAX_LINES, sizeof(*r->budget));
  if (!r->budget)
    return -ENOMEM;
  bool known = n > 0;
  if (!known)
    sum = add_ranks(a, &n, false);
  if (n == 0)
    return 0;
  double other_s = (double)sum.other_steps / n / 1e9;
  r->wall_s = (double)sum.total / n / 1e9 + other_s;
  r->looked_at_s = a->whole_run ? r->wall_s : r->looked_at_s;
  if (known)
    known_lines(r, &sum, n);
  else
    add_line(r, BUDGET_NOT_SEEN, r->wall_s - other_s, NAN);
  if (other_s > 0)
    add_line(r, BUDGET_OTHER_THAN_TRAINING, other_s, NAN);
  r->residual_s = r->wall_s;
  for (u32 i = 0; i < r->n_budget; i++)
    r->residual_s -= r->budget[i].seconds;
  return 0;
}

int budget_analyse(struct analysis *a) {
  return list_lines(a);
}
