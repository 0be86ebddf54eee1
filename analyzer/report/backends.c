/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <string.h>

const struct report_backend *const report_backends[] = {
    &report_text,   &report_json,    &report_html, &report_perfetto,
    &report_sqlite, &report_entries, NULL};

const struct report_backend *report_backend_find(const char *name) {
  for (const struct report_backend *const *backend = report_backends; *backend; backend++)
    if (strcmp((*backend)->name, name) == 0)
      return *backend;
  return NULL;
}
