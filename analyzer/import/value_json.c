/* SPDX-License-Identifier: MIT */
#include "import/value_json.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "import/file_budget.h"
#include "import/value_build.h"

/* jansson itself refuses texts nested deeper than 2048. */
static int convert(struct value_builder *b, const json_t *json, u32 depth, struct value *out);

static int convert_array(struct value_builder *b, const json_t *json, u32 depth,
                         struct value *out) {
  value_make_items(b, VALUE_LIST, out);
  int error = 0;
  size_t n = json_array_size(json);
  for (size_t i = 0; i < n && !error; i++) {
    struct value item;
    error = convert(b, json_array_get(json, i), depth + 1, &item);
    if (!error)
      error = value_append(b, out->items, &item, 1);
  }
  return error;
}

static int convert_object(struct value_builder *b, json_t *json, u32 depth, struct value *out) {
  value_make_items(b, VALUE_DICT, out);
  int error = 0;
  const char *key;
  json_t *item;
  json_object_foreach(json, key, item) {
    struct value pair[2];
    value_make_text(b, VALUE_STR, key, (u32)strlen(key), &pair[0]);
    error = convert(b, item, depth + 1, &pair[1]);
    if (!error)
      error = value_put(b, out->items, pair, 1);
    if (error)
      break;
  }
  return error;
}

static int convert(struct value_builder *b, const json_t *json, u32 depth, struct value *out) {
  if (depth > BUDGET_VALUES_DEEP)
    return -E2BIG;
  if (budget_is_over())
    return -EFBIG;
  switch (json_typeof(json)) {
  case JSON_OBJECT:
    return convert_object(b, (json_t *)(uintptr_t)json, depth, out);
  case JSON_ARRAY:
    return convert_array(b, json, depth, out);
  case JSON_STRING:
    value_make_text(b, VALUE_STR, json_string_value(json), (u32)json_string_length(json), out);
    return 0;
  case JSON_INTEGER:
    *out = (struct value){.kind = VALUE_INT, .integer = json_integer_value(json)};
    return 0;
  case JSON_REAL:
    *out = (struct value){.kind = VALUE_FLOAT, .real = json_real_value(json)};
    return 0;
  case JSON_TRUE:
  case JSON_FALSE:
    *out = (struct value){.kind = VALUE_BOOL, .boolean = json_is_true(json)};
    return 0;
  default:
    *out = (struct value){.kind = VALUE_NONE};
    return 0;
  }
}

int value_read_json(const char *text, size_t n, struct arena *arena, struct value *root, char *why,
                    size_t why_bytes) {
  json_error_t wrong;
  json_t *json =
      json_loadb(text, n, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &wrong);
  if (!json) {
    snprintf(why, why_bytes, "line %d of the JSON: %s", wrong.line, wrong.text);
    return -EBADMSG;
  }
  struct value_builder builder = {.arena = arena};
  int error = convert(&builder, json, 0, root);
  if (!error)
    error = value_finish(root, BUDGET_VALUES_DEEP + 1);
  if (error)
    snprintf(why, why_bytes, "the JSON is nested too deeply");
  value_builder_release(&builder);
  json_decref(json);
  return error;
}
