/* SPDX-License-Identifier: MIT */
#include "report/json/json_made.h"

#include <math.h>
#include <stdio.h>

#include "report/sections.h"

json_t *make_schema(const struct results *results) {
  (void)results;
  return json_string("tscope.report/1");
}

json_t *make_run(const struct results *results) {
  return text_or_null(results->model->run);
}

json_t *make_command(const struct results *results) {
  return text_or_null(results->model->command);
}

json_t *make_world_size(const struct results *results) {
  return results->model->world_size ? json_integer(results->model->world_size) : json_null();
}

json_t *make_ranks_found(const struct results *results) {
  json_t *list = json_array();
  for (u32 i = 0; i < results->model->n_ranks; i++)
    json_array_append_new(list, json_integer(results->model->ranks[i].rank));
  return list;
}

/* Each host once, in the order of its first rank. */
json_t *make_hosts(const struct results *results) {
  json_t *list = json_array(), *seen = json_object();
  for (u32 i = 0; i < results->model->n_ranks; i++) {
    json_t *host = text_or_null(results->model->ranks[i].host);
    const char *name = json_string_value(host);
    if (name && !json_object_get(seen, name)) {
      json_object_set_new(seen, name, json_true());
      json_array_append(list, host);
    }
    json_decref(host);
  }
  json_decref(seen);
  return list;
}

json_t *make_duration(const struct results *results) {
  const struct model *model = results->model;
  if (model->begin == NS_UNKNOWN || model->end == NS_UNKNOWN)
    return json_null();
  return json_real((double)(model->end - model->begin) / 1e9);
}

json_t *make_began(const struct results *results) {
  i64 began = results->model->began_realtime_ns;
  return began == 0 ? json_null() : json_integer(began / 1000000000);
}

json_t *make_attempt(const struct results *results) {
  return results->model->attempt ? json_integer(results->model->attempt) : json_null();
}

json_t *make_aligned(const struct results *results) {
  return json_boolean(results->model->clock_aligned);
}

json_t *make_clock_method(const struct results *results) {
  return text_or_null(results->model->clock_method);
}

json_t *make_residual(const struct results *results) {
  return number_or_null(results->model->clock_residual_us);
}

json_t *make_between_hosts(const struct results *results) {
  return number_or_null(results->model->clock_between_us);
}

static json_t *make_clock(const struct rank *rank) {
  const struct clock_fit *fit = &rank->clock;
  return json_pack("{s:o,s:[],s:o,s:o,s:o,s:o,s:o}", "host", text_or_null(rank->host), "ranks",
                   "at_ns", fit->aligned ? json_integer(fit->at_ns) : json_null(), "offset_ns",
                   fit->aligned ? json_integer(fit->offset_ns) : json_null(), "drift_ppm",
                   number_or_null(fit->aligned ? fit->drift_ppm : NAN), "drift_error_ppm",
                   number_or_null(fit->aligned ? fit->drift_error_ppm : NAN), "error_us",
                   number_or_null(fit->error_us));
}

/* Domains are numbered in the order of their first ranks. */
json_t *make_clocks(const struct results *results) {
  const struct model *model = results->model;
  json_t *list = json_array();
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    if (rank->clock.domain == json_array_size(list))
      json_array_append_new(list, make_clock(rank));
    json_t *clock = json_array_get(list, rank->clock.domain);
    json_array_append_new(json_object_get(clock, "ranks"), json_integer(rank->rank));
  }
  return list;
}

json_t *make_steps_method(const struct results *results) {
  return text_or_null(results->model->steps.method);
}

json_t *make_steps_agreement(const struct results *results) {
  return number_or_null(results->model->steps.confidence);
}

json_t *make_changed_step(const struct results *results) {
  u32 step = results->changed_step;
  return step ? json_integer(results->model->steps.first + step) : json_null();
}

json_t *make_inputs(const struct results *results) {
  const struct model *model = results->model;
  json_t *list = json_array();
  for (u32 i = 0; i < model->n_inputs; i++)
    json_array_append_new(list, json_pack("{s:s,s:i}", "what", model->inputs[i].what, "files",
                                          (int)model->inputs[i].files));
  return list;
}

json_t *make_notes(const struct results *results) {
  json_t *list = json_array();
  for (u32 i = 0; i < results->model->n_notes; i++)
    json_array_append_new(list, text_or_null(results->model->notes[i]));
  return list;
}

json_t *make_stragglers(const struct results *results) {
  json_t *list = json_array();
  for (u32 i = 0; i < results->n_ranks; i++)
    if (results->ranks[i].straggler)
      json_array_append_new(list, json_integer(results->ranks[i].rank));
  return list;
}

json_t *make_path_by_rank(const struct results *results) {
  json_t *map = json_object();
  bool known = results->path_by_rank && !isnan(results->path_length_ms);
  for (u32 i = 0; known && i < results->n_ranks; i++) {
    char rank[12];
    snprintf(rank, sizeof(rank), "%u", results->ranks[i].rank);
    json_object_set_new(map, rank, number_or_null(results->path_by_rank[i]));
  }
  return map;
}

json_t *make_path_steps(const struct results *results) {
  return results->path_reason || results->model->n_ranks == 0
             ? json_null()
             : json_integer(results->path_steps_used);
}

json_t *make_expandable_would_help(const struct results *results) {
  const struct memory_segments *segments = &results->memory.segments;
  return segments->expandable_known ? json_boolean(segments->expandable_would_help) : json_null();
}

json_t *make_steps_are_certain(const struct results *results) {
  const struct memory_result *memory = &results->memory;
  return isnan(memory->steps) ? json_null() : json_boolean(memory->steps_are_certain);
}

json_t *make_sampled(const struct results *results) {
  return results->gemms.how ? json_boolean(results->gemms.sampled) : json_null();
}

json_t *make_plateau(const struct results *results) {
  const struct convergence_result *c = &results->convergence;
  return isnan(c->plateau_steps) ? json_null() : json_boolean(c->plateau);
}

json_t *make_sections(const struct results *results) {
  json_t *list = json_array();
  const struct results compared = results->diff ? section_compared(results) : *results;
  unsigned end = results->diff ? N_SECTIONS : SECTIONS_END;
  for (unsigned id = 0; id < end; id++) {
    const struct section one = section_of(id, id < SECTIONS_END ? results : &compared);
    if (one.shown)
      json_array_append_new(list, json_pack("{s:s,s:s,s:s?,s:o}", "name", one.name, "title",
                                            one.title, "mark", mark_words[one.mark], "unknown",
                                            text_or_null(one.unknown)));
  }
  return list;
}
