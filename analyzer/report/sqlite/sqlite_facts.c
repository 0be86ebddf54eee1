/* SPDX-License-Identifier: MIT
 *
 * Facts about the whole run: ranks, steps, collectives, kernels by name, findings.
 */
#include <math.h>

#include "analyses/queries.h"
#include "model/flight_record.h"
#include "report/sqlite/sqlite_run.h"

static i64 ns_of_ms(double ms) {
  return isfinite(ms) ? llround(ms * 1e6) : NS_UNKNOWN;
}

static void write_run(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  const struct model *model = r->model;
  struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_runs);
  sqlite_int(&row, run->run);
  sqlite_text(&row, model->run);
  sqlite_text(&row, model->command);
  if (model->world_size)
    sqlite_int(&row, model->world_size);
  else
    sqlite_null(&row);
  sqlite_int(&row, model->n_ranks);
  sqlite_ns(&row, model->begin);
  sqlite_ns(&row, model->end);
  sqlite_int(&row, model->steps.n);
  sqlite_text(&row, model->steps.method);
  sqlite_ns(&row, ns_of_ms(r->step_median_ms));
  sqlite_int(&row, model->n_ranks <= 1 || model->clock_aligned);
  sqlite_text(&row, model->clock_method);
  sqlite_rounded(&row, 1e3 * (isnan(model->clock_between_us) ? model->clock_residual_us
                                                             : model->clock_between_us));
  sqlite_text(&row, model->recorder);
  sqlite_end(&row);
}

static const struct rank_result *result_of(const struct results *r, u32 rank) {
  bool same = rank < r->n_ranks && r->ranks[rank].rank == r->model->ranks[rank].rank;
  return same ? &r->ranks[rank] : NULL;
}

static void write_rank(struct sqlite_run *run, u32 index) {
  const struct results *r = run->scope.results;
  const struct rank *rank = &r->model->ranks[index];
  const struct rank_result *is = result_of(r, index);
  u64 lost = 0;
  for (u32 i = 0; i < TSCOPE_LOSS_REASONS; i++)
    lost += rank->lost[i];
  struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_ranks);
  sqlite_int(&row, run->run);
  sqlite_int(&row, rank->rank);
  sqlite_index(&row, rank->local_rank);
  sqlite_text(&row, rank->host);
  sqlite_text(&row, rank->info[TSCOPE_INFO_GPU_NAME]);
  if (rank->pid)
    sqlite_int(&row, rank->pid);
  else
    sqlite_null(&row);
  sqlite_ns(&row, rank->begin);
  sqlite_ns(&row, rank->end);
  sqlite_int(&row, rank->closed);
  sqlite_text(&row, rank->damage);
  sqlite_int(&row, (i64)rank->records);
  sqlite_int(&row, (i64)lost);
  sqlite_int(&row, run->shown_ranks[index]);
  sqlite_ns(&row, is ? ns_of_ms(is->median_compute_ms) : NS_UNKNOWN);
  sqlite_real(&row, is ? is->rel_slowdown : NAN);
  sqlite_real(&row, is ? is->slowest_fraction : NAN);
  if (is)
    sqlite_int(&row, is->straggler);
  else
    sqlite_null(&row);
  sqlite_text(&row, is ? straggler_reason_words[is->reason] : NULL);
  sqlite_end(&row);
}

static void write_step(struct sqlite_run *run, u32 step, u32 rank) {
  const struct analysis *a = run->scope.results->analysis;
  const struct steps *steps = &a->model->steps;
  size_t cell = (size_t)step * a->model->n_ranks + rank;
  struct window window;
  if (!analysis_window(a, rank, step, &window))
    return;
  bool looked_at = step >= a->first_step && step < a->first_step + a->n_steps;
  double compute =
      looked_at ? (double)a->compute_ms[(size_t)rank * a->n_steps + step - a->first_step] : NAN;
  const struct phase_times *phases = a->model->phases ? &a->model->phases[cell] : NULL;
  struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_steps);
  sqlite_int(&row, run->run);
  sqlite_int(&row, steps->first + step);
  sqlite_int(&row, a->model->ranks[rank].rank);
  sqlite_int(&row, window.begin);
  sqlite_int(&row, window.end);
  sqlite_ns(&row, steps->host_begin ? steps->host_begin[cell] : window.begin);
  sqlite_ns(&row, steps->host_end ? steps->host_end[cell] : window.end);
  sqlite_int(&row, step < a->first_step);
  sqlite_int(&row, run->shown_steps[step] && run->shown_ranks[rank]);
  sqlite_ns(&row, ns_of_ms(compute));
  sqlite_ns(&row, phases ? phases->data : NS_UNKNOWN);
  sqlite_ns(&row, phases ? phases->forward : NS_UNKNOWN);
  sqlite_ns(&row, phases ? phases->backward : NS_UNKNOWN);
  sqlite_ns(&row, phases ? phases->optimizer : NS_UNKNOWN);
  sqlite_ns(&row, phases ? phases->other : NS_UNKNOWN);
  sqlite_end(&row);
}

static int write_comms(struct sqlite_run *run) {
  static const char *const backends[] = {[0] = NULL,
#define X(n, v, t) [v] = t,
                                         TSCOPE_BACKENDS(X)
#undef X
  };
  const struct model *model = run->scope.results->model;
  for (u32 i = 0; i < model->n_comms; i++) {
    const struct comm *comm = &model->comms[i];
    struct arena scratch = {0};
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_communicators);
    bool named = comm->backend < sizeof(backends) / sizeof(backends[0]);
    sqlite_int(&row, (i64)(run->comms + i + 1));
    sqlite_int(&row, run->run);
    sqlite_text(&row, comm_label(model, i, &scratch));
    if (comm->size)
      sqlite_int(&row, comm->size);
    else
      sqlite_null(&row);
    sqlite_text(&row, named ? backends[comm->backend] : NULL);
    sqlite_end(&row);
    arena_release(&scratch);
  }
  return 0;
}

/* --- collectives --- */

static bool is_included(const struct sqlite_run *run, i32 step) {
  return !run->ring_only || (step >= 0 && run->shown_steps[step]);
}

/* Who began last, and how long after the one before. */
struct order {
  i64 first, last, before_last, end;
  u32 last_rank;
};

static struct order order_of(const struct model *model, const struct collective *of) {
  struct order order = {INT64_MAX, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, INDEX_NONE};
  for (u32 i = 0; i < of->n_arrivals; i++) {
    const struct arrival *arrival = &model->arrivals[of->first_arrival + i];
    if (arrival->start == NS_UNKNOWN)
      continue;
    order.end = arrival->end > order.end ? arrival->end : order.end;
    order.first = arrival->start < order.first ? arrival->start : order.first;
    if (arrival->start >= order.last) {
      order.before_last = order.last;
      order.last = arrival->start;
      order.last_rank = model->ranks[arrival->rank].rank;
    } else if (arrival->start > order.before_last) {
      order.before_last = arrival->start;
    }
  }
  return order;
}

static i32 step_number(const struct model *model, i32 step) {
  return step < 0 ? -1 : (i32)model->steps.first + step;
}

static void put_step(struct sqlite_row *row, const struct model *model, i32 step) {
  if (step < 0)
    sqlite_null(row);
  else
    sqlite_int(row, step_number(model, step));
}

static void write_collective(struct sqlite_run *run, u32 index) {
  const struct model *model = run->scope.results->model;
  const struct collective *of = &model->collectives[index];
  struct order order = order_of(model, of);
  bool comparable = model->clock_aligned && order.before_last != NS_UNKNOWN;
  struct arena scratch = {0};
  struct shown_collective is = shown_collective(&run->scope, of->first_arrival, &scratch);
  i64 transfer = run->scope.results->analysis->transfer[index];
  struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_collectives);
  sqlite_int(&row, (i64)(run->collectives + index + 1));
  sqlite_int(&row, run->run);
  sqlite_int(&row, (i64)(run->comms + of->comm + 1));
  sqlite_int(&row, of->seq);
  sqlite_word(&row, op_name(of->op));
  sqlite_word(&row, is.dtype);
  sqlite_rounded(&row, is.bytes);
  put_step(&row, model, of->step);
  sqlite_int(&row, of->complete);
  sqlite_int(&row, of->mismatched);
  sqlite_ns(&row, order.last == NS_UNKNOWN ? NS_UNKNOWN : order.first);
  sqlite_ns(&row, order.last);
  sqlite_ns(&row, order.end);
  sqlite_ns(&row, transfer);
  sqlite_real(&row, is.busbw_gbps);
  sqlite_index(&row, comparable ? order.last_rank : INDEX_NONE);
  sqlite_ns(&row, comparable ? order.last - order.before_last : NS_UNKNOWN);
  sqlite_text(&row, of->algorithm);
  sqlite_text(&row, of->protocol);
  sqlite_end(&row);
  arena_release(&scratch);
}

static void write_member(struct sqlite_run *run, const struct arrival *arrival) {
  const struct analysis *a = run->scope.results->analysis;
  i64 transfer = arrival_transfer_begin(a, arrival);
  struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_members);
  if (arrival->collective == INDEX_NONE)
    sqlite_null(&row);
  else
    sqlite_int(&row, (i64)(run->collectives + arrival->collective + 1));
  sqlite_int(&row, run->run);
  sqlite_int(&row, a->model->ranks[arrival->rank].rank);
  sqlite_word(&row, op_name(arrival->op));
  put_step(&row, a->model, arrival->step);
  sqlite_ns(&row, arrival->call_start);
  sqlite_ns(&row, arrival->call_end);
  sqlite_ns(&row, arrival->start);
  sqlite_ns(&row, arrival->end);
  sqlite_ns(&row, transfer == NS_UNKNOWN ? NS_UNKNOWN : transfer - arrival->start);
  sqlite_ns(&row, transfer == NS_UNKNOWN ? NS_UNKNOWN : arrival->end - transfer);
  sqlite_end(&row);
}

static void write_collectives(struct sqlite_run *run) {
  const struct model *model = run->scope.results->model;
  for (u32 i = 0; i < model->n_collectives; i++)
    if (is_included(run, model->collectives[i].step))
      write_collective(run, i);
  for (u32 i = 0; i < model->n_arrivals; i++) {
    const struct arrival *arrival = &model->arrivals[i];
    bool matched = arrival->collective != INDEX_NONE;
    if (is_included(run, matched ? model->collectives[arrival->collective].step : arrival->step))
      write_member(run, arrival);
  }
}

/* --- recorded calls --- */

static void write_recorded_call(struct sqlite_run *run, const struct flight_record *flight,
                                const struct flight_call *call) {
  static const char *const states[] = {[FLIGHT_CALLED] = "called",
                                       [FLIGHT_SCHEDULED] = "scheduled",
                                       [FLIGHT_STARTED] = "started",
                                       [FLIGHT_COMPLETED] = "completed"};
  const struct flight_group *group = &flight->groups[call->group];
  const struct flight_frame *frame = call->stack && call->stack->n ? &call->stack->frames[0] : NULL;
  struct arena scratch = {0};
  struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_recorded_calls);
  sqlite_int(&row, run->run);
  sqlite_int(&row, flight->ranks[call->rank].rank);
  sqlite_text(&row, group->name);
  sqlite_text(&row, group->desc);
  sqlite_ns(&row, call->seq == SEQ_UNKNOWN ? NS_UNKNOWN : call->seq);
  sqlite_text(&row, call->op);
  sqlite_word(&row, states[call->state]);
  sqlite_ns(&row, call->created);
  sqlite_text(&row, call->in);
  sqlite_text(&row, call->out);
  sqlite_text(&row, call->in_type);
  sqlite_index(&row, call->peer == INDEX_NONE ? INDEX_NONE : flight->ranks[call->peer].rank);
  sqlite_text(&row, call->where);
  sqlite_text(&row, frame && frame->file
                        ? arena_printf(&scratch, "%s:%lld", frame->file, (long long)frame->line)
                        : NULL);
  sqlite_end(&row);
  arena_release(&scratch);
}

static void write_recorded_calls(struct sqlite_run *run) {
  const struct flight_record *flight = run->scope.results->check.flight;
  for (u32 i = 0; flight && i < flight->n_calls; i++)
    write_recorded_call(run, flight, &flight->calls[i]);
}

/* --- results --- */

static void write_kernels(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  for (u32 i = 0; i < r->n_kernels; i++) {
    const struct kernel_result *kernel = &r->kernels[i];
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_kernels);
    sqlite_int(&row, run->run);
    sqlite_text(&row, kernel->shortened);
    sqlite_text(&row, kernel->name);
    sqlite_text(&row, kernel->category);
    sqlite_rounded(&row, kernel->count);
    sqlite_ns(&row, ns_of_ms(kernel->sum_ms));
    sqlite_ns(&row, ns_of_ms(kernel->mean_ms));
    sqlite_ns(&row, ns_of_ms(kernel->max_ms));
    sqlite_real(&row, kernel->share);
    sqlite_end(&row);
  }
}

static void write_operators(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  for (u32 i = 0; i < r->n_operators; i++) {
    const struct operator_result *one = &r->operators[i];
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_operators);
    sqlite_int(&row, run->run);
    sqlite_text(&row, one->name);
    sqlite_rounded(&row, one->calls);
    sqlite_rounded(&row, one->kernels);
    sqlite_ns(&row, ns_of_ms(one->self_ms));
    sqlite_ns(&row, ns_of_ms(one->total_ms));
    sqlite_real(&row, one->share);
    sqlite_end(&row);
  }
  for (u32 i = 0; i < r->n_operator_kernels; i++) {
    const struct operator_kernel_result *one = &r->operator_kernels[i];
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_operator_kernels);
    sqlite_int(&row, run->run);
    sqlite_text(&row, one->launcher);
    sqlite_text(&row, one->kernel);
    sqlite_text(&row, one->category);
    sqlite_rounded(&row, one->count);
    sqlite_ns(&row, ns_of_ms(one->sum_ms));
    sqlite_end(&row);
  }
}

static void write_operator_sequences(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  for (u32 i = 0; i < r->n_operator_sequences; i++) {
    const struct operator_sequence_result *one = &r->operator_sequences[i];
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_operator_sequences);
    sqlite_int(&row, run->run);
    sqlite_text(&row, one->launcher);
    sqlite_text(&row, one->kernels);
    sqlite_rounded(&row, one->launched);
    sqlite_rounded(&row, one->count);
    sqlite_ns(&row, ns_of_ms(one->sum_ms));
    sqlite_end(&row);
  }
}

static void write_kernels_over_ranks(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  for (u32 i = 0; i < r->n_kernels_over_ranks; i++)
    for (u32 k = 0; k < r->kernels_over_ranks[i].n_values; k++) {
      const struct kernel_over_ranks_result *one = &r->kernels_over_ranks[i];
      struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_kernels_over_ranks);
      sqlite_int(&row, run->run);
      sqlite_int(&row, r->over_ranks_of[k]);
      sqlite_text(&row, one->shortened);
      sqlite_rounded(&row, one->mean_us[k] * 1e3);
      sqlite_rounded(&row, one->p95_us[k] * 1e3);
      sqlite_end(&row);
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
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_memory_stacks);
    sqlite_int(&row, first + i);
    sqlite_int(&row, run->run);
    if (one->depth > 0)
      sqlite_int(&row, first + caller);
    else
      sqlite_null(&row);
    sqlite_rounded(&row, one->depth);
    sqlite_text(&row, one->frame);
    if (one->own == ANSWER_UNKNOWN)
      sqlite_null(&row);
    else
      sqlite_int(&row, one->own == ANSWER_YES);
    sqlite_text(&row, one->category);
    sqlite_rounded(&row, one->bytes);
    sqlite_rounded(&row, one->blocks);
    sqlite_real(&row, one->share);
    sqlite_end(&row);
  }
}

static void write_lines(struct sqlite_run *run) {
  const struct lines_result *lines = &run->scope.results->lines;
  for (u32 i = 0; i < lines->n_at; i++) {
    const struct line_result *line = &lines->at[i];
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_lines);
    sqlite_int(&row, run->run);
    sqlite_text(&row, line->file);
    sqlite_rounded(&row, line->line);
    sqlite_text(&row, line->function);
    sqlite_real(&row, line->waits);
    sqlite_ns(&row, ns_of_ms(line->wait_ms));
    sqlite_ns(&row, ns_of_ms(line->idle_ms));
    sqlite_ns(&row, ns_of_ms(line->input_ms));
    sqlite_real(&row, line->collectives);
    sqlite_ns(&row, ns_of_ms(line->comm_ms));
    sqlite_ns(&row, ns_of_ms(line->exposed_ms));
    sqlite_real(&row, line->launches);
    sqlite_ns(&row, ns_of_ms(line->gpu_ms));
    sqlite_rounded(&row, line->samples);
    sqlite_ns(&row, ns_of_ms(line->without_ms));
    sqlite_ns(&row, ns_of_ms(line->host_ms));
    sqlite_ns(&row, ns_of_ms(line->worker_ms));
    sqlite_ns(&row, ns_of_ms(line->backward_gpu_ms));
    sqlite_real(&row, line->backward);
    sqlite_end(&row);
  }
}

static void write_scalars(struct sqlite_run *run) {
  const struct model *model = run->scope.results->model;
  for (u32 i = 0; i < model->n_scalars; i++) {
    const struct scalar *scalar = &model->scalars[i];
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_scalars);
    sqlite_int(&row, run->run);
    sqlite_index(&row,
                 scalar->rank < model->n_ranks ? model->ranks[scalar->rank].rank : scalar->rank);
    sqlite_text(&row, scalar->name);
    sqlite_index(&row, scalar->step);
    sqlite_ns(&row, scalar->time);
    sqlite_real(&row, scalar->value);
    sqlite_end(&row);
  }
}

static void write_budget(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  for (u32 i = 0; i < r->n_budget; i++) {
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_budget);
    sqlite_int(&row, run->run);
    sqlite_text(&row, budget_part_words[r->budget[i].part]);
    sqlite_real(&row, r->budget[i].seconds);
    sqlite_real(&row, r->budget[i].fraction);
    sqlite_real(&row, r->budget[i].recoverable);
    sqlite_end(&row);
  }
}

static void write_findings(struct sqlite_run *run) {
  const struct results *r = run->scope.results;
  for (u32 i = 0; i < r->n_findings; i++) {
    const struct finding *finding = &r->findings[i];
    struct sqlite_row row = sqlite_row(run->writer, SQLITE_TABLE_findings);
    sqlite_int(&row, run->run);
    sqlite_int(&row, i + 1);
    sqlite_text(&row, finding_id_words[finding->id]);
    sqlite_word(&row, severity_words[finding->severity]);
    sqlite_real(&row, finding->saving_s);
    sqlite_text(&row, finding->title);
    sqlite_text(&row, finding->evidence);
    sqlite_text(&row, finding->action);
    sqlite_end(&row);
    for (u32 k = 0; k < finding->n_ranks; k++) {
      struct sqlite_row rank = sqlite_row(run->writer, SQLITE_TABLE_finding_ranks);
      sqlite_int(&rank, run->run);
      sqlite_int(&rank, i + 1);
      sqlite_int(&rank, finding->ranks[k]);
      sqlite_end(&rank);
    }
  }
}

void sqlite_write_facts(struct sqlite_run *run) {
  const struct model *model = run->scope.results->model;
  write_run(run);
  for (u32 i = 0; i < model->n_ranks; i++)
    write_rank(run, i);
  for (u32 step = 0; step < model->steps.n; step++)
    for (u32 rank = 0; rank < model->n_ranks; rank++)
      write_step(run, step, rank);
  write_comms(run);
  write_collectives(run);
  write_recorded_calls(run);
  write_kernels(run);
  write_operators(run);
  write_operator_sequences(run);
  write_kernels_over_ranks(run);
  write_memory_stacks(run);
  write_lines(run);
  write_scalars(run);
  write_budget(run);
  write_findings(run);
}
