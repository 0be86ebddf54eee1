/* SPDX-License-Identifier: MIT */
#include "model/core_times.h"

#include <math.h>

static void add_total(struct core_times *to, const struct rank_look *look, double part) {
  to->cpu_s += part * (double)look->cpu_ns / 1e9;
  to->wait_s += part * (double)look->wait_ns / 1e9;
  to->training_wait_s += part * (double)look->training_wait_ns / 1e9;
}

/* Running totals at an instant, times `sign`. */
static void add_totals_at(struct core_times *to, const struct rank *rank, i64 time, double sign) {
  const struct rank_look *looks = rank->looks;
  u32 next = 0;
  while (next < rank->n_looks && looks[next].time < time)
    next++;
  if (next == 0 || next == rank->n_looks) {
    add_total(to, &looks[next ? next - 1 : 0], sign);
    return;
  }
  double begin = (double)looks[next - 1].time, end = (double)looks[next].time;
  double part = ((double)time - begin) / (end - begin);
  add_total(to, &looks[next - 1], sign * (1 - part));
  add_total(to, &looks[next], sign * part);
}

bool core_times_add(struct core_times *to, const struct rank *rank, struct interval when) {
  if (rank->n_looks < 2 || when.start >= when.end)
    return false;
  add_totals_at(to, rank, when.end, 1);
  add_totals_at(to, rank, when.start, -1);
  return true;
}

double core_times_lack_s(struct core_times own, struct core_times peers) {
  return peers.cpu_s > 0 ? own.wait_s - own.cpu_s * peers.wait_s / peers.cpu_s : NAN;
}
