/* SPDX-License-Identifier: MIT */
#include "kernels/kernels.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/vector.h"
#include "kernels/kernel_text.h"

/* Of a longer name only the beginning is used: it says what a kernel does. */
#define MATCHED_BYTES 4096

struct pattern {
  regex_t regex;
  unsigned category;
  bool whole; /* searched in the template arguments too */
};

struct kernel_names {
  VECTOR(struct pattern) patterns;
  u32 n_of_file; /* the first ones */
  VECTOR(const char *) categories;
  pthread_mutex_t lock; /* over all that follows */
  struct arena arena;
  HASHED(struct kernel *) list;
};

/* An error has its cause in `why`. */
static int add_pattern(struct kernel_names *names, unsigned category, bool whole,
                       const char *pattern, char *why, size_t why_bytes) {
  VECTOR_ROOM(&names->patterns);
  struct pattern *added = &names->patterns.at[names->patterns.n];
  int error = regcomp(&added->regex, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB);
  if (error) {
    regerror(error, &added->regex, why, why_bytes);
    return -EINVAL;
  }
  added->category = category;
  added->whole = whole;
  names->patterns.n++;
  return 0;
}

/* The number of a category, a new one if it is not known yet. */
static unsigned category_number(struct kernel_names *names, const char *name) {
  u32 known = INDEX_OF(names->categories.at, names->categories.n, one, !strcasecmp(*one, name));
  if (known != INDEX_NONE)
    return known;
  VECTOR_PUSH(&names->categories, arena_text(&names->arena, name));
  return names->categories.n - 1;
}

static char *trim(char *text) {
  while (isspace((unsigned char)*text))
    text++;
  size_t length = strlen(text);
  while (length && isspace((unsigned char)text[length - 1]))
    text[--length] = '\0';
  return text;
}

static int read_line(struct kernel_names *names, char *line, char *why, size_t why_bytes) {
  line = trim(line);
  if (!*line || *line == '#')
    return 0;
  char *colon = strchr(line, ':');
  if (!colon || colon == line || !*trim(colon + 1)) {
    snprintf(why, why_bytes, "not of the form 'CATEGORY: PATTERN'");
    return -EINVAL;
  }
  *colon = '\0';
  unsigned category = category_number(names, trim(line));
  return add_pattern(names, category, true, trim(colon + 1), why, why_bytes);
}

static int read_file(struct kernel_names *names, const char *file, char *why, size_t why_bytes) {
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
    error = read_line(names, line, cause, sizeof(cause));
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

static int add_built_in(struct kernel_names *names, char *why, size_t why_bytes) {
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
  for (size_t i = 0; i < LENGTH_OF(patterns) && !error; i++)
    error = add_pattern(names, patterns[i].category, patterns[i].whole, patterns[i].pattern, why,
                        why_bytes);
  return error;
}

struct kernel_names *kernel_names_new(const char *file, char *why, size_t why_bytes) {
  static const char *const built_in[] = {
#define C(ID, name, what) name,
      TSCOPE_KERNEL_CATEGORIES(C)
#undef C
  };
  struct kernel_names *names = memory_zeroed(1, sizeof(*names));
  pthread_mutex_init(&names->lock, NULL);
  FOR_EACH(built_in, KERNEL_CATEGORIES, one)
    category_number(names, *one);
  int error = file ? read_file(names, file, why, why_bytes) : 0;
  names->n_of_file = names->patterns.n;
  if (!error)
    error = add_built_in(names, why, why_bytes);
  if (!error)
    return names;
  kernel_names_free(names);
  return NULL;
}

void kernel_names_free(struct kernel_names *names) {
  if (!names)
    return;
  FOR_EACH_CHANGED(names->patterns.at, names->patterns.n, pattern)
    regfree(&pattern->regex);
  arena_release(&names->arena);
  FREE_EACH(names, patterns.at, categories.at, list.at, list.index.slots);
  pthread_mutex_destroy(&names->lock);
  free(names);
}

#define NO_CATEGORY UINT_MAX

/* The category of the first pattern from `first` on that is found. */
static unsigned first_match(const struct kernel_names *names, u32 first, u32 end, const char *name,
                            const char *whole) {
  for (u32 i = first; i < end; i++) {
    const struct pattern *pattern = &names->patterns.at[i];
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

/* The category of a kernel by its names (kernel_text.h), and what it communicates: both as
 * communication.def and categories.def say, or as the file does. */
static unsigned match_patterns(const struct kernel_names *names, const char *demangled,
                               const char *stripped, struct communication *communication) {
  char beginning[MATCHED_BYTES + 1];
  if (strlen(stripped) > MATCHED_BYTES) {
    memcpy(beginning, stripped, MATCHED_BYTES);
    beginning[MATCHED_BYTES] = '\0';
    stripped = beginning;
  }
  u32 n = names->patterns.n;
  unsigned category = first_match(names, 0, names->n_of_file, stripped, stripped);
  *communication = communication_of_demangled(demangled, stripped);
  if (category != NO_CATEGORY) {
    follow_file(category, communication);
    return category;
  }
  if (communication->library)
    return is_fused(communication) ? KERNEL_COMPUTING_COMMUNICATION : KERNEL_COMMUNICATION;
  SCOPED char *name = own_name(stripped);
  category = first_match(names, names->n_of_file, n, name, stripped);
  if (category == NO_CATEGORY)
    category = first_match(names, names->n_of_file, n, stripped, stripped);
  return category == NO_CATEGORY ? KERNEL_OTHER : category;
}

static struct kernel *add_kernel(struct kernel_names *names, const char *name, u64 hash) {
  char shortened[KERNEL_SHORT + 1];
  struct kernel *kernel = arena_alloc(&names->arena, sizeof(*kernel));
  SCOPED char *demangled = kernel_demangle(name);
  SCOPED char *stripped = kernel_strip(demangled);
  kernel_shorten(stripped, shortened);
  kernel->raw = arena_text(&names->arena, name);
  kernel->hash = hash;
  kernel->number = names->list.n;
  kernel->demangled =
      strcmp(name, demangled) == 0 ? kernel->raw : arena_text(&names->arena, demangled);
  kernel->shortened = arena_text(&names->arena, shortened);
  kernel->category = match_patterns(names, demangled, stripped, &kernel->communication);
  HASHED_ADD(&names->list, hash, kernel);
  return kernel;
}

const struct kernel *kernel_lookup(struct kernel_names *names, const char *name) {
  u64 hash = table_hash_text(0, name);
  pthread_mutex_lock(&names->lock);
  u32 known = HASHED_INDEX(&names->list, hash, one, strcmp((*one)->raw, name) == 0);
  const struct kernel *kernel =
      known == INDEX_NONE ? add_kernel(names, name, hash) : names->list.at[known];
  pthread_mutex_unlock(&names->lock);
  return kernel;
}

unsigned kernel_category(struct kernel_names *names, const char *name) {
  const struct kernel *kernel = name ? kernel_lookup(names, name) : NULL;
  return kernel ? kernel->category : KERNEL_OTHER;
}

struct communication kernel_communication(struct kernel_names *names, const char *name) {
  const struct kernel *kernel = names ? kernel_lookup(names, name) : NULL;
  return kernel ? kernel->communication : communication_of_kernel(name);
}

unsigned kernel_category_count(const struct kernel_names *names) {
  return names->categories.n;
}

const char *kernel_category_name(const struct kernel_names *names, unsigned category) {
  return category < names->categories.n ? names->categories.at[category] : "other";
}
