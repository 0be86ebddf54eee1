/* SPDX-License-Identifier: MIT
 *
 * Facts about the whole run: ranks, steps, collectives, kernels by name, findings.
 */
#include <math.h>

#include "analyses/queries.h"
#include "base/trace_words.h"
#include "report/sqlite/sqlite_run.h"

static const struct rank_result *result_of(const struct results *r, u32 rank) {
  bool same = rank < r->n_ranks && r->ranks[rank].rank == r->model->ranks[rank].rank;
  return same ? &r->ranks[rank] : NULL;
}

static void write_step(struct sqlite_run *run, u32 step, u32 rank) {
  const struct analysis *a = run->scope.results->analysis;
  const struct steps *steps = &a->model->steps;
  size_t cell = cell_of_step(a->model, step, rank);
  bool looked_at = step >= a->first_step && step < a->first_step + a->n_steps;
  struct step_row row = {.step = step, .rank = rank, .compute_ms = NAN, .phases = PHASES_UNKNOWN};
  if (!analysis_window(a, rank, step, &row.window))
    return;
  row.host_begin = steps->host_begin ? steps->host_begin[cell] : row.window.begin;
  row.host_end = steps->host_end ? steps->host_end[cell] : row.window.end;
  if (looked_at)
    row.compute_ms = (double)a->compute_ms[(size_t)rank * a->n_steps + step - a->first_step];
  if (a->model->phases)
    row.phases = a->model->phases[cell];
  sqlite_put_steps(run, &row);
}

static void write_comms(struct sqlite_run *run) {
  const struct model *model = run->scope.results->model;
  for (u32 i = 0; i < model->n_comms; i++) {
    SCOPED_ARENA struct arena scratch = {0};
    const struct comm *comm = &model->comms[i];
    sqlite_put_communicators(run, i, comm_label(comm->name, comm->identity, comm->size, &scratch),
                             backend_word(comm->backend));
  }
}

static bool is_included(const struct sqlite_run *run, i32 step) {
  return !run->ring_only || (step >= 0 && run->shown_steps[step]);
}

static struct member_order order_of(const struct model *model, const struct collective *of) {
  struct last_member last = model_last_member(model, of);
  struct member_order order = {INT64_MAX, of->last_start, NS_UNKNOWN, last.by, INDEX_NONE};
  FOR_EACH_MEMBER(model, of, arrival) {
    if (arrival->start == NS_UNKNOWN)
      continue;
    order.end = MAX(arrival->end, order.end);
    order.first = MIN(arrival->start, order.first);
  }
  if (order.first == INT64_MAX)
    order.first = NS_UNKNOWN;
  if (last.rank != INDEX_NONE)
    order.last_rank = model->ranks[last.rank].rank;
  return order;
}

static void write_collective(struct sqlite_run *run, u32 index) {
  const struct model *model = run->scope.results->model;
  const struct collective *of = &model->collectives[index];
  SCOPED_ARENA struct arena scratch = {0};
  struct member_order order = order_of(model, of);
  struct shown_collective is = shown_collective(&run->scope, of->first_arrival, &scratch);
  sqlite_put_collectives(run, index, &order, &is);
}

static void write_collectives(struct sqlite_run *run) {
  const struct model *model = run->scope.results->model;
  for (u32 i = 0; i < model->n_collectives; i++)
    if (is_included(run, model->collectives[i].step))
      write_collective(run, i);
  FOR_EACH(model->arrivals, model->n_arrivals, arrival) {
    bool matched = arrival->collective != INDEX_NONE;
    if (is_included(run, matched ? model->collectives[arrival->collective].step : arrival->step))
      sqlite_put_members(run, arrival,
                         arrival_transfer_begin(run->scope.results->analysis, arrival));
  }
}

static void write_recorded_calls(struct sqlite_run *run) {
  const struct flight_record *flight = run->scope.results->check.flight;
  for (u32 i = 0; flight && i < flight->n_calls; i++) {
    const struct flight_call *call = &flight->calls[i];
    const struct call_frame *frame = call->stack && call->stack->n ? call->stack->frames : NULL;
    char place[1024];
    if (frame)
      call_frame_write_place(frame, place, sizeof(place));
    sqlite_put_recorded_calls(run, flight, call, frame && frame->file ? place : NULL);
  }
}

/* Ids continue from run to run. */
static void write_memory_stacks(struct sqlite_run *run) {
  const struct memory_result *memory = &run->scope.results->memory;
  i64 first = (i64)run->run * 1000000;
  for (u32 i = 0; i < memory->n_stacks_at_peak; i++) {
    const struct memory_stack *one = &memory->stacks_at_peak[i];
    u32 caller = i;
    while (caller > 0 && memory->stacks_at_peak[caller].depth >= one->depth)
      caller--;
    sqlite_put_memory_stacks(run, one, first + i, one->depth > 0 ? first + caller : NS_UNKNOWN);
  }
}

static void write_results(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  FOR_EACH(r->kernels, r->n_kernels, kernel)
    sqlite_put_kernels(run, kernel);
  FOR_EACH(r->operators, r->n_operators, operator)
    sqlite_put_operators(run, operator);
  FOR_EACH(r->operator_kernels, r->n_operator_kernels, operator_kernel)
    sqlite_put_operator_kernels(run, operator_kernel);
  FOR_EACH(r->operator_sequences, r->n_operator_sequences, operator_sequence)
    sqlite_put_operator_sequences(run, operator_sequence);
  FOR_EACH(r->kernels_over_ranks, r->n_kernels_over_ranks, kernels_over_rank)
    for (u32 k = 0; k < kernels_over_rank->n_values; k++)
      sqlite_put_kernels_over_ranks(run, kernels_over_rank, k);
  write_memory_stacks(run);
  FOR_EACH(r->lines.at, r->lines.n_at, line)
    sqlite_put_lines(run, line);
  FOR_EACH(r->model->scalars, r->model->n_scalars, scalar)
    sqlite_put_scalars(run, scalar);
  FOR_EACH(r->budget, r->n_budget, one)
    sqlite_put_budget(run, one);
  for (u32 i = 0; i < r->n_findings; i++) {
    sqlite_put_findings(run, i + 1, &r->findings[i]);
    for (u32 k = 0; k < r->findings[i].n_ranks; k++)
      sqlite_put_finding_ranks(run, i + 1, r->findings[i].ranks[k]);
  }
}

void sqlite_write_facts(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  const struct model *model = r->model;
  sqlite_put_runs(run);
  for (u32 i = 0; i < model->n_ranks; i++)
    sqlite_put_ranks(run, i, &model->ranks[i], result_of(r, i));
  for (u32 step = 0; step < model->steps.n; step++)
    for (u32 rank = 0; rank < model->n_ranks; rank++)
      write_step(run, step, rank);
  write_comms(run);
  write_collectives(run);
  write_recorded_calls(run);
  write_results(run);
}
