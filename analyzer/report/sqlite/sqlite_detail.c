/* SPDX-License-Identifier: MIT
 *
 * What ran in the steps that are shown, one rank at a time, and the critical path through them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "model/span_call_sites.h"
#include "report/sqlite/sqlite_run.h"

/* The id of a name, which is added if it is new. */
static i64 sqlite_name(struct sqlite_run *run, const struct shown_name *name) {
  u32 known = run->names->texts.n, number = text_number(run->names, name->whole);
  if (number == known)
    sqlite_put_names(run, number + 1, name);
  return number + 1;
}

#define leave_out(run, ...) sqlite_put_left_out(run, arena_printf(&(run)->scope.arena, __VA_ARGS__))

struct detail {
  struct sqlite_run *run;
  const struct shown_rank *rank;
  i64 *name_ids; /* of the rank's names; 0: not looked up yet */
  u64 first_id;  /* ids of its spans come after it */
};

static i64 name_id(struct detail *d, u32 name) {
  if (!d->name_ids[name])
    d->name_ids[name] = sqlite_name(d->run, &d->rank->names[name]);
  return d->name_ids[name];
}

static double flops_of(const struct shown_rank *rank, const struct shown_span *span) {
  if (span->arithmetic == INDEX_NONE)
    return NAN;
  const struct arithmetic *call = &rank->timeline->arithmetic[span->arithmetic];
  return arithmetic_is_known(call) ? (double)call->flops : NAN;
}

static void write_call(struct detail *d, u32 index, const struct shown_span *span) {
  char place[1024];
  bool known = span->frame != INDEX_NONE;
  if (known)
    call_frame_write_place(&d->rank->timeline->call_sites->frames[span->frame], place,
                           sizeof(place));
  sqlite_put_calls_by_id(d->run, d->rank, span, (i64)(d->first_id + index), name_id(d, span->name),
                         known ? place : NULL);
}

static void write_work(struct detail *d, u32 index, const struct shown_span *span) {
  const struct model *model = d->run->scope.results->model;
  struct work_row row = {
      .kind = span_kinds[span->kind].word,
      .launch = span->launch == INDEX_NONE ? NS_UNKNOWN : (i64)(d->first_id + span->launch),
      .flops = flops_of(d->rank, span),
      .collective = span->arrival < model->n_arrivals ? model->arrivals[span->arrival].collective
                                                      : INDEX_NONE};
  sqlite_put_gpu_work_by_id(d->run, d->rank, span, (i64)(d->first_id + index),
                            name_id(d, span->name), &row);
}

/* GEMMs that were called in the steps shown. Estimates and replays of a graph are not among them.
 */
static void write_gemms(struct detail *d) {
  const struct timeline *t = d->rank->timeline;
  const struct model *model = d->run->scope.results->model;
  bool by_step = d->run->scope.n_steps > 0;
  for (u32 i = 0; t && i < t->n_arithmetic; i++) {
    const struct arithmetic *call = &t->arithmetic[i];
    i32 step = by_step ? model_step_at(model, d->rank->rank, call->start) : -1;
    bool shown = !by_step || (step >= 0 && d->run->shown_steps[step]);
    if (shown && !call->estimate && !call->replay)
      sqlite_put_gemms(d->run, d->rank, call, gemm_shape(t, call), step);
  }
}

static void write_counters(struct detail *d) {
  FOR_EACH(d->rank->counters, d->rank->n_counters, counter) {
    const char *name = sqlite_shared(d->run->writer, counter->name);
    for (u32 k = 0; k < counter->n; k++)
      sqlite_put_counters(d->run, d->rank, counter, name, &counter->at[k]);
  }
}

static int write_rank(void *user, const struct shown_rank *rank) {
  struct sqlite_run *run = user;
  if ((double)run->writer->rows + rank->n_spans > run->limit) {
    run->ranks_left_out++;
    return 0;
  }
  if (rank->why_empty)
    leave_out(run, "No calls and work of rank %u: %s.", rank->number, rank->why_empty);
  struct detail d = {.run = run,
                     .rank = rank,
                     .name_ids = memory_zeroed(size_sum(rank->n_names, 1), sizeof(i64)),
                     .first_id = *run->spans + 1};
  for (u32 i = 0; i < rank->n_spans; i++) {
    const struct shown_span *span = &rank->spans[i];
    if (span->kind == SPAN_PHASE)
      sqlite_put_phases_by_id(run, rank, span, name_id(&d, span->name));
    else if (SPAN_ON_DEVICE(span->kind))
      write_work(&d, i, span);
    else if (span->kind != SHOWN_STEP && span->kind != SHOWN_CALL)
      write_call(&d, i, span);
  }
  *run->spans += rank->n_spans;
  write_gemms(&d);
  write_counters(&d);
  free(d.name_ids);
  return run->writer->error ? -EIO : 0;
}

static int write_path(void *user, const struct shown_path *path) {
  FOR_EACH(path->stretches, path->n, stretch)
    sqlite_put_critical_path(user, path->step, stretch);
  return 0;
}

int sqlite_write_detail(struct sqlite_run *run) {
  struct shown_visitor visitor = {.rank = write_rank, .path = write_path, .user = run};
  return shown_walk(&run->scope, &visitor);
}

void sqlite_write_left_out(struct sqlite_run *run) {
  FOR_EACH(run->scope.left_out, run->scope.n_left_out, sentence)
    leave_out(run, "%s", *sentence);
  if (run->scope.path_reason)
    leave_out(run, "No critical path: %s.", run->scope.path_reason);
  if (run->ring_only)
    leave_out(run, "Only the collectives of the steps shown: all of them would exceed --limit.");
  if (run->ranks_left_out)
    leave_out(run, "Calls and work of %s did not fit; see --limit.",
              plural(run->ranks_left_out, "more rank").text);
}
