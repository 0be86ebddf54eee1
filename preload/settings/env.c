/* SPDX-License-Identifier: MIT */
#include "settings/env.h"

#include <stdlib.h>
#include <string.h>

#include "record/hook.h"
#include "settings/flag_words.h"
#include "settings/process_environment.h"

struct tscope_env tscope_env;

static bool is_one_of(const char *value, const char *words) {
  size_t length = strlen(value);
  for (const char *word = words; *word;) {
    size_t end = strcspn(word, " ");
    if (end == length && memcmp(word, value, length) == 0)
      return true;
    word += end + (word[end] == ' ');
  }
  return false;
}

static bool parse_flag(bool *target, const char *value, const char *values) {
  (void)values;
  return tscope_read_flag(value, target);
}

static bool parse_text(char *target, const char *value, const char *values) {
  if (strlen(value) >= TSCOPE_ENV_TEXT_BYTES || (*values && !is_one_of(value, values)))
    return false;
  strcpy(target, value);
  return true;
}

static bool parse_number(u64 *target, const char *value, const char *values) {
  (void)values;
  char *end;
  if (*value < '0' || *value > '9')
    return false;
  *target = strtoull(value, &end, 10);
  return *end == '\0';
}

static bool parse_size(u64 *target, const char *value, const char *values) {
  (void)values;
  static const char units[] = "KMGT";
  char *end;
  if (*value < '0' || *value > '9')
    return false;
  u64 size = strtoull(value, &end, 10);
  const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
  unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
  if (unit)
    end += end[1] == 'i' && end[2] == 'B' ? 3 : end[1] == 'B' || end[1] == 'i' ? 2 : 1;
  if (*end || size > UINT64_MAX >> shift)
    return false;
  *target = size << shift;
  return true;
}

#define PARSE_FLAG(member, value, values) parse_flag(&tscope_env.member, value, values)
#define PARSE_TEXT(member, value, values) parse_text(tscope_env.member, value, values)
#define PARSE_NUMBER(member, value, values) parse_number(&tscope_env.member, value, values)
#define PARSE_SIZE(member, value, values) parse_size(&tscope_env.member, value, values)

bool tscope_env_flag(const char *variable, bool standard) {
  const char *value = getenv(variable);
  bool flag = standard;
  return value && *value && parse_flag(&flag, value, "") ? flag : standard;
}

void tscope_env_read(void) {
  bool copied = tscope_environment_copy();
#define X(member, TYPE, variable, standard, values, doc) PARSE_##TYPE(member, standard, "");
  TSCOPE_ENV(X)
#undef X
#define X(member, TYPE, variable, standard, values, doc)                                           \
  do {                                                                                             \
    const char *value = tscope_environment_get(variable);                                          \
    if (value && *value && !PARSE_##TYPE(member, value, values))                                   \
      tscope_log(0, "%s=%.80s is not valid; using %s", variable, value, standard);                 \
  } while (0);
  TSCOPE_ENV(X)
#undef X
  if (copied)
    return;
  tscope_env.enabled = false;
  tscope_log(0, "off: no memory to read the environment");
}
