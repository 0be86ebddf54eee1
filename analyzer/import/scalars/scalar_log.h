/* SPDX-License-Identifier: MIT
 *
 * Values of training in log files: JSON lines, CSV, HuggingFace's trainer_state.json, TensorBoard's
 * event files, and lines that were printed for people (scalar_line.h).
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/vector.h"
#include "import/value.h"
#include "model/model.h"

enum scalar_log_kind {
  SCALAR_LOG_NONE,
  SCALAR_LOG_STATE, /* one JSON document with a log_history */
  SCALAR_LOG_LINES, /* JSON objects, a line each */
  SCALAR_LOG_TABLE, /* CSV, or with tabs or semicolons */
  SCALAR_LOG_TEXT,
  SCALAR_LOG_EVENTS /* TensorBoard's (event_file.h) */
};

struct scalar_log {
  struct arena *arena; /* names live in it */
  VECTOR(struct scalar) values;
  VECTOR(const char *) names;
  bool more_names;      /* than are read */
  u64 unreadable_lines; /* of JSON and tables */
  char damage[160];     /* of the last event file, to follow its name; else empty */
};

/* What the beginning of a file looks like. */
enum scalar_log_kind scalar_log_recognise(const char *text, size_t n);

/* Adds a value if its name is that of one. */
void scalar_log_add(struct scalar_log *log, const char *name, double value, u64 step);

/* Takes the first line off a text that ends at `end`; false if none is left. A line of progress
 * ends with a carriage return. */
bool log_next_line(char **at, char *end, char **line, size_t *n);

/* One JSON document, in which Python may have written NaN and Infinity; changes its text. Values
 * live in the arena, and point into the text. As value_read_json(). */
int scalar_json_read(char *text, size_t n, struct arena *values, struct value *root, char *why,
                     size_t why_bytes);

/* Says in the model of how many lines of a file that is true; nothing if of none. */
void note_unreadable_lines(struct model *model, const char *path, u64 lines);

/* Likewise of values with more names than are read. */
void note_more_names(struct model *model, const char *path, const struct scalar_log *log);

/* Reads a whole file; changes its text. 0, or -EINVAL with `why`, to follow its name, where it
 * cannot be read at all. values.rank and values.time are not known. free() values.at and names.at.
 */
int scalar_log_read(struct scalar_log *log, enum scalar_log_kind kind, char *text, size_t n,
                    char *why, size_t why_bytes);
