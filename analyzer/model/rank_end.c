/* SPDX-License-Identifier: MIT */
#include "model/rank_end.h"
#include "model/rank_clock.h"

void rank_end_place(struct rank_end *end, const struct rank_clock *clock) {
  i64 *const instants[] = {&end->end,          &end->alive,        &end->reaped,
                           &end->exception_at, &end->last_line_at, &end->failed_at};
  FOR_EACH(instants, LENGTH_OF(instants), instant)
    **instant = clock_to_axis(clock, **instant);
}
