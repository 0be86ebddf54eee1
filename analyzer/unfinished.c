/* SPDX-License-Identifier: MIT
 *
 * Stands in for the reading and analysing halves until they land; each gives way to the real one.
 */
#include <errno.h>

#include "results.h"

#define WEAK __attribute__((weak))

WEAK int model_load(const char *path, const struct model_options *options, struct model **model,
                    char *why, size_t why_bytes) {
  (void)options;
  *model = NULL;
  snprintf(why, why_bytes, "%s: reading traces is not built in yet", path);
  return -ENOSYS;
}

WEAK void model_free(struct model *model) { (void)model; }

WEAK int model_list_runs(const char *path, FILE *out, char *why, size_t why_bytes) {
  (void)out;
  snprintf(why, why_bytes, "%s: reading traces is not built in yet", path);
  return -ENOSYS;
}

WEAK int analyse(const struct model *model, const struct analyse_options *options,
                 struct results **results) {
  (void)model;
  (void)options;
  *results = NULL;
  return -ENOSYS;
}

WEAK void results_free(struct results *results) { (void)results; }
