/* SPDX-License-Identifier: MIT
 *
 * How long the threads of a rank had a core, and how long they were runnable and had none, in part
 * of the run: from the running totals that the kernel keeps
 * (Documentation/scheduler/sched-stats.rst).
 */
#pragma once

#include "base/intervals.h"
#include "model/model.h"

/* Of all threads of the process together; of several ranks or stretches: their sum. */
struct core_times {
  double cpu_s, wait_s, training_wait_s; /* as in struct rank_scheduling */
};

/* Adds those of a rank between two instants; false where its totals are not known then. Between two
 * looks a total grows in proportion. */
bool core_times_add(struct core_times *to, const struct rank *rank, struct interval when);

/* How much less a rank would have waited for a core if it had waited for as long in each second of
 * CPU time as its peers did: a rank that has more to do also waits longer, and lacks nothing. Below
 * zero where its peers waited longer; NAN where its peers were never on a core. */
double core_times_lack_s(struct core_times own, struct core_times peers);
