/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/trace_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "base/vector.h"
#include "import/import.h"

struct finding_traces {
  on_path *each;
  void *user;
};

static void find_trace(void *user, const char *path) {
  const struct finding_traces *finding = user;
  if (text_ends_with(path, TSCOPE_FILE_SUFFIX))
    finding->each(finding->user, path);
}

int trace_paths_find(const char *path, on_path *each, void *user) {
  struct stat status;
  if (stat(path, &status) < 0)
    return -errno;
  if (S_ISDIR(status.st_mode))
    return folder_visit(path, FOLDERS_DEEP, find_trace, &(struct finding_traces){each, user});
  each(user, path);
  return 0;
}

struct found {
  struct arena *arena;
  VECTOR(struct trace_entry) entries;
};

/* The folder that a file is in, for a run whose files say nothing. */
static const char *name_of_folder(struct arena *arena, const char *path) {
  return strchr(path, '/') ? last_part(folder_of(arena, path)) : path;
}

static void add_entry(void *user, const char *path) {
  struct found *found = user;
  struct trace_entry entry = {.path = arena_text(found->arena, path)};
  VECTOR_PUSH(&found->entries, entry);
}

static void read_header(void *user, u32 index, unsigned worker) {
  struct trace_entry *entry = &((struct found *)user)->entries.at[index];
  struct trace_file file;
  char why[256];
  (void)worker;
  if (trace_file_open(&file, entry->path, why, sizeof(why)) < 0) {
    struct stat facts;
    entry->problem = memory_text(why);
    entry->bytes = stat(entry->path, &facts) == 0 ? (u64)facts.st_size : 0;
  } else {
    entry->header = file.header;
    entry->bytes = file.bytes;
    trace_file_close(&file);
  }
}

static void read_headers(struct found *found, unsigned threads) {
  parallel_for(found->entries.n, threads, read_header, found);
  FOR_EACH_CHANGED(found->entries.at, found->entries.n, entry) {
    SCOPED char *problem = (char *)(uintptr_t)entry->problem;
    entry->problem = arena_text(found->arena, problem);
  }
}

ORDER_BY(by_run, struct trace_entry, BY_TEXT(run) BY_TEXT(path))

struct named_entry {
  const char *run, *name;
  bool is_in_own_folder;
  struct trace_entry *entry;
};

ORDER_BY(by_name, struct named_entry, BY_TEXT(run) BY_TEXT(name) DOWN(is_in_own_folder))

/* Names of files are of one process each. A second one of the same run and name is a copy that
 * somebody made of the run's folder: a run of its own, called as its folder. */
static void part_copies(struct arena *arena, struct trace_entry *entries, u32 n) {
  SCOPED struct named_entry *named = memory_array(size_sum(n, 1), sizeof(*named));
  for (u32 i = 0; i < n; i++)
    named[i] = (struct named_entry){
        entries[i].run, last_part(entries[i].path),
        strcmp(name_of_folder(arena, entries[i].path), entries[i].run) == 0, &entries[i]};
  SORT(named, n, by_name);
  for (u32 i = 1; i < n; i++)
    if (strcmp(named[i].run, named[i - 1].run) == 0 &&
        strcmp(named[i].name, named[i - 1].name) == 0)
      named[i].entry->run = name_of_folder(arena, named[i].entry->path);
}

static void name_runs(struct arena *arena, struct trace_entry *entries, u32 n) {
  FOR_EACH_CHANGED(entries, n, entry)
    entry->run = entry->header.run[0] ? arena_text(arena, entry->header.run)
                                      : name_of_folder(arena, entry->path);
  part_copies(arena, entries, n);
}

ORDER_BY(newest_first, struct trace_run, DOWN(start_realtime_ns) BY_TEXT(id))

void trace_runs_group(struct arena *arena, struct trace_entry *entries, u32 n,
                      struct trace_runs *runs) {
  struct trace_run *list = arena_array(arena, n, sizeof(*list)), *run = NULL;
  *runs = (struct trace_runs){.runs = list};
  name_runs(arena, entries, n);
  SORT(entries, n, by_run);
  FOR_EACH_CHANGED(entries, n, entry) {
    if (!run || strcmp(run->id, entry->run) != 0) {
      run = &list[runs->n_runs++];
      *run = (struct trace_run){.id = entry->run, .entries = entry};
    }
    run->n_entries++;
    run->n_readable += !entry->problem;
    run->start_realtime_ns = MAX(entry->header.start_realtime_ns, run->start_realtime_ns);
  }
  SORT(list, runs->n_runs, newest_first);
}

int trace_runs_find(const char *const *paths, u32 n, unsigned threads, struct arena *arena,
                    struct trace_runs *runs, char *why, size_t why_bytes) {
  struct found found = {.arena = arena};
  int result = 0;
  u32 at = 0;
  *runs = (struct trace_runs){0};
  for (u32 i = 0; i < n && result == 0; i++)
    result = trace_paths_find(paths[at = i], add_entry, &found);
  if (result < 0)
    snprintf(why, why_bytes, "%s: %s. " GIVE_THE_DIRECTORY, paths[at], strerror(-result));
  else if (found.entries.n == 0) {
    snprintf(why, why_bytes, "%s: no traces (*%s) here. " WAS_IT_RUN, paths[0], TSCOPE_FILE_SUFFIX);
    result = -ENOENT;
  } else {
    read_headers(&found, threads);
    trace_runs_group(arena, VECTOR_KEPT(&found.entries, arena), found.entries.n, runs);
    result = 0;
  }
  free(found.entries.at);
  return result;
}

const struct trace_run *trace_runs_choose(const struct trace_runs *runs, const char *name,
                                          char *why, size_t why_bytes) {
  const struct trace_run *chosen = NULL;
  bool several = false;
  FOR_EACH(runs->runs, runs->n_runs, run) {
    if (same_text(run->id, name))
      return run;
    if (name && text_starts_with(run->id, name)) {
      several = chosen != NULL;
      chosen = run;
    }
    if (!name && run->n_readable > 0)
      return run;
  }
  if (several)
    snprintf(why, why_bytes, "several runs start with \"%s\"; tscope list shows them", name);
  else if (!chosen && name)
    snprintf(why, why_bytes, "no run is called \"%s\"; tscope list shows all runs", name);
  else if (!chosen && runs->n_runs)
    snprintf(why, why_bytes, "%s %s", runs->runs[0].entries[0].path,
             runs->runs[0].entries[0].problem);
  return several ? NULL : chosen;
}
