/* SPDX-License-Identifier: MIT
 *
 * The run as a Perfetto trace: at the top what was found and the critical path through the ranks,
 * below it one process a rank. Opens in ui.perfetto.dev; see docs/outputs/perfetto.md.
 */
#include <errno.h>
#include <math.h>

#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/texts.h"
#include "base/vector.h"
#include "diff/diff_result.h"
#include "report/perfetto/perfetto_trace.h"
#include "report/report.h"

/* Bytes that a record of the input takes here, at most, on the way to choosing how much to show:
 * a slice has a begin and an end, and changes a counter. */
#define BYTES_PER_RECORD 110.0
/* All steps are shown if they take less than this: the page opens that at once. */
#define ALL_STEPS_BYTES 50e6
#define BYTES_PER_SPAN 60.0 /* at least */
#define MOST_RANKS 64u
#define MOST_CURVES 64u
#define LEAD_NS 1000000000 /* for launches from before what is shown */

struct run {
  struct perfetto_trace *trace;
  struct shown_scope scope;
  const char *label; /* before the names of its ranks; NULL where there is one run only */
  double limit;      /* bytes that may have been written when it is done */
  u32 sequence;
  u64 findings, path, notes; /* tracks */
  u32 n_notes;
  u32 ranks_left_out;
};

static void begin_slice(const struct run *run, i64 time, u64 track, const char *name,
                        struct perfetto_event *event) {
  *event = perfetto_event_begin(run->trace, run->sequence, time, TYPE_BEGIN, track);
  SCOPED char *text = perfetto_text(name, PERFETTO_NAME_BYTES);
  protobuf_bytes(&run->trace->buffer, EVENT_NAME_TEXT, text, strlen(text));
}

static u64 make_track(const struct run *run, const char *name, const char *description) {
  char labelled[128];
  struct perfetto_track track = {
      .name = name, .description = description, .order = run->trace->next_order++};
  if (run->label) {
    snprintf(labelled, sizeof(labelled), "%s · %s", run->label, name);
    track.name = labelled;
  }
  return perfetto_track(run->trace, run->sequence, &track);
}

/* Tracks of no process: the UI shows those above all others, sorted by name. */
static void make_run_tracks(struct run *run) {
  run->sequence = perfetto_sequence(run->trace);
  run->findings = make_track(run, "1 findings", "What costs most, largest saving first.");
  run->path =
      make_track(run, "2 critical path", "The longest chain of dependent work, across ranks.");
  run->notes = make_track(run, "3 about this file", "What it shows, and what was left out.");
}

static u64 make_counter_track(const struct run *run, const char *name) {
  char text[PERFETTO_NAME_BYTES];
  snprintf(text, sizeof(text), "%s%s4 %s", text_or_empty(run->label), run->label ? " · " : "",
           name);
  struct perfetto_track track = {.name = text, .unit = "", .order = run->trace->next_order++};
  return perfetto_track(run->trace, run->sequence, &track);
}

/* Findings are about the run: each lasts as long as what is shown, below the one worth more. */
static void write_findings(const struct run *run) {
  const struct results *r = run->scope.results;
  struct perfetto_event event;
  FOR_EACH(r->findings, r->n_findings, finding) {
    begin_slice(run, run->scope.begin, run->findings, finding->title, &event);
    perfetto_annotate_text(run->trace, ANNOTATES_SEVERITY, severity_words[finding->severity]);
    perfetto_annotate_double(run->trace, ANNOTATES_SAVING, finding->saving_s);
    perfetto_annotate_text(run->trace, ANNOTATES_EVIDENCE, finding->evidence);
    perfetto_annotate_text(run->trace, ANNOTATES_ACTION, finding->action);
    perfetto_annotate_text(run->trace, ANNOTATES_ID, finding_id_words[finding->id]);
    perfetto_event_end(run->trace, event);
  }
  for (u32 i = 0; i < r->n_findings; i++)
    perfetto_end_slice(run->trace, run->sequence, run->scope.end, run->findings);
}

static void write_note(struct run *run, const char *text) {
  struct perfetto_event event;
  begin_slice(run, run->scope.begin, run->notes, text, &event);
  perfetto_event_end(run->trace, event);
  run->n_notes++;
}

static void write_notes(struct run *run) {
  struct shown_scope *scope = &run->scope;
  if (scope->results->model->command)
    write_note(run, scope->results->model->command);
  FOR_EACH(scope->left_out, scope->n_left_out, sentence)
    write_note(run, *sentence);
  if (scope->source == SHOWN_SCALARS)
    write_note(run, "The log has steps but no times: each step is drawn as one millisecond.");
  if (scope->path_reason)
    write_note(run, arena_printf(&scope->arena, "No critical path: %s.", scope->path_reason));
  if (run->ranks_left_out)
    write_note(run, arena_printf(&scope->arena,
                                 "%s did not fit; --limit sets the largest size of the file.",
                                 plural(run->ranks_left_out, "more rank").text));
  for (u32 i = 0; i < run->n_notes; i++)
    perfetto_end_slice(run->trace, run->sequence, run->scope.end, run->notes);
}

/* When a value of training was reported: by its time, else by its step; NS_UNKNOWN outside what is
 * shown. */
static i64 scalar_time(const struct run *run, const struct scalar *scalar) {
  const struct analysis *a = run->scope.results->analysis;
  u32 first = a->model->steps.first;
  i64 time = scalar->time;
  if (run->scope.source == SHOWN_SCALARS)
    time = scalar->step == INDEX_NONE ? NS_UNKNOWN : (i64)scalar->step * SHOWN_STEP_NS;
  else if (time == NS_UNKNOWN && scalar->step != INDEX_NONE && scalar->step >= first &&
           scalar->step - first < a->model->steps.n && scalar->rank < a->model->n_ranks) {
    struct window window;
    bool known = analysis_window(a, scalar->rank, scalar->step - first, &window);
    time = known ? window.end : NS_UNKNOWN;
  }
  return time >= run->scope.begin && time <= run->scope.end ? time : NS_UNKNOWN;
}

/* Values of training as curves, each of the first rank that reports it; those after another of the
 * same name belong to that. */
static void write_scalars(const struct run *run) {
  const struct model *model = run->scope.results->model;
  for (u32 i = 0, names = 0; i < model->n_scalars && names < MOST_CURVES; i++) {
    const struct scalar *of = &model->scalars[i];
    u64 track = 0;
    bool again = false;
    i64 last = NS_UNKNOWN;
    for (u32 k = 0; k < i && !again; k++)
      again = strcmp(model->scalars[k].name, of->name) == 0;
    names += !again;
    for (u32 k = i; k < model->n_scalars && !again; k++) {
      const struct scalar *scalar = &model->scalars[k];
      i64 time =
          scalar->rank == of->rank && strcmp(scalar->name, of->name) == 0 && isfinite(scalar->value)
              ? scalar_time(run, scalar)
              : NS_UNKNOWN;
      if (time == NS_UNKNOWN || time <= last)
        continue;
      if (!track)
        track = make_counter_track(run, of->name);
      struct perfetto_event event =
          perfetto_event_begin(run->trace, run->sequence, time, TYPE_COUNTER, track);
      protobuf_double(&run->trace->buffer, EVENT_COUNTER_DOUBLE, scalar->value);
      perfetto_event_end(run->trace, event);
      last = time;
    }
  }
}

static int write_rank(void *user, const struct shown_rank *rank) {
  struct run *run = user;
  double written = (double)perfetto_trace_bytes(run->trace);
  if (written + BYTES_PER_SPAN * rank->n_spans > run->limit) {
    run->ranks_left_out++;
    return 0;
  }
  return perfetto_rank(run->trace, &run->scope, rank, run->label);
}

static int write_path(void *user, const struct shown_path *path) {
  struct run *run = user;
  const struct model *model = run->scope.results->model;
  FOR_EACH(path->stretches, path->n, stretch) {
    struct perfetto_event event;
    char name[PERFETTO_NAME_BYTES];
    snprintf(name, sizeof(name), "rank %u · %s", model->ranks[stretch->rank].rank, stretch->name);
    begin_slice(run, stretch->start, run->path, name, &event);
    protobuf_bytes(&run->trace->buffer, EVENT_CATEGORY_TEXT, stretch->category,
                   strlen(stretch->category));
    perfetto_annotate_int(run->trace, ANNOTATES_RANK, model->ranks[stretch->rank].rank);
    perfetto_annotate_text(run->trace, ANNOTATES_REACHED_BY, stretch->reached_by);
    perfetto_event_end(run->trace, event);
    perfetto_end_slice(run->trace, run->sequence, stretch->end, run->path);
  }
  return run->trace->error;
}

static int write_run(struct run *run) {
  struct shown_visitor visitor = {.rank = write_rank, .path = write_path, .user = run};
  make_run_tracks(run);
  int error = shown_walk(&run->scope, &visitor);
  if (!error) {
    write_findings(run);
    write_notes(run);
    write_scalars(run);
  }
  return error;
}

static int write_runs(const struct results *const *results, u32 n, const struct report_view *view,
                      FILE *out) {
  static const char *const labels[] = {"1 before", "2 after"};
  struct perfetto_trace trace = {.out = out};
  int error = perfetto_trace_begin(&trace, out, text_ends_with(view->output, ".gz"), 0);
  for (u32 i = 0; i < n && !error; i++) {
    struct run run = {.trace = &trace,
                      .label = n > 1 ? labels[i] : NULL,
                      .limit = view->limit_bytes / n * (i + 1)};
    const struct shown_request request = {.most_ranks = MOST_RANKS,
                                          .all_steps = ALL_STEPS_BYTES / BYTES_PER_RECORD,
                                          .most_events = view->limit_bytes / n / BYTES_PER_RECORD,
                                          SAME(view, ranks, steps_requested, threads)};
    shown_choose(results[i], &request, &run.scope);
    if (run.scope.source == SHOWN_NOTHING)
      error = -ENODATA;
    /* One run is on the axis of its report; two begin with what they show. */
    bool on_axis = n == 1 && run.scope.source == SHOWN_TIMELINES;
    trace.origin = on_axis                             ? results[i]->model->begin
                   : run.scope.source == SHOWN_SCALARS ? 0
                                                       : run.scope.begin - LEAD_NS;
    trace.flows = (u64)i << 62;
    if (!error)
      error = write_run(&run);
    shown_release(&run.scope);
  }
  int ending = perfetto_trace_end(&trace);
  return error ? error : ending;
}

static int write_one(const struct results *results, const struct report_view *view, FILE *out) {
  return write_runs(&results, 1, view, out);
}

static int write_two(const struct results *results, const struct report_view *view, FILE *out) {
  const struct results *both[] = {results->diff->earlier, results};
  return write_runs(both, 2, view, out);
}

const struct report_backend report_perfetto = {.write = write_one,
                                               .write_diff = write_two,
                                               .no_data = "the input has no times",
                                               .opens = OPENS_PERFETTO,
                                               .binary = true};
