/* SPDX-License-Identifier: MIT
 *
 * How far apart the clocks of several ranks can be.
 */
#pragma once

#include <math.h>

#include "model/model.h"

/* The largest model_clock_error_ns() between two of these ranks, of which INDEX_NONE is none; 0 for
 * none. It is that between the rank whose clock is least known and another, or between two that
 * share a clock. */
static inline double widest_clock_error_ns(const struct model *model, const u32 *ranks, u32 n) {
  const u32 *least_known =
      LARGEST(ranks, n, one, *one != INDEX_NONE, model->ranks[*one].clock.error_us);
  return MOST_OF(double, ranks, n, one,
                 *one == INDEX_NONE ? 0
                                    : fmax(model_clock_error_ns(model, *one, *one),
                                           model_clock_error_ns(model, *least_known, *one)));
}
