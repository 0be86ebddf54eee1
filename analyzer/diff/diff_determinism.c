/* SPDX-License-Identifier: MIT
 *
 * Whether the job asked for the same bits each time, as far as environment and command line show
 * it. What the program requests by a call is not recorded; but PyTorch's deterministic GEMMs need
 * CUBLAS_WORKSPACE_CONFIG.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/texts.h"
#include "diff/diff.h"

enum value { ANY_NUMBER, ONE, ZERO, WORKSPACE };

static const struct setting {
  const char *name;
  enum value value;
} settings[] = {
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

static bool requested_by_variable(const char *lines, const struct setting *setting) {
  size_t bytes;
  const char *value = value_among(lines, setting->name, &bytes);
  return value && is_value(value, bytes, setting->value);
}

/* --deterministic, --use_deterministic_algorithms=1, trainer.deterministic=true; not --no-..., and
 * not what is set to false. */
static bool requested_by_command(const char *command) {
  for (const char *word = command; word && *word;) {
    size_t length = strcspn(word, " ");
    char copy[128];
    snprintf(copy, sizeof(copy), "%.*s", (int)length, word);
    const char *found = strcasestr(copy, "determinis"), *equals = strchr(copy, '=');
    bool negated = strcasestr(copy, "no-") || strcasestr(copy, "no_") || strcasestr(copy, "nondet");
    if (equals && (!strcasecmp(equals, "=false") || !strcmp(equals, "=0") ||
                   !strcasecmp(equals, "=no") || !strcasecmp(equals, "=warn")))
      negated = true;
    if (found && !negated && (!equals || found < equals) && (*copy == '-' || equals))
      return true;
    word += length;
    word += strspn(word, " ");
  }
  return false;
}

static const char *const *info_of(const struct results *r) {
  return r->model->n_ranks ? (const char *const *)r->model->ranks[0].info : NULL;
}

static bool all_request(const struct diffing *d, const struct setting *setting) {
  EACH_RUN(d, side, i) {
    const char *const *info = info_of(d->sides[side]->runs[i]);
    if (!info || !(setting ? requested_by_variable(info[TSCOPE_INFO_ENVIRONMENT], setting)
                           : requested_by_command(info[TSCOPE_INFO_COMMAND])))
      return false;
  }
  return true;
}

void diff_determinism(struct diffing *d) {
  char *list = NULL;
  for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
    if (all_request(d, &settings[i]))
      list = say(d, "%s%s%s", text_or_empty(list), list ? ", " : "", settings[i].name);
  if (all_request(d, NULL))
    list = say(d, "%s%sthe command line", text_or_empty(list), list ? ", " : "");
  d->out->determinism = list;
}
