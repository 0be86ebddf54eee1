/* SPDX-License-Identifier: MIT
 *
 * Where the threads that train and the data loader workers of each rank were, from samples, also
 * where no call is hooked.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/gpu/gpu_gaps.h"
#include "analyses/lines/line_stacks.h"
#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/texts.h"
#include "model/training_calls.h"

static const double samples_least = 5;

/* The union of a timeline's phases of training: the data phases, or all. PyTorch's profiler marks
 * no backward pass: that is what autograd runs. Where the host communicates itself (`calls`), those
 * calls are no work of the program's outside the phases. */
static void phases_of(const struct timeline *t, bool data, bool calls, struct arena *scratch,
                      struct intervals *phases) {
  struct interval optimizer = {0}; /* its part after the last backward pass in it */
  phases->at = arena_array(scratch, size_sum(t->n_spans, 1), sizeof(*phases->at));
  FOR_EACH(t->spans, t->n_spans, span) {
    i64 begin = phase_begin(t, (u32)(span - t->spans));
    if (optimizer.end && span->start >= optimizer.start) {
      intervals_append(phases, optimizer.start, optimizer.end);
      optimizer.end = 0;
    }
    bool marked = span->kind == SPAN_PHASE && span->category != TSCOPE_PHASE_USER,
         backward = span->kind == SPAN_OP && span->category == TSCOPE_PHASE_BACKWARD;
    bool call = calls && span->kind == SPAN_COLL_CALL;
    if (call || ((marked || backward) && (!data || span->category == TSCOPE_PHASE_DATA))) {
      if (begin > span->start)
        optimizer = (struct interval){begin, span->end};
      else
        intervals_append(phases, span->start, span->end);
    }
  }
  if (optimizer.end)
    intervals_append(phases, optimizer.start, optimizer.end);
}

/* Whether a moment is in one of them; the next call's is not before this one's. */
static bool is_within(const struct intervals *set, u32 *cursor, i64 time) {
  return intervals_covered(set, cursor, time, time + 1) > 0;
}

/* The times for which the host waits, as far as they do not overlap: what it does then is nothing
 * of its own. */
static void waits_of(const struct timeline *t, struct arena *scratch, struct intervals *waits) {
  waits->at = arena_array(scratch, t->n_spans, sizeof(*waits->at));
  FOR_EACH(t->spans, t->n_spans, span)
    if (span->kind == SPAN_COMM_WAIT || span->kind == SPAN_SYNC)
      intervals_append(waits, span->start, span->end);
}

/* When the GPU has nothing to do because nothing was launched: between its work, until the call
 * that launches what it does next. What comes before the first is start-up, in a run without steps.
 */
static void launching_of(const struct analysis *a, const struct timeline *t, struct arena *scratch,
                         struct intervals *launching) {
  const struct gpu_gaps *gaps = a->ranks[t->rank].gaps;
  bool starts_up = a->whole_run && !a->model->recorder;
  struct intervals until_call = {arena_array(scratch, gaps->n, sizeof(*until_call.at)), 0};
  FOR_EACH(gaps->at, gaps->n, gap)
    if (gap->begin != NS_UNKNOWN || !starts_up)
      intervals_append(&until_call, gap->begin, gap->call);
  intervals_subtract(scratch, &until_call, &t->capturing, launching);
}

/* Where the program was last: where a thread ended it, else not Python's finalizers behind it. */
static void keep_last(const struct call_sites *sites, const u32 *line_of_stack, const bool *outside,
                      struct line_sums *out) {
  u32 i = sites->n_samples;
  while (i > 0 && !sites->samples[i - 1].ends)
    i--;
  out->last_ends = i > 0;
  i = i ? i : sites->n_samples;
  while (i > 0 && !out->last_ends &&
         (sites->samples[i - 1].child || sites->samples[i - 1].beside ||
          sites->samples[i - 1].after_call || outside[sites->samples[i - 1].stack]))
    i--;
  u32 frame = i ? line_of_stack[sites->samples[i - 1].stack] : INDEX_NONE;
  if (frame == INDEX_NONE || !sites->frames[frame].file)
    return;
  out->last = call_frame_kept(&sites->frames[frame], &out->arena);
}

/* The innermost line of the user's code in what a child does itself. INDEX_NONE if the child waits
 * for work, or is no worker. */
static u32 line_of_child(const struct call_sites *sites, const struct call_stack *stack,
                         bool *worker) {
  u32 line = INDEX_NONE;
  *worker = true;
  FOR_EACH(stack->frames, stack->n, one) {
    const struct call_frame *frame = &sites->frames[*one];
    if (call_frame_starts_worker(frame))
      return line;
    if (line == INDEX_NONE && call_frame_is_user_code(frame))
      line = *one;
  }
  *worker = false;
  return INDEX_NONE;
}

/* What the loop over samples needs to know of the moment of each. */
struct moments {
  struct analysis *a;
  const struct timeline *t;
  const bool *in_training; /* [n_stacks] */
  struct intervals data, all, waits, launching;
  u32 at, in_any, wait, idle, in_capture; /* cursors */
  struct line_sum *sums;
  struct stack_cost *costs;
  struct host_times *times; /* [n_stacks] */
  struct line_sums *out;
  struct part_collector *parts;
};

static bool is_ready(u32 activity) {
  return activity == TSCOPE_ACTIVITY_RUNNING || activity == TSCOPE_ACTIVITY_NO_CORE ||
         activity == TSCOPE_ACTIVITY_PAGES;
}

static bool waits_for_another(u32 activity) {
  return activity == TSCOPE_ACTIVITY_LOCK || activity == TSCOPE_ACTIVITY_PIPE ||
         activity == TSCOPE_ACTIVITY_EVENTS;
}

static void add_look(struct moments *m, const struct line_sample *sample, u32 frame, i64 time,
                     i64 ns) {
  i32 step = m->a->whole_run ? 0 : model_step_at(m->a->model, m->t->rank, time);
  if (!m->a->whole_run && step < (i32)m->a->first_step)
    return;
  bool waiting = !sample->child && is_within(&m->waits, &m->wait, time);
  if (sample->beside && waiting)
    return; /* others let it go on, no thread of this process */
  struct part_sample part = {.step = (u32)step,
                             .line = frame,
                             .ns = ns,
                             .kind = sample->child    ? WORKER_LINE
                                     : sample->beside ? BESIDE_LINE
                                     : waiting        ? WAIT_LINE
                                                      : OWN_LINE,
                             SAME(sample, stack, activity, holds_gil)};
  parts_collect(m->parts, m->a, part);
  if (sample->beside || (!m->a->whole_run && !analysis_is_training(m->a, (u32)step)))
    return;
  struct line_sum *sum = &m->sums[frame];
  struct host_times *times = &m->times[sample->stack];
  m->out->samples++;
  times->all += waiting ? 0 : ns;
  if (sample->child) {
    times->of[HOST_WORKERS] += ns;
    sum->worker_ns += ns;
    m->out->worker_ns += ns;
    m->out->worker_ready_ns += is_ready(sample->activity) ? ns : 0;
    return;
  }
  bool input = is_within(&m->data, &m->at, time);
  bool launching = is_within(&m->launching, &m->idle, time) && !waiting && !input;
  bool outside = !is_within(&m->all, &m->in_any, time) && !waiting;
  bool training = outside && m->in_training[sample->stack];
  outside &= !training;
  m->out->training_ns += training ? ns : 0;
  times->training += outside || input || waiting ? 0 : ns;
  times->of[HOST_INPUT] += input ? ns : 0;
  times->of[HOST_OUTSIDE] += outside ? ns : 0;
  times->of[HOST_LAUNCHING] += launching ? ns : 0;
  /* Inside of the model's code launching itself takes the time, and no line of the program's. */
  sum->host_launching_ns += launching && outside ? ns : 0;
  m->out->launching_ns += launching ? ns : 0;
  bool capturing = is_within(&m->t->capturing, &m->in_capture, time);
  times->of[HOST_CAPTURING] += capturing ? ns : 0;
  sum->host_capturing_ns += capturing ? ns : 0;
  m->out->capturing_ns += capturing ? ns : 0;
  sum->host_outside_ns += outside ? ns : 0;
  m->out->outside_ns += outside ? ns : 0;
  sum->host_ns += waiting ? 0 : ns;
  m->costs[sample->stack].sampled += waiting ? 0 : ns;
  sum->host_input_ns += input ? ns : 0;
  m->out->input_ns += input ? ns : 0;
  m->out->input_waits_ns += input && waits_for_another(sample->activity) ? ns : 0;
}

static bool marks_forward(const struct timeline *t) {
  return ANY(t->spans, t->n_spans, one,
             one->kind == SPAN_PHASE && one->category == TSCOPE_PHASE_FORWARD);
}

/* Whether each stack is inside a function that is training, though no phase may be marked there. */
static const bool *stacks_in_training(const struct call_sites *sites, bool forward_is_marked,
                                      struct arena *scratch) {
  bool *training = arena_array(scratch, sites->n_stacks, sizeof(*training));
  bool *trains = arena_array(scratch, sites->n_frames, sizeof(*trains));
  for (u32 i = 0; i < sites->n_frames; i++) {
    enum training_part part = frame_training_part(&sites->frames[i]);
    trains[i] = part && !(part == TRAINING_FORWARD && forward_is_marked);
  }
  for (u32 s = 0; s < sites->n_stacks; s++)
    for (u32 i = 0; i < sites->stacks[s].n && !training[s]; i++)
      training[s] = trains[sites->stacks[s].frames[i]];
  return training;
}

/* Which stacks are of no part of the program: they have no frame of the user's own, and begin where
 * nothing of the user's own begins. Python runs handlers and finalizers so when the program has
 * ended. Without the user's own code anywhere a library is the program. */
static const bool *stacks_outside_program(const struct call_sites *sites, const u32 *line_of_stack,
                                          struct arena *scratch) {
  bool *outside = arena_array(scratch, sites->n_stacks, sizeof(*outside));
  bool *begins = arena_array(scratch, sites->n_frames, sizeof(*begins)), any = false;
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 s = 0; s < sites->n_stacks; s++) {
      const struct call_stack *stack = &sites->stacks[s];
      if (line_of_stack[s] == INDEX_NONE || stack->cut)
        continue;
      u32 outermost = stack->frames[stack->n - 1];
      if (pass)
        outside[s] = any && !begins[outermost] && !sites->frames[outermost].library;
      else if (call_frame_is_user_code(&sites->frames[line_of_stack[s]]))
        begins[outermost] = any = true;
    }
  return outside;
}

/* A record may stand for several looks one after the other that saw the same: each is at a moment
 * of its own. A stay of more looks than this is divided into so many. */
enum { LOOKS_MOST = 1000 };
static void add_looks(struct moments *m, const struct line_sample *sample, u32 frame) {
  i64 interval = sample->interval_ns, looks = (sample->represented_ns + interval / 2) / interval;
  looks = looks < 1 || sample->child || sample->beside ? 1 : looks;
  if (looks > LOOKS_MOST) {
    looks = LOOKS_MOST;
    interval = sample->represented_ns / LOOKS_MOST;
  }
  for (i64 k = looks; k-- > 0;)
    add_look(m, sample, frame, sample->time - k * interval, sample->represented_ns / looks);
}

/* `first` and `last`: samples of a worker at work. */
struct worker_time {
  u32 child, looks;
  i64 first, last, ns, busy_ns;
};

typedef VECTOR(struct worker_time) worker_times;

/* The first tell how many there are at a time; a damaged trace may name a new one each time. */
enum { WORKERS_MOST = 1024 };

static void note_worker(worker_times *workers, const struct line_sample *sample, bool busy) {
  u32 i = workers->n;
  while (i > 0 && workers->at[i - 1].child != sample->child)
    i--;
  if (i == 0 && workers->n == WORKERS_MOST)
    return;
  if (i == 0) {
    VECTOR_PUSH(workers, ((struct worker_time){.child = sample->child, .first = INT64_MAX}));
    i = workers->n;
  }
  struct worker_time *worker = &workers->at[i - 1];
  worker->looks++;
  worker->ns += sample->represented_ns;
  if (!busy)
    return;
  worker->busy_ns += sample->represented_ns;
  worker->first = MIN(worker->first, sample->time);
  worker->last = sample->time;
}

/* Each epoch may have workers of its own. */
static u32 most_at_once(const worker_times *workers) {
  return MOST_OF(u32, workers->at, workers->n, one,
                 NUMBER_OF(workers->at, workers->n, other,
                           other->first <= one->first && one->first <= other->last));
}

static double busy_share(const struct worker_time *worker, double errors) {
  return share_by_looks((double)worker->busy_ns / (double)worker->ns, worker->looks, errors);
}

static void compare_workers(const worker_times *workers, struct line_sums *out) {
  double all = (double)out->workers_busy_ns / (double)out->workers_ns, most = 0;
  FOR_EACH(workers->at, workers->n, one)
    most = fmax(most, busy_share(one, 2));
  out->one_worker_is_busier = ANY(workers->at, workers->n, one, busy_share(one, -2) > all);
  out->busiest_worker = most > 0 ? fmin(1, most) : 1;
}

void sampled_lines_rank(struct analysis *a, const struct timeline *t, const u32 *line_of_stack,
                        struct line_sum *sums, struct stack_cost *costs, struct arena *scratch,
                        struct line_sums *out) {
  const struct call_sites *sites = t->call_sites;
  out->fewer = sites->fewer;
  struct moments m = {.a = a, .t = t, .sums = sums, .costs = costs, .out = out};
  m.parts = parts_collect_new(sites, scratch);
  m.times = arena_array(scratch, sites->n_stacks, sizeof(*m.times));
  const bool *outside = stacks_outside_program(sites, line_of_stack, scratch);
  m.in_training = stacks_in_training(sites, marks_forward(t), scratch);
  bool host_communicates = !a->ranks[t->rank].on_gpu;
  phases_of(t, true, false, scratch, &m.data);
  phases_of(t, false, host_communicates, scratch, &m.all);
  waits_of(t, scratch, &m.waits);
  launching_of(a, t, scratch, &m.launching);
  SCOPED worker_times workers = {0};
  FOR_EACH(sites->samples, sites->n_samples, sample) {
    bool worker = false;
    u32 frame = sample->child ? line_of_child(sites, &sites->stacks[sample->stack], &worker)
                              : line_of_stack[sample->stack];
    if (worker) { /* one sample may stand for the whole run */
      out->workers_ns += sample->represented_ns;
      out->worker_looks++;
      bool busy = frame != INDEX_NONE || !waits_for_another(sample->activity);
      out->workers_busy_ns += busy ? sample->represented_ns : 0;
      note_worker(&workers, sample, busy);
    }
    bool of_program = sample->child || sample->beside || !outside[sample->stack];
    if (frame != INDEX_NONE && of_program && !sample->after_call && !sample->ends)
      add_looks(&m, sample, frame);
  }
  out->n_workers = most_at_once(&workers);
  compare_workers(&workers, out);
  parts_collect_end(m.parts, a, t->rank, &out->arena, &out->parts);
  busiest_functions(sites, m.times, out);
  keep_last(sites, line_of_stack, outside, out);
  out->loop = sites->loop ? call_frame_kept(sites->loop, &out->arena) : NULL;
}

/* A line of a rank: of all places in it. */
struct line_on_rank {
  const struct line_sum *sum;
  u32 rank;
  i64 ns[HOST_TIMES];
};

ORDER_BY(by_line, struct line_on_rank, THEN(line_sums_by_line(a->sum, b->sum)) UP(rank))

static struct sampled_line *sampled_line_new(struct analysis *a, const struct line_sum *sum) {
  struct sampled_line *line = arena_alloc(a->arena, sizeof(*line));
  *line = (struct sampled_line){.place = line_place(a, sum->file, sum->line, sum->function),
                                .function = arena_text(a->arena, sum->function),
                                .no_core_share = NAN};
  return line;
}

static bool workers_are_sampled(const struct line_sums *sums) {
  return (double)sums->worker_ns >= samples_least * sums->parts.sample_ns;
}

double workers_ready_share(const struct analysis *a, u32 rank) {
  const struct line_sums *sums = a->line_sums ? &a->line_sums[rank] : NULL;
  if (sums && workers_are_sampled(sums))
    return (double)sums->worker_ready_ns / (double)sums->worker_ns;
  return sums && (double)sums->input_ns >= samples_least * sums->parts.sample_ns
             ? (double)sums->input_waits_ns / (double)sums->input_ns
             : 0;
}

/* How long the rank's data phases are, in steps of training. */
static double data_ns_of(const struct analysis *a, u32 rank) {
  double ns = 0;
  FOR_EACH_STEP(a, step) {
    double ms = a->model->phases && analysis_is_training(a, step)
                    ? phase_ms(a->model, rank, step, TSCOPE_PHASE_DATA)
                    : 0;
    ns += ms > 0 ? ms * 1e6 : 0;
  }
  return ns;
}

/* The line at which the input takes most time: of the workers, if there are any. In a recording
 * without stacks only operators are seen, which may take next to nothing of it. */
static void set_input_line(struct analysis *a, const struct line_on_rank *line) {
  const struct line_sums *sums = &a->line_sums[line->rank];
  struct rank_result *rank = &a->results->ranks[line->rank];
  bool workers = workers_are_sampled(sums);
  double least_ns = samples_least * sums->parts.sample_ns;
  double ns = (double)line->ns[workers ? HOST_WORKERS : HOST_INPUT];
  double share = ns / (double)(workers ? sums->worker_ns : sums->input_ns);
  if (!(ns >= least_ns) || (rank->input_line && rank->input_line->share >= share) ||
      (!workers && !(ns >= WORTH_MENTIONING * data_ns_of(a, line->rank))))
    return;
  struct sampled_line *best = sampled_line_new(a, line->sum);
  best->share = share;
  best->in_workers = workers;
  rank->input_line = best;
}

double lines_unmarked_training(const struct analysis *a) {
  u32 n = a->model->n_ranks;
  double training = TOTAL(double, a->line_sums, n, one, (double)one->training_ns);
  double outside = TOTAL(double, a->line_sums, n, one, (double)one->outside_ns);
  return training > 0 ? training / (training + outside) : 0;
}

/* The part of a line; NULL if the rank has none. */
static const struct sampled_part *part_of_line(const struct rank_parts *parts,
                                               const struct line_sum *sum) {
  return FIND(parts->at, parts->n, one,
              one->kind == OWN_LINE && one->line == sum->line && same_text(one->file, sum->file) &&
                  same_text(one->function, sum->function));
}

/* Where other threads are most while those that train wait for a lock or the GIL; NULL. */
static const struct sampled_part *part_beside(const struct rank_parts *parts) {
  return LARGEST(parts->at, parts->n, one, one->kind == BESIDE_LINE,
                 TOTAL(double, one->activity_ns, ACTIVITIES, ns, (double)*ns));
}

/* The line at which most of some time of the host goes, `all_ns`. */
static void set_host_line(struct analysis *a, const struct line_on_rank *line, i64 line_ns,
                          i64 all_ns, const struct sampled_line **place) {
  const struct line_sums *sums = &a->line_sums[line->rank];
  double ns = (double)line_ns, share = ns / (double)all_ns;
  if (!(ns >= samples_least * sums->parts.sample_ns) || (*place && (*place)->share >= share))
    return;
  const struct sampled_part *part = part_of_line(&sums->parts, line->sum);
  struct sampled_line *best = part ? line_of_part(a, part) : sampled_line_new(a, line->sum);
  if (part)
    line_set_beside(a, part, part_beside(&sums->parts), best);
  best->share = share;
  best->ms = ns_to_ms((i64)ns) / line_steps_of(a, line->rank);
  *place = best;
}

/* A function, where no line takes half. */
static void prefer_function(struct analysis *a, u32 rank, enum host_time kind, i64 all_ns,
                            const struct sampled_line **place) {
  const struct line_sums *sums = &a->line_sums[rank];
  const struct host_function *function = &sums->functions[kind];
  double least_ns = samples_least * sums->parts.sample_ns;
  if (!function->frame || !((double)function->ns >= least_ns) || !*place ||
      (*place)->share >= REASON_SHARE)
    return;
  struct sampled_line *found = line_of_function(a, function->frame);
  found->inside = *place;
  found->in_workers = (*place)->in_workers;
  found->share = (double)function->ns / (double)all_ns;
  found->ms = ns_to_ms(function->ns) / line_steps_of(a, rank);
  *place = found;
}

static void prefer_functions(struct analysis *a, u32 rank) {
  const struct line_sums *sums = &a->line_sums[rank];
  struct rank_result *of = &a->results->ranks[rank];
  bool workers = workers_are_sampled(sums);
  prefer_function(a, rank, workers ? HOST_WORKERS : HOST_INPUT,
                  workers ? sums->worker_ns : sums->input_ns, &of->input_line);
  prefer_function(a, rank, HOST_OUTSIDE, sums->outside_ns, &of->outside_line);
  prefer_function(a, rank, HOST_LAUNCHING, sums->launching_ns, &of->launching_line);
  prefer_function(a, rank, HOST_CAPTURING, sums->capturing_ns, &of->capturing_line);
}

static void add_times(struct line_on_rank *sum, const struct line_on_rank *more) {
  for (u32 kind = 0; kind < HOST_TIMES; kind++)
    sum->ns[kind] += more->ns[kind];
}

static void compare_lines(struct analysis *a, struct line_on_rank *all) {
  u32 n = 0;
  for (u32 r = 0; r < a->model->n_ranks; r++)
    FOR_EACH(a->line_sums[r].at, a->line_sums[r].n, sum)
      all[n++] = (struct line_on_rank){sum,
                                       r,
                                       {sum->worker_ns, sum->host_input_ns, sum->host_outside_ns,
                                        sum->host_launching_ns, sum->host_capturing_ns}};
  n = SORT_AND_JOIN(all, n, by_line, sum, more, add_times(sum, more));
  FOR_EACH(all, n, one) {
    set_input_line(a, one);
    const struct line_sums *sums = &a->line_sums[one->rank];
    struct rank_result *rank = &a->results->ranks[one->rank];
    set_host_line(a, one, one->ns[HOST_OUTSIDE], sums->outside_ns, &rank->outside_line);
    set_host_line(a, one, one->ns[HOST_LAUNCHING], sums->launching_ns, &rank->launching_line);
    set_host_line(a, one, one->ns[HOST_CAPTURING], sums->capturing_ns, &rank->capturing_line);
  }
}

void sampled_lines_summarise(struct analysis *a) {
  if (a->results->n_ranks != a->model->n_ranks)
    return;
  u32 n = TOTAL(u32, a->line_sums, a->model->n_ranks, one, one->n);
  SCOPED struct line_on_rank *all = memory_array(size_sum(n, 1), sizeof(*all));
  compare_lines(a, all);
  for (u32 rank = 0; rank < a->model->n_ranks; rank++)
    prefer_functions(a, rank);
  slow_parts_summarise(a);
}
