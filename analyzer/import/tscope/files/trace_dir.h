/* SPDX-License-Identifier: MIT
 *
 * Which trace files there are and which runs they belong to.
 */
#pragma once

#include "base/arena.h"
#include "base/folders.h"
#include "import/tscope/files/trace_file.h"

struct trace_entry {
  const char *path;
  const char *run;     /* identity from the header; the folder's name where there is no header, and
                          of a copy */
  const char *problem; /* why the file cannot be read at all, NULL if it can */
  struct tscope_file_header header; /* zero where there is a problem */
  u64 bytes;
  u32 number; /* of the file, to who follows it */
};

/* The files of one run are adjacent in `entries`. */
struct trace_run {
  const char *id;
  struct trace_entry *entries;
  u32 n_entries;
  u32 n_readable;
  u64 start_realtime_ns; /* of the process that started last; 0 if none can be read */
};

struct trace_runs {
  struct trace_run *runs; /* newest first */
  u32 n_runs;
};

/* Calls for each trace at the path, which is that of a directory of runs, of one run's, or of one
 * file. 0, or negative errno if nothing is there. */
int trace_paths_find(const char *path, on_path *each, void *user);

/* The runs of the entries of a directory, by their paths and headers: sets `run` of each, and sorts
 * them. What is found lives in `arena` and in the entries. */
void trace_runs_group(struct arena *arena, struct trace_entry *entries, u32 n,
                      struct trace_runs *runs);

/* Finds the traces at each of the paths: a directory of runs, one run's directory, or one file.
 * Headers are read on up to `threads` threads (0: one per core). Everything lives in `arena`. 0, or
 * negative errno with one line saying what is wrong and what to do. */
int trace_runs_find(const char *const *paths, u32 n, unsigned threads, struct arena *arena,
                    struct trace_runs *runs, char *why, size_t why_bytes);

/* The run called `name` or the only one whose identity starts with it; the newest readable one
 * for NULL. NULL with a line in `why` when there is none or several. */
const struct trace_run *trace_runs_choose(const struct trace_runs *runs, const char *name,
                                          char *why, size_t why_bytes);
