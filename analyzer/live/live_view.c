/* SPDX-License-Identifier: MIT */
#include "live/live_view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/statistics.h"

/* The shim gives a sign of life every 100 ms; a busy machine or disk may take its time. */
#define SILENT_S 3.0
#define SAME_BOOT_NS 2000000000 /* clocks of day may be set while a job runs */
#define USUAL_STEPS 32u
#define GPU_OLD_S 3.0 /* what was seen of a GPU longer ago says nothing about now */
#define LEAST_THRESHOLD_S 1.0
#define THRESHOLD_STEPS 5.0
#define THRESHOLD_UNKNOWN_S 2.0

static const char *const state_names[] = {
    [LIVE_RUNNING] = "running", [LIVE_SILENT] = "silent", [LIVE_STOPPED] = "stopped",
    [LIVE_GONE] = "gone",       [LIVE_KILLED] = "killed", [LIVE_FAILED] = "failed",
    [LIVE_ENDED] = "ended",     [LIVE_UNCERTAIN] = "-"};

const char *live_state_name(enum live_state state) {
  return state_names[state];
}

const char *live_op_name(u8 op) {
  static const char *const names[] = {
#define X(NAME, value, text) [value] = text,
      TSCOPE_OPS(X)
#undef X
  };
  return op == 0 ? "graph" : op < sizeof names / sizeof *names && names[op] ? names[op] : "call";
}

const char *live_phase_name(u8 phase) {
  static const char *const names[] = {
#define X(NAME, value, text) [value] = text,
      TSCOPE_PHASES(X)
#undef X
  };
  return phase < sizeof names / sizeof *names ? names[phase] : NULL;
}

const char *live_loss_name(u32 reason) {
  static const char *const names[] = {
#define X(NAME, value, text) [value] = text,
      TSCOPE_LOSSES(X)
#undef X
  };
  return reason < sizeof names / sizeof *names && names[reason] ? names[reason] : "lost";
}

static i64 clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (i64)time.tv_sec * 1000000000 + time.tv_nsec;
}

static double seconds(i64 ns) {
  return (double)ns / 1e9;
}

static double between(i64 from, i64 to) {
  return from == LIVE_UNKNOWN_NS || to == LIVE_UNKNOWN_NS ? NAN : fmax(seconds(to - from), 0);
}

const char *live_group_name(struct live_view *view, const struct live_process *process,
                            const struct live_comm *comm) {
  const char *name = live_string(process, comm->name);
  const char *text = name && *name ? name
                     : comm->size  ? arena_printf(&view->arena, "group of %u", comm->size)
                                   : NULL;
  return text ? text : "group";
}

/* --- Hosts --- */

static bool is_here(const struct live_process *process, i64 realtime, i64 monotonic) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const char *theirs = process->file.header.host;
  i64 difference = realtime - monotonic - process->realtime_minus_monotonic;
  return strncmp(name, theirs, sizeof process->file.header.host - 1) == 0 &&
         llabs(difference) < SAME_BOOT_NS;
}

/* Where two machines have one name, or one was booted anew, their boots were at different times. */
static u32 host_of(struct live_view *view, const struct live_process *process, i64 realtime,
                   i64 monotonic) {
  const char *name = process->file.header.host;
  for (u32 i = view->n_hosts; i-- > 0;)
    if (strcmp(view->hosts[i].name, name) == 0 &&
        llabs(view->hosts[i].offset_ns - process->realtime_minus_monotonic) < SAME_BOOT_NS) {
      view->hosts[i].ranks++;
      return i;
    }
  /* Until hosts are aligned, the offset holds when the host was booted. */
  view->hosts[view->n_hosts] = (struct live_host){.name = name,
                                                  .ranks = 1,
                                                  .here = is_here(process, realtime, monotonic),
                                                  .offset_ns = process->realtime_minus_monotonic,
                                                  .residual_s = NAN,
                                                  .behind_s = NAN};
  return view->n_hosts++;
}

/* --- How a process is --- */

/* R, S, D, T, Z of /proc; 0 where there is no such process, '?' where nothing can be said. */
static char process_state(const struct tscope_file_header *header) {
  char path[64], line[512], state;
  unsigned long long start = 0;
  snprintf(path, sizeof path, "/proc/%u/stat", header->pid);
  FILE *file = fopen(path, "re");
  if (!file)
    return errno == ENOENT ? 0 : '?';
  bool read = fgets(line, sizeof line, file) != NULL;
  fclose(file);
  const char *after = read ? strrchr(line, ')') : NULL;
  if (!after || sscanf(after + 1,
                       " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                       "%*d %*d %*d %*d %llu",
                       &state, &start) != 2)
    return '?';
  /* A process that began after the trace did has the number of one that is gone. */
  long hertz = sysconf(_SC_CLK_TCK);
  i64 started = hertz > 0 ? (i64)(start * (1000000000ull / (u64)hertz)) : 0;
  return started > (i64)header->start_monotonic_ns + 2000000000 ? 0 : state;
}

static void say_ended(struct live_rank *rank, const struct tscope_file_header *header) {
  const char *exception = header->exception_ticks ? header->exception : "";
  if (header->reaped_signal) {
    rank->state = LIVE_KILLED;
    snprintf(rank->what, sizeof rank->what, "killed by signal %u%s", header->reaped_signal,
             header->oom_kills_at_start != UINT64_MAX && header->oom_kills != UINT64_MAX &&
                     header->oom_kills > header->oom_kills_at_start
                 ? ", out of memory in its cgroup"
                 : "");
  } else if (header->end_kind != TSCOPE_END_UNSEEN && header->end_status != 0) {
    rank->state = LIVE_FAILED;
    snprintf(rank->what, sizeof rank->what, "ended with status %d%s%.*s", header->end_status,
             *exception ? ": " : "", 100, exception);
  } else {
    rank->state = LIVE_ENDED;
    snprintf(rank->what, sizeof rank->what, "ended");
  }
}

static void say_silent(struct live_rank *rank, const struct live_host *host,
                       const struct tscope_file_header *header) {
  char state = host->here ? process_state(header) : '?';
  rank->state = LIVE_SILENT;
  switch (state) {
  case 0:
    rank->state = LIVE_GONE;
    snprintf(rank->what, sizeof rank->what, "its process is gone, without a word of its end");
    break;
  case 'Z':
  case 'X':
    rank->state = LIVE_GONE;
    snprintf(rank->what, sizeof rank->what, "its process is dead, and the parent has not noticed");
    break;
  case 'T':
  case 't':
    rank->state = LIVE_STOPPED;
    snprintf(rank->what, sizeof rank->what, "its process is stopped (%s)",
             state == 'T' ? "SIGSTOP" : "a debugger");
    break;
  case 'D':
    snprintf(rank->what, sizeof rank->what,
             "no sign of life; its process waits in the kernel for a disk or a driver (state D)");
    break;
  default:
    snprintf(rank->what, sizeof rank->what, "no sign of life");
  }
}

/* Since when nothing was heard, by our clock where we saw that, else by the process's own. */
static double silence(const struct live_rank *rank, const struct live_host *host, i64 realtime,
                      i64 monotonic) {
  const struct live_process *process = rank->process;
  i64 alive = live_ticks_ns(process, process->file.header.alive_ticks);
  if (alive == LIVE_UNKNOWN_NS)
    return NAN;
  if (host->here)
    return between(alive, monotonic);
  if (rank->entry->alive_changed != LIVE_UNKNOWN_NS)
    return between(rank->entry->alive_changed, monotonic);
  return between(alive, realtime - process->realtime_minus_monotonic);
}

static void take_state(struct live_view *view, struct live_rank *rank, i64 realtime,
                       i64 monotonic) {
  const struct tscope_file_header *header = &rank->process->file.header;
  struct live_host *host = &view->hosts[rank->host];
  i64 alive = live_ticks_ns(rank->process, header->alive_ticks);
  i64 now = host->here ? monotonic : realtime - rank->process->realtime_minus_monotonic;
  rank->silent_s = silence(rank, host, realtime, monotonic);
  rank->what[0] = 0;
  if (header->closed_realtime_ns || header->reaped_signal ||
      (header->end_kind != TSCOPE_END_UNSEEN && !(rank->silent_s < SILENT_S)))
    say_ended(rank, header);
  else if (isnan(rank->silent_s)) {
    rank->state = LIVE_UNCERTAIN;
    snprintf(rank->what, sizeof rank->what, "its trace gives no signs of life");
  } else if (rank->silent_s > SILENT_S)
    say_silent(rank, host, header);
  else
    rank->state = LIVE_RUNNING;
  /* What was open when it fell silent has lasted until then, as far as anybody knows. */
  rank->seen_ns = rank->state == LIVE_RUNNING && host->here ? now
                  : alive != LIVE_UNKNOWN_NS                ? alive
                                                            : rank->process->newest;
  if (rank->process->newest != LIVE_UNKNOWN_NS && rank->process->newest > rank->seen_ns)
    rank->seen_ns = rank->process->newest;
  rank->quiet_s = between(rank->process->newest, rank->seen_ns);
  if (!host->here && rank->state == LIVE_RUNNING && alive != LIVE_UNKNOWN_NS) {
    double behind = between(alive, now);
    if (isnan(host->behind_s) || behind > host->behind_s)
      host->behind_s = behind;
  }
}

/* --- What it does --- */

static double median_of_last(const struct live_steps *steps) {
  double last[USUAL_STEPS];
  u32 n = steps->n < USUAL_STEPS ? steps->n : USUAL_STEPS;
  memcpy(last, steps->lengths + steps->n - n, n * sizeof *last);
  return n ? median_of(last, n) : NAN;
}

static void take_steps(struct live_view *view, struct live_rank *rank, u32 *hint) {
  (void)view;
  live_steps_of(rank->process, hint, &rank->steps);
  rank->step_s = rank->steps.n ? rank->steps.lengths[rank->steps.n - 1] : NAN;
  rank->usual_s = median_of_last(&rank->steps);
  rank->since_step_s = between(rank->steps.last, rank->seen_ns);
}

/* The innermost phase that is open, of the ones of training: a user's range may be anything. */
static void take_phase(struct live_rank *rank) {
  const struct live_opens *phases = &rank->process->phases;
  rank->phase = NULL;
  rank->phase_s = NAN;
  for (u32 i = 0; i < phases->n; i++) {
    const struct live_open *open = &phases->at[i];
    const char *name = open->kind == TSCOPE_PHASE_USER ? live_string(rank->process, open->name)
                                                       : live_phase_name(open->kind);
    if (!name || (rank->phase && open->kind == TSCOPE_PHASE_USER))
      continue;
    rank->phase = name;
    rank->phase_s = between(open->start, rank->seen_ns);
  }
}

static void take_call(struct live_view *view, struct live_rank *rank) {
  const struct live_process *process = rank->process;
  const struct live_last_call *last = &process->last;
  rank->called_s = rank->in_wait_s = NAN;
  rank->op = rank->group = NULL;
  rank->in_call = last->any && last->open;
  for (u32 i = 0; i < process->waits.n; i++)
    rank->in_wait_s = fmax(between(process->waits.at[i].start, rank->seen_ns),
                           isnan(rank->in_wait_s) ? 0 : rank->in_wait_s);
  if (!last->any)
    return;
  rank->op = live_op_name(last->op);
  rank->called_s = between(last->start, rank->seen_ns);
  if (last->comm != LIVE_NONE)
    rank->group = live_group_name(view, process, &process->comms.at[last->comm]);
}

static void take_memory(struct live_rank *rank) {
  const struct live_process *process = rank->process;
  const char *total = live_info(process, TSCOPE_INFO_GPU_MEMORY);
  rank->gpu_memory = total && atof(total) > 0 ? atof(total) : NAN;
  rank->memory = rank->peak = rank->reserved = process->n_memory ? 0 : NAN;
  for (u32 i = 0; i < process->n_memory; i++) {
    rank->memory += (double)process->memory[i].allocated;
    rank->peak += (double)process->memory[i].peak;
    rank->reserved += (double)process->memory[i].reserved;
  }
}

static void take_losses(struct live_view *view, struct live_rank *rank) {
  const struct tscope_file_header *header = &rank->process->file.header;
  for (u32 i = 0; i < TSCOPE_LOSS_REASONS; i++) {
    view->lost[i] += header->lost[i];
    if (i != TSCOPE_LOSS_RING)
      rank->lost += header->lost[i];
  }
  rank->overwritten = header->lost[TSCOPE_LOSS_RING];
  view->damaged += rank->process->file.damaged;
}

static void take_gpu(struct live_rank *rank) {
  i64 until;
  rank->gpu = live_gpu_share(rank->process, &until);
  if (!(between(until, rank->seen_ns) < GPU_OLD_S))
    rank->gpu = NAN;
}

/* --- The whole --- */

static int by_rank(const void *left, const void *right) {
  const struct live_rank *a = left, *b = right;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int list_ranks(struct live_view *view, struct live_run *run, i64 realtime, i64 monotonic) {
  view->ranks = arena_array(&view->arena, run->entries.n + 1, sizeof *view->ranks);
  view->hosts = arena_array(&view->arena, run->entries.n + 1, sizeof *view->hosts);
  if (!view->ranks || !view->hosts)
    return -ENOMEM;
  for (u32 i = 0; i < run->entries.n; i++) {
    struct live_entry *entry = run->entries.at[i];
    view->unreadable += !entry->process;
    view->left_out += entry->of_run && entry->left_out;
    if (!entry->of_run || entry->left_out)
      continue;
    view->ranks[view->n_ranks++] = (struct live_rank){.entry = entry,
                                                      .process = entry->process,
                                                      .rank = entry->process->rank,
                                                      .late_s = NAN,
                                                      .waits_for = -1,
                                                      .waits_s = NAN};
    u32 world = entry->process->file.header.world_size;
    view->world = world > view->world ? world : view->world;
  }
  qsort(view->ranks, view->n_ranks, sizeof *view->ranks, by_rank);
  for (u32 i = 0; i < view->n_ranks; i++)
    view->ranks[i].host = host_of(view, view->ranks[i].process, realtime, monotonic);
  return 0;
}

static bool is_over(const struct live_rank *rank) {
  return rank->state == LIVE_ENDED;
}

static bool is_fine(const struct live_rank *rank) {
  return rank->state == LIVE_RUNNING || rank->state == LIVE_UNCERTAIN;
}

/* The rank whose steps stand for the job's: one that runs, with as many lengths as any. */
static void choose_reference(struct live_view *view) {
  double since = 0;
  for (u32 i = 0; i < view->n_ranks; i++) {
    const struct live_rank *rank = &view->ranks[i], *best = view->reference;
    if (rank->steps.n > (best ? best->steps.n : 0))
      view->reference = rank;
    if (rank->since_step_s > since)
      since = rank->since_step_s;
  }
  view->step_s = view->rate = view->since_step_s = NAN;
  view->method = view->reference ? view->reference->steps.method : LIVE_STEPS_UNKNOWN;
  if (!view->reference)
    return;
  view->step_s = view->reference->usual_s;
  view->rate = view->step_s > 0 ? 1 / view->step_s : NAN;
  view->since_step_s = since;
}

int live_view_make(struct live_view *view, struct live_run *run) {
  i64 realtime = clock_ns(CLOCK_REALTIME), monotonic = clock_ns(CLOCK_MONOTONIC);
  u64 start = UINT64_MAX, latest = 0;
  *view = (struct live_view){.run = run, .now_realtime_ns = (u64)realtime};
  int error = list_ranks(view, run, realtime, monotonic);
  for (u32 i = 0; i < view->n_ranks && !error; i++) {
    struct live_rank *rank = &view->ranks[i];
    const struct tscope_file_header *header = &rank->process->file.header;
    take_state(view, rank, realtime, monotonic);
    take_steps(view, rank, &run->hint);
    take_phase(rank);
    take_call(view, rank);
    take_memory(rank);
    take_losses(view, rank);
    take_gpu(rank);
    view->n_running += is_fine(rank);
    view->n_over += is_over(rank);
    view->n_trouble += !is_fine(rank) && !is_over(rank);
    start = header->start_realtime_ns < start ? header->start_realtime_ns : start;
    u64 seen = (u64)(rank->seen_ns + rank->process->realtime_minus_monotonic);
    latest = rank->seen_ns != LIVE_UNKNOWN_NS && seen > latest ? seen : latest;
  }
  if (error)
    return error;
  choose_reference(view);
  view->since_start_s = latest > start ? (double)(latest - start) / 1e9 : NAN;
  view->threshold_s = isnan(view->step_s) ? THRESHOLD_UNKNOWN_S
                                          : fmax(LEAST_THRESHOLD_S, THRESHOLD_STEPS * view->step_s);
  return live_join(view);
}

void live_view_release(struct live_view *view) {
  arena_release(&view->arena);
  *view = (struct live_view){0};
}
