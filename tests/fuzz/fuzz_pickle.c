/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: reads the bytes as a pickle, and as the flight-recorder dumps (pickle or JSON)
 * of two ranks up to the verdict. For every input this must end, without an invalid memory access,
 * with a value or a reason, and must not run code from the pickle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "fuzz_folder.h"
#include "import/import.h"
#include "import/pickle/pickle.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

/* Visits every value once for each reference to it; the caller checks that there are not too many.
 */
static u64 walk(const struct value *value) {
  u64 sum = value->n;
  for (u32 i = 0; i < value_count(value); i++) {
    const struct value *key = value_key(value, i);
    sum += walk(value_item(value, i)) + (key ? walk(key) : 0);
  }
  if (value->kind == VALUE_STR || value->kind == VALUE_BYTES || value->kind == VALUE_BIG)
    sum += value->text[value->n] != 0;
  return sum;
}

static void read_pickle(const u8 *data, size_t bytes) {
  struct arena arena = {0};
  struct value root;
  char why[300];
  if (pickle_read(data, bytes, &arena, &root, why, sizeof(why)) == 0) {
    if (value_spread(&root) < 1e5 && walk(&root) == UINT64_MAX)
      abort();
    value_get(&root, "entries");
  } else if (!why[0]) {
    abort();
  }
  arena_release(&arena);
}

static void read_dumps(void) {
  struct model *model;
  char why[512];
  const char *path = directory;
  if (import_load(&path, 1, &(struct model_options){.threads = 1}, &model, why, sizeof(why)) < 0)
    return;
  struct analyse_options options = no_options();
  options.threads = 1;
  struct results *results = analyse(model, &options);
  FILE *out = fopen("/dev/null", "w");
  const struct report_view view = {.width = 80, .stacks = true};
  if (out) {
    report_json.write(results, &view, out);
    report_text.write(results, &view, out);
    if (results->check.flight)
      report_entries.write(results, &view, out);
    fclose(out);
  }
  results_free(results);
  model_free(model);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes) {
  read_pickle(data, bytes);
  make_directory();
  scratch_write(directory, "dump_0", data, bytes);
  scratch_write(directory, "dump_1", data, bytes);
  read_dumps();
  return 0;
}
