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
  FREE_EACH(entry, process, run);
  entry->process = NULL;
  entry->run = NULL;
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
  entry->inode = status.st_ino;
  entry->device = status.st_dev;
  entry->bytes = (u64)status.st_size;
  struct live_process *process = memory_array(1, sizeof(*process));
  if (live_process_open(process, path, entry->problem, sizeof(entry->problem)) < 0) {
    free(process);
    return;
  }
  entry->process = process;
  run->same_processes = 0;
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

static const char *run_of(const struct live_entry *entry) {
  return text_or_empty(entry->run);
}

/* As the report has it: copies of a run are other runs. */
static void name_runs(struct live_run *run) {
  SCOPED_ARENA struct arena arena = {0};
  SCOPED struct trace_entry *all = memory_zeroed(size_sum(run->entries.n, 1), sizeof(*all));
  u32 n = 0;
  FOR_EACH(run->entries.at, run->entries.n, one) {
    const struct live_entry *entry = *one;
    if (entry->process)
      all[n++] =
          (struct trace_entry){.path = entry->path, .header = entry->process->trace.file.header};
  }
  trace_entries_name_runs(&arena, all, n);
  for (u32 i = 0, k = 0; i < run->entries.n; i++) {
    struct live_entry *entry = run->entries.at[i];
    free(entry->run);
    entry->run = entry->process ? memory_text(all[k++].run) : NULL;
  }
}

static bool is_newer(const struct live_entry *a, const struct live_entry *b) {
  u64 start = a->process->trace.file.header.start_realtime_ns,
      other = b->process->trace.file.header.start_realtime_ns;
  return start > other || (start == other && strcmp(run_of(a), run_of(b)) < 0);
}

/* As trace_runs_choose(): a whole name comes before the beginning of one. */
static bool is_wanted(const struct live_run *run, const char *name, bool whole) {
  return !run->wanted ||
         (whole ? strcmp(name, run->wanted) == 0 : text_starts_with(name, run->wanted));
}

/* Whether that run is known to be the same job as the one that is read. */
static bool is_with(const struct live_run *run, const char *name) {
  return ANY(run->with.at, run->with.n, one, strcmp(*one, name) == 0);
}

static void forget_others(struct live_run *run) {
  FOR_EACH(run->with.at, run->with.n, one)
    free(*one);
  run->with.n = 0;
  run->same_processes = 0;
}

static void choose_run(struct live_run *run) {
  const struct live_entry *newest = NULL;
  bool whole =
      ANY(run->entries.at, run->entries.n, one, run->wanted && !strcmp(run_of(*one), run->wanted));
  FOR_EACH(run->entries.at, run->entries.n, item) {
    const struct live_entry *entry = *item;
    if (entry->process && is_wanted(run, run_of(entry), whole) &&
        (!newest || is_newer(entry, newest)))
      newest = entry;
  }
  const char *name = newest ? run_of(newest) : "";
  if (strcmp(run->name, name) != 0 && !is_with(run, name))
    forget_others(run);
  snprintf(run->name, sizeof(run->name), "%s", name);
  FOR_EACH(run->entries.at, run->entries.n, each)
    (*each)->of_run = newest && (*each)->process &&
                      (strcmp(run_of(*each), run->name) == 0 || is_with(run, run_of(*each)));
}

ORDER_POINTERS_BY(by_rank, struct live_entry,
                  DOWN(attempt) UP(process->rank)
                      DOWN(process->trace.file.header.start_realtime_ns))

/* What the file defines so far, and the last collectives of its process, as the report reads them.
 */
static struct process process_of(struct live_entry *entry, struct trace_entry *facts) {
  struct live_process *live = entry->process;
  *facts = (struct trace_entry){.path = entry->path, .header = live->trace.file.header};
  struct process process = {.entry = facts, .events = live->called, .rank = live->rank};
  process.events.definitions = &live->definitions.now;
  return process;
}

struct known_processes {
  struct processes all; /* of the run that is read */
  struct live_entry **entries;
  struct trace_entry *facts;
  u32 attempts;
};

static void list_known(struct known_processes *known, const struct live_run *run) {
  u32 n = run->entries.n, k = 0;
  *known = (struct known_processes){.all.at = memory_zeroed(size_sum(n, 1), sizeof(struct process)),
                                    .entries = memory_zeroed(size_sum(n, 1), sizeof(void *)),
                                    .facts = memory_zeroed(size_sum(n, 1), sizeof(*known->facts))};
  FOR_EACH(run->entries.at, n, entry) {
    if (!(*entry)->of_run)
      continue;
    known->entries[k] = *entry;
    known->all.at[k] = process_of(*entry, &known->facts[k]);
    known->all.n = ++k;
  }
  known->attempts = processes_find_attempts(&known->all);
}

static void release_known(struct known_processes *known) {
  FREE_EACH(known, all.at, entries, facts);
}

/* Whether a process of another run is a rank that this one lacks. What it defines is read first. */
static bool is_lacked(const struct known_processes *known, struct live_entry *entry) {
  struct trace_entry facts;
  if (entry->of_run || !entry->process ||
      !processes_may_lack(&known->all, &entry->process->trace.file.header))
    return false;
  bool read = live_process_poll(entry->process, (struct ring_share){0}) == 0;
  struct process process = process_of(entry, &facts);
  return read && processes_lack(&known->all, &process);
}

static void add_other_run(struct live_run *run, const char *name) {
  VECTOR_PUSH(&run->with, memory_text(name));
  FOR_EACH(run->entries.at, run->entries.n, one) {
    struct live_entry *entry = *one;
    if (!entry->process || strcmp(run_of(entry), name) != 0)
      continue;
    entry->of_run = true;
    live_process_poll(entry->process, (struct ring_share){0});
  }
}

/* Finds the runs that are the same job, and sets entry->attempt, both as the report has it. */
static void find_attempts(struct live_run *run) {
  struct known_processes known;
  list_known(&known, run);
  for (u32 i = 0; i < run->entries.n && processes_lack_any(&known.all, known.attempts); i++) {
    if (!is_lacked(&known, run->entries.at[i]))
      continue;
    add_other_run(run, run_of(run->entries.at[i]));
    release_known(&known);
    list_known(&known, run);
    i = UINT32_MAX; /* what this one lacks may be in one that was looked at before */
  }
  for (u32 i = 0; i < known.all.n; i++)
    known.entries[i]->attempt = known.all.at[i].attempt;
  release_known(&known);
}

/* A communicator can be made long after a process's trace began. */
static bool has_new_comms(struct live_run *run) {
  u32 before = run->comms;
  run->comms = 0;
  FOR_EACH(run->entries.at, run->entries.n, entry)
    if ((*entry)->of_run)
      run->comms += (*entry)->process->definitions.now.n_comms;
  return run->comms != before;
}

/* As the report does it: the last start of the job counts, in it the last process with a rank, and
 * one without a rank where no other has ranks. */
static void leave_out_others(struct live_run *run) {
  SCOPED struct live_entry **order = memory_array(size_sum(run->entries.n, 1), sizeof(*order));
  if (has_new_comms(run))
    run->same_processes = 0;
  if (run->same_processes++ < POLLS_UNTIL_KNOWN)
    find_attempts(run);
  u32 n = LIST_WHERE(order, 0, run->entries.n, i, run->entries.at[i]->of_run, run->entries.at[i]);
  SORT(order, n, by_rank);
  run->attempt = n ? order[0]->attempt : 0;
  run->ranks_before = 0;
  for (u32 i = 0; i < n; i++) {
    bool same_start = i > 0 && order[i]->attempt == order[i - 1]->attempt;
    u32 rank = order[i]->process->rank;
    bool extra = same_start && (rank == TSCOPE_UNKNOWN_RANK || rank == order[i - 1]->process->rank);
    order[i]->left_out = order[i]->attempt != run->attempt || extra;
    run->ranks_before += order[i]->attempt + 1 == run->attempt && !extra;
  }
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
    name_runs(run);
  choose_run(run);
  poll_run(run);
  run->polls++;
  run->poll_s = ns_to_s(clock_ns(CLOCK_MONOTONIC) - begin);
  if (run->name[0] == 0) {
    const struct live_entry *bad = run->entries.n ? run->entries.at[0] : NULL;
    if (bad && bad->problem[0])
      snprintf(why, why_bytes, "%s %s", bad->path, bad->problem);
    else if (run->wanted)
      snprintf(why, why_bytes, "no run in %s is called \"%s\"", run->directory, run->wanted);
    else
      snprintf(why, why_bytes, "%s: no traces (*%s) here yet", run->directory, TSCOPE_FILE_SUFFIX);
    return -ENOENT;
  }
  leave_out_others(run);
  return 0;
}

void live_run_close(struct live_run *run) {
  FOR_EACH(run->entries.at, run->entries.n, entry) {
    close_entry(*entry);
    free((*entry)->path);
    free(*entry);
  }
  free(run->entries.at);
  forget_others(run);
  free(run->with.at);
  *run = (struct live_run){0};
}
