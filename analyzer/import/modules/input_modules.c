/* SPDX-License-Identifier: MIT
 *
 * Module statistics as an input. They describe a model, not a rank: one file is enough.
 */
#include <errno.h>
#include <string.h>

#include "import/file_budget.h"
#include "import/import.h"
#include "import/modules/module_stats.h"
#include "import/read_values.h"

bool probe_modules(const struct input *input) {
  return strpbrk((const char *)input->head, "{[") &&
         (head_has(input, "\"mod_stats\"") || head_has(input, "\"mod_order\"") ||
          head_has(input, "\"param_per_module\""));
}

static int load_one(struct import *import, const struct input *input, struct module_tree *stats) {
  SCOPED_ARENA struct arena values = {0};
  struct value root;
  char why[256] = "";
  struct budget budget;
  budget_begin(&budget, BUDGET_MEMORY, input->bytes);
  int error = read_values(input->path, &values, &root, why, sizeof(why));
  if (!error)
    error = modules_read(&root, import->arena, stats, why, sizeof(why));
  error = budget_end(&budget, error, why, sizeof(why));
  if (error)
    snprintf(import->why, import->why_bytes, "%s: %s", input->path, why);
  return error;
}

int load_modules(struct import *import, const struct input *inputs, u32 n) {
  struct module_tree *stats = arena_alloc(import->arena, sizeof(*stats));
  int error = -ENODATA;
  u32 i = 0;
  for (; error && i < n; i++) {
    *stats = (struct module_tree){.path = inputs[i].path};
    error = load_one(import, &inputs[i], stats);
  }
  if (error)
    return error;
  import->model->modules = stats;
  if (n != 1) {
    model_note(import->model, "module statistics come from %s; %u more such files were skipped",
               stats->path, n - 1);
  }
  return 0;
}
