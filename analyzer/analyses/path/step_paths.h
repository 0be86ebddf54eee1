/* SPDX-License-Identifier: MIT
 *
 * The critical path through steps that the caller chooses, after the analysis is done: for outputs
 * that draw it. The ranks' timelines are added once more, in any order; then each row of steps is
 * walked. Until it is walked, a row takes about 100 bytes for each span of all ranks in it.
 */
#pragma once

#include "analyses/path/path_graph.h"

struct step_paths;

/* Rows of steps, ascending; `done` must outlive the paths. */
void step_paths_new(const struct analysis *done, const struct sample *rows, u32 n_rows,
                    struct step_paths **paths);
void step_paths_free(struct step_paths *paths);

/* Adds what the path needs from a rank. From several threads at once. */
void step_paths_add_rank(struct step_paths *paths, const struct timeline *timeline);

/* Walks the path of a row, once. The segments come last first, and the caller must free() them;
 * there are none if no rank has the row. */
void step_paths_walk(struct step_paths *paths, u32 row, struct path_segment **segments, u32 *n);

/* A segment's label in words, shortened for people; lives as long as the paths. */
const char *step_paths_name(struct step_paths *paths, u32 label);
