/* SPDX-License-Identifier: MIT
 *
 * From directories of traces to a model.
 */
#pragma once

#include "import/tscope/files/trace_dir.h"
#include "model/rank_events.h"

/* Reads tscope traces, at each path a tscope directory, a run's directory or one file, into an
 * empty model. 0, or negative errno with a one-line reason and remedy in `why`; then the model can
 * only be freed with model_free(), or hold facts of other inputs. */
int model_read_runs(struct model *model, const char *const *paths, u32 n,
                    const struct model_options *options, char *why, size_t why_bytes);

/* model_new() and model_read_runs() of one path. */
int model_load(const char *path, const struct model_options *options, struct model **model,
               char *why, size_t why_bytes);

/* Reads the events of a rank that is in the model without its trace, as from a summary, from the
 * file at its path, after ranks were joined. The file must be the one that its process wrote, with
 * as many records as the model knows. 0, or negative errno with a reason that follows the file's
 * name. */
int trace_read_again(const struct model *model, u32 rank, struct kernel_names *kernel_names,
                     struct rank_events *events, char *why, size_t why_bytes);

/* A run with the other runs that are the same job (processes_add_other_runs()). */
struct trace_job {
  struct trace_run files; /* of all these */
  u32 attempts;           /* how often it was started */
  u32 *attempt_of; /* [files.n_entries] which of these starts a file belongs to, from 1 on, the
                      oldest first; 0 if it cannot be read. NULL if all are of one */
  bool *with;      /* [runs->n_runs] the other runs */
};

/* Whether a rank of the run, of which these are the processes, is there twice or may be in another
 * run, as far as headers tell: then only what is in the files shows who is which rank. */
struct processes;
bool trace_ranks_are_unclear(const struct trace_runs *runs, const struct trace_run *run,
                             const struct processes *processes);

/* The job of runs->runs[number]; what it points to is in the arena. */
void trace_job_find(struct trace_job *job, const struct trace_runs *runs, u32 number,
                    struct arena *arena);
