/* SPDX-License-Identifier: MIT */
#include "report/json/json_fields.h"

#include <stdio.h>

#include "diff/diff_result.h"
#include "report/json/json_made.h"

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
