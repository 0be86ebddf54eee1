/* SPDX-License-Identifier: MIT
 *
 * Whether the job asked for the same bits each time, as far as environment and command line show
 * it. What the program requests by a call is not recorded; but PyTorch's deterministic GEMMs need
 * CUBLAS_WORKSPACE_CONFIG.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/texts.h"
#include "diff/diff.h"

/* The values are extended patterns of the shell. */
static const struct setting {
  const char *name, *values;
} settings[] = {
    /* the two that cuBLAS documents as reproducible */
    {"CUBLAS_WORKSPACE_CONFIG", "@(:4096:8|:16:8)"},
    {"PYTHONHASHSEED", "+([0-9])"},
    {"FLASH_ATTENTION_DETERMINISTIC", "1"},
    {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0"},
};

static bool requested_by_variable(const char *lines, const struct setting *setting) {
  SCOPED_ARENA struct arena arena = {0};
  size_t bytes;
  const char *value = value_among(lines, setting->name, &bytes);
  return value && fnmatch(setting->values, arena_copy(&arena, value, bytes), FNM_EXTMATCH) == 0;
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
  FOR_EACH(settings, LENGTH_OF(settings), setting)
    if (all_request(d, setting))
      list = arena_list(d->arena, list, ", ", "%s", setting->name);
  if (all_request(d, NULL))
    list = arena_list(d->arena, list, ", ", "the command line");
  d->out->determinism = list;
}
