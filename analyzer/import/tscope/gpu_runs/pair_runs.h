/* SPDX-License-Identifier: MIT
 *
 * What all ways of pairing calls with the kernels that they ran as share.
 */
#pragma once

#include "kernels/communication.h"
#include "model/rank_events.h"

/* Whether the call put a kernel on the GPU that has not been found yet. A communicator of one rank
 * launches nothing that the GPU would show as a collective. */
bool launches_kernel(const struct rank_events *events, const struct rank_call *call);

/* Adds the runs of collectives that copy engines ran, from their copies, and gives up the copies.
 * Before anything refers to a run. */
void runs_from_copies(struct rank_events *events);

/* Pairs the calls of graphs with the runs of their replays, and marks those runs in `run_taken`.
 * What ran in a graph is known by its correlation id: a replay is one call of the process. Which
 * kernel of the replay it was is known from its node; nodes are numbered in the order of capture.
 * Without that, order of time is all there is, for each kind of kernel of which as many ran as were
 * called. */
void pair_replays(struct rank_events *events, bool *run_taken);
