/* SPDX-License-Identifier: MIT */
#include "base/printable.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/exit_status.h"
#include "base/utf8.h"

char *arena_printable(struct arena *arena, const char *text) {
  char *copy = arena_alloc(arena, size_sum(size_product(strlen(text), 3), 1)); /* 1 byte: 3 bytes */
  char *end = copy;
  while (*text) {
    u32 code;
    text += utf8_decode(text, &code);
    bool blank = code == '\n' || code == '\t';
    end += utf8_write(blank ? ' ' : utf8_is_control(code) ? UTF8_REPLACEMENT : code, end);
  }
  *end = 0;
  return copy;
}

const char *markup_escape(char c) {
  switch (c) {
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '&':
    return "&amp;";
  case '"':
    return "&quot;";
  case '\'':
    return "&#39;";
  default:
    return NULL;
  }
}

char *arena_url(struct arena *arena, const char *path) {
  char *copy = arena_alloc(arena, size_sum(size_product(strlen(path), 3), 1)), *end = copy;
  for (; *path; path++)
    end += sprintf(end, isalnum((unsigned char)*path) || strchr("-._~/", *path) ? "%c" : "%%%02X",
                   (unsigned char)*path);
  return copy;
}

int print_problem(const char *program, const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  SCOPED_ARENA struct arena arena = {0};
  fprintf(stderr, "%s: %s\n", program, arena_printable(&arena, line));
  return STATUS_BAD;
}

void print_metric(const char *name, const char *help, const char *type, FILE *out) {
  fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void print_label(const char *name, const char *value, FILE *out) {
  SCOPED_ARENA struct arena arena = {0};
  fprintf(out, "%s=\"", name);
  for (const char *c = arena_printable(&arena, value); *c; c++) {
    if (*c == '"' || *c == '\\')
      fputc('\\', out);
    fputc(*c, out);
  }
  fputc('"', out);
}
