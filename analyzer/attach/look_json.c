/* SPDX-License-Identifier: MIT */
#include "attach/look_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "attach/look_fields.def"
#include "base/utf8.h"

static json_t *text_json(const char *text) {
  char *valid = text ? utf8_valid_copy(text) : NULL;
  json_t *json = valid ? json_string(valid) : json_null();
  free(valid);
  return json;
}

static json_t *letter_json(char letter) {
  return letter ? json_stringn(&letter, 1) : json_null();
}

#define WRITE_TEXT(from, member) text_json((from)->member)
#define WRITE_COUNT(from, member) json_integer((json_int_t)(from)->member)
#define WRITE_FLAG(from, member) json_boolean((from)->member)
#define WRITE_LETTER(from, member) letter_json((from)->member)
#define WRITE(KIND, member) json_object_set_new(object, #member, WRITE_##KIND(from, member));

static json_t *frame_json(const struct call_frame *from) {
  json_t *object = json_object();
  LOOK_FRAME_FIELDS(WRITE)
  return object;
}

static json_t *thread_json(const struct stalled_thread *from) {
  json_t *object = json_object(), *frames = json_array();
  LOOK_THREAD_FIELDS(WRITE)
  for (u32 i = 0; i < from->n_frames; i++)
    json_array_append_new(frames, frame_json(from->frames[i]));
  json_object_set_new(object, "frames", frames);
  return object;
}

static json_t *native_json(const struct native_outcome *from) {
  json_t *object = json_object();
  LOOK_NATIVE_FIELDS(WRITE)
  return object;
}

char *look_json_write(const struct rank_stall *from, const struct native_outcome *native) {
  json_t *object = json_object(), *threads = json_array();
  LOOK_PROCESS_FIELDS(WRITE)
  for (u32 i = 0; i < from->n_threads; i++)
    json_array_append_new(threads, thread_json(&from->threads[i]));
  json_object_set_new(object, "threads", threads);
  json_object_set_new(object, "native", native_json(native));
  char *text = json_dumps(object, JSON_COMPACT);
  json_decref(object);
  return text;
}

/* A member that is missing, or of another type, is unknown. */
static const char *json_text(struct arena *arena, const json_t *json) {
  const char *text = json_string_value(json);
  return text ? arena_text(arena, text) : NULL;
}

static char json_letter(const json_t *json) {
  const char *text = json_string_value(json);
  return text ? *text : '\0';
}

#define READ_TEXT(json, type) json_text(arena, json)
#define READ_COUNT(json, type) (type) json_integer_value(json)
#define READ_FLAG(json, type) json_is_true(json)
#define READ_LETTER(json, type) json_letter(json)
#define READ(KIND, member)                                                                         \
  to->member = READ_##KIND(json_object_get(from, #member), __typeof__(to->member));

static const struct call_frame *read_frame(struct arena *arena, const json_t *from) {
  struct call_frame *to = arena_alloc(arena, sizeof(*to));
  if (to) {
    LOOK_FRAME_FIELDS(READ)
  }
  return to;
}

static int read_thread(struct arena *arena, const json_t *from, struct stalled_thread *to) {
  const json_t *frames = json_object_get(from, "frames");
  LOOK_THREAD_FIELDS(READ)
  to->frames = arena_array(arena, json_array_size(frames) + 1, sizeof(*to->frames));
  for (size_t i = 0; to->frames && i < json_array_size(frames); i++) {
    to->frames[to->n_frames] = read_frame(arena, json_array_get(frames, i));
    if (!to->frames[to->n_frames++])
      return -ENOMEM;
  }
  return to->frames ? 0 : -ENOMEM;
}

static void read_native(struct arena *arena, const json_t *from, struct native_outcome *to) {
  LOOK_NATIVE_FIELDS(READ)
}

static int read_process(struct arena *arena, const json_t *from, struct rank_stall *to) {
  const json_t *threads = json_object_get(from, "threads");
  LOOK_PROCESS_FIELDS(READ)
  to->threads = arena_array(arena, json_array_size(threads) + 1, sizeof(*to->threads));
  int error = to->threads ? 0 : -ENOMEM;
  for (size_t i = 0; !error && i < json_array_size(threads); i++)
    error = read_thread(arena, json_array_get(threads, i), &to->threads[to->n_threads++]);
  return error;
}

int look_json_read(struct arena *arena, const char *text, size_t bytes, struct rank_stall *look,
                   struct native_outcome *native) {
  json_t *json = json_loadb(text, bytes, 0, NULL);
  int error = json_is_array(json_object_get(json, "threads")) ? 0 : -EPROTO;
  *native = (struct native_outcome){0};
  *look = rank_stall_empty();
  if (!error)
    error = read_process(arena, json, look);
  if (!error)
    read_native(arena, json_object_get(json, "native"), native);
  json_decref(json);
  return error;
}
