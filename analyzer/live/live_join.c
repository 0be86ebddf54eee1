/* SPDX-License-Identifier: MIT
 *
 * What only ranks together can show. Hosts are brought onto one axis by the ends of collectives
 * that they share: a collective ends at about the same time for all its members. How far that may
 * be wrong is certain: nobody ends one before all have started it.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/robust.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "kernels/communication.h"
#include "live/live_view.h"

enum { LATE_CALLS = LIVE_RECENT_CALLS, LEAST_ENDS = 3, MOST_ENDS = 256 };
#define END_SPREAD_NS 2e6 /* members that end further apart than this were matched wrongly */
#define END_SPREAD_SHARE 0.25

/* A communicator as one member sees it. */
struct membership {
  u64 identity;
  u32 rank; /* index into view.ranks */
  struct live_comm *comm;
};

struct group {
  const struct membership *at;
  u32 n;
};

ORDER_BY(by_identity, struct membership, UP(identity) UP(rank))

static struct membership *list_memberships(struct live_view *view, u32 *n) {
  u32 all = 0;
  for (u32 r = 0; r < view->n_ranks; r++)
    all += view->ranks[r].process->comms.n;
  struct membership *memberships = arena_array(&view->arena, all, sizeof(*memberships));
  *n = 0;
  for (u32 r = 0; r < view->n_ranks; r++)
    for (u32 c = 0; c < view->ranks[r].process->comms.n; c++) {
      struct live_comm *comm = &view->ranks[r].process->comms.at[c];
      memberships[(*n)++] = (struct membership){comm->identity, r, comm};
    }
  SORT(memberships, *n, by_identity);
  return memberships;
}

/* --- One axis --- */

static i64 end_of(const struct live_call *call) {
  return call && call->seq != INDEX_NONE ? call->run_end : NS_UNKNOWN;
}

/* How much further one host's clock is than another's. */
struct difference {
  i64 ends[MOST_ENDS]; /* of collectives that ended on both */
  u32 n;
  i64 least, most;
};

static void compare_calls(const struct membership *a, const struct membership *b,
                          struct difference *difference) {
  for (u32 i = 0; i < a->comm->n_recent && difference->n < MOST_ENDS; i++) {
    const struct live_call *mine = &a->comm->recent[i];
    const struct live_call *theirs =
        end_of(mine) != NS_UNKNOWN ? live_call_at(b->comm, mine->seq) : NULL;
    if (end_of(theirs) == NS_UNKNOWN)
      continue;
    difference->ends[difference->n++] = theirs->run_end - mine->run_end;
    if (!op_is_barrier_like(mine->op) || mine->run_start == NS_UNKNOWN ||
        theirs->run_start == NS_UNKNOWN)
      continue;
    i64 least = theirs->run_start - mine->run_end, most = theirs->run_end - mine->run_start;
    difference->least = least > difference->least ? least : difference->least;
    difference->most = most < difference->most ? most : difference->most;
  }
}

/* Relative to the first host, through whichever communicators have members on both. */
static bool align_host(struct live_view *view, const struct membership *memberships, u32 n,
                       u32 host) {
  struct difference found = {.least = INT64_MIN, .most = INT64_MAX};
  for (u32 i = 0; i < n && found.n < MOST_ENDS; i++) {
    u32 next = i;
    const struct membership *first = NULL, *other = NULL;
    for (; next < n && memberships[next].identity == memberships[i].identity; next++) {
      u32 its = view->ranks[memberships[next].rank].host;
      first = !first && its == 0 ? &memberships[next] : first;
      other = !other && its == host ? &memberships[next] : other;
    }
    if (first && other)
      compare_calls(first, other, &found);
    i = next - 1;
  }
  if (found.n < LEAST_ENDS || found.least == INT64_MIN || found.most == INT64_MAX)
    return false;
  struct live_host *aligned = &view->hosts[host];
  i64 middle = median_i64(found.ends, found.n);
  middle = middle < found.least ? found.least : middle;
  middle = middle > found.most ? found.most : middle;
  aligned->offset_ns = middle;
  aligned->error_s = (double)(found.most - middle > middle - found.least ? found.most - middle
                                                                         : middle - found.least) /
                     1e9;
  aligned->ends = found.n;
  return true;
}

static void align_hosts(struct live_view *view, const struct membership *memberships, u32 n) {
  i64 booted = view->n_hosts ? view->hosts[0].offset_ns : 0;
  for (u32 h = 0; h < view->n_hosts; h++) {
    struct live_host *host = &view->hosts[h];
    if (h == 0) {
      host->offset_ns = 0;
      host->error_s = 0;
    } else if (!align_host(view, memberships, n, h)) {
      host->offset_ns = booted - host->offset_ns; /* by the clocks of day */
    }
  }
}

/* A rank's time on the first host's axis; NS_UNKNOWN if its host is not aligned. */
static i64 on_axis(const struct live_view *view, u32 rank, i64 time) {
  const struct live_host *host = &view->hosts[view->ranks[rank].host];
  return time == NS_UNKNOWN || isnan(host->error_s) ? NS_UNKNOWN : time - host->offset_ns;
}

/* --- Lateness --- */

struct lateness {
  double *behind;         /* [members x LATE_CALLS] seconds */
  u32 n;                  /* calls measured, the newest first */
  i64 middle[LATE_CALLS]; /* when the median member came to each */
  i64 *times, *sorted, *ends;
};

static i64 arrival_of(const struct live_call *call, bool by_run) {
  return by_run ? call->run_start : call->start;
}

/* When each member arrived, if all members have the call. False if one is missing. */
static bool measure_call(const struct live_view *view, const struct group *group, u32 seq,
                         bool by_run, struct lateness *late) {
  for (u32 m = 0; m < group->n; m++) {
    const struct live_call *call = live_call_at(group->at[m].comm, seq);
    u32 rank = group->at[m].rank;
    late->times[m] = call ? on_axis(view, rank, arrival_of(call, by_run)) : NS_UNKNOWN;
    late->ends[m] = call && by_run ? on_axis(view, rank, call->run_end) : 0;
    if (late->times[m] == NS_UNKNOWN || late->ends[m] == NS_UNKNOWN)
      return false;
  }
  memcpy(late->sorted, late->times, group->n * sizeof(*late->sorted));
  i64 middle = median_i64(late->sorted, group->n), first = INT64_MAX, last = INT64_MIN;
  for (u32 m = 0; m < group->n; m++) {
    first = late->times[m] < first ? late->times[m] : first;
    last = late->times[m] > last ? late->times[m] : last;
  }
  if (by_run) {
    i64 end = median_i64(late->ends, group->n);
    for (u32 m = 0; m < group->n; m++)
      late->ends[m] = llabs(late->ends[m] - end);
    if ((double)median_i64(late->ends, group->n) >
        fmax(END_SPREAD_NS, END_SPREAD_SHARE * (double)(last - first)))
      return false;
  }
  for (u32 m = 0; m < group->n; m++)
    late->behind[m * LATE_CALLS + late->n] = (double)(late->times[m] - middle) / 1e9;
  late->middle[late->n] = middle;
  late->n++;
  return true;
}

static void measure_group(struct live_view *view, const struct group *group, bool by_run,
                          struct lateness *late) {
  u32 newest = group->at[0].comm->newest;
  late->n = 0;
  for (u32 m = 1; m < group->n; m++)
    if (group->at[m].comm->newest == INDEX_NONE || group->at[m].comm->newest < newest)
      newest = group->at[m].comm->newest;
  if (newest == INDEX_NONE)
    return;
  u32 kept = group->at[0].comm->n_recent;
  for (u32 back = 0; back < kept && back <= newest && late->n < LATE_CALLS; back++)
    measure_call(view, group, newest - back, by_run, late);
}

static bool every_run_is_recorded(const struct live_process *process) {
  return process->definitions.now.gpu_clock == TSCOPE_GPU_CLOCK_CUPTI ||
         process->definitions.now.gpu_clock == TSCOPE_GPU_CLOCK_EVENTS;
}

/* How late a member is in a step: at the call where it is latest. The result is the median over the
 * last steps; the oldest step may be incomplete and is left out. Later calls of a step often follow
 * directly, at the same time for all: a median over calls would hide who is late. */
static double median_lateness(const struct live_view *view, const struct lateness *late,
                              const double *behind) {
  double most[LATE_CALLS];
  u32 steps = 0, last = 0;
  i64 newest = late->middle[0], step = isnan(view->step_s) ? 0 : (i64)(view->step_s * 1e9);
  for (u32 i = 0; i < late->n; i++) {
    u32 number = step > 0 ? (u32)fmax(0, (double)(newest - late->middle[i]) / (double)step) : 0;
    if (steps == 0 || number > last)
      most[steps++] = behind[i];
    else if (behind[i] > most[steps - 1])
      most[steps - 1] = behind[i];
    last = number;
  }
  return median_of(most, steps > 1 ? steps - 1 : steps);
}

/* The lateness of a rank is that in the group where it is latest. */
static void measure_lateness(struct live_view *view, const struct group *group) {
  struct arena *arena = &view->arena;
  struct lateness late = {
      .behind = arena_array(arena, size_product(group->n, LATE_CALLS), sizeof(double)),
      .times = arena_array(arena, group->n, sizeof(i64)),
      .sorted = arena_array(arena, group->n, sizeof(i64)),
      .ends = arena_array(arena, group->n, sizeof(i64))};
  /* A call on the host takes part when it is made; NCCL's only queues work for the GPU. */
  bool on_host = group->at[0].comm->backend != TSCOPE_BACKEND_NCCL;
  enum live_arrival by = on_host ? LIVE_ARRIVAL_CALL : LIVE_ARRIVAL_RUN;
  measure_group(view, group, !on_host, &late);
  if (!on_host && late.n == 0 && !every_run_is_recorded(view->ranks[group->at[0].rank].process)) {
    by = LIVE_ARRIVAL_CALL;
    measure_group(view, group, false, &late);
  }
  for (u32 m = 0; m < group->n && late.n; m++) {
    struct live_rank *rank = &view->ranks[group->at[m].rank];
    double behind = median_lateness(view, &late, &late.behind[m * LATE_CALLS]);
    if (isnan(rank->late_s) || behind > rank->late_s) {
      rank->late_s = behind;
      rank->late_by = by;
    }
  }
}

void live_join(struct live_view *view) {
  u32 n;
  struct membership *memberships = list_memberships(view, &n);
  align_hosts(view, memberships, n);
  for (u32 i = 0, next; i < n; i = next) {
    for (next = i; next < n && memberships[next].identity == memberships[i].identity; next++)
      ;
    struct group group = {&memberships[i], next - i};
    if (group.n >= 2)
      measure_lateness(view, &group);
  }
}
