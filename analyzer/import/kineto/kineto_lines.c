/* SPDX-License-Identifier: MIT
 *
 * The function of the program from which each call came, for traces with stacks (with_stack=True):
 * the ranges of Python functions around the call, on its thread. In the backward pass these are the
 * ranges around the operator of the forward pass with the same sequence number. A profiler says
 * where a function begins, not at which of its lines it was.
 *
 * The functions also say what the thread that trains does all the time: looks at it, at regular
 * moments, are what samples of a running program are. A trace without stacks has the operators that
 * the program called, and the ranges that it named: they are looked at instead. Where neither is,
 * nobody knows what the program did.
 */

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/texts.h"
#include "import/kineto/kineto.h"
#include "model/span_call_sites.h"

enum {
  DEEPEST = 512, /* open ranges of a thread; those further in are left out */
};

/* A function below another one, for all stacks that are the same up to here. */
struct place {
  u32 name, outer; /* of the list of names; index of the function that called it, INDEX_NONE */
  u32 item;        /* enum kineto_item_kind */
};

struct open_range {
  i64 end;
  u32 place;    /* of a function; INDEX_NONE of the backward of an operator */
  u32 sequence; /* of that operator */
  u8 thread;    /* and of its forward */
};

struct lane_state {
  struct open_range *open; /* [DEEPEST], outermost first */
  u32 n;
};

/* Looks at a thread. */
#define LOOK_NS 100000
#define MOST_LOOKS 200000

/* An operator of the forward pass: the last of its number is the one that has the backward. */
struct forward_operator {
  u64 key; /* lane and sequence number */
  u32 place;
};

struct finding_lines {
  const struct kineto_trace *trace;
  bool of_operators; /* instead of functions */
  struct arena *arena;
  struct lane_state *lanes;
  HASHED(struct place) places;
  HASHED(struct forward_operator) forward;
  struct kineto_forward_lane lane_of[KINETO_FORWARD_THREADS];
};

/* Index of a function called from another. */
static u32 place_of(struct finding_lines *f, const struct kineto_item *item,
                    const struct open_range *around) {
  struct place wanted = {item->name, around ? around->place : INDEX_NONE, item->kind};
  return HASHED_OR_ADD(
      &f->places, table_hash(0, &wanted, sizeof(wanted)), one,
      one->name == wanted.name && one->outer == wanted.outer && one->item == wanted.item, wanted);
}

/* NULL if there is none. */
static const struct forward_operator *find_forward(const struct finding_lines *f, u64 key) {
  u32 i = HASHED_INDEX(&f->forward, table_hash(0, &key, sizeof(key)), one, one->key == key);
  return i == INDEX_NONE ? NULL : &f->forward.at[i];
}

static void add_forward(struct finding_lines *f, u64 key, u32 place) {
  u32 i = HASHED_OR_ADD(&f->forward, table_hash(0, &key, sizeof(key)), one, one->key == key,
                        (struct forward_operator){.key = key});
  f->forward.at[i].place = place;
}

/* Walking over the trace in the order of time. */

/* The innermost open range of a kind; NULL if there is none. */
static const struct open_range *find_innermost(const struct lane_state *lane, bool function) {
  for (u32 i = lane->n; i-- > 0;)
    if ((lane->open[i].place != INDEX_NONE) == function)
      return &lane->open[i];
  return NULL;
}

static void close_until(struct lane_state *lane, i64 time) {
  while (lane->n && lane->open[lane->n - 1].end <= time)
    lane->n--;
}

static void open_range(struct finding_lines *f, struct lane_state *lane, struct open_range range) {
  if (!lane->open)
    lane->open = arena_array(f->arena, DEEPEST, sizeof(*lane->open));
  if (lane->n < DEEPEST)
    lane->open[lane->n++] = range;
}

/* Of an operator that calls others, the program called the outermost. Phases and communication are
 * told by their own names. */
static void enter_named(struct finding_lines *f, struct lane_state *lane,
                        const struct kineto_item *item) {
  const struct kineto_name *name = kineto_item_name(f->trace, item);
  const struct open_range *around = lane->n ? &lane->open[lane->n - 1] : NULL;
  if ((item->kind != KINETO_ITEM_OP && item->kind != KINETO_ITEM_RANGE) || name->is_step ||
      name->phase || name->backward || name->comm_range || name->comm_worker ||
      (around && f->places.at[around->place].item == KINETO_ITEM_OP))
    return;
  open_range(f, lane, (struct open_range){.end = item->end, .place = place_of(f, item, around)});
}

/* Opens a range of a function or operator. */
static void enter_range(struct finding_lines *f, const struct kineto_item *item) {
  struct lane_state *lane = &f->lanes[item->lane];
  close_until(lane, item->start);
  if (f->of_operators) {
    enter_named(f, lane, item);
    return;
  }
  const struct open_range *function = find_innermost(lane, true);
  if (item->kind == KINETO_ITEM_PYTHON) {
    open_range(f, lane,
               (struct open_range){.end = item->end, .place = place_of(f, item, function)});
  } else if (kineto_is_numbered(item) && item->thread) {
    open_range(
        f, lane,
        (struct open_range){
            .end = item->end, .place = INDEX_NONE, .sequence = item->what, .thread = item->thread});
  } else if (kineto_is_numbered(item) && function && lane->open[lane->n - 1].place != INDEX_NONE) {
    add_forward(f, kineto_forward_key(item->lane, item->what), function->place);
  }
}

/* The function that a call on the lane came from; INDEX_NONE. */
static u32 function_of(struct finding_lines *f, const struct lane_state *lane, bool *of_backward,
                       bool *of_forward) {
  const struct open_range *function = find_innermost(lane, true),
                          *backward = find_innermost(lane, false);
  *of_backward = *of_forward = false;
  if (!backward || (function && function > backward))
    return function ? function->place : INDEX_NONE;
  struct kineto_forward_lane on = f->lane_of[backward->thread];
  const struct forward_operator *forward =
      on.certain ? find_forward(f, kineto_forward_key(on.lane, backward->sequence)) : NULL;
  *of_backward = true;
  *of_forward = forward != NULL;
  return forward ? forward->place : function ? function->place : INDEX_NONE;
}

/* PyTorch shortens files to the folder from which they were imported, so a user's file looks like
 * one of a package. These are not the user's. Where files are whole paths, format/own_code.h knows.
 */
static bool is_shortened_library_file(const char *file) {
  static const char *const others[] = {
      "torch/",           "<",           "contextlib.py", "functools.py",   "threading.py",
      "multiprocessing/", "concurrent/", "runpy.py",      "queue.py",       "copy.py",
      "typing.py",        "enum.py",     "inspect.py",    "dataclasses.py", "importlib/",
      "logging/",         "asyncio/",    "collections/",  "selectors.py",   "abc.py",
      "warnings.py",      "random.py",   "pickle.py",     "socket.py",      "subprocess.py"};
  return MATCHES_ANY(file, others, text_starts_with);
}

/* "train.py(88): train_step" */
static void frame_of(struct arena *arena, const char *name, struct call_frame *frame) {
  const char *colon = strstr(name, "): "), *open = colon;
  while (open && open > name && *open != '(')
    open--;
  frame->file = arena_printf(arena, "%.*s", open ? (int)(open - name) : 0, name);
  frame->function = arena_text(arena, colon ? colon + 3 : name);
  frame->line = frame->first_line = open ? (u32)leading_number(open + 1, UINT32_MAX, NULL) : 0;
  frame->others = is_shortened_library_file(frame->file);
}

static void name_frame(struct finding_lines *f, const struct place *place,
                       struct call_frame *frame) {
  const char *name = f->trace->names.list.at[place->name].text;
  if (!f->of_operators)
    frame_of(f->arena, name, frame);
  else
    *frame = (struct call_frame){
        .file = name, .function = place->item == KINETO_ITEM_OP ? CALLED_OPERATOR : CALLED_RANGE};
}

static void put_frames(struct finding_lines *f, struct call_sites *sites) {
  u32 *frame_of_name = arena_array(f->arena, f->trace->names.list.n, sizeof(u32));
  sites->stacks = arena_array(f->arena, f->places.n, sizeof(*sites->stacks));
  sites->frames = arena_array(f->arena, f->trace->names.list.n, sizeof(*sites->frames));
  for (u32 i = 0; i < f->places.n; i++) {
    u32 name = f->places.at[i].name, n = 0;
    if (!frame_of_name[name]) {
      frame_of_name[name] = ++sites->n_frames;
      name_frame(f, &f->places.at[i], &sites->frames[sites->n_frames - 1]);
    }
    for (u32 at = i; at != INDEX_NONE; at = f->places.at[at].outer)
      n++;
    u32 *frames = arena_array(f->arena, n, sizeof(*frames));
    n = 0;
    for (u32 at = i; at != INDEX_NONE; at = f->places.at[at].outer)
      frames[n++] = frame_of_name[f->places.at[at].name] - 1;
    sites->stacks[sites->n_stacks++] = (struct call_stack){.frames = frames, .n = n};
  }
}

static bool is_called(const struct span *span) {
  return span->kind == SPAN_LAUNCH || span->kind == SPAN_SYNC || span->kind == SPAN_COLL_CALL ||
         span->kind == SPAN_OP || (span->kind == SPAN_PHASE && span->category == TSCOPE_PHASE_DATA);
}

static void put_sites(struct finding_lines *f, const struct timeline *t, const u32 *span_of,
                      struct call_sites *sites) {
  FILL(sites->of_span, t->n_spans, INDEX_NONE);
  for (u32 i = 0; i < f->trace->items.n; i++) {
    const struct kineto_item *item = &f->trace->items.at[i];
    enter_range(f, item);
    u32 span = span_of[i];
    if (span == INDEX_NONE || !is_called(&t->spans[span]))
      continue;
    struct call_site site = {.time = t->spans[span].start, .weight = 1, .lane = item->lane};
    site.stack = function_of(f, &f->lanes[item->lane], &site.of_backward, &site.of_forward);
    if (site.stack == INDEX_NONE)
      continue;
    sites->of_span[span] = sites->n_sites;
    sites->sites[sites->n_sites++] = site;
  }
}

/* The lane that trains: of those with operators the one whose outermost function lasts longest. In
 * a trace without functions it has the longest step; without steps, most operators. INDEX_NONE if
 * there is none. */
static u32 find_training_lane(struct finding_lines *f) {
  const struct kineto_trace *trace = f->trace;
  u32 *operators = arena_array(f->arena, trace->lanes.n, sizeof(*operators)), best = INDEX_NONE;
  i64 longest = -1;
  FOR_EACH(trace->items.at, trace->items.n, item)
    operators[item->lane] += item->kind == KINETO_ITEM_OP;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    bool begins =
        f->of_operators ? kineto_item_name(trace, item)->is_step : item->kind == KINETO_ITEM_PYTHON;
    if (!begins || !operators[item->lane] || item->end - item->start <= longest)
      continue;
    longest = item->end - item->start;
    best = item->lane;
  }
  u32 most = NUMBER_OF_LARGEST(0, trace->lanes.n, lane, operators[lane]);
  bool any = f->of_operators && most < trace->lanes.n && operators[most];
  return best == INDEX_NONE && any ? most : best;
}

static void look(struct lane_state *lane, i64 at, const struct rank_clock *clock,
                 struct call_sites *sites) {
  close_until(lane, at);
  const struct open_range *function = find_innermost(lane, true);
  if (function)
    sites->samples[sites->n_samples++] = (struct line_sample){.time = clock_to_axis(clock, at),
                                                              .represented_ns = sites->sample_ns,
                                                              .interval_ns = sites->sample_ns,
                                                              .stack = function->place};
}

/* At regular moments, what the thread that trains does. */
static void put_samples(struct finding_lines *f, const struct rank_clock *clock,
                        struct call_sites *sites) {
  const struct kineto_trace *trace = f->trace;
  u32 trains = find_training_lane(f);
  i64 length = trace->end - trace->begin, at = trace->begin;
  if (trains == INDEX_NONE || length <= 0)
    return;
  sites->sample_ns = MAX(length / MOST_LOOKS, LOOK_NS);
  sites->samples =
      arena_array(f->arena, (size_t)(length / sites->sample_ns), sizeof(*sites->samples));
  f->lanes[trains].n = 0;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    if (item->lane != trains || (!f->of_operators && item->kind != KINETO_ITEM_PYTHON))
      continue;
    for (; at < item->start && at < trace->end; at += sites->sample_ns)
      look(&f->lanes[trains], at, clock, sites);
    enter_range(f, item);
  }
  for (; at < trace->end; at += sites->sample_ns)
    look(&f->lanes[trains], at, clock, sites);
}

static bool has_functions(const struct kineto_trace *trace) {
  return ANY(trace->items.at, trace->items.n, one, one->kind == KINETO_ITEM_PYTHON);
}

void kineto_lines(const struct kineto_trace *trace, const struct rank_clock *clock,
                  struct timeline *timeline, const u32 *span_of, struct arena *arena) {
  struct finding_lines f = {.trace = trace, .of_operators = !has_functions(trace), .arena = arena};
  struct call_sites *sites = arena_alloc(arena, sizeof(*sites));
  f.lanes = arena_array(arena, trace->lanes.n, sizeof(*f.lanes));
  *sites = (struct call_sites){.of_functions = !f.of_operators, SAME(&f, of_operators)};
  sites->sites = arena_array(arena, timeline->n_spans, sizeof(*sites->sites));
  sites->of_span = arena_array(arena, timeline->n_spans, sizeof(*sites->of_span));
  sites->samples = arena_array(arena, 1, sizeof(*sites->samples));
  if (!f.of_operators)
    kineto_find_forward_lanes(trace, f.lane_of);
  put_sites(&f, timeline, span_of, sites);
  put_samples(&f, clock, sites);
  put_frames(&f, sites);
  timeline->call_sites = sites;
  FREE_EACH(&f, places.at, places.index.slots, forward.at, forward.index.slots);
}
