/* SPDX-License-Identifier: MIT
 *
 * Every field of the JSON report: its name, where it comes from, and what
 * docs/outputs/report-json.md says about it. Made from the tables of results,
 * analyses/results/results.def and *_result.def.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "analyses/results/results.h"

enum json_kind {
  JSON_FIELD_NUMBER,  /* double in the row; NAN is null */
  JSON_FIELD_RANK,    /* u32 in the row; INDEX_NONE is null */
  JSON_FIELD_TEXT,    /* const char * in the row; NULL is null */
  JSON_FIELD_WORD,    /* an enum of words.def in the row */
  JSON_FIELD_STRINGS, /* array of strings: const char ** and u32 count in the row */
  JSON_FIELD_RANKS,   /* array of numbers: u32 pointer and u32 count in the row */
  JSON_FIELD_NUMBERS, /* array of numbers: double pointer and u32 count in the row; to five
                         significant digits */
  JSON_FIELD_MADE,    /* what `make` returns */
  JSON_FIELD_GROUP,   /* object of the fields that follow, up to one without a name; of the same row
                       */
  JSON_FIELD_PART,    /* object: `fields` of the row that is inside this row */
  JSON_FIELD_PART_AT, /* likewise, of the row that a pointer leads to, of `none` where it is NULL */
  JSON_FIELD_INLINE,  /* `fields` of the row that is inside this row, in the same object */
  JSON_FIELD_LIST,    /* array of objects: `fields` of each row */
  JSON_FIELD_MAP,     /* object: each row's `key` is a name, `fields` its value; where there is
                         one field called "", that is the value itself */
};

struct json_field {
  const char *name; /* NULL at the end of a table, and of a group */
  enum json_kind kind;
  const char *type;    /* "number", "ms", ... as documented */
  const char *meaning; /* as documented */
  size_t offset;       /* of the member in its row; for LIST and MAP, of the pointer to rows */
  size_t count_offset; /* of the u32 that counts what a pointer leads to */
  size_t row_bytes, key_offset;
  const char *const *words; /* of WORD, as words.h has them */
  const struct json_field *(*fields)(void);
  json_t *(*make)(const struct results *results, const void *row); /* of MADE */
  const void *none;                                                /* of PART_AT */
};

/* The fields of the whole document: of struct results; and of a node of a tree of stacks. */
const struct json_field *json_report_fields(void);
const struct json_field *json_stack_fields(void);

/* The whole document. The caller gives it back with json_decref(). */
json_t *json_report_document(const struct results *results);

/* A tree of stacks, as it is in the document. */
json_t *json_stack_nodes(const struct stack_node *nodes, u32 n);

/* The value at a path of the document, such as "distributed.ranks[2].z"; NULL if there is none. */
json_t *json_report_figure(json_t *document, const char *path);

/* Calls `each` for every path of the document, such as "distributed.ranks[].z", in order. */
void json_fields_visit(void (*each)(void *user, const char *path, const struct json_field *field),
                       void *user);
