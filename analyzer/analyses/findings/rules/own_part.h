/* SPDX-License-Identifier: MIT
 *
 * How much a rank holds of what is divided among ranks, such as parameters whose optimizer state
 * each rank has a part of: each broadcasts its part when it has changed.
 */
#pragma once

#include "analyses/findings/findings.h"

struct own_part {
  double bytes, of_peers; /* that it broadcasts in a step, and the median of the others; 0: its part
                             is no larger, or not known */
};

struct own_part find_own_part(const struct findings *f, u32 rank);
