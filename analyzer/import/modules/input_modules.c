/* SPDX-License-Identifier: MIT
 *
 * Module statistics as an input: {"mod_order": {"fw_pre_order": [...]}, "mod_stats": [{...}]}, the
 * ModuleInfo of torch.distributed._tools.ilp_utils, or the list of its mod_stats alone, as JSON.
 * They describe a model, not a rank: one file is enough.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/import.h"
#include "import/read_values.h"
#include "model/module_tree.h"

bool probe_modules(const struct input *input) {
  return strpbrk((const char *)input->head, "{[") &&
         (head_has(input, "\"mod_stats\"") || head_has(input, "\"mod_order\"") ||
          head_has(input, "\"param_per_module\""));
}

static const struct number {
  const char *key;
  size_t offset;
} numbers[] = {
    {"param_per_module", offsetof(struct module_stat, parameters)},
    {"grad_per_module", offsetof(struct module_stat, gradients)},
    {"grad_total", offsetof(struct module_stat, gradients_so_far)},
    {"act_fw_per_module", offsetof(struct module_stat, activations_forward)},
    {"act_grad_per_module", offsetof(struct module_stat, activation_gradients)},
    {"act_total", offsetof(struct module_stat, activations_so_far)},
    {"input_per_module", offsetof(struct module_stat, input)},
    {"output_per_module", offsetof(struct module_stat, output)},
    {"fw_runtime_per_module", offsetof(struct module_stat, forward_ms)},
    {"bw_runtime_per_module", offsetof(struct module_stat, backward_ms)},
};

/* Names sorted, with what they are the names of. */
struct name {
  const char *text;
  size_t length;
  u32 index;
};

static int by_name(const void *left, const void *right) {
  const struct name *a = left, *b = right;
  size_t shorter = MIN(a->length, b->length);
  int order = memcmp(a->text, b->text, shorter);
  return order ? order : a->length < b->length ? -1 : a->length > b->length;
}

static const struct name *find_name(const struct name *names, u32 n, const char *text,
                                    size_t length) {
  return FIND_SORTED(names, n, (&(struct name){.text = text, .length = length}), by_name);
}

static bool read_module(const struct value *value, struct arena *arena, struct module_stat *stat) {
  const char *name = value_text(value_get(value, "fqn"));
  *stat = (struct module_stat){.name = arena_text(arena, name), .parent = INDEX_NONE};
  FOR_EACH(numbers, LENGTH_OF(numbers), one) {
    double number = value_number(value_get(value, one->key));
    *(double *)((char *)stat + one->offset) = isfinite(number) ? number : NAN;
  }
  return name != NULL;
}

/* The position of each module in the order of the forward pass; modules that are not in it come
 * last. */
static void order_by_forward_pass(const struct value *root, struct module_tree *stats,
                                  struct arena *arena) {
  const struct value *wanted = value_get(value_get(root, "mod_order"), "fw_pre_order");
  u32 n = stats->n, placed = 0;
  SCOPED struct name *names = memory_zeroed(size_sum(n, 1), sizeof(*names));
  struct module_stat *ordered = arena_array(arena, n, sizeof(*ordered));
  for (u32 i = 0; i < n; i++)
    names[i] = (struct name){stats->at[i].name, strlen(stats->at[i].name), i};
  SORT(names, n, by_name);
  for (u32 i = 0; i < value_count(wanted); i++) {
    const char *text = value_text(value_item(wanted, i));
    const struct name *name = text ? find_name(names, n, text, strlen(text)) : NULL;
    if (!name || !stats->at[name->index].name)
      continue; /* already listed */
    ordered[placed++] = stats->at[name->index];
    stats->at[name->index].name = NULL;
  }
  FOR_EACH(stats->at, n, one)
    if (one->name)
      ordered[placed++] = *one;
  stats->at = ordered;
}

/* The nearest module above: the longest beginning of the name, up to a dot, that is the name of a
 * module. */
static void find_parents(struct module_tree *stats) {
  u32 n = stats->n;
  SCOPED struct name *names = memory_zeroed(size_sum(n, 1), sizeof(*names));
  for (u32 i = 0; i < n; i++) {
    names[i] = (struct name){stats->at[i].name, strlen(stats->at[i].name), i};
    stats->at[i].leaf = true;
  }
  SORT(names, n, by_name);
  FOR_EACH_CHANGED(stats->at, n, stat) {
    for (size_t length = strlen(stat->name); length-- > 0;) {
      const struct name *above =
          stat->name[length] == '.' ? find_name(names, n, stat->name, length) : NULL;
      if (!above)
        continue;
      if (stat->parent == INDEX_NONE)
        stat->parent = above->index;
      stats->at[above->index].leaf = false;
      stat->depth++;
    }
  }
}

/* What is found, and where it lives. */
struct modules_found {
  struct module_tree *stats;
  struct arena *arena;
};

/* -EINVAL, with the reason in `why`, if this is no such document. */
static int read_modules(void *user, const struct value *root, char *why, size_t why_bytes) {
  const struct modules_found *reading = user;
  struct module_tree *stats = reading->stats;
  struct arena *arena = reading->arena;
  const struct value *list = value_is_sequence(root) ? root : value_get(root, "mod_stats");
  u32 n = value_count(list);
  if (!value_is_sequence(list) || n == 0) {
    snprintf(why, why_bytes, "has no list of module statistics (mod_stats)");
    return -EINVAL;
  }
  stats->at = arena_array(arena, n, sizeof(*stats->at));
  for (u32 i = 0; i < n; i++)
    stats->n += read_module(value_item(list, i), arena, &stats->at[stats->n]);
  if (!stats->n) {
    snprintf(why, why_bytes, "has %u modules, and names none of them (fqn)", n);
    return -EINVAL;
  }
  order_by_forward_pass(root, stats, arena);
  find_parents(stats);
  return 0;
}

int load_modules(struct import *import, const struct input *inputs, u32 n) {
  struct module_tree *stats = arena_alloc(import->arena, sizeof(*stats));
  int error = -ENODATA;
  u32 i = 0;
  for (; error && i < n; i++) {
    *stats = (struct module_tree){.path = inputs[i].path};
    error = input_use_values(import, &inputs[i], BUDGET_MEMORY, read_modules,
                             &(struct modules_found){stats, import->arena});
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
