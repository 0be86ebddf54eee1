/* SPDX-License-Identifier: MIT
 *
 * The state of a process: from what its trace says of its end, from its last sign of life, and, on
 * this machine, from what the kernel says.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "analyses/stalls/stall_words.h"
#include "import/tscope/files/process_state.h"
#include "inspect/thread_state.h"
#include "inspect/trace_process.h"
#include "live/live_view.h"
#include "model/rank_end.h"

/* A process on another host counts as silent only after more than the delays seen so far. */
#define DELAYS 3.0
#define ENOUGH_CHANGES 5

double live_seconds_between(i64 from, i64 to) {
  return seconds_between(MIN(from, to), to);
}

static void describe_ended(struct live_rank *rank, const struct tscope_file_header *header) {
  const char *exception = header->exception_ticks ? header->exception : "";
  enum process_stands end = process_end_of(header);
  if (end == PROCESS_KILLED) {
    rank->state = LIVE_KILLED;
    snprintf(rank->what, sizeof(rank->what), "killed by signal %u%s", header->reaped_signal,
             header->reaped_signal == SIGKILL && out_of_memory_kills(header)
                 ? ", out of memory in its cgroup"
                 : "");
  } else if (end == PROCESS_FAILED) {
    rank->state = LIVE_FAILED;
    snprintf(rank->what, sizeof(rank->what), "ended with status %d%s%.*s", header->end_status,
             *exception ? ": " : "", 100, exception);
  } else {
    rank->state = LIVE_ENDED;
    snprintf(rank->what, sizeof(rank->what), "ended");
  }
}

static void describe_silent(struct live_rank *rank, const struct live_host *host,
                            const struct tscope_file_header *header) {
  char state = host->here ? trace_process_find(header).state : '?';
  rank->state = LIVE_SILENT;
  const char *what = host->here || rank->entry->alive_changed != NS_UNKNOWN
                         ? "no sign of life"
                         : "no sign of life by its host's clock";
  if (thread_is_gone(state)) {
    rank->state = LIVE_GONE;
    what = state ? "its process ended, and its parent has not waited for it"
                 : "its process is gone, and nothing recorded its end";
  } else if (thread_is_stopped(state)) {
    rank->state = LIVE_STOPPED;
    snprintf(rank->what, sizeof(rank->what), "its process is %s", stall_state_words(state));
    return;
  } else if (state == 'D')
    what = "no sign of life; its process waits in the kernel for a disk or a driver (state D)";
  snprintf(rank->what, sizeof(rank->what), "%s", what);
}

/* Since when it has been silent: by our clock if we saw that, else by the process's own. */
static double silent_for(const struct live_rank *rank, const struct live_host *host, i64 realtime,
                         i64 monotonic) {
  const struct live_process *process = rank->process;
  i64 alive = definition_ns(&process->definitions.now, process->trace.file.header.alive_ticks);
  if (alive == NS_UNKNOWN)
    return NAN;
  if (host->here)
    return live_seconds_between(alive, monotonic);
  if (rank->entry->alive_changed != NS_UNKNOWN)
    return live_seconds_between(rank->entry->alive_changed, monotonic);
  return live_seconds_between(alive, realtime - process->definitions.now.realtime_minus_monotonic);
}

static double silence_limit(const struct live_rank *rank, const struct live_host *host) {
  if (host->here)
    return ns_to_s(SILENT_NS);
  return rank->entry->alive_changes < ENOUGH_CHANGES
             ? ns_to_s(SILENT_ELSEWHERE_NS)
             : fmax(ns_to_s(SILENT_NS), DELAYS * ns_to_s(rank->entry->alive_gap));
}

void live_find_state(struct live_view *view, struct live_rank *rank, i64 realtime, i64 monotonic) {
  const struct tscope_file_header *header = &rank->process->trace.file.header;
  struct live_host *host = &view->hosts[rank->host];
  i64 alive = definition_ns(&rank->process->definitions.now, header->alive_ticks);
  i64 now =
      host->here ? monotonic : realtime - rank->process->definitions.now.realtime_minus_monotonic;
  rank->silent_s = silent_for(rank, host, realtime, monotonic);
  rank->what[0] = 0;
  if (process_is_over(header) ||
      (process_end_of(header) != PROCESS_NO_END && !(rank->silent_s < silence_limit(rank, host))))
    describe_ended(rank, header);
  else if (isnan(rank->silent_s)) {
    rank->state = LIVE_UNCERTAIN;
    snprintf(rank->what, sizeof(rank->what), "its trace gives no signs of life");
  } else if (rank->silent_s > silence_limit(rank, host))
    describe_silent(rank, host, header);
  else
    rank->state = LIVE_RUNNING;
  /* What was open when it fell silent has lasted until then, as far as is known. */
  rank->seen_ns = rank->state == LIVE_RUNNING && host->here ? now
                  : alive != NS_UNKNOWN                     ? alive
                                                            : rank->process->newest;
  rank->seen_ns = MAX(rank->process->newest, rank->seen_ns);
  i64 anchor = rank->process->definitions.now.last_anchor;
  if (anchor && anchor > rank->seen_ns)
    rank->seen_ns = anchor;
  rank->quiet_s = live_seconds_between(rank->process->newest, rank->seen_ns);
  if (!host->here && rank->state == LIVE_RUNNING && alive != NS_UNKNOWN) {
    double behind = live_seconds_between(alive, now);
    if (isnan(host->behind_s) || behind > host->behind_s)
      host->behind_s = behind;
  }
}
