/* SPDX-License-Identifier: MIT
 *
 * How much arithmetic the devices did, as far as calls show it: GEMMs exactly, those of a CUDA
 * graph at each of its replays, attention by an estimate from its grid. Also the share of GPU
 * compute time that this covers: the arithmetic of other work is unknown, and never counts as 0.
 */
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/gpu/arithmetic_calls.h"
#include "analyses/queries.h"
#include "base/intervals.h"
#include "base/sorting.h"
#include "base/vector.h"
#include "kernels/kernels.h"

/* Kernels of one name in the replays of one graph. */
struct replayed_kernel {
  u64 count;    /* that ran, whole timeline */
  i64 ns;       /* in the analysed steps */
  bool is_gemm; /* by its name */
};

struct counting {
  struct analysis *a;
  const struct timeline *timeline;
  struct rank_flops *sum;
  i64 *first_start; /* [n_arithmetic] start of the first kernel of that call, or NS_UNKNOWN */
  i64 *kernel_ns;   /* [n_arithmetic] of its kernels, summed */
  bool *analysed;   /* [n_arithmetic] it is in the analysed steps */
  u64 *replays;     /* [n_contents] replays of that graph in the analysed steps */
  u64 *replays_run; /* [n_contents] of which something was seen to run, whole timeline */
  struct replayed_kernel **replayed; /* [n_contents] as in its `kernels` */
  struct window window; /* the step in which the last instant was found, and whether it counts */
  bool counts;
  u8 *known;    /* [n_steps] enum gpu_step; GPU_STEP_OVERWRITTEN also of those not analysed */
  bool watched; /* the GPU was, in one of them */
  struct arena scratch;
  struct intervals forward; /* on the host: forward passes, without those recomputed in backward */
  VECTOR(u8) is_gemm;       /* by kernel name: 0 not checked yet, 1 not a GEMM, 2 a GEMM */
};

/* Calls in the ring may be left of each step that was not overwritten. But where the GPU was
 * watched in some steps, only these are analysed: what else is counted was seen there alone. */
static bool step_is_analysed(const struct counting *c, i32 step, struct window *window) {
  const struct analysis *a = c->a;
  *window = (struct window){0};
  return step >= (i32)a->first_step && analysis_window(a, c->timeline->rank, (u32)step, window) &&
         c->known[(u32)step - a->first_step] <= (c->watched ? GPU_STEP_LEFT_OUT : GPU_STEP_UNSEEN);
}

static void find_analysed_steps(struct counting *c) {
  const struct analysis *a = c->a;
  const struct timeline *t = c->timeline;
  c->known = arena_array(&c->scratch, a->n_steps, sizeof(*c->known));
  for (u32 i = 0; i < a->n_steps && !a->whole_run; i++) {
    struct window window;
    bool trains = analysis_window(a, t->rank, a->first_step + i, &window) &&
                  analysis_is_training(a, window.step);
    c->known[i] = trains ? analysis_gpu_step(a, t->rank, t, &window) : GPU_STEP_OVERWRITTEN;
  }
  c->watched = ANY(c->known, a->n_steps, one, *one < GPU_STEP_UNSEEN);
}

/* Whether an instant lies in the analysed steps. Instants mostly come in order, so the step of one
 * is the step of the next. */
static bool time_is_analysed(struct counting *c, i64 time) {
  const struct analysis *a = c->a;
  if (time >= c->window.begin && time < c->window.end)
    return c->counts;
  struct window window;
  i32 step = a->whole_run ? 0 : analysis_step_at(a, c->timeline->rank, time);
  bool counts = step_is_analysed(c, step, &window);
  if (time < window.begin || time >= window.end)
    return false;
  c->window = window;
  c->counts = counts;
  return counts;
}

/* Calls belong to the step that made them, as do their kernels, whenever those run. */
static bool call_is_analysed(const struct counting *c, const struct arithmetic *call) {
  struct window window;
  i32 step = c->a->whole_run ? 0 : model_step_at(c->a->model, c->timeline->rank, call->start);
  return step_is_analysed(c, step, &window);
}

u32 arithmetic_around(const struct timeline *t, const struct span *host) {
  const struct arithmetic *all = t->arithmetic;
  u32 behind = FIRST_NOT(0, t->n_arithmetic, i,
                         all[i].lane < host->lane ||
                             (all[i].lane == host->lane && all[i].start <= host->start));
  const struct arithmetic *call = behind ? &all[behind - 1] : NULL;
  return call && call->lane == host->lane && host->start <= call->end ? behind - 1 : INDEX_NONE;
}

static void check_gemm_name(struct counting *c, u32 name, bool *is) {
  VECTOR_REACH(&c->is_gemm, name);
  u8 *known = &c->is_gemm.at[name];
  if (!*known) {
    const char *text = name ? c->a->source.name(c->timeline, name) : NULL;
    *known = kernel_category(c->a->kernel_names, text) == KERNEL_GEMM ? 2 : 1;
  }
  *is = *known == 2;
}

ORDER_BY(by_name, struct graph_kernel, UP(name))

/* A kernel of a graph's replay, if one of that name was captured in a GEMM. */
static struct replayed_kernel *find_replayed(struct counting *c, const struct arithmetic *replay,
                                             u32 name) {
  const struct graph_content *content = replay_content(c->timeline, replay);
  const struct graph_kernel *kernel =
      content ? FIND_SORTED(content->kernels, content->n_kernels,
                            &(struct graph_kernel){.name = name}, by_name)
              : NULL;
  return kernel ? &c->replayed[replay->what][kernel - content->kernels] : NULL;
}

static void count_kernel(struct counting *c, const struct span *span) {
  const struct timeline *t = c->timeline;
  u32 at = span->launch == INDEX_NONE ? INDEX_NONE : arithmetic_around(t, &t->spans[span->launch]);
  const struct arithmetic *call = at == INDEX_NONE ? NULL : &t->arithmetic[at];
  i64 ns = span->end - span->start;
  if (call && c->first_start[at] == NS_UNKNOWN)
    c->first_start[at] = span->start;
  if (call)
    c->kernel_ns[at] += ns;
  struct replayed_kernel *replayed =
      call && call->replay ? find_replayed(c, call, span->name) : NULL;
  if (replayed)
    replayed->count++;
  if (!time_is_analysed(c, span->start))
    return;
  bool is_gemm, known = call && arithmetic_is_known(call);
  check_gemm_name(c, span->name, &is_gemm);
  c->sum->kernel_ns += ns;
  c->sum->kernels++;
  c->sum->launched += span->launch != INDEX_NONE;
  if (known && call->estimate)
    c->sum->estimated_ns += ns;
  else if (known)
    c->sum->known_ns += ns;
  if (is_gemm) {
    c->sum->gemm_ns += ns;
    if (known)
      c->sum->gemm_known_ns += ns;
  }
  if (replayed) {
    replayed->ns += ns;
    replayed->is_gemm = is_gemm;
  }
}

/* A GEMM, of which `calls` were made. */
static void add_gemms(struct rank_flops *sum, u64 flops, enum precision precision, u64 calls) {
  sum->gemms += calls;
  if (flops == ARITHMETIC_UNKNOWN) {
    sum->unknown += calls;
    return;
  }
  sum->flops += (double)flops * (double)calls;
  sum->by_precision[precision] += (double)flops * (double)calls;
}

static void unite_phase(struct counting *c, u8 phase, struct intervals *out) {
  const struct timeline *t = c->timeline;
  u32 n = c->a->ranks[t->rank].spans[SPAN_PHASE];
  *out = (struct intervals){.at = arena_array(&c->scratch, n, sizeof(*out->at))};
  for (u32 i = 0; n && i < t->n_spans; i++)
    if (t->spans[i].kind == SPAN_PHASE && t->spans[i].category == phase)
      intervals_append(out, t->spans[i].start, t->spans[i].end);
}

/* A forward pass inside a backward pass is recomputed, to save memory. */
static void find_forward(struct counting *c) {
  struct intervals forward, backward;
  unite_phase(c, TSCOPE_PHASE_FORWARD, &forward);
  unite_phase(c, TSCOPE_PHASE_BACKWARD, &backward);
  intervals_subtract(&c->scratch, &forward, &backward, &c->forward);
}

static void count_forward(struct counting *c, const struct arithmetic *call) {
  const struct intervals *forward = &c->forward;
  /* the first that ends later */
  u32 low = FIRST_NOT(0, forward->n, i, forward->at[i].end <= call->start);
  if (arithmetic_is_known(call) && low < forward->n && forward->at[low].start <= call->start)
    c->sum->forward += (double)call->flops;
}

static void count_call(struct counting *c, u32 i) {
  const struct timeline *t = c->timeline;
  const struct arithmetic *call = &t->arithmetic[i];
  const struct gemm_shape *shape = gemm_shape(t, call);
  if (call->replay) {
    const struct graph_content *content = replay_content(t, call);
    if (content && c->first_start[i] != NS_UNKNOWN)
      c->replays_run[call->what]++;
  }
  if (call->estimate && (!c->watched || c->first_start[i] == NS_UNKNOWN))
    return;
  c->analysed[i] = call_is_analysed(c, call);
  if (!c->analysed[i])
    return;
  count_forward(c, call);
  if (call->estimate)
    c->sum->estimated += (double)call->flops;
  else if (call->replay && !replay_content(t, call))
    c->sum->replays_unknown++;
  else if (call->replay)
    c->replays[call->what]++;
  else if (!call->captured)
    add_gemms(c->sum, call->flops, shape ? shape->precision : PRECISION_UNKNOWN, 1);
  else if (!t->gemms || !t->gemms->n_contents) {
    c->sum->gemms++;
    c->sum->captured++;
  }
}

/* Kernels of a graph are recognised by their names: if a name was captured only in GEMMs, its
 * kernels belong to the GEMMs. Their number shows that no other kernels have that name. */
static void count_replays(struct counting *c, u32 i) {
  const struct gemms *gemms = c->timeline->gemms;
  const struct graph_content *content = &gemms->contents[i];
  bool all = content->named && c->replays_run[i] > 0;
  FOR_EACH(content->gemms, content->n_gemms, gemm)
    add_gemms(c->sum, gemm->flops, gemms->shapes[gemm->shape].precision,
              c->replays[i] * gemm->calls);
  for (u32 k = 0; k < content->n_kernels; k++) {
    const struct graph_kernel *kernel = &content->kernels[k];
    const struct replayed_kernel *ran = &c->replayed[i][k];
    bool known = ran->count <= kernel->count * c->replays_run[i];
    all &= known && ran->count > 0;
    if (!known)
      continue;
    c->sum->known_ns += ran->ns;
    c->sum->gemm_known_ns += ran->is_gemm ? ran->ns : 0;
    c->sum->replayed_ns[kernel->precision] += ran->ns;
  }
  if (all)
    c->sum->replayed_flops += (double)content->flops * (double)c->replays[i];
}

static void sum_analysed_time(struct counting *c) {
  const struct analysis *a = c->a;
  for (u32 i = 0; i < a->n_steps; i++) {
    struct window window;
    if (!step_is_analysed(c, (i32)(a->first_step + i), &window))
      continue;
    c->sum->wall_ns += window.end - window.begin;
    c->sum->steps++;
  }
}

static void prepare(struct counting *c) {
  const struct timeline *t = c->timeline;
  struct arena *arena = &c->scratch;
  u32 n = t->n_arithmetic, contents = t->gemms ? t->gemms->n_contents : 0;
  c->first_start = arena_array(arena, n, sizeof(*c->first_start));
  c->kernel_ns = arena_array(arena, n, sizeof(*c->kernel_ns));
  c->analysed = arena_array(arena, n, sizeof(*c->analysed));
  c->replays = arena_array(arena, contents, sizeof(*c->replays));
  c->replays_run = arena_array(arena, contents, sizeof(*c->replays_run));
  c->replayed = arena_array(arena, contents, sizeof(*c->replayed));
  for (u32 i = 0; i < contents; i++)
    c->replayed[i] = arena_array(arena, t->gemms->contents[i].n_kernels, sizeof(**c->replayed));
  FILL(c->first_start, n, NS_UNKNOWN);
  find_analysed_steps(c);
}

void flops_rank(struct analysis *a, const struct timeline *timeline) {
  struct counting c = {.a = a, .timeline = timeline, .sum = &a->ranks[timeline->rank].flops};
  prepare(&c);
  find_forward(&c);
  COPY_EACH(&a->ranks[timeline->rank], timeline, graph_launches, graph_launches_run,
            graph_launches_open);
  FOR_EACH(timeline->spans, timeline->n_spans, span)
    if (span->kind == SPAN_KERNEL)
      count_kernel(&c, span);
  for (u32 i = 0; i < timeline->n_arithmetic; i++)
    count_call(&c, i);
  for (u32 i = 0; timeline->gemms && i < timeline->gemms->n_contents; i++)
    count_replays(&c, i);
  sum_analysed_time(&c);
  gemms_rank(a, timeline,
             &(struct arithmetic_calls){c.first_start, c.kernel_ns, c.analysed, c.replays});
  free(c.is_gemm.at);
  arena_release(&c.scratch);
}

struct rank_flops flops_all(const struct analysis *a, bool only_gemms) {
  struct rank_flops all = {0};
  FOR_EACH(a->ranks, a->model->n_ranks, rank) {
    const struct rank_flops *one = &rank->flops;
    if (only_gemms && !one->gemms)
      continue;
    ADD_EACH(&all, one, steps, flops, estimated, forward);
    all.forward_ranks += one->forward > 0;
    ADD_EACH(&all, one, wall_ns, kernel_ns, known_ns, estimated_ns, gemm_ns, gemm_known_ns, kernels,
             launched, gemms, captured, unknown, replays_unknown, replayed_flops);
    for (u32 p = 0; p < PRECISIONS; p++) {
      all.by_precision[p] += one->by_precision[p];
      all.replayed_ns[p] += one->replayed_ns[p];
    }
  }
  return all;
}
