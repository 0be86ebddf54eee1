/* SPDX-License-Identifier: MIT
 *
 * The end of each step of a rank on its GPU: when the GPU has finished what the host had launched
 * by the step's end. The model knows it from collectives; here kernels, copies and fills count too.
 *
 * A stream runs its work in the order in which it was launched. So work whose launch was not seen
 * goes with the work before it on its stream, unless the next work that was seen belongs to a later
 * step than the next: then neither was watched. Work of another stream than the one that computes
 * most, which goes on beside all of the next step, belongs to no step: a kernel that runs for ever.
 * Nor does a stream that only copies (to a checkpoint) while that goes on with what was launched
 * later. Work that was running when the recording began belongs to no step.
 */

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/vector.h"

/* As many launches in a row of which nothing ran: then it was not seen. Single ones have no work,
 * such as a fill of no bytes. */
#define LAUNCHES_UNSEEN 4u
#define LAUNCHES_KNOWN 0.5 /* share of the computing stream's time, to go by its launches */

/* The last work of a stream that was launched between two bounds. */
struct tail {
  i64 begin, end; /* of the first, and of the last */
  u32 bound;      /* before which it was launched */
  u16 lane;
};

struct stream {
  i64 kernels, known; /* time; of which the launch was seen */
  bool copies;        /* and nothing else */
  u32 bound;          /* before which its latest work was launched */
  u32 tail;           /* + 1; 0: no launch of its work was seen yet */
  i64 unplaced;       /* end of later work whose launch was not seen; NS_UNKNOWN */
};

struct step_bounds {
  struct analysis *a;
  const struct timeline *t;
  struct arena scratch;
  i64 *host, *gpu; /* [n] both ends of each step, in order; gpu: the last end of work until now */
  u32 *unseen;     /* [n] launches in a row, just before the bound, of which nothing ran */
  u32 n;
  struct stream *streams; /* [t->n_lanes] */
  VECTOR(struct tail) tails;
};

static struct interval host_step(const struct step_bounds *b, u32 step) {
  return step_on_host(b->a->model, step, b->t->rank);
}

/* A last step that nothing ends includes what is launched until the host first waits for it. */
static void end_open_step(struct step_bounds *b) {
  const struct timeline *t = b->t;
  i64 *end = &b->host[b->n - 1];
  u32 first = FIRST_NOT(0, t->n_spans, i, t->spans[i].start < *end);
  for (; first < t->n_spans && t->spans[first].kind != SPAN_SYNC; first++)
    if (t->spans[first].kind == SPAN_LAUNCH)
      *end = t->spans[first].start + 1;
}

static void list_bounds(struct step_bounds *b) {
  u32 n = b->a->model->steps.n;
  b->host = arena_array(&b->scratch, size_product(2, n), sizeof(i64));
  b->gpu = arena_array(&b->scratch, size_product(2, n), sizeof(i64));
  b->unseen = arena_array(&b->scratch, size_product(2, n), sizeof(u32));
  b->streams = arena_array(&b->scratch, b->t->n_lanes, sizeof(*b->streams));
  for (u32 step = 0; step < n; step++) {
    struct interval host = host_step(b, step);
    if (host.start == NS_UNKNOWN)
      continue;
    b->host[b->n++] = host.start;
    b->host[b->n++] = host.end;
  }
  FILL(b->gpu, b->n, NS_UNKNOWN);
  FOR_EACH_CHANGED(b->streams, b->t->n_lanes, stream)
    *stream = (struct stream){.unplaced = NS_UNKNOWN, .copies = true};
  if (b->n && b->a->model->steps.open)
    end_open_step(b);
}

static void extend_tail(struct step_bounds *b, const struct stream *stream, i64 end) {
  i64 *tail = &b->tails.at[stream->tail - 1].end;
  *tail = MAX(end, *tail);
}

/* Work launched at an instant belongs to the step that ends next after it. */
static void place_work(struct step_bounds *b, const struct span *span, i64 launched) {
  struct stream *stream = &b->streams[span->lane];
  u32 before = stream->bound;
  while (stream->bound < b->n && b->host[stream->bound] <= launched)
    stream->bound++;
  if (stream->tail && before < b->n && stream->bound <= before + 2)
    extend_tail(b, stream, stream->unplaced);
  stream->unplaced = NS_UNKNOWN;
  if (stream->bound == b->n)
    return; /* after the last step */
  if (stream->tail && stream->bound == before)
    extend_tail(b, stream, span->end);
  else {
    VECTOR_PUSH(&b->tails, ((struct tail){span->start, span->end, stream->bound, span->lane}));
    stream->tail = b->tails.n;
  }
}

/* Work launched before the recording began: the first step begins when that is done. */
static void place_queued(struct step_bounds *b, const struct span *span) {
  struct stream *stream = &b->streams[span->lane];
  if (stream->tail)
    extend_tail(b, stream, span->end);
  else
    VECTOR_PUSH(&b->tails, ((struct tail){span->start, span->end, 0, span->lane}));
  stream->tail = stream->tail ? stream->tail : b->tails.n;
}

static void add_work(struct step_bounds *b, const struct span *span) {
  struct stream *stream = &b->streams[span->lane];
  i64 time = span->kind == SPAN_KERNEL ? span->end - span->start : 0;
  stream->kernels += time;
  stream->copies &= span->kind == SPAN_MEMCPY || span->kind == SPAN_MEMSET;
  if (lane_was_queued(&b->t->lanes[span->lane], span)) {
    stream->known += time;
    place_queued(b, span);
    return;
  }
  if (span->launch == INDEX_NONE) {
    stream->unplaced = MAX(span->end, stream->unplaced);
    return;
  }
  stream->known += time;
  place_work(b, span, b->t->spans[span->launch].start);
}

/* Work after the last launch of a stream that was seen. */
static void place_unplaced(struct step_bounds *b) {
  FOR_EACH(b->streams, b->t->n_lanes, one)
    if (one->tail && one->bound < b->n)
      extend_tail(b, one, one->unplaced);
}

static void add_spans(struct step_bounds *b) {
  u32 unseen = 0, next = 0;
  FOR_EACH(b->t->spans, b->t->n_spans, span) {
    if (SPAN_ON_DEVICE(span->kind)) {
      add_work(b, span);
    } else if (span->kind == SPAN_LAUNCH) {
      while (next < b->n && b->host[next] <= span->start)
        b->unseen[next++] = unseen;
      unseen = span->link == INDEX_NONE ? unseen + 1 : 0;
    }
  }
  while (next < b->n)
    b->unseen[next++] = unseen;
  place_unplaced(b);
}

static u32 computing_stream(const struct step_bounds *b) {
  return NUMBER_OF_LARGEST(0, b->t->n_lanes, i, (double)b->streams[i].kernels);
}

static void make_ascending(struct step_bounds *b) {
  for (u32 i = 1; i < b->n; i++)
    b->gpu[i] = MAX(b->gpu[i], b->gpu[i - 1]);
}

/* Whether other work goes on when the computing stream is done with the step that begins at the
 * bound; with one as long as the last step, where there is none. */
static bool outlasts_next_step(const struct step_bounds *b, const struct tail *tail) {
  if (tail->bound + 2 < b->n) {
    i64 next = b->gpu[tail->bound + 2];
    return next != NS_UNKNOWN && tail->end > next;
  }
  i64 last = b->gpu[b->n - 1], before = b->gpu[b->n - 2];
  return before != NS_UNKNOWN && (double)tail->end - (double)last > (double)last - (double)before;
}

/* Copies belong to a step until the computing stream goes on with what was launched after it. */
static void cut_copies(struct step_bounds *b, u32 computing) {
  SCOPED i64 *begins = memory_array(size_sum(b->n, 1), sizeof(*begins)); /* from a bound on */
  for (u32 i = 0; i <= b->n; i++)
    begins[i] = INT64_MAX;
  FOR_EACH(b->tails.at, b->tails.n, tail)
    if (tail->lane == computing)
      begins[tail->bound] = tail->begin;
  for (u32 i = b->n; i-- > 0;)
    begins[i] = MIN(begins[i + 1], begins[i]);
  FOR_EACH_CHANGED(b->tails.at, b->tails.n, tail)
    if (b->streams[tail->lane].copies)
      tail->end = MIN(begins[tail->bound + 1], tail->end);
}

static void set_gpu_bounds(struct step_bounds *b, u32 computing) {
  FOR_EACH(b->tails.at, b->tails.n, one)
    if (one->lane == computing)
      b->gpu[one->bound] = one->end;
  make_ascending(b);
  cut_copies(b, computing);
  FOR_EACH_CHANGED(b->tails.at, b->tails.n, tail) {
    if (tail->lane == computing || outlasts_next_step(b, tail))
      tail->bound = INDEX_NONE;
  }
  FOR_EACH(b->tails.at, b->tails.n, tail)
    if (tail->bound != INDEX_NONE && tail->end > b->gpu[tail->bound])
      b->gpu[tail->bound] = tail->end;
  make_ascending(b);
}

/* A bound on the GPU; if its work was overwritten or not seen, the bound that collectives show. */
static i64 bound_on_gpu(const struct step_bounds *b, u32 bound, i64 of_collectives) {
  i64 host = b->host[bound], detail = b->t->ring_begin;
  if (b->unseen[bound] >= LAUNCHES_UNSEEN || (detail != NS_UNKNOWN && host < detail))
    return of_collectives;
  return MAX(b->gpu[bound], host);
}

/* A recording may begin while the GPU works off earlier iterations: the first one begins with the
 * first work that is known to be its own. */
static i64 after_earlier_work(const struct step_bounds *b, i64 begin) {
  const struct rank *rank = &b->a->model->ranks[b->t->rank];
  FOR_EACH(rank->gpu_windows, rank->n_gpu_windows, gpu_window)
    if (gpu_window->clock == TSCOPE_GPU_CLOCK_CUPTI)
      return MAX(gpu_window->settled, begin);
  return begin;
}

/* A job may be killed while its host is ahead: a step that was watched, of which the GPU ended
 * nothing, and that the host had ended before the GPU ended an earlier one, has no length. */
static void set_step_ends(struct step_bounds *b) {
  const struct interval never = {NS_UNKNOWN, NS_UNKNOWN};
  struct analysis *a = b->a;
  const struct rank *rank = &a->model->ranks[b->t->rank];
  i64 done = INT64_MIN; /* by the GPU */
  u32 bound = 0;
  for (u32 step = 0; step < a->model->steps.n; step++) {
    struct interval host = host_step(b, step), known;
    size_t cell = cell_of_step(a->model, step, b->t->rank);
    if (host.start == NS_UNKNOWN)
      continue;
    u8 *ends = &a->ends_known[cell];
    known.start = bound_on_gpu(b, bound++, *ends & STEP_BEGIN_KNOWN ? a->begin[cell] : NS_UNKNOWN);
    known.end = bound_on_gpu(b, bound++, *ends & STEP_END_KNOWN ? a->end[cell] : NS_UNKNOWN);
    if (a->model->steps.kind && step == 0)
      known.start = after_earlier_work(b, known.start);
    struct interval whole = step_on_gpu(host, known, ends);
    if (!*ends && whole.end < done && model_gpu_seen(rank, host.start, host.end))
      whole = never;
    done = *ends & STEP_END_KNOWN ? MAX(known.end, done) : done;
    a->begin[cell] = whole.start;
    a->end[cell] = whole.end;
  }
}

void steps_on_gpu_rank(struct analysis *a, const struct timeline *timeline) {
  struct step_bounds b = {.a = a, .t = timeline};
  if (a->whole_run || a->model->steps.by_collectives || !timeline->on_gpu ||
      !timeline->has_compute || timeline->n_lanes == 0)
    return;
  list_bounds(&b);
  if (b.n)
    add_spans(&b);
  if (b.n) {
    u32 computing = computing_stream(&b);
    const struct stream *stream = &b.streams[computing];
    if (stream->known && (double)stream->known >= LAUNCHES_KNOWN * (double)stream->kernels) {
      set_gpu_bounds(&b, computing);
      set_step_ends(&b);
    }
  }
  free(b.tails.at);
  arena_release(&b.scratch);
}

/* As differences from the host's step: they are the same on any axis. */
void steps_on_gpu_carry(struct analysis *a, u32 rank, struct carrier *c) {
  const struct steps *steps = &a->model->steps;
  u32 n = carry_count(c, a->whole_run ? 0 : steps->n, 3);
  for (u32 step = 0; step < n; step++) {
    size_t cell = cell_of_step(a->model, step, rank);
    bool here = step < steps->n && !a->whole_run;
    struct interval host = here ? step_on_host(a->model, step, rank) : (struct interval){0, 0};
    i64 begin = c->reads ? 0 : (i64)((u64)a->begin[cell] - (u64)host.start);
    i64 end = c->reads ? 0 : (i64)((u64)a->end[cell] - (u64)host.end);
    u8 known = c->reads ? 0 : a->ends_known[cell];
    CARRY(c, &begin);
    CARRY(c, &end);
    CARRY(c, &known);
    if (!c->reads || !here)
      continue;
    a->begin[cell] = (i64)((u64)host.start + (u64)begin);
    a->end[cell] = (i64)((u64)host.end + (u64)end);
    a->ends_known[cell] = known;
  }
}
