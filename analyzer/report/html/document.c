/* SPDX-License-Identifier: MIT */
#include "report/html/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/utf8.h"
#include "report/json/json_text.h"

/* With this many objects or more it is worth writing the names of fields only once. */
#define LEAST_ROWS 4u

static void shorten_text(json_t *string) {
  const char *text = json_string_value(string);
  size_t bytes = json_string_length(string), kept = utf8_whole(text, HTML_STRING_BYTES);
  SCOPED char *shorter = memory_printf("%.*s… (cut: %zu bytes in all)", (int)kept, text, bytes);
  json_string_set(string, shorter);
}

static bool have_the_same_fields(const json_t *list) {
  const json_t *first = json_array_get(list, 0);
  size_t index;
  json_t *row, *value;
  const char *key;
  json_array_foreach((json_t *)list, index, row) {
    if (!json_is_object(row) || json_object_size(row) != json_object_size(first))
      return false;
    json_object_foreach((json_t *)first, key, value) if (!json_object_get(row, key)) return false;
  }
  return json_is_object(first);
}

/* {"_columns": ["rank", "host"], "_rows": [[0, "a"], [1, "b"]]} */
static json_t *with_names_once(json_t *list) {
  json_t *columns = json_array(), *rows = json_array(), *row, *value;
  size_t index;
  const char *key;
  json_object_foreach(json_array_get(list, 0), key, value) {
    json_array_append_new(columns, json_string(key));
  }
  json_array_foreach(list, index, row) {
    json_t *values = json_array(), *column;
    size_t i;
    json_array_foreach(columns, i, column) {
      json_array_append(values, json_object_get(row, json_string_value(column)));
    }
    json_array_append_new(rows, values);
  }
  return json_pack("{s:o,s:o}", "_columns", columns, "_rows", rows);
}

static void make_smaller(json_t *value);

/* What replaces `value`, a new reference. */
static json_t *smaller_copy(json_t *value) {
  make_smaller(value);
  if (json_is_array(value) && json_array_size(value) >= LEAST_ROWS && have_the_same_fields(value))
    return with_names_once(value);
  return json_incref(value);
}

static void make_smaller(json_t *value) {
  size_t index;
  json_t *below;
  const char *key;
  if (json_is_string(value) && json_string_length(value) > HTML_STRING_BYTES)
    shorten_text(value);
  if (json_is_object(value)) {
    json_object_foreach(value, key, below) {
      json_t *small = smaller_copy(below);
      if (small != below)
        json_object_set(value, key, small);
      json_decref(small);
    }
  }
  json_array_foreach(value, index, below) {
    if (json_is_number(below))
      continue;
    json_t *small = smaller_copy(below);
    if (small != below)
      json_array_set(value, index, small);
    json_decref(small);
  }
}

int html_write_document(json_t *document, FILE *out) {
  make_smaller(document);
  return json_text_write(document, JSON_TEXT_SCRIPT, out);
}
