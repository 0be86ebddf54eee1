/* SPDX-License-Identifier: MIT */
#include "settings/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/hook.h"
#include "settings/process_environment.h"
#include "settings/setting_values.h"

struct tscope_env tscope_env;

static bool fits(const char *value, const char *word, size_t length) {
  u64 number;
  if (length == strlen("SECONDS") && memcmp(word, "SECONDS", length) == 0)
    return tscope_read_number(value, &number) && number > 0;
  return length == strlen(value) && memcmp(word, value, length) == 0;
}

static bool is_one_of(const char *value, const char *words) {
  for (const char *word = words; *word;) {
    size_t end = strcspn(word, " ");
    if (fits(value, word, end))
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
  return tscope_read_number(value, target);
}

static bool parse_size(u64 *target, const char *value, const char *values) {
  (void)values;
  return tscope_read_size(value, target);
}

/* "N/M" with 0 < N < M; "": not set. */
static bool parse_fraction(struct tscope_fraction *target, const char *value, const char *values) {
  (void)values;
  char *slash;
  u64 n = strtoull(value, &slash, 10), m = 0;
  bool is_set = *value >= '0' && *value <= '9' && *slash == '/' &&
                tscope_read_number(slash + 1, &m) && n > 0 && n < m && m <= UINT32_MAX;
  if (is_set || !*value)
    *target = (struct tscope_fraction){(u32)n, (u32)m};
  return is_set;
}

#define PARSE_FLAG(member, value, values) parse_flag(&tscope_env.member, value, values)
#define PARSE_TEXT(member, value, values) parse_text(tscope_env.member, value, values)
#define PARSE_NUMBER(member, value, values) parse_number(&tscope_env.member, value, values)
#define PARSE_SIZE(member, value, values) parse_size(&tscope_env.member, value, values)
#define PARSE_FRACTION(member, value, values) parse_fraction(&tscope_env.member, value, values)

bool tscope_env_flag(const char *variable, bool standard) {
  const char *value = tscope_environment_now(variable);
  bool flag = standard;
  return value && parse_flag(&flag, value, "") ? flag : standard;
}

/* All that is not valid goes into one line. */
struct invalid {
  char text[480];
  size_t bytes;
};

static void add_invalid(struct invalid *all, const char *variable, const char *value,
                        const char *standard) {
  size_t room = sizeof(all->text) - all->bytes;
  int bytes = snprintf(all->text + all->bytes, room, "%s%s=%.80s (using %s)",
                       all->bytes ? ", " : "", variable, value, *standard ? standard : "none");
  all->bytes += bytes < 0 ? 0 : (size_t)bytes < room ? (size_t)bytes : room - 1;
}

void tscope_env_read(void) {
  struct invalid invalid = {0};
  bool copied = tscope_environment_copy();
#define X(member, TYPE, variable, standard, values, doc) PARSE_##TYPE(member, standard, "");
  TSCOPE_ENV(X)
#undef X
#define X(member, TYPE, variable, standard, values, doc)                                           \
  do {                                                                                             \
    const char *value = tscope_environment_get(variable);                                          \
    if (value && *value && !PARSE_##TYPE(member, value, values))                                   \
      add_invalid(&invalid, variable, value, standard);                                            \
  } while (0);
  TSCOPE_ENV(X)
#undef X
  if (invalid.bytes)
    tscope_log(0, "not valid: %s", invalid.text);
  if (copied)
    return;
  tscope_env.enabled = false;
  tscope_log(0, "off: no memory to read the environment");
}
