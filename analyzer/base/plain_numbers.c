/* SPDX-License-Identifier: MIT */
#include "base/plain_numbers.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/texts.h"

/* A part of a name or a path is no number. */
static bool is_part_of_name(char c) {
  return isalnum((unsigned char)c) || (c && strchr("_./:+-", c));
}

static bool ends_word(const char *at) {
  return !is_part_of_name(*at) || (strchr(".:", *at) && !is_part_of_name(at[1]));
}

/* Length of "nan" or "inf" here, as printf() writes them; 0 if this is something else. */
static size_t unknown_length(const char *at) {
  size_t sign = *at == '-';
  bool is = text_starts_with(at + sign, "nan") || text_starts_with(at + sign, "inf");
  return is && ends_word(at + sign + 3) ? sign + 3 : 0;
}

/* Length of a number of thousands and more that %g wrote with an exponent; 0 otherwise. */
static size_t exponent_length(const char *at) {
  size_t n = strspn(at, "0123456789.");
  if (n == 0 || !text_starts_with(at + n, "e+"))
    return 0;
  size_t digits = strspn(at + n + 2, "0123456789");
  return digits == 2 && ends_word(at + n + 4) ? n + 4 : 0;
}

static void print_with_commas(FILE *out, double value) {
  char digits[128];
  int n = snprintf(digits, sizeof(digits), "%.0f", value);
  for (int i = 0; i < n; i++)
    fprintf(out, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
}

char *plain_numbers(struct arena *arena, const char *sentence) {
  SCOPED char *text = NULL;
  size_t size = 0;
  FILE *out = memory_stream(&text, &size);
  for (const char *at = sentence; *at;) {
    bool begins = at == sentence || !is_part_of_name(at[-1]);
    size_t unknown = begins ? unknown_length(at) : 0;
    size_t number = begins && !unknown ? exponent_length(at) : 0;
    if (unknown)
      fputs("unknown", out);
    else if (number)
      print_with_commas(out, strtod(at, NULL));
    else
      fputc(*at, out);
    at += unknown + number + (unknown || number ? 0 : 1);
  }
  memory_stream_close(out);
  return arena_text(arena, text);
}
