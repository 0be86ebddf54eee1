/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_CPU_TIMES_H
#define TSCOPE_CPU_TIMES_H

#include "model/rank_events.h"

/* Compute of a CPU job outside all phases. `training`: phases that compute, without blocked time;
 * `named`: these and the loading of input; `blocked`: waits and calls. Sets *busy, in the arena,
 * empty if no CPU clock was read. */
void cpu_times_unite(const struct rank_events *events, const struct intervals *training,
                     const struct intervals *named, const struct intervals *blocked,
                     struct arena *arena, struct intervals *busy);

#endif
