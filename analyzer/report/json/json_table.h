/* SPDX-License-Identifier: MIT
 *
 * How the tables of the JSON report are written, for json_fields.c and the files that hold the
 * table of one analysis each (json_*.c). R is the struct that a row of the current table is; in
 * LIST and MAP, `member` and `count` are members of struct results, or of one inside it.
 */
#ifndef TSCOPE_JSON_TABLE_H
#define TSCOPE_JSON_TABLE_H

#include "report/json/json_fields.h"

#define NUMBER(R, name, member, type, meaning)                                                     \
  { name, JSON_FIELD_NUMBER, type, meaning, offsetof(struct R, member), 0, 0, 0, NULL, NULL, NULL }
#define RANK(R, name, member, meaning)                                                             \
  {                                                                                                \
    name, JSON_FIELD_RANK, "integer", meaning, offsetof(struct R, member), 0, 0, 0, NULL, NULL,    \
        NULL                                                                                       \
  }
#define TEXT(R, name, member, meaning)                                                             \
  {                                                                                                \
    name, JSON_FIELD_TEXT, "string", meaning, offsetof(struct R, member), 0, 0, 0, NULL, NULL,     \
        NULL                                                                                       \
  }
#define NUMBERS(R, name, member, count, type, meaning)                                             \
  {                                                                                                \
    name, JSON_FIELD_NUMBERS, type, meaning, offsetof(struct R, member),                           \
        offsetof(struct R, count), 0, 0, NULL, NULL, NULL                                          \
  }
#define MADE(name, function, type, meaning)                                                        \
  { name, JSON_FIELD_MADE, type, meaning, 0, 0, 0, 0, NULL, function, NULL }
#define OBJECT(name, fields, meaning)                                                              \
  { name, JSON_FIELD_OBJECT, "object", meaning, 0, 0, 0, 0, fields, NULL, NULL }
#define PART(name, member, none, fields, meaning)                                                  \
  {                                                                                                \
    name, JSON_FIELD_PART, "object", meaning, offsetof(struct results, member), 0, 0, 0, fields,   \
        NULL, none                                                                                 \
  }
#define LIST(name, member, count, row, fields, meaning)                                            \
  LIST_IN(results, name, member, count, row, fields, meaning)
#define LIST_IN(R, name, member, count, row, fields, meaning)                                      \
  {                                                                                                \
    name, JSON_FIELD_LIST, "array", meaning, offsetof(struct R, member),                           \
        offsetof(struct R, count), sizeof(struct row), 0, fields, NULL, NULL                       \
  }
#define MAP(name, member, count, row, key, fields, meaning)                                        \
  {                                                                                                \
    name, JSON_FIELD_MAP, "object", meaning, offsetof(struct results, member),                     \
        offsetof(struct results, count), sizeof(struct row), offsetof(struct row, key), fields,    \
        NULL, NULL                                                                                 \
  }
#define END                                                                                        \
  { NULL, JSON_FIELD_NUMBER, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL }

/* NULL is null; bytes that are no UTF-8 are replaced. NULL when there is no memory. */
json_t *json_text_or_null(const char *text);

/* The tables of other files, each the fields of one object. */
extern const struct json_field json_check_fields[];
extern const struct json_field json_run_end_fields[];
extern const struct json_field json_memory_fields[];
extern const struct json_field json_modules_fields[];
extern const struct json_field json_products_fields[];
extern const struct json_field json_convergence_fields[];
extern const struct json_field json_diff_fields[];
extern const struct json_field json_series_fields[];
extern const struct json_field json_gpu_timeline_fields[], json_launch_fields[],
    json_kernels_fields[];

/* Of struct finding, wherever findings are listed. */
extern const struct json_field json_finding_fields[];

#endif
