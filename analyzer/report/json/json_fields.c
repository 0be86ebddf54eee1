/* SPDX-License-Identifier: MIT */
#include "report/json/json_fields.h"

#include <stdio.h>

#include "analyses/stalls/stack_tree.h"
#include "base/json_values.h"
#include "diff/diff_result.h"
#include "report/facts/facts.h"
#include "report/rank_order.h"
#include "report/sentences.h"

#define MAKE(name, value)                                                                          \
  static json_t *make_##name(const struct results *results, const void *row) {                     \
    (void)results;                                                                                 \
    (void)row;                                                                                     \
    return value;                                                                                  \
  }

/* If `known`; else null. */
static json_t *flag(bool known, bool value) {
  return known ? json_boolean(value) : json_null();
}

/* A number that is 0 if it is not known. */
static json_t *positive(i64 value) {
  return value ? json_integer(value) : json_null();
}

MAKE(schema, json_string(REPORT_SCHEMA))
MAKE(run, text_or_null(results->model->run))
MAKE(inputs, JSON_LIST(results->model->inputs, results->model->n_inputs, one,
                       json_pack("{s:s,s:i}", "what", one->what, "files", (int)one->files)))
MAKE(ranks_found,
     JSON_LIST(results->model->ranks, results->model->n_ranks, one, json_integer(one->rank)))
MAKE(command, text_or_null(results->model->command))
MAKE(world_size, positive(results->model->world_size))
MAKE(duration, results->model->begin == NS_UNKNOWN || results->model->end == NS_UNKNOWN
                   ? json_null()
                   : number_or_null(ns_to_s(results->model->end - results->model->begin)))
MAKE(began, positive(results->model->began_realtime_ns / 1000000000))
MAKE(attempt, positive(results->model->attempt))
MAKE(notes, JSON_LIST(results->model->notes, results->model->n_notes, one, text_or_null(*one)))
MAKE(aligned, json_boolean(results->model->clock_aligned))
MAKE(clock_method, text_or_null(results->model->clock_method))
MAKE(residual, number_or_null(results->model->clock_residual_us))
MAKE(between_hosts, number_or_null(results->model->clock_between_us))
MAKE(steps_method, text_or_null(results->model->steps.method))
MAKE(steps_agreement, number_or_null(results->model->steps.confidence))
MAKE(chosen_from, positive(results->model->steps.chosen_from))
MAKE(changed_step,
     positive(results->changed_step ? results->model->steps.first + results->changed_step : 0))
MAKE(path_steps, results->path_reason || results->model->n_ranks == 0
                     ? json_null()
                     : json_integer(results->path_steps_used))
MAKE(expandable_would_help, flag(results->memory.segments.expandable_known,
                                 results->memory.segments.expandable_would_help))
MAKE(steps_are_certain, flag(!isnan(results->memory.steps), results->memory.steps_are_certain))
MAKE(sampled, flag(results->gemms.how, results->gemms.sampled))
MAKE(plateau, flag(!isnan(results->convergence.plateau_steps), results->convergence.plateau))

/* A sentence of sentences.h. */
#define MAKE_SENTENCE(name, say_it)                                                                \
  static json_t *make_##name(const struct results *results, const void *row) {                     \
    (void)row;                                                                                     \
    SCOPED_ARENA struct arena scratch = {0};                                                       \
    return text_or_null(say_it(results, &scratch));                                                \
  }
MAKE_SENTENCE(no_finding, say_no_finding)
MAKE_SENTENCE(hidden, say_hidden_communication)

MAKE(compute, number_or_null(compute_of(row)))

static json_t *make_saving(const struct results *results, const void *finding) {
  SCOPED_ARENA struct arena scratch = {0};
  const struct savings said = say_saving(finding, results, &scratch);
  return JSON_LIST(said.texts, said.n, one, text_or_null(*one));
}

static json_t *make_doing(const struct results *results, const void *rank) {
  (void)results;
  SCOPED_ARENA struct arena scratch = {0};
  return text_or_null(say_doing(rank, &scratch));
}

static json_t *make_spread(const struct results *results, const void *row) {
  (void)results;
  const struct what_if *one = row;
  SCOPED_ARENA struct arena scratch = {0};
  return text_or_null(
      say_spread(one->saving_low, one->saving_high, one->saving_fraction, &scratch));
}

static json_t *make_stack_lines(const struct results *results, const void *row) {
  const struct stalls_result *stalls = row;
  (void)results;
  SCOPED_ARENA struct arena scratch = {0};
  u32 n;
  const struct stack_line *lines = stack_tree_lines(
      &scratch, &(struct stack_tree){stalls->tree, stalls->n_tree}, stalls->n_tree, &n);
  return JSON_LIST(lines, n, line,
                   json_pack("{s:i,s:o,s:o,s:o}", "depth", (int)line->depth, "n_ranks",
                             json_integer((json_int_t)line->n_ranks), "ranks",
                             text_or_null(line->ranks), "text", text_or_null(line->text)));
}

static json_t *make_rank_order(const struct results *results, const void *row) {
  (void)row;
  SCOPED_ARENA struct arena scratch = {0};
  return JSON_LIST(ranks_in_order(results, &scratch), results->n_ranks, one,
                   json_integer((*one)->rank));
}

/* Each host once, in the order of its first rank. */
static json_t *make_hosts(const struct results *results, const void *row) {
  (void)row;
  const struct model *model = results->model;
  json_t *list = json_array();
  FOR_EACH(model->ranks, model->n_ranks, rank)
    if (rank->host_number == json_array_size(list) && rank->host_number < model->n_hosts)
      json_array_append_new(list, text_or_null(rank->host));
  return list;
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
static json_t *make_clocks(const struct results *results, const void *row) {
  (void)row;
  json_t *list = json_array();
  FOR_EACH(results->model->ranks, results->model->n_ranks, rank) {
    if (rank->clock.domain == json_array_size(list))
      json_array_append_new(list, make_clock(rank));
    json_t *clock = json_array_get(list, rank->clock.domain);
    json_array_append_new(json_object_get(clock, "ranks"), json_integer(rank->rank));
  }
  return list;
}

static json_t *make_stragglers(const struct results *results, const void *row) {
  (void)row;
  json_t *list = json_array();
  FOR_EACH(results->ranks, results->n_ranks, rank)
    if (rank->straggler)
      json_array_append_new(list, json_integer(rank->rank));
  return list;
}

static json_t *make_path_by_rank(const struct results *results, const void *row) {
  (void)row;
  json_t *map = json_object();
  bool known = results->path_by_rank && !isnan(results->path_length_ms);
  for (u32 i = 0; known && i < results->n_ranks; i++) {
    char rank[12];
    snprintf(rank, sizeof(rank), "%u", results->ranks[i].rank);
    json_object_set_new(map, rank, number_or_null(results->path_by_rank[i]));
  }
  return map;
}

static json_t *list_facts(struct facts facts) {
  return JSON_LIST(facts.at, facts.n, fact,
                   json_pack("{s:o,s:o,s:s,s:o}", "label", text_or_null(fact->label), "text",
                             text_or_null(fact->text), "tone", tone_words[fact->tone], "share",
                             number_or_null(fact->share)));
}

static json_t *make_section(enum section_id id, const struct section *one,
                            const struct results *of) {
  SCOPED_ARENA struct arena scratch = {0};
  bool known = !one->unknown;
  return json_pack("{s:s,s:s,s:s?,s:o,s:o,s:o}", "name", one->name, "title", one->title, "mark",
                   mark_words[one->mark], "unknown", text_or_null(one->unknown), "facts",
                   list_facts(known ? section_facts(id, of, &scratch) : (struct facts){0}), "basis",
                   list_facts(known ? section_basis(id, of, &scratch) : (struct facts){0}));
}

static json_t *make_sections(const struct results *results, const void *row) {
  (void)row;
  json_t *list = json_array();
  const struct results compared = results->diff ? section_compared(results) : *results;
  unsigned end = results->diff ? N_SECTIONS : SECTIONS_END;
  for (unsigned id = 0; id < end; id++) {
    const struct results *of = id < SECTIONS_END ? results : &compared;
    const struct section one = section_of(id, of);
    if (one.shown)
      json_array_append_new(list, make_section(id, &one, of));
  }
  return list;
}

/* Each struct of the tables becomes a function that returns its fields. */
#define STRUCT(name) VIEW(name, name)
#define VIEW(name, of)                                                                             \
  static const struct json_field *name##_fields(void) {                                            \
    typedef struct of row;                                                                         \
    static const struct json_field fields[] = {
#define END_STRUCT                                                                                 \
  { .name = NULL }                                                                                 \
  }                                                                                                \
  ;                                                                                                \
  return fields;                                                                                   \
  }

/* One line: what all have, then what its kind has. */
#define FIELD(KIND, key, unit, text, ...)                                                          \
  {.name = key, .kind = JSON_FIELD_##KIND, .type = unit, .meaning = text, __VA_ARGS__},
#define AT(member) .offset = offsetof(row, member)
#define COUNTED(member, count) AT(member), .count_offset = offsetof(row, count)
#define ROWS(member, of, view)                                                                     \
  COUNTED(member, n_##member), .row_bytes = sizeof(struct of), .fields = view##_fields

#define NUMBER(member, unit, meaning) NUMBER_AS(member, member, unit, meaning)
#define NUMBER_AS(member, key, unit, meaning) FIELD(NUMBER, #key, unit, meaning, AT(member))
#define VALUE(member, unit, meaning) FIELD(NUMBER, "", unit, meaning, AT(member))
#define RANK(member, meaning) FIELD(RANK, #member, "integer", meaning, AT(member))
#define TEXT(member, meaning) TEXT_AS(member, member, meaning)
#define TEXT_AS(member, key, meaning) FIELD(TEXT, #key, "string", meaning, AT(member))
#define WORD_OF(member, list, meaning) WORD_OF_AS(member, member, list, meaning)
#define WORD_OF_AS(member, key, list, meaning)                                                     \
  FIELD(WORD, #key, "string", meaning, AT(member), .words = list##_words)
#define STRINGS(member, meaning)                                                                   \
  FIELD(STRINGS, #member, "array of strings", meaning, COUNTED(member, n_##member))
#define RANKS(member, meaning)                                                                     \
  FIELD(RANKS, #member, "array of integers", meaning, COUNTED(member, n_##member))
#define NUMBERS(member, count, unit, meaning) NUMBERS_AS(member, member, count, unit, meaning)
#define NUMBERS_AS(member, key, count, unit, meaning)                                              \
  FIELD(NUMBERS, #key, unit, meaning, COUNTED(member, count))
#define ELEMENT(member, index, key, unit, meaning)                                                 \
  FIELD(NUMBERS, key, unit, meaning, COUNTED(member[index], n_##member[index]))
#define LIST(member, of, meaning) VIEW_LIST(member, member, of, of, meaning)
#define LIST_AS(member, key, of, meaning) VIEW_LIST(member, key, of, of, meaning)
#define VIEW_LIST(member, key, of, view, meaning)                                                  \
  FIELD(LIST, #key, "array", meaning, ROWS(member, of, view))
#define MAP(member, of, name, meaning) MAP_AS(member, member, of, name, meaning)
#define MAP_AS(member, key, of, name, meaning)                                                     \
  FIELD(MAP, #key, "object", meaning, ROWS(member, of, of), .key_offset = offsetof(struct of, name))
#define PART(member, of, meaning) PART_AS(member, member, of, meaning)
#define PART_AS(member, key, of, meaning)                                                          \
  FIELD(PART, #key, "object", meaning, AT(member), .fields = of##_fields)
#define PART_AT(member, of, nothing, meaning)                                                      \
  FIELD(PART_AT, #member, "object", meaning, AT(member), .fields = of##_fields, .none = &nothing)
#define FIELDS_OF(member, of)                                                                      \
  FIELD(INLINE, #member, "object", "", AT(member), .fields = of##_fields)
#define GROUP(key, meaning) FIELD(GROUP, #key, "object", meaning, .offset = 0)
#define END_GROUP {.name = NULL},
#define MADE(key, function, type, meaning) FIELD(MADE, #key, type, meaning, .make = function)
#define C_ONLY(...)

#include "analyses/convergence/convergence_result.def"
#include "analyses/findings/finding_result.def"
#include "analyses/gpu/gemm_result.def"
#include "analyses/gpu/gpu_result.def"
#include "analyses/gpu/module_result.def"
#include "analyses/hang/check_result.def"
#include "analyses/lines/line_result.def"
#include "analyses/overlap/overlap_result.def"
#include "analyses/path/path_result.def"
#include "analyses/ranks/rank_result.def"
#include "analyses/run_end/run_end_result.def"
#include "analyses/stalls/stall_result.def"
#include "analyses/steps/series_result.def"
#include "analyses/steps/step_result.def"
#include "diff/diff_result.def"
#include "report/json/views.def"
/* these have rows of the views */
#include "analyses/memory/memory_result.def"
#include "analyses/results/results.def"

const struct json_field *json_report_fields(void) {
  return results_fields();
}

const struct json_field *json_stack_fields(void) {
  return stack_node_fields();
}

struct visit {
  void (*each)(void *, const char *, const struct json_field *);
  void *user;
};

/* Up to the end of a table or group, which is returned. */
static const struct json_field *visit(const struct visit *v, const struct json_field *field,
                                      const char *prefix) {
  for (; field->name; field++) {
    char path[160], below[176];
    if (field->kind == JSON_FIELD_INLINE) {
      visit(v, field->fields(), prefix);
      continue;
    }
    snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix && *field->name ? "." : "", field->name);
    v->each(v->user, path, field);
    if (field->kind == JSON_FIELD_GROUP) {
      field = visit(v, field + 1, path);
    } else if (field->fields) {
      const char *step = field->kind == JSON_FIELD_LIST  ? "[]"
                         : field->kind == JSON_FIELD_MAP ? ".*"
                                                         : "";
      snprintf(below, sizeof(below), "%s%s", path, step);
      visit(v, field->fields(), below);
    }
  }
  return field;
}

void json_fields_visit(void (*each)(void *user, const char *path, const struct json_field *field),
                       void *user) {
  visit(&(struct visit){each, user}, json_report_fields(), "");
}
