/* SPDX-License-Identifier: MIT
 *
 * Folders of pytscope 0.2 as an input: steps of each rank with their phases, and the values that
 * the program logged. What ran on a GPU, and collectives, are not in them: unknown.
 */
#include <string.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "import/import.h"
#include "import/pytscope/pytscope_run.h"
#include "import/read_values.h"
#include "join/join_ranks.h"
#include "model/building.h"
#include "model/rank_timeline.h"

bool probe_pytscope(const struct input *input) {
  return strcmp(input->name, "steps.jsonl") == 0 && input->head_bytes && *input->head == '{' &&
         head_has(input, "\"step\"") && head_has(input, "\"timestamp\"");
}

/* No spans: how long steps and phases took is known, but not what ran in them. */
static int load_nothing(const struct model *model, u32 rank, struct timeline *timeline) {
  (void)model;
  *timeline = (struct timeline){.rank = rank};
  return 0;
}

static const struct timeline_source pytscope_timelines = {.load = load_nothing};

ORDER_BY(by_rank, struct pytscope_run, UP(rank) BY_TEXT(path))

static void note_problems(struct model *model, const struct pytscope_run *run) {
  note_unreadable_lines(model, run->path, run->unreadable_lines);
  note_more_names(model, run->path, &run->values);
  if (run->earlier)
    model_note(model,
               "%s: %s left out: after that, step %llu begins again, and only the "
               "last start is used",
               run->path, plural_is(run->earlier, "step").text,
               (unsigned long long)(run->steps.n ? run->steps.at[0].number : 0));
  if (!run->described)
    model_note(model, "%s has no readable run.json beside it: the run did not reach its finish()",
               run->path);
}

/* One run for each rank, in order; others are noted. */
static u32 keep_one_per_rank(struct model *model, struct pytscope_run *runs, u32 n) {
  u32 kept = 0;
  SORT(runs, n, by_rank);
  FOR_EACH_CHANGED(runs, n, one) {
    bool again = kept && runs[kept - 1].rank == one->rank;
    if (again) {
      model_note(model, "%s is left out: it also has rank %u, like %s", one->path, one->rank,
                 runs[kept - 1].path);
      pytscope_run_free(one);
    } else {
      note_problems(model, one);
      runs[kept++] = *one;
    }
  }
  return kept;
}

static struct rank describe(const struct pytscope_run *run) {
  struct rank rank = {.rank = run->rank,
                      .local_rank = INDEX_NONE,
                      .path = run->path,
                      .closed = true,
                      .records = run->steps.n,
                      .gpu_clock = TSCOPE_GPU_CLOCK_NONE,
                      .gpu_clock_reason = "pytscope does not record GPU work"};
  rank.info[TSCOPE_INFO_PYTHON] = run->python;
  rank.info[TSCOPE_INFO_TORCH] = run->torch;
  rank.info[TSCOPE_INFO_GPU_NAME] = run->gpu;
  return rank;
}

static void add_values(const struct pytscope_run *run, struct rank_events *events) {
  FOR_EACH(run->values.values.at, run->values.values.n, value) {
    struct rank_scalar scalar = {NS_UNKNOWN, value->value, value->step, value->name};
    VECTOR_PUSH(&events->scalars, scalar);
  }
}

/* A step lasts from the end of the one before it to its own. Before the first there is no end: it
 * is as long as what is attributed in it. */
static void add_steps(const struct pytscope_run *run, struct rank_events *events) {
  if (run->steps.n == 0)
    return;
  const struct pytscope_step *first = &run->steps.at[0];
  i64 begin = first->end - (first->attributed == NS_UNKNOWN ? 0 : first->attributed);
  for (u32 i = 0; i <= run->steps.n; i++) {
    struct rank_mark mark = {.time = i ? run->steps.at[i - 1].end : begin,
                             .step = first->number + i,
                             .ends = i == run->steps.n};
    VECTOR_PUSH(&events->marks, mark);
  }
  events->begin = begin;
  events->end = run->steps.at[run->steps.n - 1].end;
}

static void make_ranks(struct model *model, const struct pytscope_run *runs, u32 n) {
  model_make_ranks(model, n);
  for (u32 r = 0; r < n; r++) {
    struct rank_events *events = model_events(model, r);
    events->begin = events->end = NS_UNKNOWN;
    model->ranks[r] = describe(&runs[r]);
    model->world_size = MAX(runs[r].world_size, model->world_size);
    add_steps(&runs[r], events);
    add_values(&runs[r], events);
  }
}

/* A kind of phase that no record of the rank has is unknown; one that some have is 0 in others. */
static void fill_phases(struct model *model, u32 r, const struct pytscope_run *run) {
  bool has[PHASE_KINDS] = {false};
  FOR_EACH(run->steps.at, run->steps.n, each)
    for (u32 kind = 0; kind < PHASE_KINDS; kind++)
      has[kind] |= each->kinds[kind] != NS_UNKNOWN;
  for (u32 s = 0; s < model->steps.n && s + model->steps.first < run->steps.n; s++) {
    const struct pytscope_step *step = &run->steps.at[s + model->steps.first];
    size_t cell = cell_of_step(model, s, r);
    struct phase_times *times = &model->phases[cell];
    if (step->attributed == NS_UNKNOWN || model->steps.begin[cell] == NS_UNKNOWN)
      continue;
    for (u32 kind = TSCOPE_PHASE_DATA; kind < PHASE_KINDS; kind++)
      if (has[kind])
        *phase_time_at(times, kind) = MAX(step->kinds[kind], 0); /* NS_UNKNOWN is less */
    i64 left = model->steps.end[cell] - model->steps.begin[cell] - MAX(phases_sum(times), 0);
    times->other = MAX(left, 0);
  }
}

static void add_phases(struct import *import, const struct pytscope_run *runs, u32 n) {
  struct model *model = import->model;
  size_t cells = (size_t)model->steps.n * model->n_ranks;
  model->phases = arena_array(import->arena, cells, sizeof(*model->phases));
  FILL(model->phases, cells, PHASES_UNKNOWN);
  for (u32 r = 0; r < n; r++)
    fill_phases(model, r, &runs[r]);
  model->phase_method = "pytscope's phases";
}

static void build_model(struct import *import, const struct pytscope_run *runs, u32 n) {
  struct model *model = import->model;
  make_ranks(model, runs, n);
  model->timelines = &pytscope_timelines;
  model->recorder = "pytscope";
  model->lengths_only = true;
  model_name_marks(model, "pytscope's records of steps");
  join_ranks(model, import->options);
  add_phases(import, runs, n);
}

static int load_one(struct import *import, const struct input *input, struct pytscope_run *runs,
                    u32 *read) {
  struct pytscope_run *run = &runs[*read];
  *run = (struct pytscope_run){.path = input->path, .values.arena = import->arena};
  int error = input_use_bytes(import, input, BUDGET_MEMORY, pytscope_run_read, run);
  if (error)
    pytscope_run_free(run);
  *read += !error;
  return error;
}

int load_pytscope(struct import *import, const struct input *inputs, u32 n) {
  struct model *model = import->model;
  if (model->timelines) {
    model_note(model, "pytscope's records are left out: there are timelines of the job");
    return 0;
  }
  SCOPED struct pytscope_run *runs = memory_zeroed(n, sizeof(*runs));
  u32 read = 0, next = 0;
  int error = READ_EACH(inputs, n, input, load_one(import, input, runs, &read));
  for (u32 i = 0; i < read; i++)
    if (!runs[i].rank_known)
      runs[i].rank = next++;
  u32 kept = read ? keep_one_per_rank(model, runs, read) : 0;
  if (kept)
    build_model(import, runs, kept);
  FOR_EACH_CHANGED(runs, kept, run)
    pytscope_run_free(run);
  return error;
}
