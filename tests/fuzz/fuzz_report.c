/* SPDX-License-Identifier: MIT */
#include "fuzz_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "figures.h"
#include "import/import.h"
#include "kernels/kernels.h"
#include "report/report.h"

static char path[64], database[64];
static struct kernel_names *names; /* kept: its patterns take long to compile */
static FILE *dev_null;

static void clean_up(void) {
  unlink(path);
  unlink(database);
  kernel_names_free(names);
  fclose(dev_null);
}

static void set_up(void) {
  const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  snprintf(path, sizeof(path), "%s/tscope-fuzz-XXXXXX", memory);
  snprintf(database, sizeof(database), "%s/tscope-fuzz-XXXXXX", memory);
  int file = mkstemp(path), other = mkstemp(database);
  char why[128];
  names = kernel_names_new(NULL, why, sizeof(why));
  dev_null = fopen("/dev/null", "w");
  if (file < 0 || other < 0 || !dev_null)
    abort();
  close(file);
  close(other);
  atexit(clean_up);
}

const char *fuzz_report_path(void) {
  if (!path[0])
    set_up();
  return path;
}

void fuzz_report(const u8 *data, size_t bytes) {
  FILE *file = fopen(fuzz_report_path(), "wb");
  if (!file || (bytes && fwrite(data, 1, bytes, file) != bytes))
    abort();
  fclose(file);
  fuzz_report_file();
}

void fuzz_report_file(void) {
  struct analyse_options options = no_options();
  options.gpu_bytes = 80e9;
  options.kernel_names = names;
  options.threads = 1;
  const struct report_view view = {.width = 80,
                                   .utf8 = true,
                                   .limit_bytes = REPORT_DEFAULT_LIMIT,
                                   .threads = 1,
                                   .building = database};
  const char *const given[] = {path};
  char why[512];
  struct model *model;
  if (import_load(given, 1, &(struct model_options){.threads = 1}, &model, why, sizeof(why)) < 0)
    return;
  struct results *results = analyse(model, &options);
  report_text.write(results, &view, dev_null);
  report_json.write(results, &view, dev_null);
  report_perfetto.write(results, &view, dev_null);
  report_sqlite.write(results, &view, dev_null);
  truncate(database, 0);
  results_free(results);
  model_free(model);
}
