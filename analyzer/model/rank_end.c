/* SPDX-License-Identifier: MIT */
#include "model/rank_end.h"
#include "model/rank_clock.h"

void rank_end_place(struct rank_end *end, const struct rank_clock *clock) {
  i64 *const instants[] = {&end->end,          &end->alive,        &end->reaped,
                           &end->exception_at, &end->last_line_at, &end->failed_at};
  for (size_t i = 0; i < LENGTH_OF(instants); i++)
    *instants[i] = clock_to_axis(clock, *instants[i]);
}
