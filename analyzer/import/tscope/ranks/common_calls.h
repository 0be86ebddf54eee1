/* SPDX-License-Identifier: MIT
 *
 * Whether two processes took part in the same collectives. Communicators of gloo are called alike
 * in every start of a job, but ranks end a collective together: so their distances in time are the
 * same on both, whatever their clocks are, and others in each start.
 */
#ifndef TSCOPE_COMMON_CALLS_H
#define TSCOPE_COMMON_CALLS_H

#include "model/rank_events.h"

enum common_calls { CALLS_NOT_KNOWN, CALLS_ARE_COMMON, CALLS_ARE_OTHERS };

enum common_calls common_calls_of(const struct rank_events *a, const struct rank_events *b);

#endif
