/* SPDX-License-Identifier: MIT
 *
 * Time by the line of the program that it comes from: where the host waits and the GPU then has
 * nothing to do, what is launched, which communication is not hidden. A call belongs to the
 * innermost frame of the user's own code. A sampled call counts for all the calls that it stands
 * for.
 */
#include "analyses/lines/lines.h"
#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/gpu/gpu_gaps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/lines/line_stacks.h"
#include "analyses/lines/line_sums.h"
#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/intervals.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "model/span_call_sites.h"

enum { LISTED = 100 };

struct counting {
  struct analysis *a;
  const struct timeline *t;
  const struct call_sites *sites;
  struct line_sum *sums;         /* [n_frames] */
  u32 *line_of_stack;            /* [n_stacks] frame, INDEX_NONE */
  struct stack_cost *costs;      /* [n_stacks] */
  u32 first_step;                /* of which the ring still has all calls */
  u32 collective;                /* number of the next one in the timeline */
  i64 exposed, exposed_at_lines; /* of all, and what the weights of their lines make it */
  /* By weight: waits, and those of which it is known how long the GPU was idle after them;
   * launches, and those whose work was seen if there was any. */
  double waits, waits_known, launches, launches_known;
};

void lines_prepare(struct analysis *a) {
  a->line_sums = arena_array(a->arena, a->model->n_ranks, sizeof(*a->line_sums));
  a->line_tree = line_tree_new();
  a->results->lines.stacks_rank = INDEX_NONE;
}

/* How busy workers are stays: outputs that follow single steps ask again (path_batches.c). */
void lines_free(struct analysis *a) {
  for (u32 r = 0; a->line_sums && r < a->model->n_ranks; r++) {
    struct line_sums *sums = &a->line_sums[r];
    arena_release(&sums->arena);
    *sums = (struct line_sums){SAME(sums, workers_ns, workers_busy_ns, worker_looks, n_workers,
                                    one_worker_is_busier, busiest_worker)};
  }
  line_tree_free(a->line_tree);
}

/* Steps of training that a rank's host has, from one on. */
static double steps_from(const struct analysis *a, u32 rank, u32 first) {
  double sum = a->whole_run;
  for (u32 step = first; !a->whole_run && step < a->model->steps.n; step++)
    sum += analysis_has_step(a, rank, step) && analysis_is_training(a, step);
  return sum;
}

double line_steps_of(const struct analysis *a, u32 rank) {
  return steps_from(a, rank, a->first_step);
}

static u32 first_kept_step(const struct analysis *a, const struct timeline *t) {
  u32 step = a->first_step;
  while (t->on_gpu && step < a->model->steps.n &&
         step_on_host(a->model, step, t->rank).start < t->ring_begin)
    step++;
  return step;
}

/* Whether a moment of the host is in an analysed step: what it does then belongs to that step, also
 * where its GPU is some steps behind. */
static bool time_is_analysed(const struct counting *c, i64 time) {
  const struct analysis *a = c->a;
  i32 step = a->whole_run ? 0 : model_step_at(a->model, c->t->rank, time);
  return a->whole_run || (step >= (i32)c->first_step && analysis_is_training(a, (u32)step));
}

/* The sum of the line that a host span comes from; NULL if it is not known. */
static struct line_sum *line_sum_of(struct counting *c, u32 span, const struct call_site **site) {
  u32 index = c->sites->of_span[span];
  if (index == INDEX_NONE)
    return NULL;
  *site = &c->sites->sites[index];
  u32 frame = c->line_of_stack[(*site)->stack];
  return frame == INDEX_NONE ? NULL : &c->sums[frame];
}

/* The time from `time` until the GPU has been given something to do again; 0 if it has work
 * already, or never again; NS_UNKNOWN if the GPU was not watched until then. What it then waits
 * before it begins is not the program's. */
static i64 idle_after(const struct counting *c, i64 time) {
  const struct gpu_gaps *gaps = c->a->ranks[c->t->rank].gaps;
  u32 low = FIRST_NOT(0, gaps->n, i, gaps->at[i].end <= time);
  const struct gpu_gap *gap = low < gaps->n && gaps->at[low].begin <= time ? &gaps->at[low] : NULL;
  if (!model_gpu_seen(&c->a->model->ranks[c->t->rank], time, gap ? gap->end : time))
    return NS_UNKNOWN;
  i64 given = !gap ? time : gap->launched == NS_UNKNOWN ? gap->end : gap->launched;
  return given > time ? given - time : 0;
}

static i64 add_wait(struct counting *c, const struct span *span, u32 weight) {
  bool shows_idle = span->kind == SPAN_SYNC && c->t->on_gpu && c->t->has_compute;
  i64 idle = shows_idle ? idle_after(c, span->end) : NS_UNKNOWN;
  c->waits += shows_idle ? weight : 0;
  c->waits_known += idle != NS_UNKNOWN ? weight : 0;
  return idle != NS_UNKNOWN ? idle * weight : 0;
}

/* Operators have their line only for who looks at single calls: what they do is launches and waits,
 * or is sampled. */
static void add_host_span(struct counting *c, u32 i) {
  const struct span *span = &c->t->spans[i];
  const struct call_site *site;
  struct line_sum *sum = span->kind == SPAN_OP ? NULL : line_sum_of(c, i, &site);
  if (!sum || !time_is_analysed(c, span->start))
    return;
  struct stack_cost *cost = &c->costs[site->stack];
  i64 took = (span->end - span->start) * site->weight;
  sum->calls++;
  sum->of_backward += site->of_backward;
  if (span->kind == SPAN_SYNC || span->kind == SPAN_COMM_WAIT) {
    i64 idle = add_wait(c, span, site->weight);
    sum->waits += site->weight;
    sum->wait_ns += took;
    sum->idle_ns += idle;
    cost->host += took;
    cost->idle += idle;
  } else if (span->kind == SPAN_COLL_CALL) {
    sum->collectives += site->weight;
  } else if (span->kind == SPAN_PHASE && span->category == TSCOPE_PHASE_DATA) {
    sum->input_ns += span->end - span->start;
    cost->host += span->end - span->start;
  } else if (span->kind == SPAN_LAUNCH) {
    sum->launches += site->weight;
    sum->samples++;
    c->launches += site->weight;
    bool seen = span->link != INDEX_NONE ||
                model_gpu_seen(&c->a->model->ranks[c->t->rank], span->start, span->end);
    c->launches_known += seen ? site->weight : 0;
  }
}

static void scale(i64 *ns, double by) {
  *ns = (i64)((double)*ns * by);
}

/* The steps of which the ring still has all calls, and those of which it is known what the GPU did,
 * stand for all. Where the GPU was watched for a part of the time (TSCOPE_GPU_STEPS, another
 * profiler), that part stands for the whole, by the calls in it. Where kernels communicate, the
 * lines of some launches stand for all, but not for more than there was. */
static void scale_to_all_calls(struct counting *c, struct line_sums *out) {
  double steps = line_steps_of(c->a, c->t->rank),
         kept = steps_from(c->a, c->t->rank, c->first_step), summed = c->a->ranks[c->t->rank].steps;
  double calls = kept > 0 ? steps / kept : 1, comm = summed > 0 ? steps / summed : 1;
  double exposed =
      comm *
      (c->exposed_at_lines > c->exposed ? (double)c->exposed / (double)c->exposed_at_lines : 1);
  double idle = calls * (c->waits_known > 0 ? c->waits / c->waits_known : 1);
  double gpu = calls * (c->launches_known > 0 ? c->launches / c->launches_known : 1);
  out->calls_unknown = kept == 0;
  out->idle_unknown = kept == 0 || (c->waits > 0 && c->waits_known == 0);
  FOR_EACH_CHANGED(c->sums, c->sites->n_frames, sum) {
    sum->waits *= calls;
    sum->collectives *= calls;
    sum->launches *= calls;
    scale(&sum->wait_ns, calls);
    scale(&sum->input_ns, calls);
    scale(&sum->idle_ns, idle);
    scale(&sum->comm_ns, comm);
    scale(&sum->exposed_ns, exposed);
    sum->gpu_ns *= gpu;
    sum->backward_gpu_ns *= gpu;
  }
  FOR_EACH_CHANGED(c->costs, c->sites->n_stacks, cost) {
    scale(&cost->host, calls);
    scale(&cost->idle, idle);
    scale(&cost->exposed, exposed);
    scale(&cost->gpu, gpu);
  }
}

/* What of a collective nothing hides belongs to its line: the lines' sum is the time in which the
 * rank communicates exposed. */
static void add_collective(struct counting *c, const struct span *span) {
  const struct call_site *site;
  struct line_sum *sum = span->launch == INDEX_NONE ? NULL : line_sum_of(c, span->launch, &site);
  i64 exposed = c->a->ranks[c->t->rank].exposed[c->collective++];
  if (exposed == NS_UNKNOWN)
    return;
  exposed = c->t->has_compute ? exposed : 0; /* what hides it is not known */
  c->exposed += exposed;
  if (!sum)
    return;
  sum->comm_ns += (span->end - span->start) * site->weight;
  sum->exposed_ns += exposed * site->weight;
  c->costs[site->stack].exposed += exposed * site->weight;
  c->exposed_at_lines += exposed * site->weight;
}

static void add_device_span(struct counting *c, u32 i) {
  const struct span *span = &c->t->spans[i];
  const struct call_site *site;
  struct line_sum *sum = span->launch == INDEX_NONE ? NULL : line_sum_of(c, span->launch, &site);
  i64 took = span->end - span->start;
  if (span->kind == SPAN_COLLECTIVE) {
    add_collective(c, span);
  } else if (sum && time_is_analysed(c, c->t->spans[span->launch].start)) {
    sum->gpu_ns += (double)took * site->weight;
    sum->backward_gpu_ns += site->of_forward ? (double)took * site->weight : 0;
    c->costs[site->stack].gpu += took * site->weight;
  }
}

/* The lines that something came from. Their texts are copied, because the timeline is released. */
static void copy_lines(struct counting *c, struct line_sums *out) {
  out->at = arena_array(&out->arena, c->sites->n_frames, sizeof(*out->at));
  for (u32 i = 0; i < c->sites->n_frames; i++) {
    if (!c->sums[i].calls && !c->sums[i].host_ns && !c->sums[i].worker_ns)
      continue;
    const struct call_frame *frame = &c->sites->frames[i];
    struct line_sum *sum = &out->at[out->n++];
    *sum = c->sums[i];
    sum->file = arena_text(&out->arena, frame->file);
    sum->function = arena_text(&out->arena, text_or_empty(frame->function));
    sum->line = frame->line;
  }
}

void lines_rank(struct analysis *a, const struct timeline *timeline) {
  const struct call_sites *sites = timeline->call_sites;
  bool known = sites != NULL;
  struct carrier *keeps = analysis_keeps(a, timeline->rank);
  if (keeps)
    CARRY(keeps, &known);
  if (!sites)
    return;
  SCOPED_ARENA struct arena scratch = {0};
  struct counting c = {
      .a = a, .t = timeline, .sites = sites, .first_step = first_kept_step(a, timeline)};
  c.sums = arena_array(&scratch, sites->n_frames, sizeof(*c.sums));
  c.line_of_stack = arena_array(&scratch, sites->n_stacks, sizeof(*c.line_of_stack));
  c.costs = arena_array(&scratch, sites->n_stacks, sizeof(*c.costs));
  for (u32 i = 0; i < sites->n_stacks; i++)
    c.line_of_stack[i] = call_stack_line(sites, &sites->stacks[i]);
  for (u32 i = 0; i < timeline->n_spans; i++) {
    if (SPAN_ON_DEVICE(timeline->spans[i].kind))
      add_device_span(&c, i);
    else
      add_host_span(&c, i);
  }
  struct line_sums *out = &a->line_sums[timeline->rank];
  out->sites = sites->n_sites;
  out->of_functions = sites->of_functions;
  out->of_operators = sites->of_operators;
  scale_to_all_calls(&c, out);
  sampled_lines_rank(a, timeline, c.line_of_stack, c.sums, c.costs, &scratch, out);
  copy_lines(&c, out);
  line_tree_add(a->line_tree, timeline->rank, sites, c.costs);
  if (keeps)
    line_tree_write(sites, c.costs, keeps);
}

u32 line_key(const char *file, u32 line, const char *function) {
  u64 of_file = hash_text(HASH_SEED ^ line, file);
  u32 hash = (u32)(line || !function ? of_file : hash_text(of_file, function));
  return MAX(hash, 1);
}

u32 line_of_span(const struct timeline *timeline, const struct span *span) {
  const struct call_sites *sites = timeline->call_sites;
  u32 frame =
      span->kind == SPAN_SYNC ? call_span_line(sites, (u32)(span - timeline->spans)) : INDEX_NONE;
  if (frame == INDEX_NONE)
    return 0;
  const struct call_frame *at = &sites->frames[frame];
  return line_key(at->file, at->line, at->function);
}

int line_sums_by_line(const void *left, const void *right) {
  const struct line_sum *a = left, *b = right;
  int order = strcmp(a->file, b->file);
  if (!order)
    order = a->line < b->line ? -1 : a->line > b->line;
  return order ? order : strcmp(a->function, b->function);
}

/* What was sampled includes the waits. */
static double cost_of(const struct line_sum *sum) {
  i64 host = sum->wait_ns + sum->input_ns;
  return (double)(MAX(host, sum->host_ns) + sum->idle_ns + sum->exposed_ns) + sum->gpu_ns;
}

ORDER_BY(by_cost, struct line_sum, DOWN_OF(cost_of) THEN(line_sums_by_line(a, b)))

static u32 merge_lines(struct line_sum *all, u32 n) {
  u32 lines = SORT_AND_JOIN(all, n, line_sums_by_line, sum, more,
                            ADD_EACH(sum, more, waits, collectives, samples, calls, of_backward,
                                     wait_ns, idle_ns, input_ns, comm_ns, exposed_ns, launches,
                                     gpu_ns, backward_gpu_ns, host_ns, worker_ns));
  SORT(all, lines, by_cost);
  return lines;
}

/* By calls with a line, or by samples alone: a program without a GPU, on one rank, makes no such
 * call. */
static bool has_lines(const struct line_sums *sums) {
  return sums->sites || sums->samples;
}

char *line_place(struct analysis *a, const char *file, u32 line, const char *function) {
  const struct call_frame frame = {.file = file, .function = function, .line = line};
  char *place = call_frame_place(a->arena, &frame, model_folder(a->model));
  bool alone = line || call_is_named(line, function) || !function || !*function;
  return alone ? place : say(a, "%s %s", place, function);
}

static struct line_steps steps_of_figures(const struct analysis *a) {
  struct line_steps steps = {0};
  bool busy_known = false;
  for (u32 r = 0; r < a->model->n_ranks; r++) {
    double own = has_lines(&a->line_sums[r]) ? line_steps_of(a, r) : 0;
    busy_known |= a->ranks[r].on_gpu && a->ranks[r].has_compute;
    steps.all += own;
    steps.calls += a->line_sums[r].calls_unknown ? 0 : own;
    steps.comm += a->ranks[r].steps ? own : 0;
    steps.idle += a->line_sums[r].idle_unknown ? 0 : own;
    steps.exposed += rank_overlap_known(&a->ranks[r]) ? own : 0;
  }
  steps.on_gpu = busy_known ? steps.calls : (double)NAN;
  steps.idle = busy_known && steps.idle > 0 ? steps.idle : (double)NAN;
  steps.exposed = steps.exposed > 0 ? steps.exposed : (double)NAN;
  return steps;
}

static void list_lines(struct analysis *a, const struct line_sum *all, u32 n) {
  struct lines_result *lines = &a->results->lines;
  struct line_steps per = steps_of_figures(a);
  double steps = per.all;
  bool on_gpu = ANY(a->ranks, a->model->n_ranks, one, one->on_gpu);
  bool sampled = ANY(a->line_sums, a->model->n_ranks, one, one->samples);
  line_tree_list(a->line_tree, a, &per);
  lines->at = arena_array(a->arena, n, sizeof(*lines->at));
  for (u32 i = 0; i < n; i++) {
    const struct line_sum *sum = &all[i];
    struct line_result *out = &lines->at[i];
    *out = (struct line_result){
        .place = line_place(a, sum->file, sum->line, sum->function),
        .file = arena_text(a->arena, sum->file),
        .function = arena_text(a->arena, sum->function),
        .line = sum->line ? sum->line : (double)NAN,
        .waits = sum->waits / per.calls,
        .wait_ms = ns_to_ms(sum->wait_ns) / per.calls,
        .idle_ms = ns_to_ms(sum->idle_ns) / per.idle,
        .input_ms = ns_to_ms(sum->input_ns) / per.calls,
        .host_ms = sampled ? ns_to_ms(sum->host_ns) / steps : NAN,
        .worker_ms =
            sampled && lines->of_functions == ANSWER_NO ? ns_to_ms(sum->worker_ns) / steps : NAN,
        .collectives = sum->collectives / per.calls,
        .comm_ms = ns_to_ms(sum->comm_ns) / per.comm,
        .exposed_ms = ns_to_ms(sum->exposed_ns) / per.exposed,
        .launches = on_gpu ? sum->launches / per.calls : NAN,
        .gpu_ms = ns_to_ms(sum->gpu_ns) / per.on_gpu,
        .backward_gpu_ms = ns_to_ms(sum->backward_gpu_ns) / per.on_gpu,
        .samples = on_gpu ? (double)sum->samples : NAN,
        .without_ms = NAN,
        .backward = (double)sum->of_backward / (double)sum->calls,
    };
    lines->n_at++;
  }
}

/* The trace's reason why lines are not known: "lines=..." among its features. */
static const char *find_reason(struct analysis *a) {
  FOR_EACH(a->model->ranks, a->model->n_ranks, rank) {
    size_t bytes;
    const char *reason = value_among(rank->info[TSCOPE_INFO_FEATURE], "lines", &bytes);
    if (reason)
      return arena_copy(a->arena, reason, bytes);
  }
  return NULL;
}

void lines_summarise(struct analysis *a) {
  struct lines_result *lines = &a->results->lines;
  u32 n_ranks = a->model->n_ranks, n = TOTAL(u32, a->line_sums, n_ranks, one, one->n);
  lines->sites = TOTAL(double, a->line_sums, n_ranks, one, (double)one->sites);
  if (!ANY(a->line_sums, n_ranks, one, has_lines(one))) {
    lines->sites = lines->known = NAN;
    lines->reason = find_reason(a);
    return;
  }
  lines->of_functions = ANY(a->line_sums, n_ranks, one, one->of_functions) ? ANSWER_YES : ANSWER_NO;
  lines->of_operators = ANY(a->line_sums, n_ranks, one, one->of_operators) ? ANSWER_YES : ANSWER_NO;
  const struct line_sums *with = FIND(a->line_sums, n_ranks, one, one->loop);
  if (with)
    lines->loop = line_place(a, with->loop->file, with->loop->line, with->loop->function);
  SCOPED struct line_sum *all = memory_array(size_sum(n, 1), sizeof(*all));
  n = 0;
  FOR_EACH(a->line_sums, a->model->n_ranks, line_sum)
    FOR_EACH(line_sum->at, line_sum->n, each)
      all[n++] = *each;
  u32 known = merge_lines(all, n);
  lines->known = known;
  list_lines(a, all, MIN(known, LISTED));
  sampled_lines_summarise(a);
}

/* What the replay says of lines at which the host waits for the GPU. */
void line_savings_analyse(struct analysis *a) {
  struct results *r = a->results;
  for (u32 i = 0; i < r->n_what_if && !r->what_if_reason; i++)
    if (r->what_if[i].kind == WHAT_IF_LINE)
      r->lines.at[r->what_if[i].rank].without_ms = r->what_if[i].step_ms;
}
