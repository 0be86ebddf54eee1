/* SPDX-License-Identifier: MIT */
#include "model/stalls.h"

#include "model/building.h"

void rank_stalls_place(struct rank_stall *stalls, u32 n, const struct rank_clock *clock) {
  for (u32 i = 0; i < n; i++) {
    stalls[i].begin = clock_to_axis(clock, stalls[i].begin);
    stalls[i].looked = clock_to_axis(clock, stalls[i].looked);
    stalls[i].end = clock_to_axis(clock, stalls[i].end);
  }
}
