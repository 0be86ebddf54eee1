/* SPDX-License-Identifier: MIT */
#include "import/read_values.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "import/byte_source.h"
#include "import/pickle/pickle.h"
#include "import/value_build.h"

#define LEAST_ROOM 65536u

int whole_file_read(const char *path, u8 **bytes, size_t *n) {
  struct byte_source *source;
  struct stat status;
  int error = byte_source_open(&source, path);
  if (error)
    return error;
  /* Right at once where nothing is compressed. */
  size_t room = stat(path, &status) == 0 && status.st_size > 0 ? (size_t)status.st_size + 2 : 0;
  if (room > BUDGET_WHOLE_FILE) {
    byte_source_close(source);
    return -EFBIG;
  }
  room = MAX(LEAST_ROOM, room);
  u8 *all = memory_array(room, 1);
  size_t used = 0;
  while (!error) {
    i64 got = byte_source_read(source, all + used, room - 1 - used);
    if (got < 0)
      error = (int)got;
    else
      used += (size_t)got;
    if (error || used < room - 1)
      break;
    all = memory_resized(all, size_product(room, 2), 1);
    room *= 2;
  }
  byte_source_close(source);
  if (error) {
    free(all);
    return error;
  }
  all[used] = 0;
  *bytes = all;
  *n = used;
  return 0;
}

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
    snprintf(why, why_bytes, "cannot be read: line %d of the JSON: %s", wrong.line, wrong.text);
    return -EBADMSG;
  }
  struct value_builder builder = {.arena = arena};
  int error = convert(&builder, json, 0, root);
  if (!error)
    error = value_finish(root, BUDGET_VALUES_DEEP + 1);
  if (error)
    snprintf(why, why_bytes, "is JSON that is nested too deeply");
  value_builder_release(&builder);
  json_decref(json);
  return error;
}

int input_use_bytes(struct import *import, const struct input *input, enum budget_kind memory,
                    use_bytes *use, void *user) {
  SCOPED u8 *bytes = NULL;
  size_t n;
  char why[300] = "";
  struct budget budget;
  budget_begin(&budget, memory, input->bytes);
  int error = whole_file_read(input->path, &bytes, &n);
  if (error)
    snprintf(why, sizeof(why), "cannot be read: %s", strerror(-error));
  else
    error = use(user, (char *)bytes, n, why, sizeof(why));
  error = budget_end(&budget, error, why, sizeof(why));
  if (error)
    import_leave_out(import, input->path, why);
  return error;
}

struct using_values {
  use_values *use;
  void *user;
};

static int read_values(void *user, char *bytes, size_t n, char *why, size_t why_bytes) {
  const struct using_values *using = user;
  SCOPED_ARENA struct arena values = {0};
  struct value root;
  int error = pickle_looks_like(bytes, n)
                  ? pickle_read(bytes, n, &values, &root, why, why_bytes)
                  : value_read_json(bytes, n, &values, &root, why, why_bytes);
  return error ? error : using->use(using->user, &root, why, why_bytes);
}

int input_use_values(struct import *import, const struct input *input, enum budget_kind memory,
                     use_values *use, void *user) {
  return input_use_bytes(import, input, memory, read_values, &(struct using_values){use, user});
}
