/* SPDX-License-Identifier: MIT
 *
 * The NVTX tool. Every library that contains NVTX looks for a tool at its first range: it asks for
 * NVTX_INJECTION64_PATH, loads that library and calls its InitializeInjectionNvtx2(), which puts
 * functions into the library's table. tscope is loaded already, so its soname is enough.
 */
#include <string.h>

#include "format/text_parts.h"
#include "nvtx/nvtx_abi.h"
#include "nvtx/nvtx_names.def"
#include "nvtx/nvtx_ranges.h"
#include "resolve/search.h"
#include "settings/env.h"

static bool is_ignored(const void *caller) {
  struct tscope_object where;
  if (!tscope_object_of(caller, &where))
    return true;
  const char *file = tscope_file_of(where.path);
#define L(start)                                                                                   \
  if (tscope_begins_with(file, start))                                                             \
    return true;
  TSCOPE_NVTX_LIBRARIES_LEFT_ALONE(L)
#undef L
  return false;
}

static bool is_wanted(void) {
  return tscope_is_glibc() && tscope_is_wanted() && tscope_env_flag("TSCOPE_NVTX", true);
}

const char *nvtx_injection(const void *caller);
__attribute__((visibility("hidden"))) const char *nvtx_injection(const void *caller) {
  return is_wanted() && !is_ignored(caller) ? "libtscope.so" : NULL;
}

/* The text of a message; `room` holds it if it must be converted. False: there is none. */
static bool text_of(const struct nvtx_attributes *attributes, char room[NVTX_TEXT_BYTES],
                    struct nvtx_text *text) {
  if (!attributes || attributes->size < sizeof(*attributes) || !attributes->message.ascii)
    return false;
  switch (attributes->message_type) {
  case NVTX_MESSAGE_ASCII:
    *text = nvtx_text_of(attributes->message.ascii);
    return true;
  case NVTX_MESSAGE_UNICODE:
    *text = nvtx_text_of(nvtx_narrow(attributes->message.unicode, room));
    return true;
  case NVTX_MESSAGE_REGISTERED:
    *text = nvtx_string_of(attributes->message.registered);
    return true;
  default:
    return false;
  }
}

static const struct nvtx_text nameless = {
    .text = "(no name)", .bytes = 9, .number = TSCOPE_UNKNOWN};

static struct nvtx_text text_or_nameless(const struct nvtx_attributes *attributes, char *room) {
  struct nvtx_text text;
  return text_of(attributes, room, &text) ? text : nameless;
}

static struct nvtx_text ascii(const char *message) {
  return message ? nvtx_text_of(message) : nameless;
}

static struct nvtx_text unicode(const wchar_t *message, char *room) {
  return message ? nvtx_text_of(nvtx_narrow(message, room)) : nameless;
}

/* Each of these is called with attributes, for a domain or for the program's own, or with a text.
 */
#define WAYS_OF_CALLING(type, name, function)                                                      \
  static type domain_##name##_ex(void *domain, const struct nvtx_attributes *attributes) {         \
    char room[NVTX_TEXT_BYTES];                                                                    \
    return function(nvtx_domain_of(domain), text_or_nameless(attributes, room));                   \
  }                                                                                                \
  static type name##_ex(const struct nvtx_attributes *attributes) {                                \
    return domain_##name##_ex(NULL, attributes);                                                   \
  }                                                                                                \
  static type name##_a(const char *message) {                                                      \
    return function(&nvtx_default_domain, ascii(message));                                         \
  }                                                                                                \
  static type name##_w(const wchar_t *message) {                                                   \
    char room[NVTX_TEXT_BYTES];                                                                    \
    return function(&nvtx_default_domain, unicode(message, room));                                 \
  }
WAYS_OF_CALLING(void, mark, nvtx_mark)
WAYS_OF_CALLING(u64, range_start, nvtx_start)
WAYS_OF_CALLING(int, range_push, nvtx_push)

static void domain_range_end(void *domain, u64 number) {
  (void)domain;
  nvtx_end(number);
}

static int domain_range_pop(void *domain) {
  return nvtx_pop(nvtx_domain_of(domain));
}

static const void *domain_register_string_a(void *domain, const char *text) {
  (void)domain;
  return nvtx_string_register(text);
}

static const void *domain_register_string_w(void *domain, const wchar_t *text) {
  char room[NVTX_TEXT_BYTES];
  (void)domain;
  return nvtx_string_register(text ? nvtx_narrow(text, room) : NULL);
}

static void *domain_create_a(const char *name) {
  return nvtx_domain_create(name);
}

static void *domain_create_w(const wchar_t *name) {
  char room[NVTX_TEXT_BYTES];
  return nvtx_domain_create(name ? nvtx_narrow(name, room) : NULL);
}

static int range_pop(void) {
  return domain_range_pop(NULL);
}

struct entry {
  unsigned place;
  nvtx_function function;
};

static const struct entry core[] = {
    {NVTX_MARK_EX, (nvtx_function)mark_ex},
    {NVTX_MARK_A, (nvtx_function)mark_a},
    {NVTX_MARK_W, (nvtx_function)mark_w},
    {NVTX_RANGE_START_EX, (nvtx_function)range_start_ex},
    {NVTX_RANGE_START_A, (nvtx_function)range_start_a},
    {NVTX_RANGE_START_W, (nvtx_function)range_start_w},
    {NVTX_RANGE_END, (nvtx_function)nvtx_end},
    {NVTX_RANGE_PUSH_EX, (nvtx_function)range_push_ex},
    {NVTX_RANGE_PUSH_A, (nvtx_function)range_push_a},
    {NVTX_RANGE_PUSH_W, (nvtx_function)range_push_w},
    {NVTX_RANGE_POP, (nvtx_function)range_pop},
};

static const struct entry core2[] = {
    {NVTX_DOMAIN_MARK_EX, (nvtx_function)domain_mark_ex},
    {NVTX_DOMAIN_RANGE_START_EX, (nvtx_function)domain_range_start_ex},
    {NVTX_DOMAIN_RANGE_END, (nvtx_function)domain_range_end},
    {NVTX_DOMAIN_RANGE_PUSH_EX, (nvtx_function)domain_range_push_ex},
    {NVTX_DOMAIN_RANGE_POP, (nvtx_function)domain_range_pop},
    {NVTX_DOMAIN_REGISTER_STRING_A, (nvtx_function)domain_register_string_a},
    {NVTX_DOMAIN_REGISTER_STRING_W, (nvtx_function)domain_register_string_w},
    {NVTX_DOMAIN_CREATE_A, (nvtx_function)domain_create_a},
    {NVTX_DOMAIN_CREATE_W, (nvtx_function)domain_create_w},
};

static void fill_callbacks(const struct nvtx_callbacks_table *callbacks, enum nvtx_module module,
                           const struct entry *entries, size_t n) {
  nvtx_function **functions = NULL;
  unsigned size = 0;
  if (!callbacks->get_module(module, &functions, &size) || !functions)
    return;
  for (size_t i = 0; i < n; i++)
    if (entries[i].place < size && functions[entries[i].place])
      *functions[entries[i].place] = entries[i].function;
}

/* Returns 0 for "no tool". Called once by each library that contains NVTX, before its first
 * range. */
TSCOPE_EXPORT int InitializeInjectionNvtx2(const void *(*get_table)(u32 table));
TSCOPE_EXPORT int InitializeInjectionNvtx2(const void *(*get_table)(u32 table)) {
  const struct nvtx_callbacks_table *callbacks =
      is_wanted() ? get_table(NVTX_TABLE_CALLBACKS) : NULL;
  if (!callbacks || callbacks->struct_size < sizeof(*callbacks) || !callbacks->get_module)
    return 0;
  fill_callbacks(callbacks, NVTX_MODULE_CORE, core, LENGTH_OF(core));
  fill_callbacks(callbacks, NVTX_MODULE_CORE2, core2, LENGTH_OF(core2));
  return 1;
}
