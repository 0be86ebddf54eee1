/* SPDX-License-Identifier: MIT */
#include "analyses/path/step_paths.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/path/path_labels.h"

struct step_paths {
  struct analysis analysis; /* what was known, with its own graph */
  struct graph graph;
  struct arena arena;
  i64 *by_rank; /* [n_ranks] not used, but kept by the walk */
};

void step_paths_new(const struct analysis *done, const struct sample *rows, u32 n_rows,
                    struct step_paths **out) {
  u32 n_ranks = done->model->n_ranks;
  struct step_paths *paths = *out = memory_zeroed(1, sizeof(*paths));
  paths->analysis = *done;
  paths->analysis.arena = &paths->arena;
  paths->analysis.graph = &paths->graph;
  paths->graph.samples = arena_elements(&paths->arena, rows, n_rows, sizeof(*paths->graph.samples));
  paths->graph.slices =
      arena_array(&paths->arena, size_product(n_rows, n_ranks), sizeof(*paths->graph.slices));
  paths->graph.outcomes = arena_array(&paths->arena, n_rows, sizeof(*paths->graph.outcomes));
  paths->by_rank = arena_array(&paths->arena, n_ranks, sizeof(i64));
  path_labels_new(&paths->graph.labels);
  paths->graph.n_samples = n_rows;
}

void step_paths_free(struct step_paths *paths) {
  if (!paths)
    return;
  graph_free(&paths->analysis);
  arena_release(&paths->arena);
  free(paths);
}

void step_paths_add_rank(struct step_paths *paths, const struct timeline *timeline) {
  slice_cut(&paths->analysis, timeline);
}

void step_paths_walk(struct step_paths *paths, u32 row, struct path_segment **segments, u32 *n) {
  struct sample_graph joined;
  struct sample_outcome *outcome = &paths->graph.outcomes[row];
  outcome->by_rank = paths->by_rank;
  *segments = NULL;
  *n = 0;
  if (sample_graph_join(&paths->analysis, row, &joined) && joined.n) {
    critical_path_walk(&joined, outcome);
    *segments = outcome->segments.at;
    *n = outcome->segments.n;
    memset(&outcome->segments, 0, sizeof(outcome->segments));
  }
  sample_graph_free(&joined);
}

const char *step_paths_name(struct step_paths *paths, u32 label) {
  const char *shortened;
  return path_label_name(&paths->analysis, label, &shortened) ? shortened : NULL;
}
