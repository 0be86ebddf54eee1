/* SPDX-License-Identifier: MIT
 *
 * Logs of training values as an input: they are added to the values that tscope recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/texts.h"
#include "import/file_budget.h"
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

static int load_one(struct import *import, const struct input *input, u32 rank,
                    struct scalar_log *log) {
  SCOPED u8 *bytes = NULL;
  size_t n = 0;
  char why[256] = "";
  u32 before = log->values.n;
  u64 unreadable_before = log->unreadable_lines;
  struct budget budget;
  budget_begin(&budget, BUDGET_MEMORY, input->bytes);
  int error = whole_file_read(input->path, &bytes, &n);
  if (error)
    snprintf(why, sizeof(why), "%s", strerror(-error));
  else
    error =
        scalar_log_read(log,
                        is_event_file(input->name) ? SCALAR_LOG_EVENTS
                                                   : scalar_log_recognise((const char *)bytes, n),
                        (char *)bytes, n, why, sizeof(why));
  error = budget_end(&budget, error, why, sizeof(why));
  for (u32 i = before; i < log->values.n; i++)
    log->values.at[i].rank = rank;
  if (error)
    snprintf(import->why, import->why_bytes, "%s: %s", input->path, why);
  else if (*log->damage)
    model_note(import->model, "%s: %s", input->path, log->damage);
  *log->damage = 0;
  if (!error && log->unreadable_lines > unreadable_before)
    model_note(import->model, "%s: %s of another form than the rest: not read", input->path,
               plural((double)(log->unreadable_lines - unreadable_before), "line").text);
  return error;
}

int load_scalars(struct import *import, const struct input *inputs, u32 n) {
  struct model *model = import->model;
  struct scalar_log log = {.arena = import->arena};
  int error = 0, failure = 0;
  u32 loaded = 0;
  model->n_logs = n;
  for (u32 i = 0; i < n; i++) {
    error = load_one(import, &inputs[i], rank_of(model, &inputs[i], i), &log);
    loaded += error == 0;
    failure = error ? error : failure;
    if (error)
      model_note(model, "%s", import->why);
  }
  if ((u64)model->n_scalars + log.values.n < UINT32_MAX) {
    model->scalars = arena_joined(import->arena, model->scalars, model->n_scalars, log.values.at,
                                  log.values.n, sizeof(*model->scalars));
    model->n_scalars += log.values.n;
  }
  free(log.values.at);
  free(log.names.at);
  return loaded ? 0 : failure;
}
