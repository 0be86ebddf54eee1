/* SPDX-License-Identifier: MIT
 *
 * Whether the job asked for the same bits each time, as far as environment and command line show
 * it. What the program requests by a call is not recorded; but PyTorch's deterministic GEMMs need
 * CUBLAS_WORKSPACE_CONFIG.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "diff/diff.h"

enum value { ANY_NUMBER, ONE, ZERO, WORKSPACE };

static const struct request {
  const char *name;
  enum value value;
} requests[] = {
    {"CUBLAS_WORKSPACE_CONFIG", WORKSPACE}, /* the two that cuBLAS documents as reproducible */
    {"PYTHONHASHSEED", ANY_NUMBER},
    {"FLASH_ATTENTION_DETERMINISTIC", ONE},
    {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", ZERO},
};

static bool is_value(const char *text, size_t n, enum value value) {
  switch (value) {
  case ANY_NUMBER:
    return n && strspn(text, "0123456789") >= n;
  case ONE:
    return n == 1 && *text == '1';
  case ZERO:
    return n == 1 && *text == '0';
  case WORKSPACE:
    return (n == 7 && !strncmp(text, ":4096:8", n)) || (n == 5 && !strncmp(text, ":16:8", n));
  }
  return false;
}

static bool asked_by_variable(const char *lines, const struct request *request) {
  size_t bytes = strlen(request->name);
  for (const char *line = lines; line && *line;) {
    size_t length = strcspn(line, "\n");
    if (length > bytes && !strncmp(line, request->name, bytes) && line[bytes] == '=')
      return is_value(line + bytes + 1, length - bytes - 1, request->value);
    line += length + (line[length] == '\n');
  }
  return false;
}

/* --deterministic, --use_deterministic_algorithms=1, trainer.deterministic=true; not --no-..., and
 * not what is set to false. */
static bool asked_by_command(const char *command) {
  for (const char *word = command; word && *word;) {
    size_t length = strcspn(word, " ");
    char copy[128];
    snprintf(copy, sizeof(copy), "%.*s", (int)length, word);
    const char *asked = strcasestr(copy, "determinis"), *equals = strchr(copy, '=');
    bool negated = strcasestr(copy, "no-") || strcasestr(copy, "no_") || strcasestr(copy, "nondet");
    if (equals && (!strcasecmp(equals, "=false") || !strcmp(equals, "=0") ||
                   !strcasecmp(equals, "=no") || !strcasecmp(equals, "=warn")))
      negated = true;
    if (asked && !negated && (!equals || asked < equals) && (*copy == '-' || equals))
      return true;
    word += length;
    word += strspn(word, " ");
  }
  return false;
}

static const char *const *info_of(const struct results *r) {
  return r->model->n_ranks ? (const char *const *)r->model->ranks[0].info : NULL;
}

static bool all_ask(const struct diffing *d, const struct request *request) {
  for (u32 side = BEFORE; side <= AFTER; side++)
    for (u32 i = 0; i < d->sides[side]->n; i++) {
      const char *const *info = info_of(d->sides[side]->runs[i]);
      if (!info || !(request ? asked_by_variable(info[TSCOPE_INFO_ENVIRONMENT], request)
                             : asked_by_command(info[TSCOPE_INFO_COMMAND])))
        return false;
    }
  return true;
}

int diff_determinism(struct diffing *d) {
  char *list = NULL;
  for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
    if (all_ask(d, &requests[i])) {
      list = arena_printf(d->arena, "%s%s%s", list ? list : "", list ? ", " : "", requests[i].name);
      if (!list)
        return -ENOMEM;
    }
  if (all_ask(d, NULL)) {
    list = arena_printf(d->arena, "%s%sthe command line", list ? list : "", list ? ", " : "");
    if (!list)
      return -ENOMEM;
  }
  d->out->determinism = list;
  return 0;
}
