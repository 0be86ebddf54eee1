/* SPDX-License-Identifier: MIT
 *
 * What ran on one rank in the chosen steps, as lanes of spans. Work of the GPU counts where it ran;
 * a host that is ahead has launched it in an earlier step, and that call is shown too.
 */
#include "report/timeline/rank_lanes.h"

#include <string.h>

#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "kernels/kernels.h"
#include "model/span_call_sites.h"

enum { CALLS_OR_STREAM, PHASES_OR_COLLECTIVES };

static void list_windows(struct rank_lanes *l) {
  const struct shown_scope *scope = l->scope;
  const struct steps *steps = &l->analysis->model->steps;
  u32 rank = l->timeline->rank;
  l->windows = arena_array(&l->arena, scope->n_steps, sizeof(*l->windows));
  if (scope->n_steps == 0)
    l->windows[l->n_windows++] =
        (struct rank_window){scope->begin, scope->end, scope->begin, scope->end, -1};
  FOR_EACH(scope->steps, scope->n_steps, one) {
    u32 step = one->step;
    size_t cell = cell_of_step(l->analysis->model, step, rank);
    struct window window;
    if (!analysis_window(l->analysis, rank, step, &window))
      continue;
    bool known = steps->host_begin && steps->host_begin[cell] != NS_UNKNOWN;
    l->windows[l->n_windows++] =
        (struct rank_window){.host_begin = known ? steps->host_begin[cell] : window.begin,
                             .host_end = known ? steps->host_end[cell] : window.end,
                             .begin = window.begin,
                             .end = window.end,
                             .step = (i32)step};
  }
}

/* The host is shown while it worked on the step, and while its GPU did. */
static const struct rank_window *window_at(const struct rank_lanes *l, bool device, i64 start,
                                           i64 end, u32 *cursor) {
  for (; *cursor < l->n_windows; ++*cursor) {
    const struct rank_window *window = &l->windows[*cursor];
    i64 begins = device ? window->begin : rank_window_begin(window);
    i64 ends = device ? window->end : rank_window_end(window);
    if (ends > start)
      return begins < end || begins <= start ? window : NULL;
  }
  return NULL;
}

/* Sets place[i] to the place of span i among those shown, INDEX_NONE if it is not. */
static u32 choose_spans(const struct rank_lanes *l, u32 *place) {
  const struct timeline *t = l->timeline;
  u32 host = 0, device = 0, n = 0;
  for (u32 i = 0; i < t->n_spans; i++) {
    const struct span *span = &t->spans[i];
    bool on_device = SPAN_ON_DEVICE(span->kind);
    bool in = window_at(l, on_device, span->start, span->end, on_device ? &device : &host);
    place[i] = in ? 0 : INDEX_NONE;
  }
  for (u32 i = 0; i < t->n_spans; i++)
    if (place[i] == 0 && SPAN_ON_DEVICE(t->spans[i].kind) && t->spans[i].launch != INDEX_NONE)
      place[t->spans[i].launch] = 0;
  FOR_EACH_CHANGED(place, t->n_spans, one)
    if (*one == 0)
      *one = n++;
  return n;
}

static const char *backend_of(const struct rank_lanes *l, const struct span *span) {
  static const char *const names[] = {
      [TSCOPE_BACKEND_NCCL] = "NCCL", [TSCOPE_BACKEND_GLOO] = "gloo", [TSCOPE_BACKEND_MPI] = "MPI"};
  const struct model *model = l->analysis->model;
  if (span->link >= model->n_arrivals || model->arrivals[span->link].collective == INDEX_NONE)
    return "collectives";
  const struct collective *collective = &model->collectives[model->arrivals[span->link].collective];
  u8 backend = model->comms[collective->comm].backend;
  return backend < LENGTH_OF(names) && names[backend] ? names[backend] : "collectives";
}

/* Which of the two lanes that one of the timeline's becomes. */
static u32 lane_key(const struct span *span) {
  bool second = span->kind == SPAN_PHASE || span->kind == SPAN_COLLECTIVE;
  return 2u * span->lane + (second ? PHASES_OR_COLLECTIVES : CALLS_OR_STREAM);
}

static struct shown_lane make_lane(struct rank_lanes *l, const struct span *span) {
  const struct lane *lane = &l->timeline->lanes[span->lane];
  struct shown_lane made = {.id = lane->id, .rows = 1, .name = lane->name};
  switch (span->kind) {
  case SPAN_COLLECTIVE:
    made.kind = SHOWN_COLLECTIVES;
    made.name = arena_printf(&l->arena, "%s, %s", backend_of(l, span), lane->name);
    break;
  case SPAN_PHASE:
    made.kind = SHOWN_PHASES;
    made.name = arena_printf(&l->arena, "phases, %s", lane->name);
    break;
  default:
    made.kind = lane->device ? SHOWN_STREAM : SHOWN_CALLS;
    if (!lane->device)
      made.name = arena_printf(&l->arena, "calls, %s", lane->name);
  }
  return made;
}

static int lane_rank(const struct shown_lane *lane) {
  return lane->kind == SHOWN_CALLS ? SHOWN_PHASES : lane->kind;
}

/* The phases and calls of a thread together, then the GPU. */
ORDER_INDICES_BY(as_shown, struct shown_lane, UP_OF(lane_rank) UP(id) UP(kind))

/* The lanes that the shown spans need; the first is that of the steps. */
static void make_lanes(struct rank_lanes *l, const u32 *place) {
  const struct timeline *t = l->timeline;
  struct shown_rank *shown = &l->shown;
  u32 keys = 2u * t->n_lanes, *order;
  shown->lanes = arena_array(&l->arena, keys, sizeof(*shown->lanes));
  struct shown_lane *made = arena_array(&l->arena, keys, sizeof(*made));
  l->lane_of = arena_array(&l->arena, keys, sizeof(u32));
  order = arena_array(&l->arena, keys, sizeof(u32));
  u32 n = 0;
  for (u32 i = 0; i < t->n_spans; i++) {
    u32 key = lane_key(&t->spans[i]);
    if (place[i] == INDEX_NONE || made[key].rows)
      continue;
    made[key] = make_lane(l, &t->spans[i]);
    order[n++] = key;
  }
  SORT_INDICES(order, n, made, as_shown);
  shown->lanes[shown->n_lanes++] =
      (struct shown_lane){.name = l->n_windows && l->windows[0].step >= 0 ? "steps" : "run",
                          .kind = SHOWN_STEPS,
                          .rows = 1};
  FOR_EACH(order, n, one) {
    l->lane_of[*one] = shown->n_lanes + 1;
    shown->lanes[shown->n_lanes++] = made[*one];
  }
}

/* A collective is called by what it does; the name of its kernel is kept too. */
struct collective_name {
  u32 name; /* of the timeline */
  u32 index;
  u8 op;
};

struct naming {
  struct rank_lanes *l;
  VECTOR(u32) plain, kernels; /* by name of the timeline: index + 1 into names */
  VECTOR(struct collective_name) collectives;
  VECTOR(struct shown_name) names;
  u32 nameless[SPAN_COLLECTIVE + 1]; /* by kind: index + 1 */
  u32 steps_base;
};

static void add_name(struct naming *naming, const char *text, const char *whole, u32 *index) {
  *index = naming->names.n;
  VECTOR_PUSH(&naming->names, (struct shown_name){.text = text, .whole = whole});
}

static void name_collective(struct naming *naming, const struct span *span, u8 op, u32 *index) {
  const struct analysis *a = naming->l->analysis;
  for (u32 i = naming->collectives.n; i-- > 0;) {
    const struct collective_name *known = &naming->collectives.at[i];
    *index = known->index;
    if (known->name == span->name && known->op == op)
      return;
  }
  const char *whole = span->name ? a->source.name(naming->l->timeline, span->name) : op_name(op);
  add_name(naming, op_name(op), whole, index);
  VECTOR_PUSH(&naming->collectives, (struct collective_name){span->name, *index, op});
}

static void name_by_text(struct naming *naming, const struct span *span, u32 *index) {
  const struct analysis *a = naming->l->analysis;
  const char *text = a->source.name(naming->l->timeline, span->name);
  bool kernel =
      span->kind == SPAN_KERNEL || span->kind == SPAN_COLLECTIVE || text_starts_with(text, "_Z");
  if (kernel) {
    VECTOR_REACH(&naming->kernels, span->name);
  } else {
    VECTOR_REACH(&naming->plain, span->name);
  }
  u32 *known = kernel ? &naming->kernels.at[span->name] : &naming->plain.at[span->name];
  if (!*known) {
    const struct kernel *is =
        kernel && a->kernel_names ? kernel_lookup(a->kernel_names, text) : NULL;
    add_name(naming, is ? is->shortened : text, is ? is->demangled : text, index);
    if (is)
      naming->names.at[*index].category = kernel_category_name(a->kernel_names, is->category);
    *known = *index + 1;
  }
  *index = *known - 1;
}

/* What has no name is called by its kind. */
static u32 name_of_kind(struct naming *naming, u8 kind) {
  u32 *known = &naming->nameless[kind], index;
  if (!*known) {
    add_name(naming, span_kinds[kind].nameless, span_kinds[kind].nameless, &index);
    *known = index + 1;
  }
  return *known - 1;
}

static void name_span(struct naming *naming, const struct span *span, u32 *index) {
  const struct model *model = naming->l->analysis->model;
  if (span->kind == SPAN_COLLECTIVE && span->link < model->n_arrivals)
    name_collective(naming, span, model->arrivals[span->link].op, index);
  else if (span->name)
    name_by_text(naming, span, index);
  else
    *index = name_of_kind(naming, span->kind);
}

static const char *category_of(const struct rank_lanes *l, const struct span *span,
                               const struct shown_name *name) {
  const struct model *model = l->analysis->model;
  const char *word;
  switch (span->kind) {
  case SPAN_MEMCPY:
    word = copy_word(span->category);
    return word ? word : "copy";
  case SPAN_PHASE:
    word = phase_word(span->category);
    return word ? word : "range";
  case SPAN_COLLECTIVE:
    return span->link < model->n_arrivals ? op_name(model->arrivals[span->link].op) : "collective";
  case SPAN_KERNEL:
    return name->category ? name->category : "kernel";
  default:
    return span_kinds[span->kind].nameless;
  }
}

static i32 step_of(const struct rank_lanes *l, const struct span *span,
                   const struct rank_window *window) {
  bool device = SPAN_ON_DEVICE(span->kind);
  if (l->scope->n_steps == 0)
    return -1;
  if (window) {
    i64 begin = device ? window->begin : window->host_begin;
    i64 end = device ? window->end : window->host_end;
    if (span->start >= begin && span->start < end)
      return window->step;
  }
  return device ? analysis_step_at(l->analysis, l->timeline->rank, span->start)
                : model_step_at(l->analysis->model, l->timeline->rank, span->start);
}

static u32 arithmetic_of(const struct timeline *t, const struct span *span) {
  if (t->n_arithmetic == 0)
    return INDEX_NONE;
  if (span->kind == SPAN_LAUNCH)
    return arithmetic_around(t, span);
  bool launched = span->kind == SPAN_KERNEL && span->launch != INDEX_NONE;
  return launched ? arithmetic_around(t, &t->spans[span->launch]) : INDEX_NONE;
}

static void add_steps(struct rank_lanes *l, struct naming *naming) {
  u32 first = l->analysis->model->steps.first;
  FOR_EACH(l->windows, l->n_windows, window) {
    const char *name =
        window->step < 0 ? "run" : arena_printf(&l->arena, "step %u", first + (u32)window->step);
    u32 index;
    add_name(naming, name, name, &index);
    l->shown.spans[l->shown.n_spans++] = (struct shown_span){.start = window->begin,
                                                             .end = window->end,
                                                             .category = "step",
                                                             .name = index,
                                                             .launch = INDEX_NONE,
                                                             .arrival = INDEX_NONE,
                                                             .arithmetic = INDEX_NONE,
                                                             .recorded = INDEX_NONE,
                                                             .frame = INDEX_NONE,
                                                             .step = window->step};
  }
}

static void add_span(struct rank_lanes *l, struct naming *naming, const u32 *place, u32 i,
                     const struct rank_window *window) {
  const struct timeline *t = l->timeline;
  const struct span *span = &t->spans[i];
  bool device = SPAN_ON_DEVICE(span->kind), collective = span->kind == SPAN_COLLECTIVE;
  struct shown_span shown = {.lane = l->lane_of[lane_key(span)] - 1,
                             .launch = INDEX_NONE,
                             .arrival = collective ? span->link : INDEX_NONE,
                             .arithmetic = arithmetic_of(t, span),
                             .recorded = INDEX_NONE,
                             .frame = call_span_line(t->call_sites, device ? span->launch : i),
                             .step = step_of(l, span, window),
                             .bytes = t->bytes ? t->bytes[i] : 0,
                             SAME(span, start, end, kind)};
  if (device && span->launch != INDEX_NONE)
    shown.launch = naming->steps_base + place[span->launch];
  name_span(naming, span, &shown.name);
  shown.category = category_of(l, span, &naming->names.at[shown.name]);
  l->shown.spans[l->shown.n_spans++] = shown;
}

typedef VECTOR(i64) end_stack;

/* Whether a span fits into a row of which these are the open ends, innermost last. Work on a stream
 * comes one after the other; calls nest. */
static bool fits_into_row(end_stack *open, const struct shown_span *span, bool nests) {
  while (open->n && open->at[open->n - 1] <= span->start)
    open->n--;
  return open->n == 0 || (nests && open->at[open->n - 1] >= span->end);
}

void rank_lanes_assign_rows(struct shown_rank *shown) {
  VECTOR(end_stack) *lanes = memory_zeroed(size_sum(shown->n_lanes, 1), sizeof(*lanes));
  FOR_EACH_CHANGED(shown->spans, shown->n_spans, span) {
    struct shown_lane *lane = &shown->lanes[span->lane];
    bool nests = lane->kind == SHOWN_CALLS || lane->kind == SHOWN_PHASES;
    u32 row = 0;
    while (row < lanes[span->lane].n && !fits_into_row(&lanes[span->lane].at[row], span, nests))
      row++;
    row = row < UINT8_MAX ? row : UINT8_MAX - 1;
    VECTOR_REACH(&lanes[span->lane], row);
    VECTOR_PUSH(&lanes[span->lane].at[row], span->end);
    span->row = (u8)row;
    lane->rows = row + 1 > lane->rows ? (u8)(row + 1) : lane->rows;
  }
  FOR_EACH(lanes, shown->n_lanes, one) {
    FOR_EACH(one->at, one->n, each)
      free(each->at);
    free(one->at);
  }
  free(lanes);
}

static void add_spans(struct rank_lanes *l, const u32 *place, u32 n) {
  const struct timeline *t = l->timeline;
  struct naming naming = {.l = l, .steps_base = l->n_windows};
  u32 host = 0, device = 0;
  l->shown.spans = memory_array(size_sum(size_sum(n, l->n_windows), 1), sizeof(*l->shown.spans));
  add_steps(l, &naming);
  for (u32 i = 0; i < t->n_spans; i++) {
    const struct span *span = &t->spans[i];
    bool on_device = SPAN_ON_DEVICE(span->kind);
    if (place[i] == INDEX_NONE)
      continue;
    const struct rank_window *window =
        window_at(l, on_device, span->start, span->end, on_device ? &device : &host);
    add_span(l, &naming, place, i, window);
  }
  l->shown.names = naming.names.at;
  l->shown.n_names = naming.names.n;
  FREE_EACH(&naming, plain.at, kernels.at, collectives.at);
  rank_lanes_assign_rows(&l->shown);
}

void rank_lanes_build(struct rank_lanes *l) {
  const struct timeline *t = l->timeline;
  const struct rank *rank = &l->analysis->model->ranks[t->rank];
  l->shown = (struct shown_rank){.rank = t->rank,
                                 .number = rank->rank,
                                 .host = rank->host,
                                 .device = rank->info[TSCOPE_INFO_GPU_NAME],
                                 .timeline = t};
  SCOPED u32 *place = memory_array(size_sum(t->n_spans, 1), sizeof(u32));
  list_windows(l);
  u32 n = choose_spans(l, place);
  make_lanes(l, place);
  add_spans(l, place, n);
}

void rank_lanes_release(struct rank_lanes *l) {
  FREE_EACH(l, shown.spans, shown.names, counters.at);
  arena_release(&l->arena);
}
