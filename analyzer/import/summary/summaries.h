/* SPDX-License-Identifier: MIT
 *
 * The summaries of a run, from any number of files: one of each rank.
 */
#pragma once

#include "import/summary/summary_file.h"
#include "model/model.h"

struct known_summary {
  struct summary_entry entry;
  const char *path; /* of its file */
};

/* What a node knows of the whole run. Only the first rank of a file has notes and attempts. */
struct run_facts {
  const char *run, *command, *recorder, *marks_are;
  u32 world_size;
  bool traces;             /* they were libtscope's */
  u32 attempt, n_attempts; /* as in struct model */
  i64 began_realtime_ns;
  struct attempt *attempts;
  const char **notes;
  u32 n_notes;
};

/* The ranks whose facts were there when something was found, as stretches of numbers. */
struct rank_stretch {
  u32 first, n;
};
struct settled_ranks {
  struct rank_stretch *at;
  u32 n;
};

/* Merging: the one of two summaries of a rank that is kept. The order of all summaries is total, so
 * merging is associative, commutative and idempotent. */
const struct known_summary *summary_better(const struct known_summary *a,
                                           const struct known_summary *b);

/* The files of summaries among the paths, and in folders among them; how many. */
u32 summary_files_in(const char *const *paths, u32 n_paths, struct arena *arena,
                     const char ***files);

/* Sorted by rank, each once. Files that cannot be read become notes of the model. `run`: the one
 * that is wanted, NULL for the newest. 0, or negative errno with a line in `why`. */
int summaries_merge(const char *const *paths, u32 n_paths, const char *run, struct model *model,
                    struct known_summary **all, u32 *n, char *why, size_t why_bytes);

/* What was found beside the same facts, with the same options, has the same stamp. */
u64 summary_stamp_begin(const struct model_options *options);
u64 summary_stamp_add(u64 stamp, const struct summary_entry *entry);

void carry_run_facts(struct carrier *c, struct run_facts *facts);
void carry_settled(struct carrier *c, struct settled_ranks *settled);
bool settled_has(const struct settled_ranks *settled, u32 rank);

/* Adds the ranks of summaries, of which the model has none yet, before ranks are joined; what it
 * answers about them from then on. `all` must live as long as the model. What cannot be used, and
 * why, becomes a note. */
void summaries_add(struct model *model, const struct known_summary *all, u32 n,
                   const struct model_options *options);
