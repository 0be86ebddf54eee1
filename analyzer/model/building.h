/* SPDX-License-Identifier: MIT
 *
 * What an importer needs to put ranks into a model, and to read more about them later.
 */
#pragma once

#include "base/arena.h"
#include "model/model.h"
#include "model/rank_clock.h"
#include "model/rank_events.h"

struct arena *model_arena(struct model *model);

/* Room for n ranks and their events. The importer fills model.ranks, in order of their global
 * number, and events, in the ranks' own clocks; join/join_ranks.h does the rest. */
void model_make_ranks(struct model *model, u32 n);

/* Room for n further ranks and their events, behind those that are there. Once they are filled,
 * model_sort_ranks() puts all in order of their global number. */
void model_add_ranks(struct model *model, u32 n);
void model_sort_ranks(struct model *model);

/* Sets host_number of all ranks, and n_hosts. */
void model_number_hosts(struct model *model);

/* The events of a rank, which the model releases. */
struct rank_events *model_events(const struct model *model, u32 rank);

/* The model as it is, but with these events of one rank. Only for reading; to be freed with free()
 * before the model. */
struct model *model_with_events(const struct model *model, u32 rank,
                                const struct rank_events *events);

/* The clock of a rank, once ranks are joined. */
const struct rank_clock *model_clock(const struct model *model, u32 rank);

/* When the host of a rank captured CUDA graphs, on the axis: for its timeline. */
void model_captures(const struct model *model, u32 rank, struct arena *arena,
                    struct intervals *captures);

/* Index into model.comms of a communicator from a rank's own list; INDEX_NONE. */
u32 model_comm_of(const struct model *model, u32 rank, u32 comm);

/* How far a stage is, to whoever wants to know. */
void model_report_progress(const struct model_options *options, const char *what, double fraction);

/* Data of the importer, for its timelines; freed with the model. */
void model_set_imported(struct model *model, void *imported, void (*free_imported)(void *imported));
const void *model_imported(const struct model *model);

/* What the marks of steps are, if they are not calls of tscope_step(). */
void model_name_marks(struct model *model, const char *marks_are);
