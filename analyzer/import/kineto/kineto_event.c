/* SPDX-License-Identifier: MIT */
#include "import/kineto/kineto_event.h"

/* Categories of PyTorch 1.8 to 2.x, on NVIDIA's and AMD's GPUs and on other accelerators. A legacy
 * trace has none: its ranges are operators. */
static enum kineto_category category_of(struct json_text text) {
  static const struct {
    const char *word;
    u32 n;
    enum kineto_category category;
  } words[] = {
#define W(word) word, sizeof(word) - 1
      {W("cpu_op"), KINETO_OP},
      {W("kernel"), KINETO_KERNEL},
      {W("cuda_runtime"), KINETO_CALL},
      {W("cuda_driver"), KINETO_CALL},
      {W("gpu_memcpy"), KINETO_MEMCPY},
      {W("gpu_memset"), KINETO_MEMSET},
      {W("user_annotation"), KINETO_ANNOTATION},
      {W("cuda_sync"), KINETO_SYNC},
      {W("Operator"), KINETO_OP},
      {W("Kernel"), KINETO_KERNEL},
      {W("Runtime"), KINETO_CALL},
      {W("Memcpy"), KINETO_MEMCPY},
      {W("Memset"), KINETO_MEMSET},
      {W("hip_runtime"), KINETO_CALL},
      {W("hip_driver"), KINETO_CALL},
      {W("hip_api"), KINETO_CALL},
      {W("xpu_runtime"), KINETO_CALL},
      {W("xpu_driver"), KINETO_CALL},
      {W("privateuse1_runtime"), KINETO_CALL},
      {W("privateuse1_driver"), KINETO_CALL},
      {W("mtia_runtime"), KINETO_CALL},
      {W("mtia_ccp_events"), KINETO_KERNEL},
      {W("concurrent_kernel"), KINETO_KERNEL},
      {W("User annotation"), KINETO_ANNOTATION},
      {W("python_function"), KINETO_PYTHON},
#undef W
  };
  FOR_EACH(words, LENGTH_OF(words), one)
    if (text_is(text, one->word, one->n))
      return one->category;
  return KINETO_OTHER;
}

/* One member after the other: they were written like that just now, and a processor that reads them
 * as a whole has to wait until that is done. */
static inline void keep_text(struct json_text *to, const struct json_text *text) {
  to->at = text->at;
  to->n = text->n;
  to->escaped = text->escaped;
}

/* One of 64 bits by the length and the first letter of a key: by these most of the keys of which
 * nothing is kept differ from those of which something is. */
static inline u64 bit_of_key(const char *key, u32 n) {
  return 1ull << ((n + (u8)*key) % 64);
}

static bool may_be_kept(struct json_text key) {
#define A(id, literal) | bit_of_key(literal, sizeof(literal) - 1)
  const u64 kept = 0 KINETO_NUMBERS(A) KINETO_TEXTS(A);
#undef A
  return kept & bit_of_key(key.at, key.n);
}

static void read_argument(struct kineto_event *event, struct json_text key,
                          struct json_text value) {
  if (!may_be_kept(key))
    return;
#define A(id, literal)                                                                             \
  if (TEXT_IS(key, literal)) {                                                                     \
    event->id = scan_integer(value, NS_UNKNOWN);                                                   \
    return;                                                                                        \
  }
  KINETO_NUMBERS(A)
#undef A
#define A(id, literal)                                                                             \
  if (TEXT_IS(key, literal)) {                                                                     \
    keep_text(&event->id, &value);                                                                 \
    return;                                                                                        \
  }
  KINETO_TEXTS(A)
#undef A
}

/* A value that may be an array or object, as it is written. */
static const char *scan_raw(const char *p, const char *end, struct json_text *text) {
  if (*p != '{' && *p != '[')
    return scan_scalar(p, end, text);
  const char *behind = scan_value(p, end);
  *text = (struct json_text){.at = p, .n = behind ? (u32)(behind - p) : 0};
  return behind;
}

/* Reads one member of the object at p. */
typedef const char *read_member(struct kineto_event *event, struct json_text key, const char *value,
                                const char *end);

/* There is one of this for each reader: neither is called for each member. */
__attribute__((always_inline)) static inline enum kineto_scan
scan_object(const char **at, const char *end, struct kineto_event *event, read_member *reader) {
  const char *p = scan_space(*at + 1);
  while (p < end) {
    struct json_text key;
    if (*p == ',') { /* one too many passes */
      for (p = scan_space(p + 1); *p == ','; p = scan_space(p + 1))
        event->malformed = true;
      event->malformed |= *p == '}';
    }
    if (*p == '}') {
      *at = p + 1;
      return KINETO_EVENT;
    }
    if (p >= end)
      break;
    if (*p != '"')
      return KINETO_BAD;
    p = scan_string(p + 1, end, &key);
    if (!p)
      break;
    p = scan_space(p);
    if (p >= end)
      break;
    if (*p != ':')
      return KINETO_BAD;
    p = scan_space(p + 1);
    const char *value = p;
    p = reader(event, key, p, end);
    if (!p)
      break;
    if (p == value)
      return KINETO_BAD;
    p = scan_space(p);
    if (p < end && *p != ',' && *p != '}')
      return KINETO_BAD;
  }
  return KINETO_CUT;
}

static const char *argument(struct kineto_event *event, struct json_text key, const char *value,
                            const char *end) {
  struct json_text text;
  const char *p = scan_raw(value, end, &text);
  if (p)
    read_argument(event, key, text);
  return p;
}

/* Events of other phases, and ranges of Python functions, are many, and their args say nothing. */
static bool needs_arguments(const struct kineto_event *event) {
  return event->phase == 0 || (event->phase == 'X' && event->category != KINETO_OTHER &&
                               event->category != KINETO_PYTHON);
}

static void read_time(struct kineto_event *event, struct json_text text, i64 *time) {
  *time = scan_thousandths(text, NS_UNKNOWN);
  event->malformed |= *time == NS_UNKNOWN;
}

/* Microseconds since 1970 fit in thousandths; a larger number is of nanoseconds. */
static void read_start(struct kineto_event *event, struct json_text text) {
  read_time(event, text, &event->start);
  event->far = event->start == INT64_MAX;
  if (event->far)
    event->start = scan_integer(text, NS_UNKNOWN);
}

static const char *member(struct kineto_event *event, struct json_text key, const char *value,
                          const char *end) {
  struct json_text text;
  const char *p;
  if (TEXT_IS(key, "args") && *value == '{' && needs_arguments(event)) {
    p = value;
    enum kineto_scan result = scan_object(&p, end, event, argument);
    return result == KINETO_EVENT ? p : result == KINETO_CUT ? NULL : value;
  }
  p = scan_raw(value, end, &text);
  if (!p)
    return NULL;
  switch (key.n) {
  case 2:
    if (TEXT_IS(key, "ph"))
      event->phase = text.n == 1 ? *text.at : '?';
    else if (TEXT_IS(key, "ts"))
      read_start(event, text);
    break;
  case 3:
    if (TEXT_IS(key, "cat"))
      event->category = category_of(text);
    else if (TEXT_IS(key, "dur"))
      read_time(event, text, &event->length);
    else if (TEXT_IS(key, "pid"))
      keep_text(&event->pid, &text);
    else if (TEXT_IS(key, "tid"))
      keep_text(&event->tid, &text);
    break;
  case 4:
    if (TEXT_IS(key, "name"))
      keep_text(&event->name, &text);
    break;
  default:
    break;
  }
  return p;
}

/* As if nothing were known of it: of texts only that they are empty. */
static void forget(struct kineto_event *event) {
  event->phase = 0;
  event->category = KINETO_NONE;
  event->malformed = event->far = false;
  event->start = event->length = NS_UNKNOWN;
  event->name.n = event->pid.n = event->tid.n = 0;
#define A(id, key) event->id = NS_UNKNOWN;
  KINETO_NUMBERS(A)
#undef A
#define A(id, key) event->id.n = 0;
  KINETO_TEXTS(A)
#undef A
}

enum kineto_scan kineto_event_scan(const char **p, const char *end, struct kineto_event *event) {
  forget(event);
  return scan_object(p, end, event, member);
}
