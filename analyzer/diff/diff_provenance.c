/* SPDX-License-Identifier: MIT
 *
 * How the runs were made: code, versions, devices, hosts, command, environment. Of each run, its
 * first rank's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diff/diff.h"

/* Those that differ from one run to the next by nature are left out. */
static bool is_compared(u32 key) {
  switch (key) {
  case TSCOPE_INFO_RANK:
  case TSCOPE_INFO_LOCAL_RANK:
  case TSCOPE_INFO_PID:
  case TSCOPE_INFO_RUN:
  case TSCOPE_INFO_FEATURE:
  case TSCOPE_INFO_LOOKED_UP:
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

static int add(struct diffing *d, const char *what, const char *name, const char *before,
               const char *after) {
  struct diff_result *out = d->out;
  struct diff_fact *grown = arena_array(d->arena, out->n_facts + 1u, sizeof(*grown));
  if (!grown)
    return -ENOMEM;
  if (out->n_facts)
    memcpy(grown, out->facts, out->n_facts * sizeof(*grown));
  grown[out->n_facts++] =
      (struct diff_fact){what, name, before ? arena_text(d->arena, before) : NULL,
                         after ? arena_text(d->arena, after) : NULL};
  out->facts = grown;
  return 0;
}

/* The value of NAME in lines of NAME=value, copied; NULL if it is not there. */
static char *value_in(struct arena *arena, const char *lines, const char *name, size_t bytes) {
  for (const char *line = lines; line && *line;) {
    size_t length = strcspn(line, "\n");
    if (length > bytes && !strncmp(line, name, bytes) && line[bytes] == '=')
      return arena_printf(arena, "%.*s", (int)(length - bytes - 1), line + bytes + 1);
    line += length + (line[length] == '\n');
  }
  return NULL;
}

/* Variables of one run that the other lacks or has with another value; each pair once. */
static int compare_variables(struct diffing *d, const char *lines, const char *others, bool later) {
  for (const char *line = lines; line && *line;) {
    size_t length = strcspn(line, "\n"), name = strcspn(line, "=");
    if (name < length && strncmp(line, "TSCOPE_", 7) != 0) {
      char *own = value_in(d->arena, lines, line, name);
      char *other = value_in(d->arena, others, line, name);
      bool differs = !other || (later && own && strcmp(own, other) != 0);
      if (differs) {
        int error =
            add(d, keys[TSCOPE_INFO_ENVIRONMENT], arena_printf(d->arena, "%.*s", (int)name, line),
                later ? other : own, later ? own : other);
        if (error)
          return error;
      }
    }
    line += length + (line[length] == '\n');
  }
  return 0;
}

static int compare_numbers(struct diffing *d, const char *what, u32 before, u32 after) {
  char was[16], is[16];
  if (before == after)
    return 0;
  snprintf(was, sizeof(was), "%u", before);
  snprintf(is, sizeof(is), "%u", after);
  return add(d, what, NULL, was, is);
}

int diff_provenance(struct diffing *d) {
  const struct model *before = d->before->model, *after = d->after->model;
  int error = compare_numbers(d, "ranks found", before->n_ranks, after->n_ranks);
  if (error || !before->n_ranks || !after->n_ranks)
    return error;
  const char *const *was = before->ranks[0].info, *const *is = after->ranks[0].info;
  for (u32 key = 0; key < 32 && !error; key++) {
    if (!keys[key] || !is_compared(key))
      continue;
    if (key == TSCOPE_INFO_ENVIRONMENT) {
      error = compare_variables(d, is[key], was[key], true);
      if (!error)
        error = compare_variables(d, was[key], is[key], false);
    } else if ((was[key] || is[key]) && (!was[key] || !is[key] || strcmp(was[key], is[key]) != 0)) {
      error = add(d, keys[key], NULL, was[key], is[key]);
    }
  }
  return error;
}
