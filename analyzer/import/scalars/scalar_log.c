/* SPDX-License-Identifier: MIT */
#include "import/scalars/scalar_log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "format/scalar_line.h"
#include "import/file_budget.h"
#include "import/read_values.h"
#include "import/scalars/event_file.h"

#define MOST_NAMES 64u
#define MOST_COLUMNS 1024u
#define MOST_KEY 96

/* This many lines at the beginning are examined to find out what a file is. */
#define PROBED_LINES 64u

bool log_next_line(char **at, char *end, char **line, size_t *n) {
  if (*at >= end)
    return false;
  char *stop = *at;
  while (stop < end && *stop != '\n' && *stop != '\r')
    stop++;
  *line = *at;
  *n = (size_t)(stop - *at);
  *at = stop + 1;
  return true;
}

static const char *intern_name(struct scalar_log *log, const char *name) {
  const char **known = FIND(log->names.at, log->names.n, one, strcmp(*one, name) == 0);
  if (known)
    return *known;
  const char *kept = log->names.n < MOST_NAMES ? arena_text(log->arena, name) : NULL;
  if (kept)
    VECTOR_PUSH(&log->names, kept);
  log->more_names |= !kept;
  return kept;
}

/* Names beyond the table are ignored. */
static void add_value(struct scalar_log *log, const char *name, double value, u64 step) {
  const char *kept = intern_name(log, name);
  if (!kept)
    return;
  struct scalar scalar = {.rank = INDEX_NONE,
                          .step = step < INDEX_NONE ? (u32)step : INDEX_NONE,
                          .name = kept,
                          .time = NS_UNKNOWN,
                          .value = value};
  VECTOR_PUSH(&log->values, scalar);
}

static bool is_value(enum scalar_role role) {
  return role != SCALAR_ROLE_NONE && role != SCALAR_ROLE_STEP;
}

void scalar_log_add(struct scalar_log *log, const char *name, double value, u64 step) {
  if (is_value(scalar_role_of(name)))
    add_value(log, name, value, step);
}

/* Python writes NaN and Infinity into JSON, which does not have them. They become texts of the same
 * length, which number_of() knows. */
static void repair_json(char *text, size_t n) {
  static const struct {
    const char *word, *text;
  } words[] = {{"NaN", "\"N\""}, {"Infinity", "\"I\"     "}};
  bool quoted = false;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '"')
      quoted = !quoted;
    else if (text[i] == '\\' && quoted)
      i++;
    for (size_t w = 0; !quoted && w < 2; w++) {
      size_t length = strlen(words[w].word);
      if (n - i < length || memcmp(text + i, words[w].word, length) != 0)
        continue;
      memcpy(text + i, words[w].text, length);
      if (i && text[i - 1] == '-')
        text[i - 1] = ' ';
      i += length - 1;
      break;
    }
  }
}

int scalar_json_read(char *text, size_t n, struct arena *values, struct value *root, char *why,
                     size_t why_bytes) {
  repair_json(text, n);
  return value_read_json(text, n, values, root, why, why_bytes);
}

static bool number_of(const struct value *value, double *number) {
  const char *text = value_text(value);
  char *end;
  if (!text) {
    *number = value_number(value);
    return !isnan(*number);
  }
  if (strcmp(text, "N") == 0 || strcmp(text, "I") == 0) {
    *number = *text == 'N' ? NAN : INFINITY;
    return true;
  }
  *number = strtod(text, &end);
  return end > text && !*end;
}

static void find_step(const struct value *object, u64 *step) {
  for (u32 i = 0; i < value_count(object); i++) {
    const char *key = value_text(value_key(object, i));
    double number;
    if (key && scalar_role_of(key) == SCALAR_ROLE_STEP &&
        number_of(value_item(object, i), &number) && number >= 0 && number < 1e15)
      *step = (u64)number;
  }
}

/* {"name": "loss", "value": 2.3, "step": 1} */
static void add_named_value(struct scalar_log *log, const struct value *object, u64 step) {
  static const char *const keys[] = {"name", "tag", "metric", "key"};
  double number;
  if (!number_of(value_get(object, "value"), &number))
    return;
  FOR_EACH(keys, LENGTH_OF(keys), one) {
    const char *name = value_text(value_get(object, *one));
    if (name && is_value(scalar_role_of(name))) {
      add_value(log, name, number, step);
      return;
    }
  }
}

/* An object that only holds the values of a step, as in pytscope's steps.jsonl: its keys are the
 * names. */
static bool only_holds_values(const char *key) {
  return strcmp(key, "scalars") == 0;
}

/* The values of an object and of those in it, one level down. */
static void add_values_of_object(struct scalar_log *log, const struct value *object,
                                 const char *prefix, u64 step) {
  find_step(object, &step);
  add_named_value(log, object, step);
  for (u32 i = 0; i < value_count(object); i++) {
    const char *key = value_text(value_key(object, i));
    const struct value *item = value_item(object, i);
    char name[MOST_KEY];
    double number;
    if (!key || snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "/" : "", key) >= MOST_KEY)
      continue;
    const char *called = only_holds_values(prefix) ? key : name;
    if (is_value(scalar_role_of(called)) && number_of(item, &number))
      add_value(log, called, number, step);
    else if (item && item->kind == VALUE_DICT && !*prefix)
      add_values_of_object(log, item, key, step);
  }
}

static int read_state(struct scalar_log *log, char *text, size_t n, char *why, size_t why_bytes) {
  SCOPED_ARENA struct arena values = {0};
  struct value root;
  int error = scalar_json_read(text, n, &values, &root, why, why_bytes);
  const struct value *history = error ? NULL : value_get(&root, "log_history");
  if (!error && !value_is_sequence(history)) {
    snprintf(why, why_bytes, "has no log_history");
    error = -EINVAL;
  }
  for (u32 i = 0; i < value_count(history) && !error; i++)
    add_values_of_object(log, value_item(history, i), "", SCALAR_STEP_UNKNOWN);
  return error;
}

static void read_text_line(struct scalar_log *log, char *line, size_t n) {
  struct scalar_line read;
  n = scalar_line_clean(line, MIN(n, SCALAR_LINE_BYTES));
  if (!scalar_line_read(line, n, &read))
    return;
  FOR_EACH(read.values, read.n, one)
    add_value(log, one->name, one->value, read.step);
}

static void read_json_line(struct scalar_log *log, char *line, size_t n) {
  SCOPED_ARENA struct arena values = {0};
  struct value root;
  char why[160];
  if (scalar_json_read(line, n, &values, &root, why, sizeof(why)) == 0 && root.kind == VALUE_DICT)
    add_values_of_object(log, &root, "", SCALAR_STEP_UNKNOWN);
  else
    log->unreadable_lines++;
}

static void read_lines(struct scalar_log *log, enum scalar_log_kind kind, char *text, size_t n) {
  char *at = text, *line;
  size_t length;
  while (log_next_line(&at, text + n, &line, &length)) {
    if (budget_is_over())
      return;
    if (kind == SCALAR_LOG_LINES && length && line[strspn(line, " \t")] == '{')
      read_json_line(log, line, length);
    else if (length)
      read_text_line(log, line, length);
  }
}

/* Cuts off one cell; quotes around it are removed. */
static char *next_cell(char **at, char *end, char separator) {
  if (!*at)
    return NULL;
  char *cell = *at, *stop = cell;
  bool quoted = cell < end && *cell == '"';
  if (quoted) {
    for (stop = ++cell; stop < end && *stop != '"';)
      stop++;
    if (stop < end)
      *stop++ = 0;
  }
  while (stop < end && *stop != separator)
    stop++;
  *at = stop < end ? stop + 1 : NULL;
  *stop = 0;
  return cell;
}

static char separator_of(const char *line, size_t n) {
  static const char all[] = {',', '\t', ';'};
  FOR_EACH(all, sizeof(all), one)
    if (memchr(line, *one, n))
      return *one;
  return ',';
}

struct column {
  char *name;
  enum scalar_role role;
};

static void read_row(struct scalar_log *log, char *line, size_t n, char separator,
                     const struct column *columns, u32 n_columns) {
  char *at = line, *cell, *end;
  u64 step = SCALAR_STEP_UNKNOWN;
  u32 column = 0, first = log->values.n;
  for (; column < n_columns && (cell = next_cell(&at, line + n, separator)); column++) {
    enum scalar_role role = columns[column].role;
    double value = role == SCALAR_ROLE_NONE ? 0 : strtod(cell, &end);
    if (role == SCALAR_ROLE_NONE || end == cell || end[strspn(end, " ")])
      continue;
    if (role != SCALAR_ROLE_STEP)
      add_value(log, columns[column].name, value, SCALAR_STEP_UNKNOWN);
    else if (value >= 0 && value < 1e15)
      step = (u64)value;
  }
  for (u32 i = first; i < log->values.n && step < INDEX_NONE; i++)
    log->values.at[i].step = (u32)step;
  log->unreadable_lines += column < n_columns;
}

static int read_table(struct scalar_log *log, char *text, size_t n, char *why, size_t why_bytes) {
  char *at = text, *line, *cell;
  size_t length;
  u32 n_columns = 0;
  if (!log_next_line(&at, text + n, &line, &length)) {
    snprintf(why, why_bytes, "is empty");
    return -EINVAL;
  }
  SCOPED struct column *columns = memory_zeroed(MOST_COLUMNS, sizeof(*columns));
  char separator = separator_of(line, length), *heads = line;
  while (n_columns < MOST_COLUMNS && (cell = next_cell(&heads, line + length, separator)))
    columns[n_columns++] = (struct column){cell, scalar_role_of(cell)};
  while (!budget_is_over() && log_next_line(&at, text + n, &line, &length)) {
    if (length)
      read_row(log, line, length, separator, columns, n_columns);
  }
  return 0;
}

void note_more_names(struct model *model, const char *path, const struct scalar_log *log) {
  if (log->more_names)
    model_note(model, "%s has values of more names than the %u that are read", path, log->names.n);
}

void note_unreadable_lines(struct model *model, const char *path, u64 lines) {
  if (lines)
    model_note(model, "%s: %s of another form than the rest: not read", path,
               plural((double)lines, "line").text);
}

int scalar_log_read(struct scalar_log *log, enum scalar_log_kind kind, char *text, size_t n,
                    char *why, size_t why_bytes) {
  switch (kind) {
  case SCALAR_LOG_STATE:
    return read_state(log, text, n, why, why_bytes);
  case SCALAR_LOG_TABLE:
    return read_table(log, text, n, why, why_bytes);
  case SCALAR_LOG_EVENTS:
    return event_file_read(log, (const u8 *)text, n, why, why_bytes);
  default:
    read_lines(log, kind, text, n);
    return 0;
  }
}

/* A header row: several names, no numbers, and one of them is the name of a value. */
static bool is_header(const char *line, size_t n) {
  char copy[SCALAR_LINE_BYTES + 1];
  n = MIN(n, SCALAR_LINE_BYTES);
  memcpy(copy, line, n);
  copy[n] = 0;
  char separator = separator_of(copy, n), *at = copy, *cell, *end;
  if (!memchr(copy, separator, n))
    return false;
  bool value = false;
  while ((cell = next_cell(&at, copy + n, separator))) {
    strtod(cell, &end);
    if (end > cell || strpbrk(cell, "={}[]:"))
      return false;
    value = value || is_value(scalar_role_of(cell));
  }
  return value;
}

static bool has_values(const char *line, size_t n) {
  char copy[SCALAR_LINE_BYTES];
  struct scalar_line read;
  n = MIN(n, sizeof(copy));
  memcpy(copy, line, n);
  return scalar_line_read(copy, scalar_line_clean(copy, n), &read);
}

/* An object that names a value, as a key or as a text. */
static bool has_value_name(const char *line, size_t n) {
  char word[MOST_KEY];
  for (size_t i = 0; i < n;) {
    const char *begin = memchr(line + i, '"', n - i);
    const char *end = begin ? memchr(begin + 1, '"', (size_t)(line + n - begin) - 1) : NULL;
    if (!end)
      return false;
    size_t length = (size_t)(end - begin) - 1;
    if (length < sizeof(word)) {
      memcpy(word, begin + 1, length);
      word[length] = 0;
      if (is_value(scalar_role_of(word)))
        return true;
    }
    i = (size_t)(end - line) + 1;
  }
  return false;
}

enum scalar_log_kind scalar_log_recognise(const char *text, size_t n) {
  const char *at = text, *end = text + n;
  if (event_file_recognise((const u8 *)text, n))
    return SCALAR_LOG_EVENTS;
  if (n > 2 && text[strspn(text, " \t\r\n")] == '{' && memmem(text, n, "\"log_history\"", 13))
    return SCALAR_LOG_STATE;
  for (u32 i = 0; i < PROBED_LINES && at < end; i++) {
    size_t length = strcspn(at, "\r\n");
    length = MIN(length, (size_t)(end - at));
    bool object = at[strspn(at, " \t")] == '{';
    if (i == 0 && !object && is_header(at, length))
      return SCALAR_LOG_TABLE;
    if (object && has_value_name(at, length))
      return SCALAR_LOG_LINES;
    if (length && has_values(at, length))
      return SCALAR_LOG_TEXT;
    at += length + 1;
  }
  return SCALAR_LOG_NONE;
}
