/* SPDX-License-Identifier: MIT */
#include "report/gate/gate_rules.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/texts.h"

const char *const gate_kind_words[] = {
    [GATE_FAIL_ON] = "fail-on", [GATE_IGNORE] = "ignore", [GATE_EXPECT] = "expect", NULL};

static const char fail_on_wanted[] =
    "a severity (info, warning, critical), undecided, or findings: critical:DIST,MEMORY or "
    "DIST.STRAGGLER";
static const char ignore_wanted[] = "findings: groups and ids, such as HOST.OVERSUBSCRIBED,KERNEL";
static const char expect_wanted[] =
    "a figure of the JSON report and what it should be: \"steps.median_ms <= 12\", \"budget.mfu "
    ">= 40 %\", \"steps.median_ms within 5 % of 11.3\" or \"steps.median_ms like 11.2 11.4 11.3\"";

/* Whether the first n characters are this finding's id or the group before its point. */
static bool names_finding(const char *name, size_t n, const char *id) {
  return strncmp(name, id, n) == 0 && (!id[n] || (id[n] == '.' && !memchr(name, '.', n)));
}

static bool is_in_list(const char *list, const char *id) {
  for (size_t n; *list; list += n + (list[n] == ',')) {
    n = strcspn(list, ",");
    if (n && names_finding(list, n, id))
      return true;
  }
  return false;
}

static bool names_any_finding(const char *name, size_t n) {
  for (u32 id = FINDING_NONE + 1; finding_id_words[id]; id++)
    if (names_finding(name, n, finding_id_words[id]))
      return true;
  return false;
}

static bool is_list(const char *list) {
  if (!*list)
    return false;
  for (size_t n; *list; list += n + (list[n] == ',')) {
    n = strcspn(list, ",");
    if (!n || !names_any_finding(list, n) || (list[n] && !list[n + 1]))
      return false;
  }
  return true;
}

static const char *parse_fail_on(const char *text, struct gate_rule *rule) {
  size_t n = strcspn(text, ":");
  rule->severity = SEVERITY_INFO;
  bool severe = false;
  for (u32 i = 0; i <= SEVERITY_CRITICAL; i++)
    if (text_is_piece(severity_words[i], text, n)) {
      rule->severity = (enum severity)i;
      severe = true;
    }
  if (strcmp(text, "undecided") == 0) {
    rule->severity = SEVERITY_WARNING;
    rule->undecided = true;
    return NULL;
  }
  if (severe && !text[n])
    return NULL;
  if (!severe && text[n])
    return fail_on_wanted;
  rule->what = severe ? text + n + 1 : text;
  return is_list(rule->what) ? NULL : fail_on_wanted;
}

bool gate_rule_selects(const struct gate_rule *rule, const struct finding *finding) {
  return (rule->kind == GATE_IGNORE || finding->severity >= rule->severity) &&
         (!rule->what || is_in_list(rule->what, finding_id_words[finding->id]));
}

static const char *skip_blanks(const char *at) {
  return at + strspn(at, " \t");
}

/* A number, and " %" behind it; NULL if there is none. */
static const char *parse_number(const char *at, double *number) {
  char *end;
  at = skip_blanks(at);
  *number = strtod(at, &end);
  if (end == at || !isfinite(*number))
    return NULL;
  at = skip_blanks(end);
  if (*at != '%')
    return end;
  *number /= 100;
  return at + 1;
}

static const char *parse_within(const char *at, struct gate_rule *rule) {
  at = parse_number(at, &rule->within);
  at = at ? skip_blanks(at) : "";
  if (!text_starts_with(at, "of") || !isspace((unsigned char)at[2]) || !(rule->within > 0))
    return NULL;
  return parse_number(at + 2, &rule->number);
}

static const char *parse_like(const char *at, struct gate_rule *rule) {
  for (; *skip_blanks(at) && rule->n_like < GATE_MOST_LIKE; rule->n_like++)
    if (!(at = parse_number(at, &rule->like[rule->n_like])))
      return NULL;
  return rule->n_like >= GATE_LEAST_LIKE ? at : NULL;
}

static const struct {
  const char *word;
  enum gate_comparison comparison;
} comparisons[] = {{"<=", GATE_AT_MOST}, {">=", GATE_AT_LEAST},     {"<", GATE_LESS},
                   {">", GATE_MORE},     {" within ", GATE_WITHIN}, {" like ", GATE_LIKE}};

static const char *parse_expect(const char *text, struct gate_rule *rule) {
  const char *at = NULL, *end = NULL;
  for (size_t i = 0; !at && i < LENGTH_OF(comparisons); i++)
    if ((at = strstr(text, comparisons[i].word))) {
      rule->comparison = comparisons[i].comparison;
      end = at + strlen(comparisons[i].word);
    }
  size_t n = at ? (size_t)(at - text) : 0;
  while (n && isspace((unsigned char)text[n - 1]))
    n--;
  if (!n || n >= sizeof(rule->figure))
    return expect_wanted;
  memcpy(rule->figure, text, n);
  rule->figure[n] = '\0';
  end = rule->comparison == GATE_WITHIN ? parse_within(end, rule)
        : rule->comparison == GATE_LIKE ? parse_like(end, rule)
                                        : parse_number(end, &rule->number);
  return end && !*skip_blanks(end) ? NULL : expect_wanted;
}

const char *gate_rule_parse(enum gate_kind kind, const char *text, struct gate_rule *rule) {
  *rule = (struct gate_rule){.kind = kind, .text = text};
  switch (kind) {
  case GATE_FAIL_ON:
    return parse_fail_on(text, rule);
  case GATE_IGNORE:
    rule->what = text;
    return is_list(text) ? NULL : ignore_wanted;
  case GATE_EXPECT:
    break;
  }
  return parse_expect(text, rule);
}
