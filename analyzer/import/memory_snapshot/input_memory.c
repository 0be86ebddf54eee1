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

/* A name that does not say "rank" has one all the same if the files are numbered from 0. */
static bool names_are_ranks(const struct input *inputs, u32 n) {
  u64 seen = 0;
  FOR_EACH(inputs, n, input) {
    u32 number = rank_of_name(input->name);
    if (number >= n || n > 64 || seen >> number & 1)
      return false;
    seen |= 1ull << number;
  }
  return n > 1;
}

static u32 rank_of(const struct input *input, bool numbered) {
  return numbered ? rank_of_name(input->name) : rank_said_by_name(input->name);
}

struct snapshot_reading {
  struct import *import;
  const struct input *input;
  bool numbered;
  origin_list found;
};

static void add_devices(struct snapshot_reading *reading, const struct value *root) {
  struct import *import = reading->import;
  u32 devices = snapshot_devices(root), read = 0;
  for (u32 device = 0; device < devices; device++) {
    struct memory_history *history = arena_alloc(import->arena, sizeof(*history));
    snapshot_history(root, device, import->arena, history);
    if (!history->n_events && !history->n_segments)
      continue;
    read++;
    history->rank = rank_of(reading->input, reading->numbered);
    history->path = reading->input->path;
    struct memory_origin origin = {
        .rank = history->rank, .device = history->device, .read = copy_history, .data = history};
    VECTOR_PUSH(&reading->found, origin);
  }
  if (!read)
    model_note(import->model, "%s has segments or events of no device", reading->input->path);
}

static int read_snapshot(void *user, const struct value *root, char *why, size_t why_bytes) {
  if (!snapshot_looks_like(root)) {
    snprintf(why, why_bytes, "is a pickle, but not a snapshot of PyTorch's memory");
    return -EINVAL;
  }
  add_devices(user, root);
  return 0;
}

static int load_one(struct import *import, const struct input *input,
                    struct snapshot_reading *reading) {
  reading->input = input;
  return input_use_values(import, input, BUDGET_PICKLED, read_snapshot, reading);
}

int load_memory_snapshot(struct import *import, const struct input *inputs, u32 n) {
  struct snapshot_reading reading = {.import = import, .numbered = names_are_ranks(inputs, n)};
  struct model *model = import->model;
  int error = READ_EACH(inputs, n, input, load_one(import, input, &reading));
  model->memories = arena_joined(import->arena, model->memories, model->n_memories,
                                 reading.found.at, reading.found.n, sizeof(*model->memories));
  model->n_memories += reading.found.n;
  free(reading.found.at);
  return error;
}
