/* SPDX-License-Identifier: MIT
 *
 * One rank as bytes: what an importer delivers of it, before ranks are joined, as far as joining
 * ranks and comparing them needs it. Instants are on the rank's own clock.
 */
#pragma once

#include "base/carrier.h"
#include "model/rank_events.h"

/* Writes or reads. What is read lives in the carrier's arena, the lists in memory that
 * rank_events_release() frees. If the carrier is bad afterwards, the rank is not usable, and the
 * events are to be released in any case. */
void carry_rank_facts(struct carrier *c, struct rank *rank, struct rank_events *events);

/* One frame of a stack. */
struct call_frame;
void carry_call_frame(struct carrier *c, struct call_frame *frame);
