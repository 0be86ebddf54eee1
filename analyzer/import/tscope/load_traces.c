/* SPDX-License-Identifier: MIT
 *
 * From a directory to a model, stage by stage.
 */
#include "import/tscope/load_traces.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>

#include "base/hash_index.h"
#include "base/parallel.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "import/file_budget.h"
#include "import/tscope/files/process_state.h"
#include "import/tscope/ranks/processes.h"
#include "import/tscope/trace_source.h"
#include "join/join_ranks.h"
#include "join/leave_times_out.h"
#include "model/building.h"

struct loading {
  struct model *model;
  const struct model_options *options;
  struct processes processes;
  atomic_uint done;
};

static void read_process(void *user, u32 index, unsigned worker) {
  struct loading *loading = user;
  struct process *process = &loading->processes.at[index];
  processes_read(&loading->processes, process);
  u32 done = atomic_fetch_add(&loading->done, 1) + 1;
  if (worker == 0)
    model_report_progress(loading->options, "reading", (double)done / loading->processes.n);
}

ORDER_BY(by_rank, struct process, UP(left_out) UP(rank))

/* Seconds between two readings of a running total; NAN where one is not known. */
static double cpu_seconds(u64 first, u64 last) {
  return first == UINT64_MAX || last == UINT64_MAX || last < first ? NAN : ns_to_s(last - first);
}

static struct rank_scheduling scheduling_of(const struct tscope_scheduling_record *looks) {
  const struct tscope_scheduling_record *a = &looks[0], *b = &looks[1];
  return (struct rank_scheduling){.seconds = cpu_seconds(a->at_ns, b->at_ns),
                                  .cpu_s = cpu_seconds(a->cpu_ns, b->cpu_ns),
                                  .wait_s = cpu_seconds(a->wait_ns, b->wait_ns),
                                  .training_wait_s =
                                      cpu_seconds(a->training_wait_ns, b->training_wait_ns),
                                  .stolen_s = cpu_seconds(a->stolen_ns, b->stolen_ns),
                                  .threads = b->threads,
                                  .cores = b->cores};
}

static struct rank describe_rank(const struct process *process, struct arena *arena) {
  const struct definitions *definitions = process->events.definitions;
  const struct tscope_file_header *header = &process->entry->header;
  struct rank rank = {.rank = process->rank,
                      .local_rank = header->local_rank,
                      .pid = header->pid,
                      .host = arena_text(arena, header->host[0] ? header->host : "unknown host"),
                      .path = arena_text(arena, process->entry->path),
                      .closed = process_ended_itself(header),
                      .last_moments_missing = header->carried && !header->closed_realtime_ns &&
                                              header->end_kind == TSCOPE_END_UNSEEN,
                      .collective_calls = process->events.calls.n - process->events.idle_calls,
                      .collective_runs = process->events.calls.n - process->events.idle_calls -
                                         process->events.unpaired_calls,
                      .scheduling = scheduling_of(definitions->scheduling),
                      .cost_helper_cpu_ns = definitions->helper_cpu_ns,
                      .cost_startup_ns = definitions->startup_ns,
                      .cost_slow_path_ns = definitions->slow_path_ns,
                      .cost_ns_per_record = definitions->cost_per_record_ns,
                      .file_bytes = process->entry->bytes,
                      SAME(definitions, damage, records, gpu_clock, gpu_clock_reason, gpu_dropped,
                           gpu_invalid, samples, unread_samples, stalls, n_stalls),
                      SAME(&process->events, launches, gpu_kernels, replayed_runs, replayed_known)};
  memcpy(rank.info, definitions->info, sizeof(rank.info));
  const char *quota = rank.info[TSCOPE_INFO_CPU_QUOTA];
  u64 thousandths = quota ? leading_number(quota, INT64_MAX, NULL) : 0;
  rank.scheduling.quota = thousandths ? (double)thousandths / 1000 : NAN;
  memcpy(rank.lost, definitions->lost, sizeof(rank.lost));
  return rank;
}

static struct process_state state_of(const struct process *process, i64 alive) {
  const struct tscope_file_header *header = &process->entry->header;
  double minus_monotonic = (double)process->events.realtime_minus_monotonic;
  return process_state_of(header,
                          alive == NS_UNKNOWN ? process_alive_s(header)
                                              : ns_to_s((double)alive + minus_monotonic),
                          LATELY_S);
}

/* Moves the processes that are ranks into the model, in order of rank. */
static void add_ranks_to_model(struct loading *loading) {
  struct model *model = loading->model;
  struct processes *processes = &loading->processes;
  SORT(processes->at, processes->n, by_rank);
  u32 n = 0;
  while (n < processes->n && !processes->at[n].left_out)
    n++;
  model_make_ranks(model, n);
  FOR_EACH(processes->notes.at, processes->notes.n, note)
    model_note(model, "%s", *note);
  for (u32 r = 0; r < n; r++) {
    struct process *process = &processes->at[r];
    model->ranks[r] = describe_rank(process, model_arena(model));
    rank_end_read(&model->ranks[r].ending, &process->entry->header, &process->events,
                  model_arena(model));
    struct process_state state = state_of(process, model->ranks[r].ending.alive);
    model->ranks[r].running = state.kernel;
    model->ranks[r].may_run = state.stands == PROCESS_MAY_RUN;
    *model_events(model, r) = process->events;
    process->rank_events_read = false; /* the model's now */
    model->world_size = MAX(process->entry->header.world_size, model->world_size);
    if (!model->command)
      model->command = model->ranks[r].info[TSCOPE_INFO_COMMAND];
  }
}

static bool same_host(const struct process *a, const struct process *b) {
  return host_is_same(a->entry->header.host, a->events.definitions->info[TSCOPE_INFO_CLOCK],
                      b->entry->header.host, b->events.definitions->info[TSCOPE_INFO_CLOCK]);
}

static struct attempt describe_attempt(const struct processes *processes, u32 number) {
  struct attempt attempt = {0};
  for (u32 i = 0; i < processes->n; i++) {
    const struct process *process = &processes->at[i];
    bool seen = false;
    if (process->attempt != number)
      continue;
    for (u32 k = 0; k < i && !seen; k++)
      seen = processes->at[k].attempt == number && same_host(&processes->at[k], process);
    attempt.processes++;
    attempt.hosts += !seen;
    attempt.world_size = MAX(process->entry->header.world_size, attempt.world_size);
  }
  return attempt;
}

/* Keeps the wanted attempt; without a wish, the last. */
static int choose_attempt(struct loading *loading, const struct trace_runs *runs,
                          const struct trace_run *run, char *why, size_t why_bytes) {
  struct model *model = loading->model;
  struct processes *processes = &loading->processes;
  bool *added = arena_array(model_arena(model), runs->n_runs, sizeof(*added));
  processes_find_ranks(processes);
  model->n_attempts = processes_add_other_runs(processes, runs, run, added);
  model->attempt = loading->options->attempt ? loading->options->attempt : model->n_attempts;
  if (model->attempt > model->n_attempts) {
    snprintf(why, why_bytes, "there is no attempt %u: run %s was started %s", model->attempt,
             model->run, plural(model->n_attempts, "time").text);
    return -ENOENT;
  }
  if (model->n_attempts < 2)
    return 0;
  model->attempts = arena_array(model_arena(model), model->n_attempts, sizeof(*model->attempts));
  for (u32 i = 0; i < model->n_attempts; i++)
    model->attempts[i] = describe_attempt(processes, i + 1);
  processes_keep_attempt(processes, model->attempt);
  return 0;
}

/* When the first process of the attempt began. */
static i64 find_begin(const struct processes *processes) {
  i64 began = 0;
  FOR_EACH(processes->at, processes->n, one) {
    i64 at = (i64)one->entry->header.start_realtime_ns;
    if (at > 0 && (began == 0 || at < began))
      began = at;
  }
  return began;
}

static int read_processes(struct loading *loading, const struct trace_runs *runs,
                          const struct trace_run *run, char *why, size_t why_bytes) {
  struct model *model = loading->model;
  const struct model_options *options = loading->options;
  loading->processes.kernel_names = options->kernel_names;
  parallel_for(loading->processes.n, options->threads, read_process, loading);
  processes_drop_unread(&loading->processes);
  int result = choose_attempt(loading, runs, run, why, why_bytes);
  model->began_realtime_ns = find_begin(&loading->processes);
  model->timelines = &trace_timelines;
  if (result == 0) {
    processes_number(&loading->processes, model->attempt);
    add_ranks_to_model(loading);
    leave_times_out(model, options->timed_steps);
    join_ranks(model, options);
    list_memories(model);
  }
  return result;
}

/* A file whose header cannot be read counts to the run of its folder. Where no file of that can be
 * read, it may be of any run. */
static void note_strays(struct model *model, const struct trace_runs *runs) {
  const struct trace_entry *stray = NULL;
  u32 n = 0;
  FOR_EACH(runs->runs, runs->n_runs, one)
    if (one->n_readable == 0) {
      stray = stray ? stray : one->entries;
      n += one->n_entries;
    }
  if (n == 1)
    model_note(model, "%s %s: whether it is of this run is not known", stray->path, stray->problem);
  else if (n)
    model_note(model,
               "%s %s, and %u more cannot be read: whether they are of this run is not known",
               stray->path, stray->problem, n - 1);
}

int model_read_runs(struct model *model, const char *const *paths, u32 n,
                    const struct model_options *options, char *why, size_t why_bytes) {
  static const struct model_options defaults;
  struct loading loading = {.model = model, .options = options ? options : &defaults};
  struct arena *arena = model_arena(model);
  struct trace_runs runs;
  why[0] = 0;
  int result = trace_runs_find(paths, n, loading.options->threads, arena, &runs, why, why_bytes);
  const struct trace_run *run =
      result == 0 ? trace_runs_choose(&runs, loading.options->run, why, why_bytes) : NULL;
  if (result == 0 && !run)
    result = -ENOENT;
  if (result == 0) {
    loading.model->run = run->id;
    if (run->n_readable)
      note_strays(loading.model, &runs);
    processes_list(&loading.processes, run, arena);
  }
  if (result == 0)
    result = read_processes(&loading, &runs, run, why, why_bytes);
  if (result == 0 && loading.model->n_ranks == 0) {
    snprintf(why, why_bytes, "run %s: none of its %u files can be read: %s", run->id,
             run->n_entries,
             loading.processes.notes.n ? loading.processes.notes.at[0] : "the files were removed");
    result = -ENODATA;
  }
  if (result < 0 && !why[0])
    snprintf(why, why_bytes, "%s", strerror(-result));
  processes_release(&loading.processes);
  if (result < 0) {
    model->n_ranks = 0;
    model->timelines = NULL;
  }
  return result;
}

int model_load(const char *path, const struct model_options *options, struct model **out, char *why,
               size_t why_bytes) {
  struct model *model = model_new();
  *out = NULL;
  int result = model_read_runs(model, &path, 1, options, why, why_bytes);
  if (result < 0)
    model_free(model);
  else
    *out = model;
  return result;
}

static bool is_of_process(const struct tscope_file_header *header, const struct model *model,
                          const struct rank *rank) {
  return header->pid == rank->pid && strcmp(header->host, rank->host) == 0 &&
         strcmp(header->run, model->run) == 0;
}

int trace_read_again(const struct model *model, u32 rank, struct kernel_names *kernel_names,
                     struct rank_events *events, char *why, size_t why_bytes) {
  const struct rank *of = &model->ranks[rank];
  struct trace_file file;
  int error = trace_file_open(&file, of->path, why, why_bytes);
  if (error)
    return error;
  bool same = is_of_process(&file.header, model, of);
  if (same)
    error = rank_events_read_in_budget(events, &file, kernel_names, why, why_bytes);
  trace_file_close(&file);
  if (error)
    return error;
  if (same && events->definitions->records == of->records && join_again(model, rank, events))
    return 0;
  if (same)
    rank_events_release(events);
  snprintf(why, why_bytes, same ? "has changed since it was reduced" : "is of another process");
  return -ESTALE;
}

static bool has_repeated_rank(const struct processes *processes) {
  SCOPED struct hash_index seen = {0};
  for (u32 i = 0; i < processes->n; i++) {
    u32 rank = processes->at[i].rank;
    if (rank != TSCOPE_UNKNOWN_RANK && hash_index_first(&seen, rank) != INDEX_NONE)
      return true;
    hash_index_add(&seen, rank, i);
  }
  return false;
}

/* Whether a process of that run may be a rank that is not among these. */
static bool may_have_others(const struct trace_run *run, const struct processes *processes) {
  return ANY(run->entries, run->n_entries, one,
             !one->problem && processes_may_lack(processes, &one->header));
}

bool trace_ranks_are_unclear(const struct trace_runs *runs, const struct trace_run *run,
                             const struct processes *processes) {
  u32 world = MOST_OF(u32, processes->at, processes->n, one, one->entry->header.world_size);
  if (has_repeated_rank(processes))
    return true;
  return (!world || world > processes->n) &&
         ANY(runs->runs, runs->n_runs, one, one != run && may_have_others(one, processes));
}

static void list_job(struct trace_job *job, const struct processes *processes,
                     const struct trace_run *run, struct arena *arena) {
  job->files = *run;
  job->files.n_entries = 0;
  job->files.entries =
      arena_array(arena, size_sum(run->n_entries, processes->n), sizeof(*job->files.entries));
  job->attempt_of =
      arena_array(arena, size_sum(run->n_entries, processes->n), sizeof(*job->attempt_of));
  FOR_EACH(processes->at, processes->n, process) {
    job->attempt_of[job->files.n_entries] = process->attempt;
    job->files.entries[job->files.n_entries++] = *process->entry;
  }
  job->files.n_readable = processes->n;
  FOR_EACH(run->entries, run->n_entries, entry)
    if (entry->problem)
      job->files.entries[job->files.n_entries++] = *entry;
}

/* Reading the files is only worth it for ranks that are there twice, or not at all. */
void trace_job_find(struct trace_job *job, const struct trace_runs *runs, u32 number,
                    struct arena *arena) {
  const struct trace_run *run = &runs->runs[number];
  struct processes processes;
  *job = (struct trace_job){
      .files = *run, .attempts = 1, .with = arena_array(arena, runs->n_runs, sizeof(*job->with))};
  processes_list(&processes, run, arena);
  if (trace_ranks_are_unclear(runs, run, &processes)) {
    FOR_EACH_CHANGED(processes.at, processes.n, process)
      processes_read(&processes, process);
    processes_drop_unread(&processes);
    processes_find_ranks(&processes);
    job->attempts = processes_add_other_runs(&processes, runs, run, job->with);
    list_job(job, &processes, run, arena);
  }
  processes_release(&processes);
}
