/* SPDX-License-Identifier: MIT
 *
 * Stands in for the reading half until it lands, and gives way to the real one.
 */
#include <errno.h>

#include "model.h"

#define WEAK __attribute__((weak))

WEAK int model_load(const char *path, const struct model_options *options, struct model **model,
                    char *why, size_t why_bytes) {
  (void)options;
  *model = NULL;
  snprintf(why, why_bytes, "%s: reading traces is not built in yet", path);
  return -ENOSYS;
}

WEAK void model_free(struct model *model) {
  (void)model;
}

WEAK int model_list_runs(const char *path, FILE *out, char *why, size_t why_bytes) {
  (void)out;
  snprintf(why, why_bytes, "%s: reading traces is not built in yet", path);
  return -ENOSYS;
}

WEAK int timeline_load(const struct model *model, u32 rank, struct timeline *timeline) {
  (void)model;
  (void)rank;
  (void)timeline;
  return -ENOSYS;
}

WEAK void timeline_release(struct timeline *timeline) {
  (void)timeline;
}

WEAK const char *timeline_name(const struct timeline *timeline, u32 name) {
  (void)timeline;
  (void)name;
  return NULL;
}
