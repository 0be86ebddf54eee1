/* SPDX-License-Identifier: MIT
 *
 * What only ranks together can show: whose clocks are on one axis, and who is late there.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/robust.h"
#include "base/statistics.h"
#include "kernels/communication.h"
#include "live/live_view.h"

enum { LATE_CALLS = LIVE_RECENT_CALLS };
#define END_SPREAD_NS 2e6 /* members that end further apart than this were matched wrongly */
#define END_SPREAD_SHARE 0.25

/* A host's clock is known as well as that of the rank that ties it best. */
static void describe_clocks(struct live_view *view) {
  for (u32 r = 0; r < view->n_ranks; r++) {
    struct live_host *host = &view->hosts[view->ranks[r].host];
    const struct clock_fit *fit = &view->model->ranks[r].clock;
    host->error_s = fmin(host->error_s, fit->error_us / 1e6);
    host->ends = MAX(fit->collectives, host->ends);
  }
}

/* The last calls of each communicator. */
struct last_calls {
  u32 *newest; /* [n_comms] index into model.collectives, INDEX_NONE */
  u32 *before; /* [n_collectives] */
  i64 *waited; /* [n_arrivals] by the rank in other communicators, since the call before ended */
};

struct lateness {
  u32 members;                    /* of the communicator, with a trace */
  const struct arrival *arrivals; /* theirs at one of the calls */
  double *behind;                 /* [members x LATE_CALLS] seconds */
  u32 n;                          /* calls measured, the newest first */
  i64 middle[LATE_CALLS];         /* when the median member came to each */
  i64 *times, *sorted, *ends;
};

/* When each member arrived, if all members have the call. */
static void measure_call(const struct model *model, const struct collective *call, bool by_run,
                         const i64 *waited, struct lateness *late) {
  const struct arrival *members = members_of(model, call);
  if (call->n_arrivals != late->members || op_is_message(call->op))
    return;
  for (u32 m = 0; m < late->members; m++) {
    late->times[m] = by_run ? members[m].start : members[m].call_start;
    late->ends[m] = by_run ? members[m].end : 0;
    if (late->times[m] == NS_UNKNOWN || late->ends[m] == NS_UNKNOWN ||
        !model->ranks[members[m].rank].clock.aligned)
      return;
  }
  memcpy(late->sorted, late->times, late->members * sizeof(*late->sorted));
  i64 middle = lower_median_i64(late->sorted, late->members), first = INT64_MAX, last = INT64_MIN;
  for (u32 m = 0; m < late->members; m++) {
    first = MIN(late->times[m], first);
    last = MAX(late->times[m], last);
  }
  if (by_run) {
    i64 end = lower_median_i64(late->ends, late->members);
    FOR_EACH_CHANGED(late->ends, late->members, item)
      *item = llabs(*item - end);
    if ((double)lower_median_i64(late->ends, late->members) >
        fmax(END_SPREAD_NS, END_SPREAD_SHARE * (double)(last - first)))
      return;
  }
  for (u32 m = 0; m < late->members; m++) {
    i64 behind = late->times[m] - middle, waits = waited[&members[m] - model->arrivals];
    if (behind > 0) /* of that time; else it is not late */
      behind -= MIN(waits, behind);
    late->behind[m * LATE_CALLS + late->n] = ns_to_s(behind);
  }
  late->middle[late->n++] = middle;
  late->arrivals = members;
}

/* Until when members wait; NS_UNKNOWN, which is the least time. */
static i64 last_ready(const struct model *model, const struct collective *call) {
  i64 last = NS_UNKNOWN;
  FOR_EACH_MEMBER(model, call, member)
    last = MAX(model_arrival_ready(model, member), last);
  return last;
}

static const struct arrival *member_before(const struct model *model,
                                           const struct last_calls *calls,
                                           const struct collective *call,
                                           const struct arrival *member) {
  u32 before = calls->before[call - model->collectives];
  const struct collective *same = before == INDEX_NONE ? NULL : &model->collectives[before];
  size_t place = (size_t)(member - members_of(model, call));
  const struct arrival *of =
      same && place < same->n_arrivals ? members_of(model, same) + place : NULL;
  return of && of->rank == member->rank ? of : NULL;
}

/* All left the call before together, so what made a rank late at this one came after it: its own
 * work, or waits in other communicators. Their victims are not late by themselves. */
static void find_waits(const struct model *model, struct last_calls *calls, struct arena *arena) {
  i64 *all = arena_array(arena, model->n_ranks, sizeof(*all));        /* waits of the rank so far */
  i64 *until = arena_array(arena, model->n_arrivals, sizeof(*until)); /* with that call's */
  FOR_EACH(model->collectives, model->n_collectives, call) {
    i64 last = op_is_barrier_like(call->op) ? last_ready(model, call) : NS_UNKNOWN;
    FOR_EACH_MEMBER(model, call, arrival) {
      u32 at = (u32)(arrival - model->arrivals);
      const struct arrival *before = member_before(model, calls, call, arrival);
      i64 others = before ? all[arrival->rank] - until[before - model->arrivals] : 0;
      i64 ready = model_arrival_ready(model, arrival),
          left = before ? arrival_left(before) : NS_UNKNOWN;
      i64 most = ready != NS_UNKNOWN && left != NS_UNKNOWN ? ready - left : 0;
      calls->waited[at] = others < most ? others : MAX(most, 0);
      all[arrival->rank] += ready != NS_UNKNOWN && last > ready ? last - ready : 0;
      until[at] = all[arrival->rank];
    }
  }
}

static struct last_calls list_calls(const struct model *model, struct arena *arena) {
  struct last_calls calls = {.newest = arena_array(arena, model->n_comms, sizeof(u32)),
                             .before = arena_array(arena, model->n_collectives, sizeof(u32)),
                             .waited = arena_array(arena, model->n_arrivals, sizeof(i64))};
  FILL(calls.newest, model->n_comms, INDEX_NONE);
  for (u32 i = 0; i < model->n_collectives; i++) {
    calls.before[i] = calls.newest[model->collectives[i].comm];
    calls.newest[model->collectives[i].comm] = i;
  }
  find_waits(model, &calls, arena);
  return calls;
}

static void measure_calls(const struct model *model, const struct last_calls *calls, u32 comm,
                          bool by_run, struct lateness *late) {
  for (u32 i = calls->newest[comm]; i != INDEX_NONE && late->n < LATE_CALLS; i = calls->before[i])
    measure_call(model, &model->collectives[i], by_run, calls->waited, late);
}

static bool every_run_is_recorded(const struct rank *rank) {
  return rank->gpu_clock == TSCOPE_GPU_CLOCK_CUPTI || rank->gpu_clock == TSCOPE_GPU_CLOCK_EVENTS;
}

/* How late a member is in a step: at the call where it is latest. The result is the median over the
 * last steps; the oldest step may be incomplete and is left out. Later calls of a step often follow
 * directly, at the same time for all: a median over calls would hide who is late. Where members
 * meet in every tenth step only, they come as late as ten steps made them. */
static double median_lateness(const struct live_view *view, const struct lateness *late,
                              const double *behind) {
  double most[LATE_CALLS];
  u32 steps = 0, last = 0;
  i64 newest = late->middle[0], step = isnan(view->step_s) ? 0 : (i64)(view->step_s * 1e9);
  for (u32 i = 0; i < late->n; i++) {
    u32 number = step > 0 ? (u32)fmax(0, (double)(newest - late->middle[i]) / (double)step) : 0;
    if (steps && number <= last) {
      most[steps - 1] = MAX(behind[i], most[steps - 1]);
      continue;
    }
    if (steps && step > 0) { /* a longer step is no second one */
      double apart = (double)(late->middle[i - 1] - late->middle[i]) / (double)step;
      most[steps - 1] /= fmax(1, floor(apart + 0.25));
    }
    most[steps++] = behind[i];
    last = number;
  }
  return median_of(most, steps > 1 ? steps - 1 : steps);
}

/* The lateness of a rank is that in the group where it is latest. */
static void measure_lateness(struct live_view *view, const struct last_calls *calls, u32 c) {
  const struct model *model = view->model;
  const struct comm *comm = &model->comms[c];
  struct arena *arena = &view->arena;
  struct lateness late = {0};
  u32 one = INDEX_NONE;
  FOR_EACH(comm->members, comm->size, member) {
    late.members += *member != INDEX_NONE;
    one = *member != INDEX_NONE ? *member : one;
  }
  if (late.members < 2)
    return;
  late.behind = arena_array(arena, size_product(late.members, LATE_CALLS), sizeof(double));
  late.times = arena_array(arena, late.members, sizeof(i64));
  late.sorted = arena_array(arena, late.members, sizeof(i64));
  late.ends = arena_array(arena, late.members, sizeof(i64));
  bool on_host = comm->backend != TSCOPE_BACKEND_NCCL;
  enum live_arrival by = on_host ? LIVE_ARRIVAL_CALL : LIVE_ARRIVAL_RUN;
  measure_calls(model, calls, c, !on_host, &late);
  if (!on_host && late.n == 0 && !every_run_is_recorded(&model->ranks[one])) {
    by = LIVE_ARRIVAL_CALL;
    measure_calls(model, calls, c, false, &late);
  }
  for (u32 m = 0; m < late.members && late.n; m++) {
    struct live_rank *rank = &view->ranks[late.arrivals[m].rank];
    double behind = median_lateness(view, &late, &late.behind[m * LATE_CALLS]);
    if (isnan(rank->late_s) || behind > rank->late_s) {
      rank->late_s = behind;
      rank->late_by = by;
    }
  }
}

void live_join(struct live_view *view) {
  describe_clocks(view);
  struct last_calls calls = list_calls(view->model, &view->arena);
  for (u32 c = 0; c < view->model->n_comms; c++)
    measure_lateness(view, &calls, c);
}
