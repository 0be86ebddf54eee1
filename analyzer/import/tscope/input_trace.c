/* SPDX-License-Identifier: MIT
 *
 * Traces of libtscope.so: how they are recognised.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "import/import.h"
#include "import/tscope/load_traces.h"

bool probe_trace(const struct input *input) {
  return text_ends_with(input->name, TSCOPE_FILE_SUFFIX) ||
         (input->head_bytes >= sizeof(TSCOPE_MAGIC) - 1 &&
          memcmp(input->head, TSCOPE_MAGIC, sizeof(TSCOPE_MAGIC) - 1) == 0);
}

int load_trace(struct import *import, const struct input *inputs, u32 n) {
  SCOPED const char **paths = memory_zeroed(n, sizeof(*paths));
  for (u32 i = 0; i < n; i++)
    paths[i] = inputs[i].path;
  int result =
      model_read_runs(import->model, paths, n, import->options, import->why, import->why_bytes);
  import->used = import->model->n_ranks; /* files of other runs and attempts are beside them */
  return result;
}
