/* SPDX-License-Identifier: MIT */
#include "top/top_outputs.h"

#include <errno.h>

#include "base/json_values.h"
#include "report/json/json_fields.h"

static json_t *text(const char *value) {
  return text_or_null(value && *value ? value : NULL);
}

static json_t *integer(u64 value) {
  return json_integer((json_int_t)value);
}

static json_t *rank_numbers(const struct live_view *view, const u32 *indices, u32 n) {
  return JSON_LIST(indices, n, one, integer(view->ranks[*one].rank));
}

static json_t *losses(const u64 lost[TSCOPE_LOSS_REASONS]) {
  json_t *object = json_object();
  static const char *const names[] = {
#define X(NAME, value, words) [value] = #NAME,
      TSCOPE_LOSSES(X)
#undef X
  };
  for (u32 i = 0; i < TSCOPE_LOSS_REASONS; i++)
    if (lost[i] && i < LENGTH_OF(names) && names[i])
      json_object_set_new(object, names[i], integer(lost[i]));
  return object;
}

static json_t *rank_object(const struct live_view *view, const struct live_rank *rank) {
  static const char *const arrivals[] = {
      [LIVE_ARRIVAL_NONE] = NULL, [LIVE_ARRIVAL_RUN] = "run", [LIVE_ARRIVAL_CALL] = "call"};
  const struct live_process *process = rank->process;
  const struct live_last_call *last = &process->last;
  bool steps = rank->steps.method != NULL;
  json_t *object = json_object();
#define SET(name, value) json_object_set_new(object, name, value)
  SET("rank", integer(rank->rank));
  SET("host", text(view->hosts[rank->host].name));
  SET("pid", integer(process->trace.file.header.pid));
  SET("state", text(rank->state == LIVE_UNCERTAIN ? NULL : live_state_name(rank->state)));
  SET("state_text", text(rank->what));
  SET("silent_s", number_or_null(rank->silent_s));
  SET("quiet_s", number_or_null(rank->quiet_s));
  SET("step", steps ? integer(rank->steps.count) : json_null());
  SET("step_s", number_or_null(rank->step_s));
  SET("usual_step_s", number_or_null(rank->usual_s));
  SET("since_step_s", number_or_null(rank->since_step_s));
  SET("phase", text(rank->phase));
  SET("phase_s", number_or_null(rank->phase_s));
  SET("collectives", integer(process->tokens.n));
  SET("last_op", text(rank->op));
  SET("last_seq", last->any ? integer(last->seq) : json_null());
  SET("last_group", text(rank->group));
  SET("called_s", number_or_null(rank->called_s));
  SET("in_call", last->any ? json_boolean(rank->in_call) : json_null());
  SET("in_wait_s", number_or_null(rank->in_wait_s));
  SET("stalled_in", text(rank->stalled_in));
  SET("stalled_s", number_or_null(rank->stalled_s));
  SET("nccl_error", text(rank->nccl_error));
  SET("late_s", number_or_null(rank->late_s));
  SET("late_by", text(arrivals[rank->late_by]));
  SET("late_at", text(rank->late_at));
  SET("late_why", text(rank->late_why));
  SET("late_more_s", number_or_null(rank->late_more_s));
  SET("waits_for", integer(rank->n_waits_for));
  SET("waits_s", number_or_null(rank->waits_s));
  SET("gpu_share", number_or_null(rank->gpu));
  SET("memory_bytes", number_or_null(rank->memory));
  SET("memory_peak_bytes", number_or_null(rank->peak));
  SET("memory_reserved_bytes", number_or_null(rank->reserved));
  SET("gpu_memory_bytes", number_or_null(rank->gpu_memory));
  SET("records", integer(process->records));
  SET("lost", losses(process->trace.file.header.lost));
  SET("failed_call", text(live_string(process, process->failed_call)));
  SET("exception",
      text(process->trace.file.header.exception_ticks ? process->trace.file.header.exception
                                                      : NULL));
#undef SET
  return object;
}

static json_t *host_object(const struct live_host *host) {
  return json_pack("{so sI sb so sI so}", "host", text(host->name), "ranks",
                   (json_int_t)host->ranks, "here", host->here, "clock_within_s",
                   number_or_null(host->error_s), "clock_by_ends", (json_int_t)host->ends,
                   "behind_s", number_or_null(host->behind_s));
}

static json_t *wait_object(const struct live_view *view, const struct live_wait *wait) {
  return json_pack("{so so sI so so so sI}", "group", text(wait->group), "op", text(wait->op),
                   "seq", (json_int_t)wait->seq, "absent",
                   rank_numbers(view, wait->absent, wait->n_absent), "waiting",
                   rank_numbers(view, wait->waiting, wait->n_waiting), "since_s",
                   number_or_null(wait->since_s), "without_trace", (json_int_t)wait->no_trace);
}

static json_t *mismatch_object(const struct live_mismatch *mismatch) {
  return json_pack("{so so sI so so}", "group", text(mismatch->group), "op", text(mismatch->op),
                   "seq", (json_int_t)mismatch->seq, "state", text(mismatch->state), "detail",
                   text(mismatch->detail));
}

static json_t *lengths(const struct live_view *view) {
  const struct live_steps *steps = view->reference ? &view->reference->steps : NULL;
  return steps ? JSON_LIST(steps->lengths, steps->n, one, number_or_null(*one)) : json_array();
}

static json_t *document(const struct live_view *view) {
  json_t *object = json_object();
#define SET(name, value) json_object_set_new(object, name, value)
  SET("tscope", text(TSCOPE_VERSION));
  SET("run", text(view->run->name));
  SET("time_s", number_or_null(ns_to_s(view->now_realtime_ns)));
  SET("since_start_s", number_or_null(view->since_start_s));
  SET("world_size", view->world ? integer(view->world) : json_null());
  SET("attempt", view->run->attempt ? integer(view->run->attempt) : json_null());
  SET("ranks_before", view->run->attempt > 1 ? integer(view->run->ranks_before) : json_null());
  SET("ranks_numbered", integer(view->numbered));
  SET("running", integer(view->n_running));
  SET("in_trouble", integer(view->n_trouble));
  SET("ended", integer(view->n_over));
  SET("step_method", text(view->step_method));
  SET("step_s", number_or_null(view->step_s));
  SET("steps_per_s", number_or_null(view->rate));
  SET("since_step_s", number_or_null(view->since_step_s));
  SET("step_lengths_s", lengths(view));
  SET("lost", losses(view->lost));
  SET("damaged_chunks", integer(view->damaged));
  SET("unreadable_files", integer(view->unreadable));
  SET("update_s", number_or_null(view->run->poll_s));
  SET("update_bytes", integer(view->run->read_bytes));
  SET("hosts", JSON_LIST(view->hosts, view->n_hosts, one, host_object(one)));
  SET("waits", JSON_LIST(view->waits, view->n_waits, one, wait_object(view, one)));
  SET("mismatches", JSON_LIST(view->mismatches, view->n_mismatches, one, mismatch_object(one)));
  SET("stalled", integer(view->n_stalled));
  SET("stacks", json_stack_nodes(view->stalls.nodes, view->stalls.n));
  SET("ranks", JSON_LIST(view->ranks, view->n_ranks, one, rank_object(view, one)));
#undef SET
  return object;
}

/* ASCII only: then no name can act on the reader's terminal. */
int top_json_write(const struct live_view *view, FILE *out) {
  json_t *object = document(view);
  int error = object && json_dumpf(object, out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0 ? 0 : -EIO;
  fputc('\n', out);
  json_decref(object);
  return error;
}
