/* SPDX-License-Identifier: MIT */
#include "programs/many_runs.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/now.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "import/tscope/files/process_state.h"
#include "import/tscope/files/trace_dir.h"
#include "import/tscope/load_traces.h"

#define DAY_S 86400.0
enum { JUDGED = 20 }; /* runs whose worst finding is looked for; each costs a report */

static double booted(const struct tscope_file_header *header) {
  return (double)header->start_realtime_ns - (double)header->start_monotonic_ns;
}

ORDER_POINTERS_BY(by_host, const struct tscope_file_header, BY_TEXT(host) UP_OF(booted))

static u32 count_hosts(const struct trace_run *run) {
  SCOPED const struct tscope_file_header **headers =
      memory_array(size_sum(run->n_entries, 1), sizeof(*headers));
  u32 n =
      LIST_WHERE(headers, 0, run->n_entries, i, !run->entries[i].problem, &run->entries[i].header);
  SORT(headers, n, by_host);
  return KEEP_FIRST(headers, n, last, one, processes_share_host(*last, *one));
}

/* How the processes of a run stand, by the headers of its files. */
struct run_state {
  u32 of[PROCESS_KILLED + 1]; /* by enum process_stands */
  u32 world_size;
  bool unreadable; /* all of them */
  u64 bytes;
};

static struct run_state state_of(const struct trace_run *run) {
  struct run_state state = {.unreadable = run->n_readable == 0};
  FOR_EACH(run->entries, run->n_entries, entry) {
    const struct tscope_file_header *header = &entry->header;
    state.bytes += entry->bytes;
    if (entry->problem)
      continue;
    state.world_size = MAX(header->world_size, state.world_size);
    state.of[process_state_of(header, process_alive_s(header), LONGEST_HELD_S).stands]++;
  }
  return state;
}

static const char *describe_end(const struct run_state *state) {
  return state->unreadable            ? "unreadable"
         : state->of[PROCESS_RUNS]    ? "runs"
         : state->of[PROCESS_KILLED]  ? "killed"
         : state->of[PROCESS_FAILED]  ? "failed"
         : state->of[PROCESS_MAY_RUN] ? "may run"
         : state->of[PROCESS_NO_END]  ? "no end"
                                      : "ended";
}

/* The files of one start of the job. */
static struct trace_run attempt_of_run(const struct trace_run *run, const u32 *attempt_of,
                                       u32 attempt, struct arena *arena) {
  struct trace_run part = *run;
  part.entries = arena_array(arena, run->n_entries, sizeof(*part.entries));
  part.n_readable = part.n_entries =
      LIST_WHERE(part.entries, 0, run->n_entries, i, attempt_of[i] == attempt, run->entries[i]);
  return part;
}

/* The last start of the job, and how many there were. */
static void print_job(const struct trace_job *job, FILE *out, struct arena *arena) {
  const struct trace_run *all = &job->files;
  struct trace_run last =
      job->attempt_of ? attempt_of_run(all, job->attempt_of, job->attempts, arena) : *all;
  const struct trace_run *run = &last;
  struct run_state one = state_of(run), *state = &one;
  double start_s = run->start_realtime_ns ? ns_to_s(run->start_realtime_ns) : NAN;
  struct local_time when = local_time(start_s, "%Y-%m-%d %H:%M:%S");
  char of[24] = "";
  if (state->world_size > run->n_readable)
    snprintf(of, sizeof(of), "%u of ", run->n_readable);
  bool more = run->n_readable > state->world_size; /* files of what is no rank, too */
  fprintf(out, "%-32s  %s  %s%s on %s  %s  %s", arena_printable(arena, run->id),
          *when.text ? when.text : "unknown time", of,
          plural(more ? run->n_readable : state->world_size, more ? "process" : "rank").text,
          plural(count_hosts(run), "host").text, byte_size((double)state_of(all).bytes).text,
          describe_end(state));
  u32 before = job->attempts > 1
                   ? attempt_of_run(all, job->attempt_of, job->attempts - 1, arena).n_entries
                   : run->n_readable;
  if (job->attempts > 1)
    fprintf(out, "  %u attempts", job->attempts);
  if (before != run->n_readable)
    fprintf(out, ", the one before of %u", before);
  if (all->n_readable && all->n_readable < all->n_entries)
    fprintf(out, "  %u unreadable", all->n_entries - all->n_readable);
}

/* The run alone: others of the same job are kept or removed by themselves. */
static void print_run(struct trace_run *run, FILE *out, struct arena *arena) {
  struct trace_job job;
  trace_job_find(&job, &(struct trace_runs){run, 1}, 0, arena);
  print_job(&job, out, arena);
}

/* The names that the same job has beside the first. */
static void print_others(const struct trace_job *job, const struct trace_runs *runs,
                         struct arena *arena) {
  bool any = false;
  for (u32 i = 0; i < runs->n_runs; i++)
    if (job->with[i]) {
      printf("%s%s", any ? ", " : "  with ", arena_printable(arena, runs->runs[i].id));
      any = true;
    }
}

int list_runs(const struct options *options, run_finding *worst, char *why, size_t why_bytes) {
  SCOPED_ARENA struct arena arena = {0};
  struct trace_runs runs;
  u32 judged = options->top ? options->top : JUDGED;
  int error = trace_runs_find(options->paths, options->n_paths, 0, &arena, &runs, why, why_bytes);
  bool *listed = arena_array(&arena, runs.n_runs, sizeof(*listed));
  for (u32 i = 0; i < runs.n_runs && error == 0; i++) {
    const struct trace_run *run = &runs.runs[i];
    struct trace_job job;
    if (listed[i])
      continue;
    trace_job_find(&job, &runs, i, &arena);
    for (u32 k = 0; k < runs.n_runs; k++)
      listed[k] |= job.with[k];
    print_job(&job, stdout, &arena);
    print_others(&job, &runs, &arena);
    const char *finding = i < judged && run->n_readable ? worst(options, run->id, &arena) : NULL;
    if (finding)
      printf("  %s", arena_printable(&arena, finding));
    putchar('\n');
  }
  return error;
}

/* The folder that only this run's files are in; NULL if it is a directory that was named, or if
 * files of others are there too. */
static char *own_folder(struct arena *arena, const struct trace_run *run) {
  char *folder = folder_of(arena, run->entries[0].path);
  size_t n = strlen(folder);
  bool own = ALL(run->entries, run->n_entries, one,
                 strncmp(one->path, folder, n) == 0 && one->path[n] == '/');
  return own && strcmp(last_part(folder), run->id) == 0 ? folder : NULL;
}

/* Removes the traces, and what tscope wrote beside them: everything in a folder of the run's own
 * name that is a plain file. */
static int remove_run(struct arena *arena, const struct trace_run *run) {
  int error = 0;
  FOR_EACH(run->entries, run->n_entries, entry)
    if (unlink(entry->path) < 0 && errno != ENOENT)
      error = -errno;
  char *folder = own_folder(arena, run);
  if (folder)
    folder_remove(folder);
  return error;
}

static const char over_size[] = "more than --max-size";

/* Why the run is to go; NULL if it stays. `kept` and `kept_bytes` are of the newer runs that stay,
 * and `full` says that one of them was too large already: the oldest go first. */
static const char *reason_to_go(const struct options *options, const struct trace_run *run,
                                const struct run_state *state, u32 kept, double kept_bytes,
                                bool full) {
  double age_s = difftime(time(NULL), (time_t)(run->start_realtime_ns / 1000000000));
  if (options->older_than > 0 && run->start_realtime_ns && age_s > options->older_than * DAY_S)
    return "too old";
  if (options->keep && kept >= options->keep)
    return "more runs than --keep";
  if (full || (options->max_size > 0 && kept_bytes + (double)state->bytes > options->max_size))
    return over_size;
  return NULL;
}

int prune_runs(const struct options *options, char *why, size_t why_bytes) {
  SCOPED_ARENA struct arena arena = {0};
  struct trace_runs runs;
  int error = trace_runs_find(options->paths, options->n_paths, 0, &arena, &runs, why, why_bytes);
  if (error == -ENOENT) { /* nothing there is nothing to remove */
    return 0;
  }
  u32 kept = 0, gone = 0;
  bool full = false;
  double kept_bytes = 0, gone_bytes = 0;
  u32 n = error ? 0 : runs.n_runs;
  FOR_EACH_CHANGED(runs.runs, n, run) {
    struct run_state state = state_of(run);
    const char *reason = state.of[PROCESS_RUNS] || state.of[PROCESS_MAY_RUN]
                             ? NULL
                             : reason_to_go(options, run, &state, kept, kept_bytes, full);
    full |= reason == over_size;
    if (!reason) {
      kept++;
      kept_bytes += (double)state.bytes;
      continue;
    }
    int failed = options->yes ? remove_run(&arena, run) : 0;
    print_run(run, stdout, &arena);
    if (failed) { /* the others go all the same */
      error = failed;
      snprintf(why, why_bytes, "run %s could not be removed: %s", run->id, strerror(-failed));
      printf("  stays: %s\n", strerror(-failed));
    } else
      printf("  %s: %s\n", options->yes ? "removed" : "would go", reason);
    *(failed ? &kept : &gone) += 1;
    *(failed ? &kept_bytes : &gone_bytes) += (double)state.bytes;
  }
  if (n || !error)
    printf("%s %s, %s; %u stay%s, %s%s\n", plural(gone, "run").text,
           options->yes ? "removed" : "would be removed", byte_size(gone_bytes).text, kept,
           kept == 1 ? "s" : "", byte_size(kept_bytes).text,
           options->yes || !gone ? "" : "; --yes removes them");
  return error;
}
