/* SPDX-License-Identifier: MIT */
#include "kernels/patterns.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/vector.h"
#include "kernels/kernel_text.h"
#include "kernels/kernels.h"

/* Of a longer name only the beginning is used: it says what a kernel does. */
#define MATCHED_BYTES 4096

struct pattern {
  regex_t regex;
  unsigned category;
  bool whole; /* searched in the template arguments too */
};

struct kernel_patterns {
  struct arena arena;
  VECTOR(struct pattern) patterns;
  u32 n_of_file; /* the first ones */
  VECTOR(const char *) categories;
};

/* An error has its cause in `why`. */
static int add_pattern(struct kernel_patterns *p, unsigned category, bool whole,
                       const char *pattern, char *why, size_t why_bytes) {
  VECTOR_ROOM(&p->patterns);
  struct pattern *added = &p->patterns.at[p->patterns.n];
  int error = regcomp(&added->regex, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB);
  if (error) {
    regerror(error, &added->regex, why, why_bytes);
    return -EINVAL;
  }
  added->category = category;
  added->whole = whole;
  p->patterns.n++;
  return 0;
}

/* The number of a category, a new one if it is not known yet. */
static unsigned category_number(struct kernel_patterns *p, const char *name) {
  for (u32 i = 0; i < p->categories.n; i++)
    if (strcasecmp(p->categories.at[i], name) == 0)
      return i;
  const char *copy = arena_text(&p->arena, name);
  VECTOR_PUSH(&p->categories, copy);
  return p->categories.n - 1;
}

static char *trim(char *text) {
  while (isspace((unsigned char)*text))
    text++;
  size_t length = strlen(text);
  while (length && isspace((unsigned char)text[length - 1]))
    text[--length] = '\0';
  return text;
}

static int read_line(struct kernel_patterns *p, char *line, char *why, size_t why_bytes) {
  line = trim(line);
  if (!*line || *line == '#')
    return 0;
  char *colon = strchr(line, ':');
  if (!colon || colon == line || !*trim(colon + 1)) {
    snprintf(why, why_bytes, "not of the form 'CATEGORY: PATTERN'");
    return -EINVAL;
  }
  *colon = '\0';
  unsigned category = category_number(p, trim(line));
  return add_pattern(p, category, true, trim(colon + 1), why, why_bytes);
}

static int read_file(struct kernel_patterns *p, const char *file, char *why, size_t why_bytes) {
  FILE *in = fopen(file, "r");
  if (!in) {
    snprintf(why, why_bytes, "%s: %s", file, strerror(errno));
    return -errno;
  }
  char *line = NULL, cause[256];
  size_t room = 0;
  unsigned number = 0;
  int error = 0;
  while (!error && getline(&line, &room, in) >= 0) {
    number++;
    error = read_line(p, line, cause, sizeof(cause));
  }
  if (error)
    snprintf(why, why_bytes, "%s:%u: %s", file, number, cause);
  else if (ferror(in)) {
    error = -EIO;
    snprintf(why, why_bytes, "%s: %s", file, strerror(errno));
  }
  free(line);
  fclose(in);
  return error;
}

static int add_built_in(struct kernel_patterns *p, char *why, size_t why_bytes) {
  static const struct {
    unsigned category;
    bool whole;
    const char *pattern;
  } patterns[] = {
#define P(ID, pattern) {KERNEL_##ID, false, pattern},
#define W(ID, pattern) {KERNEL_##ID, true, pattern},
      TSCOPE_KERNEL_PATTERNS(P, W)
#undef P
#undef W
  };
  int error = 0;
  for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]) && !error; i++)
    error = add_pattern(p, patterns[i].category, patterns[i].whole, patterns[i].pattern, why,
                        why_bytes);
  return error;
}

struct kernel_patterns *kernel_patterns_new(const char *file, char *why, size_t why_bytes) {
  static const char *const built_in[] = {
#define C(ID, name, what) name,
      TSCOPE_KERNEL_CATEGORIES(C)
#undef C
  };
  struct kernel_patterns *p = memory_zeroed(1, sizeof(*p));
  int error = 0;
  for (unsigned i = 0; i < KERNEL_CATEGORIES; i++)
    category_number(p, built_in[i]);
  if (file)
    error = read_file(p, file, why, why_bytes);
  if (!error)
    p->n_of_file = p->patterns.n;
  if (!error)
    error = add_built_in(p, why, why_bytes);
  if (!error)
    return p;
  kernel_patterns_free(p);
  return NULL;
}

void kernel_patterns_free(struct kernel_patterns *p) {
  if (!p)
    return;
  for (u32 i = 0; i < p->patterns.n; i++)
    regfree(&p->patterns.at[i].regex);
  free(p->patterns.at);
  free(p->categories.at);
  arena_release(&p->arena);
  free(p);
}

#define NO_CATEGORY UINT_MAX

/* The category of the first pattern from `first` on that is found. */
static unsigned first_match(const struct kernel_patterns *p, u32 first, u32 end, const char *name,
                            const char *whole) {
  for (u32 i = first; i < end; i++) {
    const struct pattern *pattern = &p->patterns.at[i];
    if (regexec(&pattern->regex, pattern->whole ? whole : name, 0, NULL, 0) == 0)
      return pattern->category;
  }
  return NO_CATEGORY;
}

/* The name with its namespaces, without template arguments. */
static char *own_name(const char *stripped) {
  struct kernel_parts parts;
  SCOPED char *text = kernel_split(stripped, &parts);
  return memory_printf("%s%s%s", parts.scope, *parts.scope ? "::" : "", parts.function);
}

static bool is_fused(const struct communication *communication) {
  return comm_op_part(communication->op) == COMM_PART_FUSED;
}

/* A file's word also decides whether a kernel communicates. */
static void follow_file(unsigned category, struct communication *communication) {
  bool fused = category == KERNEL_COMPUTING_COMMUNICATION;
  if (!fused && category != KERNEL_COMMUNICATION)
    *communication = (struct communication){0};
  else if (!communication->library || fused != is_fused(communication))
    *communication = (struct communication){
        .library = COMM_LIBRARY_CUSTOM, .op = fused ? COMM_OP_CUSTOM_FUSED : COMM_OP_CUSTOM_OTHER};
}

unsigned kernel_patterns_match(const struct kernel_patterns *p, const char *demangled,
                               const char *stripped, struct communication *communication) {
  char beginning[MATCHED_BYTES + 1];
  if (strlen(stripped) > MATCHED_BYTES) {
    memcpy(beginning, stripped, MATCHED_BYTES);
    beginning[MATCHED_BYTES] = '\0';
    stripped = beginning;
  }
  u32 n = p->patterns.n;
  unsigned category = first_match(p, 0, p->n_of_file, stripped, stripped);
  *communication = communication_of_demangled(demangled, stripped);
  if (category != NO_CATEGORY) {
    follow_file(category, communication);
    return category;
  }
  if (communication->library)
    return is_fused(communication) ? KERNEL_COMPUTING_COMMUNICATION : KERNEL_COMMUNICATION;
  SCOPED char *name = own_name(stripped);
  category = first_match(p, p->n_of_file, n, name, stripped);
  if (category == NO_CATEGORY)
    category = first_match(p, p->n_of_file, n, stripped, stripped);
  return category == NO_CATEGORY ? KERNEL_OTHER : category;
}

unsigned kernel_patterns_categories(const struct kernel_patterns *p) {
  return p->categories.n;
}

const char *kernel_patterns_category_name(const struct kernel_patterns *p, unsigned category) {
  return category < p->categories.n ? p->categories.at[category] : "other";
}
