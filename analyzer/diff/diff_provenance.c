/* SPDX-License-Identifier: MIT
 *
 * How the runs were made: code, versions, devices, hosts, command, environment; from the first rank
 * of each run. A fact that already differs between runs of one side is not a difference between the
 * sides.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/texts.h"
#include "diff/diff.h"
#include "diff/volatile_facts.def"

/* Facts that always differ from one run to the next are left out. */
static bool is_compared(u32 key) {
  switch (key) {
  case TSCOPE_INFO_RANK:
  case TSCOPE_INFO_LOCAL_RANK:
  case TSCOPE_INFO_PID:
  case TSCOPE_INFO_RUN:
  case TSCOPE_INFO_FEATURE:
  case TSCOPE_INFO_LOOKED_UP:
  case TSCOPE_INFO_UNKNOWN_FUNCTIONS:
    return false;
  default:
    return true;
  }
}

static const char *const keys[32] = {
#define X(NAME, value, key) [value] = key,
    TSCOPE_INFOS(X)
#undef X
};

static bool matches_any(const char *name, const char *const *patterns, size_t n) {
  return ANY(patterns, n, one, fnmatch(*one, name, 0) == 0);
}

#define V(pattern) pattern,
static bool is_volatile_variable(const char *name) {
  static const char *const patterns[] = {TSCOPE_VOLATILE_VARIABLES(V)};
  return matches_any(name, patterns, LENGTH_OF(patterns));
}

static bool is_volatile_option(const char *name) {
  static const char *const patterns[] = {TSCOPE_VOLATILE_OPTIONS(V)};
  return matches_any(name, patterns, LENGTH_OF(patterns));
}
#undef V

/* Command lines, without what is new in each run. */

static bool is_temporary_file(const char *word) {
  return text_starts_with(word, "/tmp/") || text_starts_with(word, "/var/tmp/") ||
         text_starts_with(word, "/dev/shm/");
}

/* The command with "*" for values of volatile options and for temporary files. */
static char *comparable_command(struct arena *arena, const char *command) {
  char *out = arena_text(arena, command), name[64];
  size_t at = 0;
  bool value_next = false;
  for (const char *word = command; *word;) {
    size_t length = strcspn(word, " "), dashes = strspn(word, "-"), end = strcspn(word, "= ");
    if (at)
      out[at++] = ' ';
    bool option = dashes && dashes < end;
    size_t keep = length;
    if (option) {
      snprintf(name, sizeof(name), "%.*s", (int)(end - dashes), word + dashes);
      for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
      bool equals = word[end] == '=';
      bool made_anew = is_volatile_option(name) || (equals && is_temporary_file(word + end + 1));
      keep = equals && made_anew ? end + 1 : length;
      value_next = made_anew && !equals;
    } else if (value_next || is_temporary_file(word)) {
      keep = 0;
      value_next = false;
    }
    memcpy(out + at, word, keep);
    at += keep;
    if (keep < length)
      out[at++] = '*';
    word += length;
    word += strspn(word, " ");
  }
  out[at] = '\0';
  return out;
}

static bool same_value(struct arena *arena, u32 key, const char *a, const char *b) {
  if (!a || !b)
    return a == b;
  if (key != TSCOPE_INFO_COMMAND)
    return strcmp(a, b) == 0;
  const char *one = comparable_command(arena, a), *other = comparable_command(arena, b);
  return strcmp(one, other) == 0;
}

/* NULL if it is not there; with a name the value of that in lines of NAME=value. */
static const char *value_of(struct arena *arena, const struct results *r, u32 key,
                            const char *name) {
  const char *info = r->model->n_ranks ? r->model->ranks[0].info[key] : NULL;
  size_t bytes;
  const char *value = name ? value_among(info, name, &bytes) : info;
  return name && value ? arena_copy(arena, value, bytes) : value;
}

static bool all_have(struct diffing *d, u32 side, u32 key, const char *name, const char *value) {
  return !ANY(d->sides[side]->runs, d->sides[side]->n, one,
              !same_value(d->arena, key, value_of(d->arena, *one, key, name), value));
}

static void add_fact(struct diffing *d, const char *what, const char *name, const char *before,
                     const char *after) {
  struct diff_result *out = d->out;
  const struct diff_fact fact = {what, name, arena_text(d->arena, before),
                                 arena_text(d->arena, after)};
  out->facts = arena_joined(d->arena, out->facts, out->n_facts++, &fact, 1, sizeof(fact));
}

static void compare(struct diffing *d, u32 key, const char *name) {
  const char *before = value_of(d->arena, d->before, key, name);
  const char *after = value_of(d->arena, d->after, key, name);
  if (same_value(d->arena, key, before, after) || !all_have(d, BEFORE, key, name, before) ||
      !all_have(d, AFTER, key, name, after))
    return;
  add_fact(d, keys[key], name, before, after);
}

/* Each variable of one run; of the other, those that the first lacks. */
static void compare_variables(struct diffing *d, const struct results *of,
                              const struct results *unless) {
  const char *lines = value_of(d->arena, of, TSCOPE_INFO_ENVIRONMENT, NULL);
  for (struct named_value line; next_named_value(&lines, &line);)
    if (line.value) {
      char *name = say(d, "%.*s", line.of_name, line.name);
      bool known = unless && value_of(d->arena, unless, TSCOPE_INFO_ENVIRONMENT, name) != NULL;
      if (!known && !is_volatile_variable(name))
        compare(d, TSCOPE_INFO_ENVIRONMENT, name);
    }
}

static void compare_numbers(struct diffing *d, const char *what, u32 before, u32 after) {
  char was[16], is[16];
  if (before == after)
    return;
  snprintf(was, sizeof(was), "%u", before);
  snprintf(is, sizeof(is), "%u", after);
  add_fact(d, what, NULL, was, is);
}

void diff_provenance(struct diffing *d) {
  const struct model *before = d->before->model, *after = d->after->model;
  d->out->facts_known = 0;
  compare_numbers(d, "ranks found", before->n_ranks, after->n_ranks);
  if (!before->n_ranks || !after->n_ranks)
    return;
  for (u32 key = 0; key < 32; key++) {
    if (!keys[key] || !is_compared(key))
      continue;
    d->out->facts_known += before->ranks[0].info[key] || after->ranks[0].info[key];
    if (key == TSCOPE_INFO_ENVIRONMENT) {
      compare_variables(d, d->after, NULL);
      compare_variables(d, d->before, d->after);
    } else {
      compare(d, key, NULL);
    }
  }
}
