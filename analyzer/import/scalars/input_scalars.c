/* SPDX-License-Identifier: MIT
 *
 * Logs of training values as an input: they are added to the values that tscope recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "import/import.h"
#include "import/read_values.h"
#include "import/scalars/scalar_log.h"

/* Programs hold lines that look like those that they print. */
static bool is_program(const char *name) {
  static const char *const ends[] = {".py", ".ipynb", ".sh", ".c",  ".cc", ".cpp",
                                     ".cu", ".h",     ".js", ".rs", ".md"};
  return MATCHES_ANY(name, ends, text_ends_with_any_case);
}

/* events.out.tfevents.SECONDS.HOST.PID.NUMBER: TensorBoard itself goes by this name. */
static bool is_event_file(const char *name) {
  return strstr(name, "tfevents") != NULL;
}

/* A folder may contain much that looks like a log: there, the name must also say so. */
bool probe_scalars(const struct input *input) {
  static const char *const ends[] = {".jsonl", ".ndjson", ".csv", ".tsv",
                                     ".log",   ".txt",    ".out", "trainer_state.json"};
  if (is_program(input->name))
    return false;
  if (is_event_file(input->name))
    return true;
  return (input->given || MATCHES_ANY(input->name, ends, text_ends_with_any_case)) &&
         scalar_log_recognise((const char *)input->head, input->head_bytes);
}

static u32 rank_of(const struct model *model, const struct input *input, u32 file) {
  u32 rank = rank_said_by_name(input->name);
  if (model->n_ranks == 0) /* then it only distinguishes files */
    return rank == INDEX_NONE ? file : rank;
  return model_rank_index(model, rank);
}

struct log_reading {
  const struct input *input;
  struct scalar_log log;
};

static int read_log(void *user, char *bytes, size_t n, char *why, size_t why_bytes) {
  struct log_reading *reading = user;
  enum scalar_log_kind kind =
      is_event_file(reading->input->name) ? SCALAR_LOG_EVENTS : scalar_log_recognise(bytes, n);
  return scalar_log_read(&reading->log, kind, bytes, n, why, why_bytes);
}

static int load_one(struct import *import, const struct input *input, u32 rank,
                    struct log_reading *reading) {
  struct scalar_log *log = &reading->log;
  const char *path = input->path;
  u32 before = log->values.n;
  reading->input = input;
  int error = input_use_bytes(import, input, BUDGET_MEMORY, read_log, reading);
  if (error)
    log->values.n = before;
  for (u32 i = before; i < log->values.n; i++)
    log->values.at[i].rank = rank;
  if (!error && *log->damage)
    model_note(import->model, "%s %s", path, log->damage);
  if (!error) {
    note_unreadable_lines(import->model, path, log->unreadable_lines);
    note_more_names(import->model, path, log);
  }
  log->more_names = false;
  *log->damage = 0;
  log->unreadable_lines = 0;
  return error;
}

int load_scalars(struct import *import, const struct input *inputs, u32 n) {
  struct model *model = import->model;
  struct log_reading reading = {.log.arena = import->arena};
  struct scalar_log *log = &reading.log;
  model->n_logs = n;
  int error =
      READ_EACH(inputs, n, input,
                load_one(import, input, rank_of(model, input, (u32)(input - inputs)), &reading));
  if ((u64)model->n_scalars + log->values.n < UINT32_MAX) {
    model->scalars = arena_joined(import->arena, model->scalars, model->n_scalars, log->values.at,
                                  log->values.n, sizeof(*model->scalars));
    model->n_scalars += log->values.n;
  }
  FREE_EACH(log, values.at, names.at);
  return error;
}
