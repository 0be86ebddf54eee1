/* SPDX-License-Identifier: MIT */
#include "facts/file_name.h"

#include <stdbool.h>

void tscope_file_name_from(char *name, size_t bytes, const char *text) {
  size_t length = 0;
  for (; *text && length + 1 < bytes; text++) {
    char c = *text;
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '_' || (c == '.' && length > 0);
    name[length++] = plain ? c : '_';
  }
  if (length == 0 && bytes > 1)
    name[length++] = '_';
  name[length] = '\0';
}
