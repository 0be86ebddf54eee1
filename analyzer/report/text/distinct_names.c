/* SPDX-License-Identifier: MIT */
#include "report/text/table.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME_PART = 24 };

/* The least number of columns for a name. Names that are equal up to there would look the same. */
static size_t shown_name_length(const struct pen *pen) {
  return pen->width >= 110 ? pen->width - 86 : 24;
}

static void label_row(struct row_name *names, u32 n, u32 i, size_t seen) {
  struct row_name *one = &names[i];
  const char *name = one->shortened;
  size_t same = 0;
  bool alike = false;
  for (u32 k = 0; k < n; k++) {
    const struct row_name *other = &names[k];
    if (k == i || strncmp(one->shortened, other->shortened, seen) != 0)
      continue;
    bool equal = strcmp(one->shortened, other->shortened) == 0;
    const char *of_other = equal ? other->whole : other->shortened;
    if (equal && name != one->whole) {
      name = one->whole;
      same = 0;
    } else if (!equal && name == one->whole) {
      continue;
    }
    size_t at = 0;
    while (name[at] && name[at] == of_other[at])
      at++;
    alike = true;
    same = MAX(at, same);
  }
  while (same && isalnum((unsigned char)name[same - 1]))
    same--; /* from the beginning of the word */
  if (alike)
    snprintf(one->text, sizeof(one->text), "…%.*s %s", NAME_PART, name + same, one->shortened);
  else
    snprintf(one->text, sizeof(one->text), "%s", one->shortened);
}

static void number_row(struct row_name *name, u32 number) {
  char longer[DISTINCT_NAME_BYTES + 16];
  snprintf(longer, sizeof(longer), "(%u) %s", number, name->text);
  memcpy(name->text, longer, sizeof(name->text));
  name->text[sizeof(name->text) - 1] = 0;
}

/* Names that differ too late. */
static void number_equal_names(struct row_name *names, u32 n, size_t seen) {
  for (u32 i = 0; i < n; i++) {
    u32 number = 1;
    for (u32 k = i + 1; k < n; k++)
      if (strncmp(names[i].text, names[k].text, seen) == 0)
        number_row(&names[k], ++number);
    if (number > 1)
      number_row(&names[i], 1);
  }
}

void make_names_distinct(const struct pen *pen, struct row_name *names, u32 n) {
  size_t seen = shown_name_length(pen);
  for (u32 i = 0; i < n; i++)
    label_row(names, n, i, seen);
  number_equal_names(names, n, seen);
}
