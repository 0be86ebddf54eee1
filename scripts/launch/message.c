/* SPDX-License-Identifier: MIT */
#include "scripts/launch/message.h"

#include <stdarg.h>
#include <stdio.h>

void print_message(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("tscope: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}
