/* SPDX-License-Identifier: MIT
 *
 * Files, read as tscope-report reads them; the test fails if they are refused.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "import/import.h"

static inline struct model *import_files(const char *const *paths, u32 n) {
  char why[512] = "";
  struct model *model = NULL;
  if (import_load(paths, n, NULL, &model, why, sizeof(why)) != 0)
    fail_msg("%s: %s", paths[0], why);
  return model;
}

static inline struct model *import_file(const char *path) {
  return import_files(&path, 1);
}
