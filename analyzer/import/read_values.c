/* SPDX-License-Identifier: MIT */
#include "import/read_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/pickle/pickle.h"
#include "import/value_json.h"
#include "import/whole_file.h"

int read_values(const char *path, struct arena *arena, struct value *root, char *why,
                size_t why_bytes) {
  u8 *bytes;
  size_t n;
  int error = whole_file_read(path, &bytes, &n);
  if (error) {
    snprintf(why, why_bytes, "%s", strerror(-error));
    return error;
  }
  error = pickle_looks_like(bytes, n)
              ? pickle_read(bytes, n, arena, root, why, why_bytes)
              : value_read_json((const char *)bytes, n, arena, root, why, why_bytes);
  free(bytes);
  return error;
}
