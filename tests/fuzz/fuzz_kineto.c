/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: reads the bytes as a trace of PyTorch's profiler, as one rank and as two, and
 * analyses them. For every input this must end, without an invalid memory access, with results or a
 * reason.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyses/results/results.h"
#include "import/import.h"
#include "kernels/kernels.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

static char directory[64], paths[2][96];
static struct kernel_names *names; /* kept: its patterns take long to compile */

static void write_file(const char *path, const u8 *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (!file || (bytes && fwrite(data, 1, bytes, file) != bytes))
    abort();
  fclose(file);
}

static void clean_up(void) {
  unlink(paths[0]);
  unlink(paths[1]);
  rmdir(directory);
  kernel_names_free(names);
}

static void set_up(void) {
  const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  snprintf(directory, sizeof(directory), "%s/tscope-fuzz-XXXXXX", memory);
  if (!mkdtemp(directory))
    abort();
  for (int i = 0; i < 2; i++)
    snprintf(paths[i], sizeof(paths[i]), "%s/rank%d.trace.json", directory, i);
  char why[128];
  names = kernel_names_new(NULL, why, sizeof(why));
  atexit(clean_up);
}

static void read_paths(u32 n) {
  const struct analyse_options options = {.flops_per_step = NAN,
                                          .params = NAN,
                                          .tokens_per_step = NAN,
                                          .peak_tflops = NAN,
                                          .kernel_names = names,
                                          .threads = 1};
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
  write_file(paths[0], data, bytes);
  write_file(paths[1], data, bytes);
  read_paths(1);
  read_paths(2);
  return 0;
}
