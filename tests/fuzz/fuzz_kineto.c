/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: reads the bytes as a trace of PyTorch's profiler, as one rank and as two, and
 * analyses them. For every input this must end, without an invalid memory access, with results or a
 * reason.
 */
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "fuzz_folder.h"
#include "import/import.h"
#include "kernels/kernels.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

static char paths[2][96];
static struct kernel_names *names; /* kept: its patterns take long to compile */

static void clean_up(void) {
  kernel_names_free(names);
}

static void set_up(void) {
  make_directory();
  for (int i = 0; i < 2; i++)
    snprintf(paths[i], sizeof(paths[i]), "%s/rank%d.trace.json", directory, i);
  char why[128];
  names = kernel_names_new(NULL, why, sizeof(why));
  atexit(clean_up);
}

static void read_paths(u32 n) {
  struct analyse_options options = no_options();
  options.kernel_names = names;
  options.threads = 1;
  const char *const given[] = {paths[0], paths[1]};
  char why[512];
  struct model *model;
  if (import_load(given, n, &(struct model_options){.threads = 1}, &model, why, sizeof(why)) < 0)
    return;
  results_free(analyse(model, &options));
  model_free(model);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes) {
  if (!directory[0])
    set_up();
  scratch_write(directory, "rank0.trace.json", data, bytes);
  scratch_write(directory, "rank1.trace.json", data, bytes);
  read_paths(1);
  read_paths(2);
  return 0;
}
