/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/trace_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/checked_memory.h"

struct found {
  struct arena *arena;
  struct trace_entry *entries;
  u32 n, room;
};

static void add_entry(struct found *found, const char *path, const char *folder) {
  if (found->n == found->room) {
    u32 room = found->room ? found->room * 2 : 64;
    struct trace_entry *more = memory_resized(found->entries, room, sizeof(*more));
    found->entries = more;
    found->room = room;
  }
  struct trace_entry *entry = &found->entries[found->n];
  *entry = (struct trace_entry){.path = arena_text(found->arena, path)};
  struct trace_file file;
  char why[256];
  if (trace_file_open(&file, path, why, sizeof(why)) < 0) {
    entry->problem = arena_text(found->arena, why);
  } else {
    entry->header = file.header;
    entry->bytes = file.bytes;
    trace_file_close(&file);
  }
  const char *run = entry->header.run[0] ? entry->header.run : folder;
  entry->run = arena_text(found->arena, run);
  found->n++;
}

static bool is_trace_name(const char *name) {
  size_t length = strlen(name), suffix = strlen(TSCOPE_FILE_SUFFIX);
  return name[0] != '.' && length > suffix &&
         strcmp(name + length - suffix, TSCOPE_FILE_SUFFIX) == 0;
}

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

/* Adds the traces in a directory, and of the directories in it down to `depth`. */
static int search(struct found *found, const char *path, unsigned depth) {
  DIR *directory = opendir(path);
  if (!directory)
    return -errno;
  for (struct dirent *item; (item = readdir(directory));) {
    if (item->d_name[0] == '.')
      continue;
    char *inner = arena_printf(found->arena, "%s/%s", path, item->d_name);
    struct stat status;
    if (is_trace_name(item->d_name))
      add_entry(found, inner, last_part(path));
    else if (depth > 0 && lstat(inner, &status) == 0 && S_ISDIR(status.st_mode))
      search(found, inner, depth - 1); /* a folder we may not read hides only itself */
  }
  closedir(directory);
  return 0;
}

static int by_run(const void *left, const void *right) {
  const struct trace_entry *a = left, *b = right;
  int order = strcmp(a->run, b->run);
  return order ? order : strcmp(a->path, b->path);
}

static int newest_first(const void *left, const void *right) {
  const struct trace_run *a = left, *b = right;
  if (a->start_realtime_ns != b->start_realtime_ns)
    return a->start_realtime_ns > b->start_realtime_ns ? -1 : 1;
  return strcmp(a->id, b->id);
}

static void group_runs(struct found *found, struct trace_runs *runs) {
  struct trace_entry *entries = arena_array(found->arena, found->n, sizeof(*entries));
  struct trace_run *list = arena_array(found->arena, found->n, sizeof(*list));
  memcpy(entries, found->entries, found->n * sizeof(*entries));
  qsort(entries, found->n, sizeof(*entries), by_run);
  struct trace_run *run = NULL;
  for (u32 i = 0; i < found->n; i++) {
    struct trace_entry *entry = &entries[i];
    if (!run || strcmp(run->id, entry->run) != 0) {
      run = &list[runs->n_runs++];
      *run = (struct trace_run){.id = entry->run, .entries = entry};
    }
    run->n_entries++;
    run->n_readable += !entry->problem;
    if (entry->header.start_realtime_ns > run->start_realtime_ns)
      run->start_realtime_ns = entry->header.start_realtime_ns;
  }
  qsort(list, runs->n_runs, sizeof(*list), newest_first);
  runs->runs = list;
}

/* The folder that a file is in, for a run whose files say nothing. */
static const char *folder_of(struct found *found, const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash ? arena_copy(found->arena, path, (size_t)(slash - path)) : NULL;
  return folder && *folder ? last_part(folder) : path;
}

static int find_at(struct found *found, const char *path) {
  struct stat status;
  if (stat(path, &status) < 0)
    return -errno;
  if (S_ISDIR(status.st_mode))
    return search(found, path, 2);
  add_entry(found, path, folder_of(found, path));
  return 0;
}

int trace_runs_find(const char *const *paths, u32 n, struct arena *arena, struct trace_runs *runs,
                    char *why, size_t why_bytes) {
  struct found found = {.arena = arena};
  int result = 0;
  u32 at = 0;
  *runs = (struct trace_runs){0};
  for (u32 i = 0; i < n && result == 0; i++)
    result = find_at(&found, paths[at = i]);
  if (result < 0)
    snprintf(why, why_bytes, "%s: %s. Give the directory the job wrote to (TSCOPE_DIR).", paths[at],
             strerror(-result));
  else if (found.n == 0) {
    snprintf(why, why_bytes,
             "%s: no traces (*%s) here. Was the job run with tscope run, or libtscope.so "
             "preloaded, and did it "
             "train?",
             paths[0], TSCOPE_FILE_SUFFIX);
    result = -ENOENT;
  } else {
    group_runs(&found, runs);
    result = 0;
  }
  free(found.entries);
  return result;
}

const struct trace_run *trace_runs_choose(const struct trace_runs *runs, const char *name,
                                          char *why, size_t why_bytes) {
  const struct trace_run *chosen = NULL;
  bool several = false;
  for (u32 i = 0; i < runs->n_runs; i++) {
    const struct trace_run *run = &runs->runs[i];
    if (name && strcmp(run->id, name) == 0)
      return run;
    if (name && strncmp(run->id, name, strlen(name)) == 0) {
      several = chosen != NULL;
      chosen = run;
    }
    if (!name && run->n_readable > 0)
      return run;
  }
  if (several)
    snprintf(why, why_bytes, "several runs start with \"%s\"; --list shows them", name);
  else if (!chosen && name)
    snprintf(why, why_bytes, "no run is called \"%s\"; --list shows all runs", name);
  else if (!chosen)
    snprintf(why, why_bytes, "%s %s", runs->runs[0].entries[0].path,
             runs->runs[0].entries[0].problem);
  return several ? NULL : chosen;
}
