/* SPDX-License-Identifier: MIT */
#include "settings/env.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "format/text_parts.h"
#include "record/hook.h"
#include "settings/process_environment.h"
#include "settings/setting_values.h"

struct tscope_env tscope_env;

static const char seconds[] = "SECONDS";

static bool is_one_of(const char *value, const char *words) {
  u64 number;
  if (tscope_read_number(value, &number))
    return number > 0 && tscope_has_word(words, " ", seconds);
  return strcmp(value, seconds) != 0 && tscope_has_word(words, " ", value);
}

static bool parse_text(char *target, const char *value, const char *values) {
  if (strlen(value) >= TSCOPE_ENV_TEXT_BYTES || (*values && !is_one_of(value, values)))
    return false;
  strcpy(target, value);
  return true;
}

/* "N/M" with 0 < N < M; "": not set. */
static bool parse_fraction(struct tscope_fraction *target, const char *value) {
  const char *slash;
  u64 n = leading_number(value, UINT64_MAX, &slash), m = 0;
  bool is_set =
      *slash == '/' && tscope_read_number(slash + 1, &m) && n > 0 && n < m && m <= UINT32_MAX;
  if (is_set || !*value)
    *target = (struct tscope_fraction){(u32)n, (u32)m};
  return is_set;
}

#define PARSE_FLAG(member, value, values) tscope_read_flag(value, &tscope_env.member)
#define PARSE_TEXT(member, value, values) parse_text(tscope_env.member, value, values)
#define PARSE_NUMBER(member, value, values) tscope_read_number(value, &tscope_env.member)
#define PARSE_SIZE(member, value, values) tscope_read_size(value, &tscope_env.member)
#define PARSE_FRACTION(member, value, values) parse_fraction(&tscope_env.member, value)

bool tscope_env_flag(const char *variable, bool standard) {
  const char *value = tscope_environment_now(variable);
  bool flag = standard;
  return value && tscope_read_flag(value, &flag) ? flag : standard;
}

bool tscope_is_wanted(void) {
  return !getauxval(AT_SECURE) && tscope_env_flag("TSCOPE", true);
}

void tscope_env_read(void) {
  char invalid[480] = ""; /* all into one line */
  bool copied = tscope_environment_copy();
#define X(member, TYPE, variable, standard, values, doc) PARSE_##TYPE(member, standard, "");
  TSCOPE_ENV(X)
#undef X
#define X(member, TYPE, variable, standard, values, doc)                                           \
  do {                                                                                             \
    const char *value = tscope_environment_get(variable);                                          \
    if (value && !PARSE_##TYPE(member, value, values))                                             \
      tscope_append(invalid, sizeof(invalid), "%s%s=%.80s (using %s)", *invalid ? ", " : "",       \
                    variable, value, *standard ? standard : "none");                               \
  } while (0);
  TSCOPE_ENV(X)
#undef X
  if (*invalid)
    tscope_log(0, "not valid: %s", invalid);
  if (copied)
    return;
  tscope_env.enabled = false;
  tscope_log(0, "off: no memory to read the environment");
}
