/* SPDX-License-Identifier: MIT
 *
 * What a step would take if something about it were different: each sample's dependency graph is
 * replayed in topological order with other durations.
 */
#pragma once

#include "analyses/analysis.h"
#include "analyses/path/cure.h"

struct sample_graph;
struct replay;
struct runs;
struct sample_outcome;

/* Prepares a joined sample, which must outlive the replay, and replays it without changes: fills
 * `replayed`, `measured` and `contradictions` of the outcome. */
void replay_new(const struct analysis *a, u32 sample, const struct sample_graph *graph,
                struct runs *runs, struct sample_outcome *outcome, struct replay **replay);
void replay_free(struct replay *replay);

/* What each of n cures saves, in all samples. With `exposed` also how much less communication is
 * exposed. Not from several threads at once. */
void replay_savings(const struct analysis *a, const struct cure *cures, u32 n, bool exposed,
                    struct saving *savings);

/* Whether a saving is more than the replay can tell. */
bool saving_pays(const struct saving *saving, double step_ms);

/* The same for questions that are many: of the first sample only, and not kept, if all samples
 * together would visit more than so many nodes. */
void replay_many_savings(const struct analysis *a, const struct cure *cures, u32 n, double visits,
                         struct saving *savings);

/* How many nodes the first sample has, 0 if there is none. */
u32 replay_first_nodes(const struct analysis *a);

/* Work of one name and kind, in all samples and on all ranks. */
struct work_of_name {
  u32 label; /* path_labels.h */
  u32 kind;  /* enum node_kind */
  double ns; /* but 0 for collectives, which also wait */
  bool listed;
};

/* All of them; to be freed by the caller. */
void replay_names(const struct analysis *a, struct work_of_name **works, u32 *n);

/* The cure that makes this change alone, in the analysis' arena. */
struct cure cure_by(const struct analysis *a, struct cure_change change);

/* Whether a cure makes this change. */
bool cure_has(const struct analysis *a, const struct cure *cure, const struct cure_change *change);

/* How much more time than the median of its peers each rank spends on its own work, ms a step:
 * [n_ranks]. Zeroes where there is no replay. */
void replay_excess(const struct analysis *a, double *excess_ms);

/* Without launches the replay cannot tell what a rank's GPU and its host wait for. */
bool replay_knows_waits(const struct analysis *a, u32 rank);

/* What part of the critical path is on a rank (index). */
double share_of_path(const struct results *r, u32 rank);

/* The rank on which most of the critical path lies, if that is more than its part; INDEX_NONE. */
u32 rank_of_path(const struct results *r);

/* Names that rank a straggler if steps would be shorter with it as fast as its peers, by more than
 * chance; false if it does not. */
bool name_straggler_of_path(struct analysis *a);
