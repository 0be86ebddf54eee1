/* SPDX-License-Identifier: MIT
 *
 * Whether two processes took part in the same collectives. Communicators of gloo are called alike
 * in every start of a job. But nobody ends a collective before all have started it: so where no
 * distance between the two clocks allows that for the calls of the same numbers, these were others.
 */
#pragma once

#include "model/rank_events.h"

/* Not known: too few of them, or one process ended long before the other. */
enum common_calls { CALLS_NOT_KNOWN, CALLS_ARE_COMMON, CALLS_ARE_OTHERS };

enum common_calls common_calls_of(const struct rank_events *a, const struct rank_events *b);
