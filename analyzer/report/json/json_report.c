/* SPDX-License-Identifier: MIT
 *
 * The report for programs: the fields of json_fields.c, filled in. Unknown values are null.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_values.h"
#include "base/texts.h"
#include "report/json/json_fields.h"
#include "report/json/json_text.h"
#include "report/report.h"

static json_t *object_of(const struct results *results, const struct json_field *fields,
                         const void *row);

/* What is drawn needs no more digits, and the report is a third of the size. The result is that of
 * "%.5g", at a lower cost: five digits and a power of ten up to 10^22 are exact in a double, so one
 * division or product of them is rounded as strtod() rounds. Values near the middle between two
 * such numbers are left to printf(). */
static double to_five_digits(double value) {
  static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const int most = LENGTH_OF(tens) - 1;
  if (!isfinite(value) || value == 0)
    return value;
  double size = fabs(value), log = floor(log10(size));
  if (log >= 4 - most && log <= 4 + most) {
    int places = 4 - (int)log;
    double scaled = places >= 0 ? size * tens[places] : size / tens[-places];
    double nearest = nearbyint(scaled);
    if (nearest >= 10000 && nearest <= 99999 && fabs(fabs(scaled - nearest) - 0.5) > 1e-6)
      return copysign(places >= 0 ? nearest / tens[places] : nearest * tens[-places], value);
  }
  char digits[32];
  snprintf(digits, sizeof(digits), "%.5g", value);
  return strtod(digits, NULL);
}

static const char *row_at(const struct json_field *field, const void *row, u32 i) {
  const char *rows;
  memcpy(&rows, (const char *)row + field->offset, sizeof(rows));
  return rows + i * field->row_bytes;
}

static u32 row_count(const struct json_field *field, const void *row) {
  u32 count;
  memcpy(&count, (const char *)row + field->count_offset, sizeof(count));
  return count;
}

static json_t *value_of(const struct results *results, const struct json_field *field,
                        const void *row);

static json_t *list_of(const struct results *results, const struct json_field *field,
                       const void *row) {
  json_t *list = json_array();
  for (u32 i = 0; i < row_count(field, row); i++)
    json_array_append_new(list, object_of(results, field->fields(), row_at(field, row, i)));
  return list;
}

static json_t *map_of(const struct results *results, const struct json_field *field,
                      const void *row) {
  json_t *map = json_object();
  for (u32 i = 0; i < row_count(field, row); i++) {
    const char *one = row_at(field, row, i);
    const char *key = *(const char *const *)(one + field->key_offset);
    const struct json_field *fields = field->fields();
    bool bare = !*fields->name;
    json_object_set_new(map, key,
                        bare ? value_of(results, fields, one) : object_of(results, fields, one));
  }
  return map;
}

static json_t *value_of(const struct results *results, const struct json_field *field,
                        const void *row) {
  const void *member = (const char *)row + field->offset;
  switch (field->kind) {
  case JSON_FIELD_NUMBER:
    return number_or_null(*(const double *)member);
  case JSON_FIELD_RANK:
    return *(const u32 *)member == INDEX_NONE ? json_null() : json_integer(*(const u32 *)member);
  case JSON_FIELD_TEXT:
    return text_or_null(*(const char *const *)member);
  case JSON_FIELD_WORD:
    return text_or_null(field->words[*(const unsigned *)member]);
  case JSON_FIELD_STRINGS:
    return JSON_LIST(*(const char *const *const *)member, row_count(field, row), one,
                     text_or_null(*one));
  case JSON_FIELD_RANKS:
    return JSON_LIST(*(u32 *const *)member, row_count(field, row), one, json_integer(*one));
  case JSON_FIELD_NUMBERS:
    return JSON_LIST(*(double *const *)member, row_count(field, row), one,
                     number_or_null(to_five_digits(*one)));
  case JSON_FIELD_MADE:
    return field->make(results, row);
  case JSON_FIELD_PART:
    return object_of(results, field->fields(), member);
  case JSON_FIELD_PART_AT: {
    const void *part = *(const void *const *)member;
    return object_of(results, field->fields(), part ? part : field->none);
  }
  case JSON_FIELD_LIST:
    return list_of(results, field, row);
  case JSON_FIELD_MAP:
    return map_of(results, field, row);
  case JSON_FIELD_GROUP: /* these two are put_fields()' */
  case JSON_FIELD_INLINE:
    break;
  }
  return json_null();
}

/* Puts fields into `object`, up to the end of their table or group, which is returned. */
static const struct json_field *put_fields(json_t *object, const struct results *results,
                                           const struct json_field *field, const void *row) {
  for (; field->name; field++) {
    if (field->kind == JSON_FIELD_INLINE) {
      put_fields(object, results, field->fields(), (const char *)row + field->offset);
    } else if (field->kind == JSON_FIELD_GROUP) {
      json_t *group = json_object();
      json_object_set_new(object, field->name, group);
      field = put_fields(group, results, field + 1, row);
    } else {
      json_object_set_new(object, field->name, value_of(results, field, row));
    }
  }
  return field;
}

static json_t *object_of(const struct results *results, const struct json_field *fields,
                         const void *row) {
  json_t *object = json_object();
  put_fields(object, results, fields, row);
  return object;
}

json_t *json_report_document(const struct results *results) {
  return object_of(results, json_report_fields(), results);
}

json_t *json_stack_nodes(const struct stack_node *nodes, u32 n) {
  return JSON_LIST(nodes, n, one, object_of(NULL, json_stack_fields(), one));
}

json_t *json_report_figure(json_t *document, const char *path) {
  json_t *value = document;
  while (value && *path) {
    char key[64];
    const char *end;
    size_t n = strcspn(path, ".[");
    if (n >= sizeof(key))
      return NULL;
    memcpy(key, path, n);
    key[n] = '\0';
    path += n;
    if (n)
      value = json_object_get(value, key);
    if (*path == '[') {
      u64 at = leading_number(path + 1, UINT32_MAX, &end);
      if (end == path + 1 || *end != ']')
        return NULL;
      value = json_array_get(value, at);
      path = end + 1;
    }
    path += *path == '.';
  }
  return value;
}

/* A report of many ranks is a million small things, which need not be freed one by one. */
static struct arena of_document;

static void *take(size_t bytes) {
  return arena_alloc(&of_document, bytes);
}

static void give_back(void *memory) {
  (void)memory;
}

static int write_json(const struct results *results, const struct report_view *view, FILE *out) {
  (void)view;
  json_malloc_t usual_take;
  json_free_t usual_give_back;
  json_get_alloc_funcs(&usual_take, &usual_give_back);
  json_set_alloc_funcs(take, give_back);
  int error = json_text_write(json_report_document(results), JSON_TEXT_LINES, out);
  json_set_alloc_funcs(usual_take, usual_give_back);
  arena_release(&of_document);
  fputc('\n', out);
  return error;
}

const struct report_backend report_json = {.write = write_json, .write_diff = write_json};
