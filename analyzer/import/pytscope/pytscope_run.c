/* SPDX-License-Identifier: MIT */
#include "import/pytscope/pytscope_run.h"

#include <math.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/folders.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "import/import.h"
#include "import/read_values.h"
#include "import/scalars/scalar_log.h"
#include "import/value.h"

#define MOST_S                                                                                     \
  9e9 /* of the wall clock, and of any phase: beyond the year 2250 a file is damaged               \
       */

static i64 ns_of(const struct value *seconds) {
  double number = value_number(seconds);
  return number >= 0 && number < MOST_S ? (i64)llrint(number * 1e9) : NS_UNKNOWN;
}

/* Others than these ("compute", "comm", the program's own) count as the rest of the step. */
static int kind_of(const char *name) {
  for (int i = TSCOPE_PHASE_DATA; i < PHASE_KINDS; i++)
    if (same_text(phase_word((u32)i), name))
      return i;
  return -1;
}

static void read_phases(struct pytscope_step *step, const struct value *phases) {
  for (u32 i = 0; i < value_count(phases); i++) {
    const char *name = value_text(value_key(phases, i));
    i64 ns = ns_of(value_item(phases, i));
    int kind = name ? kind_of(name) : -1;
    if (ns == NS_UNKNOWN)
      continue;
    step->attributed = (step->attributed == NS_UNKNOWN ? 0 : step->attributed) + ns;
    if (kind >= 0)
      step->kinds[kind] = ns;
  }
}

static void read_record(struct pytscope_run *run, const struct value *record) {
  i64 number;
  struct pytscope_step step = {.end = ns_of(value_get(record, "timestamp")),
                               .attributed = NS_UNKNOWN};
  FILL(step.kinds, PHASE_KINDS, NS_UNKNOWN);
  if (step.end == NS_UNKNOWN || !value_integer(value_get(record, "step"), &number) || number < 0) {
    run->unreadable_lines++;
    return;
  }
  step.number = (u64)number;
  read_phases(&step, value_get(record, "phases"));
  /* A program that is started again appends to its file: the last start is the run. */
  const struct pytscope_step *last = run->steps.n ? &run->steps.at[run->steps.n - 1] : NULL;
  if (last && (step.number != last->number + 1 || step.end <= last->end)) {
    run->earlier += run->steps.n;
    run->steps.n = 0;
  }
  VECTOR_PUSH(&run->steps, step);
}

static void read_steps(struct pytscope_run *run, char *text, size_t n) {
  SCOPED_ARENA struct arena values = {0};
  size_t length;
  for (char *at = text, *line; log_next_line(&at, text + n, &line, &length);) {
    struct value record;
    char why[160];
    if (length == 0)
      continue;
    if (scalar_json_read(line, length, &values, &record, why, sizeof(why)) == 0)
      read_record(run, &record);
    else
      run->unreadable_lines++;
  }
}

static const char *copy_text(struct arena *arena, const struct value *text) {
  return arena_text(arena, value_text(text));
}

static void describe(struct pytscope_run *run, const struct value *root, struct arena *arena) {
  const struct value *environment = value_get(root, "environment");
  u32 rank = value_rank(value_get(root, "rank")), ranks = value_rank(value_get(root, "world_size"));
  run->described = true;
  if (rank != INDEX_NONE) {
    run->rank = rank;
    run->rank_known = true;
  }
  if (ranks != INDEX_NONE)
    run->world_size = ranks;
  run->python = copy_text(arena, value_get(environment, "python"));
  run->torch = copy_text(arena, value_get(environment, "torch"));
  run->gpu = copy_text(arena, value_get(environment, "gpu"));
}

/* "rank3" as the last folder of a path. */
static void rank_from_folder(struct pytscope_run *run, const char *folder) {
  const char *name = last_part(folder), *digits = digits_after_rank(name);
  if (!digits || digits[strspn(digits, "0123456789")])
    return;
  run->rank = rank_of_name(name);
  run->rank_known = run->rank != INDEX_NONE;
}

static void read_description(struct pytscope_run *run, struct arena *arena) {
  char *folder = folder_of(arena, run->path);
  char *path = arena_printf(arena, "%s/run.json", folder);
  SCOPED_ARENA struct arena values = {0};
  struct value root;
  char why[160];
  SCOPED u8 *bytes = NULL;
  size_t n = 0;
  rank_from_folder(run, folder);
  int error = whole_file_read(path, &bytes, &n);
  if (!error)
    error = scalar_json_read((char *)bytes, n, &values, &root, why, sizeof(why));
  if (!error && root.kind == VALUE_DICT)
    describe(run, &root, arena);
}

int pytscope_run_read(void *user, char *bytes, size_t n, char *why, size_t why_bytes) {
  struct pytscope_run *run = user;
  read_steps(run, bytes, n);
  read_description(run, run->values.arena);
  return scalar_log_read(&run->values, SCALAR_LOG_LINES, bytes, n, why, why_bytes);
}

void pytscope_run_free(struct pytscope_run *run) {
  FREE_EACH(run, steps.at, values.values.at, values.names.at);
}
