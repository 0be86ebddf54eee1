/* SPDX-License-Identifier: MIT */
#include "live/live_run.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/checked_memory.h"
#include "base/now.h"
#include "base/sorting.h"
#include "import/tscope/ranks/processes.h"
#include "kernels/kernels.h"

enum { FILES_KEPT_FREE = 64 };
/* After so many polls with the same processes, what they are to each other is known. */
enum { POLLS_UNTIL_KNOWN = 10 };
/* Up to so many ranks have all new GPU spans read at each poll, in a few chunks each; of more, so
 * many ranks' newest chunk, in turn. */
enum { RANKS_WHOLLY = 16, CHUNKS_WHOLLY = 4, RANKS_IN_TURN = 64 };

static struct live_entry *find_or_add_entry(struct live_run *run, const char *path) {
  for (u32 i = 0; i < run->entries.n; i++) { /* a folder is listed in the same order each time */
    struct live_entry *known = run->entries.at[run->listed++ % run->entries.n];
    if (strcmp(known->path, path) == 0)
      return known;
  }
  struct live_entry *entry = memory_zeroed(1, sizeof(*entry));
  entry->path = memory_text(path);
  VECTOR_PUSH(&run->entries, entry);
  entry->alive_changed = NS_UNKNOWN;
  return entry;
}

static void close_entry(struct live_entry *entry) {
  if (entry->process)
    live_process_close(entry->process);
  free(entry->process);
  entry->process = NULL;
  entry->alive_ticks = 0;
  entry->alive_changed = NS_UNKNOWN;
  entry->alive_changes = 0;
  entry->alive_gap = 0;
}

/* A process's file, opened; where it cannot be read yet, that is tried again once it has changed.
 */
static void open_file(void *user, const char *path) {
  struct live_run *run = user;
  struct stat status;
  if ((path == run->directory ? stat(path, &status) : lstat(path, &status)) < 0 ||
      !S_ISREG(status.st_mode))
    return;
  struct live_entry *entry = find_or_add_entry(run, path);
  entry->seen = true;
  bool same = entry->inode == status.st_ino && entry->device == status.st_dev;
  if (same && (entry->process || entry->bytes == (u64)status.st_size))
    return;
  if (!same)
    close_entry(entry);
  run->same_processes = 0;
  entry->inode = status.st_ino;
  entry->device = status.st_dev;
  entry->bytes = (u64)status.st_size;
  struct live_process *process = memory_array(1, sizeof(*process));
  if (live_process_open(process, path, entry->problem, sizeof(entry->problem)) < 0) {
    free(process);
    return;
  }
  if (!run->kernel_names)
    run->kernel_names = kernel_names_new(NULL, entry->problem, sizeof(entry->problem));
  process->kernel_names = run->kernel_names;
  entry->process = process;
}

static int list_files(struct live_run *run) {
  FOR_EACH(run->entries.at, run->entries.n, one)
    (*one)->seen = false;
  int error = trace_paths_find(run->directory, open_file, run);
  if (error)
    return error;
  u32 kept = 0;
  for (u32 i = 0; i < run->entries.n; i++) {
    struct live_entry *entry = run->entries.at[i];
    if (entry->seen) {
      run->entries.at[kept++] = entry;
      continue;
    }
    close_entry(entry);
    free(entry->path);
    free(entry);
    run->same_processes = 0;
  }
  run->entries.n = kept;
  return 0;
}

/* The runs of all files, as the report has them, and which of them is read. */
static void choose_run(struct live_run *run, char *why, size_t why_bytes) {
  u32 n = run->entries.n;
  arena_release(&run->arena);
  run->traces = arena_array(&run->arena, n, sizeof(*run->traces));
  for (u32 i = 0; i < n; i++) {
    struct live_entry *entry = run->entries.at[i];
    entry->of_run = false;
    run->traces[i] = (struct trace_entry){
        .number = i, .path = entry->path, .problem = entry->process ? NULL : entry->problem};
    if (entry->process)
      run->traces[i].header = entry->process->trace.file.header;
  }
  trace_runs_group(&run->arena, run->traces, n, &run->runs);
  run->chosen = trace_runs_choose(&run->runs, run->wanted, why, why_bytes);
  if (run->chosen && !run->chosen->n_readable) {
    const struct trace_entry *bad = run->chosen->entries;
    snprintf(why, why_bytes, "%s %s", bad->path, bad->problem);
    run->chosen = NULL;
  }
  snprintf(run->name, sizeof(run->name), "%s", run->chosen ? run->chosen->id : "");
  for (u32 i = 0; run->chosen && i < run->chosen->n_entries; i++)
    run->entries.at[run->chosen->entries[i].number]->of_run = !run->chosen->entries[i].problem;
}

/* What the file defines so far, and the last collectives of its process, as the report reads them.
 * Of another run, which may be the same job, nothing was read yet. */
static bool read_process(struct process *process, void *reader) {
  const struct live_run *run = reader;
  const struct live_entry *entry = run->entries.at[process->entry->number];
  struct live_process *live = entry->process;
  if (!live || (!entry->of_run && live_process_poll(live, (struct ring_share){0}) < 0))
    return false;
  process->rank = live->rank;
  process->events = live->called;
  process->events.definitions = &live->definitions.now;
  return true;
}

/* Finds the runs that are the same job, the starts of it, and its ranks, all by the report's
 * functions: the last start counts. */
static void find_ranks(struct live_run *run) {
  SCOPED_ARENA struct arena arena = {0};
  struct processes all;
  bool *added = arena_array(&arena, run->runs.n_runs, sizeof(*added));
  FOR_EACH_CHANGED(run->traces, run->entries.n, trace)
    if (run->entries.at[trace->number]->process)
      trace->header = run->entries.at[trace->number]->process->trace.file.header;
  processes_list(&all, run->chosen, &arena);
  all.read = read_process;
  all.reader = run;
  FOR_EACH_CHANGED(all.at, all.n, process)
    processes_read(&all, process);
  processes_drop_unread(&all);
  run->attempt = processes_add_other_runs(&all, &run->runs, run->chosen, added);
  run->ranks_before = 0;
  for (u32 attempt = 1; attempt <= run->attempt; attempt++)
    processes_number(&all, attempt);
  FOR_EACH(all.at, all.n, process) {
    struct live_entry *entry = run->entries.at[process->entry->number];
    entry->of_run = true;
    entry->rank = process->rank;
    entry->attempt = process->attempt;
    entry->left_out = process->left_out || process->attempt != run->attempt;
    run->ranks_before += process->attempt + 1 == run->attempt && !process->left_out;
  }
  processes_release(&all);
}

/* A communicator can be made, or the first collective called, long after a process's trace began.
 */
static bool is_more_known(struct live_run *run) {
  u32 before = run->known;
  run->known = 0;
  FOR_EACH(run->entries.at, run->entries.n, entry)
    if ((*entry)->of_run)
      run->known +=
          (*entry)->process->definitions.now.n_comms + ((*entry)->process->called.calls.n > 0);
  return run->known != before;
}

static struct ring_share share_of_ring(struct live_run *run, u32 index, u32 n) {
  if (n <= RANKS_WHOLLY)
    return (struct ring_share){.chunks = CHUNKS_WHOLLY};
  u32 ahead = (index + n - run->next_gpu % n) % n;
  return (struct ring_share){.chunks = run->polls == 0 || ahead < RANKS_IN_TURN};
}

static void update_alive(struct live_entry *entry, i64 now) {
  u64 alive = entry->process->trace.file.header.alive_ticks;
  if (entry->alive_ticks && alive != entry->alive_ticks) {
    if (entry->alive_changed != NS_UNKNOWN && now - entry->alive_changed > entry->alive_gap)
      entry->alive_gap = now - entry->alive_changed;
    entry->alive_changed = now;
    entry->alive_changes++;
  }
  entry->alive_ticks = alive;
}

static u64 find_open_file_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
    return 256;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur > FILES_KEPT_FREE ? limit.rlim_cur - FILES_KEPT_FREE : 0;
}

static void poll_run(struct live_run *run) {
  u32 n = NUMBER_OF(run->entries.at, run->entries.n, one, (*one)->of_run), index = 0;
  u64 most_open = find_open_file_limit();
  run->read_bytes = 0;
  FOR_EACH(run->entries.at, run->entries.n, each) {
    struct live_entry *entry = *each;
    if (!entry->process)
      continue;
    entry->process->trace.keep_open = entry->of_run && index < most_open;
    if (!entry->of_run) { /* its header was enough to know its run */
      trace_file_close(&entry->process->trace.file);
      continue;
    }
    u64 before = entry->process->trace.read_bytes;
    int error = live_process_poll(entry->process, share_of_ring(run, index++, n));
    run->read_bytes += entry->process->trace.read_bytes - before;
    if (error == -ESTALE) { /* another process's file is in its place: opened at the next poll */
      close_entry(entry);
      entry->inode = 0;
      entry->of_run = false;
      continue;
    }
    update_alive(entry, clock_ns(CLOCK_MONOTONIC));
  }
  run->next_gpu += RANKS_IN_TURN;
}

int live_run_poll(struct live_run *run, char *why, size_t why_bytes) {
  i64 begin = clock_ns(CLOCK_MONOTONIC);
  int error = list_files(run);
  if (error) {
    snprintf(why, why_bytes, "%s: %s. Give the directory the job writes to (TSCOPE_DIR).",
             run->directory, strerror(-error));
    return error;
  }
  if (!run->same_processes)
    choose_run(run, why, why_bytes);
  poll_run(run);
  run->polls++;
  run->poll_s = ns_to_s(clock_ns(CLOCK_MONOTONIC) - begin);
  if (!run->chosen) {
    if (!run->entries.n)
      snprintf(why, why_bytes, "%s: no traces (*%s) here yet", run->directory, TSCOPE_FILE_SUFFIX);
    return -ENOENT;
  }
  if (is_more_known(run))
    run->same_processes = 0;
  if (run->same_processes++ < POLLS_UNTIL_KNOWN)
    find_ranks(run);
  return 0;
}

void live_run_close(struct live_run *run) {
  FOR_EACH(run->entries.at, run->entries.n, entry) {
    close_entry(*entry);
    free((*entry)->path);
    free(*entry);
  }
  free(run->entries.at);
  arena_release(&run->arena);
  kernel_names_free(run->kernel_names);
  *run = (struct live_run){0};
}
