/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "report/report.h"

static const struct {
  const char *name;
  const struct report_backend *backend;
} backends[] = {
#define B(name, what) {#name, &report_##name},
    TSCOPE_REPORT_BACKENDS(B)
#undef B
};

#define BACKENDS LENGTH_OF(backends)

const struct report_backend *report_backend_default(void) {
  return backends[0].backend;
}

const struct report_backend *report_backend_find(const char *name) {
  FOR_EACH(backends, BACKENDS, backend)
    if (strcmp(backend->name, name) == 0)
      return backend->backend;
  return NULL;
}

const char *report_backend_name(const struct report_backend *backend) {
  size_t i = 0;
  while (i + 1 < BACKENDS && backends[i].backend != backend)
    i++;
  return backends[i].name;
}

const char *report_backend_names(bool (*suits)(const struct report_backend *backend)) {
  static char names[BACKENDS * 32];
  size_t left = 0, used = 0;
  FOR_EACH(backends, BACKENDS, one)
    left += !suits || suits(one->backend);
  for (size_t i = 0; i < BACKENDS && used < sizeof(names); i++)
    if (!suits || suits(backends[i].backend)) {
      left--;
      used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", backends[i].name,
                               left > 1    ? ", "
                               : left == 1 ? " or "
                                           : "");
    }
  return names;
}
