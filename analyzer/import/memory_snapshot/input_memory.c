/* SPDX-License-Identifier: MIT
 *
 * Memory snapshots as an input: each file is from one process, with one or more devices.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "import/file_budget.h"
#include "import/import.h"
#include "import/memory_snapshot/memory_snapshot.h"
#include "import/pickle/pickle.h"
#include "import/read_values.h"

bool probe_memory_snapshot(const struct input *input) {
  if (!pickle_looks_like(input->head, input->head_bytes))
    return false;
  return head_has(input, "segments") || head_has(input, "device_traces") ||
         (head_has(input, "total_size") && head_has(input, "segment_type"));
}

static int copy_history(const struct model *model, const struct memory_origin *origin,
                        struct arena *arena, struct memory_history *history) {
  (void)model;
  (void)arena;
  *history = *(const struct memory_history *)origin->data;
  return 0;
}

typedef VECTOR(struct memory_origin) origin_list;

/* A number in a snapshot's name is often a date, a size or a step. It is the rank only if the
 * name says so, or if the files are numbered from 0. */
static bool names_are_ranks(const struct input *inputs, u32 n) {
  u64 seen = 0;
  for (u32 i = 0; i < n; i++) {
    u32 number = rank_of_name(inputs[i].name);
    if (number >= n || n > 64 || seen >> number & 1)
      return false;
    seen |= 1ull << number;
  }
  return n > 1;
}

static u32 rank_of(const struct input *input, bool numbered) {
  return numbered || strcasestr(input->name, "rank") ? rank_of_name(input->name) : INDEX_NONE;
}

static void add_devices(struct import *import, const struct input *input, const struct value *root,
                        bool numbered, origin_list *origins) {
  u32 devices = snapshot_devices(root), read = 0;
  for (u32 device = 0; device < devices; device++) {
    struct memory_history *history = arena_alloc(import->arena, sizeof(*history));
    snapshot_history(root, device, import->arena, history);
    if (!history->n_events && !history->n_segments)
      continue;
    read++;
    history->rank = rank_of(input, numbered);
    history->path = input->path;
    struct memory_origin origin = {
        .rank = history->rank, .device = history->device, .read = copy_history, .data = history};
    VECTOR_PUSH(origins, origin);
  }
  if (!read)
    model_note(import->model, "%s: no device has segments or events", input->path);
}

static int load_one(struct import *import, const struct input *input, bool numbered,
                    origin_list *origins) {
  SCOPED_ARENA struct arena values = {0};
  struct value root;
  char why[256] = "";
  struct budget budget;
  budget_begin(&budget, BUDGET_PICKLED, input->bytes);
  int error = read_values(input->path, &values, &root, why, sizeof(why));
  if (!error && !snapshot_looks_like(&root)) {
    error = -EINVAL;
    snprintf(why, sizeof(why), "it is a pickle, but not a snapshot of PyTorch's memory");
  }
  if (!error)
    add_devices(import, input, &root, numbered, origins);
  error = budget_end(&budget, error, why, sizeof(why));
  if (error) {
    snprintf(import->why, import->why_bytes, "%s: %s", input->path, why);
    model_note(import->model, "%s was left out: %s", input->path, why);
  }
  return error;
}

int load_memory_snapshot(struct import *import, const struct input *inputs, u32 n) {
  SCOPED origin_list found = {0};
  u32 loaded = 0;
  bool numbered = names_are_ranks(inputs, n);
  int error = 0, failure = 0;
  for (u32 i = 0; i < n; i++) {
    error = load_one(import, &inputs[i], numbered, &found);
    loaded += error == 0;
    failure = error ? error : failure;
  }
  struct model *model = import->model;
  model->memories = arena_joined(import->arena, model->memories, model->n_memories, found.at,
                                 found.n, sizeof(*model->memories));
  model->n_memories += found.n;
  return loaded ? 0 : failure;
}
