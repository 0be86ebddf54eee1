/* SPDX-License-Identifier: MIT
 *
 * Which piece of GPU work a host call caused, if only the order is known: a stream runs its work
 * first in, first out.
 */
#pragma once

#include "base/vector.h"
#include "model/model.h"

struct ordered {
  i64 at;      /* when the call was made, or when the work started */
  u32 what;    /* what kind of work; 0 fits any */
  u32 session; /* for pair_sessions(): see rank_cupti_session() */
  u32 of;      /* the caller's number of it */
};

/* effect_of[i] becomes the effect of causes[i], or INDEX_NONE. Both lists are sorted by time. If
 * the counts and kinds agree, they are paired one to one. Otherwise some causes or effects were not
 * seen, and pairing goes back from the end: an effect cannot start before its cause (except for
 * PAIRING_SLACK_NS of clock error), so a cause after the last remaining effect has lost its own. If
 * the last effects are lost (those of a process that was killed), it continues from the front.
 * Returns the number of pairs. */
#define PAIRING_SLACK_NS 5000
u32 pair_in_order(const struct ordered *causes, u32 n_causes, const struct ordered *effects,
                  u32 n_effects, bool end_is_lost, u32 *effect_of);

/* Calls and work of several stretches of time in which the GPU clock source was open; each list is
 * in order of time, and of the caller's numbers. */
struct pairable {
  VECTOR(struct ordered) causes, effects;
};

/* Pairs them within each session; `pair` gets the caller's numbers of both. A cause of session
 * INDEX_NONE has no effect that could be seen. */
void pair_sessions(struct pairable *all, bool end_is_lost,
                   void pair(void *user, u32 cause, u32 effect), void *user);
void pairable_free(struct pairable *all);
