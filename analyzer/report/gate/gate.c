/* SPDX-License-Identifier: MIT */
#include "report/gate/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/statistics.h"
#include "base/texts.h"
#include "diff/diff_result.h"
#include "import/read_values.h"
#include "report/json/json_fields.h"

/* What is judged: of one run, or of a comparison. */
struct subject {
  const struct finding *findings;
  u32 n_findings;
  const char *undecided; /* what could not be judged, and why; NULL: nothing */
  json_t *document;
};

/* Cuts remarks and blanks off a line, and splits the first word from the rest. */
static char *split_line(char *line, char **rest) {
  for (char *mark = line; (mark = strchr(mark, '#')); mark++)
    if (mark == line || mark[-1] == ' ' || mark[-1] == '\t') {
      *mark = '\0';
      break;
    }
  char *word = line + strspn(line, " \t\r");
  size_t n = strlen(word);
  while (n && strchr(" \t\r", word[n - 1]))
    word[--n] = '\0';
  *rest = word + strcspn(word, " \t");
  if (**rest)
    *(*rest)++ = '\0';
  *rest += strspn(*rest, " \t");
  return word;
}

static bool read_line(struct gate *gate, const char *path, unsigned number, char *line, char *why,
                      size_t why_bytes) {
  char *rest, *word = split_line(line, &rest);
  if (!*word)
    return true;
  u32 kind = GATE_FAIL_ON;
  while (gate_kind_words[kind] && strcmp(gate_kind_words[kind], word) != 0)
    kind++;
  if (!gate_kind_words[kind]) {
    snprintf(why, why_bytes, "%s:%u: '%s' is none of fail-on, ignore and expect", path, number,
             word);
    return false;
  }
  struct gate_rule rule;
  const char *wanted = gate_rule_parse((enum gate_kind)kind, rest, &rule);
  if (wanted)
    snprintf(why, why_bytes, "%s:%u: %s wants %s, not '%s'", path, number, word, wanted, rest);
  rule.file = path;
  rule.line = number;
  if (!wanted)
    VECTOR_PUSH(&gate->rules, rule);
  return !wanted;
}

int gate_read_file(struct gate *gate, const char *path, char *why, size_t why_bytes) {
  u8 *bytes;
  size_t n;
  int error = whole_file_read(path, &bytes, &n);
  if (error) {
    snprintf(why, why_bytes, "%s cannot be read: %s", path, strerror(-error));
    return -1;
  }
  char *text = arena_copy(&gate->arena, (const char *)bytes, n), *line;
  free(bytes);
  unsigned number = 0;
  while ((line = strsep(&text, "\n")))
    if (!read_line(gate, path, ++number, line, why, why_bytes))
      return -1;
  return 0;
}

bool gate_checks_something(const struct gate *gate) {
  return ANY(gate->rules.at, gate->rules.n, one, one->kind != GATE_IGNORE);
}

const char *gate_rule_place(const struct gate_rule *rule) {
  static char place[512];
  if (rule->file)
    snprintf(place, sizeof(place), "%s:%u", rule->file, rule->line);
  else
    snprintf(place, sizeof(place), "--%s %s", gate_kind_words[rule->kind], rule->text);
  return place;
}

/* Once, however many rules are about it. */
static void add_ignored(struct gate *gate, char *line) {
  if (!ANY(gate->ignored.at, gate->ignored.n, one, strcmp(*one, line) == 0))
    VECTOR_PUSH(&gate->ignored, line);
}

static struct gate_check check_findings(struct gate *gate, const struct gate_rule *rule,
                                        const struct subject *subject) {
  char *found = NULL;
  FOR_EACH(subject->findings, subject->n_findings, finding) {
    if (!gate_rule_selects(rule, finding))
      continue;
    char *line = arena_printf(&gate->arena, "%s %s: %s", severity_words[finding->severity],
                              finding_id_words[finding->id], finding->title);
    if (ANY(gate->rules.at, gate->rules.n, one,
            one->kind == GATE_IGNORE && gate_rule_selects(one, finding)))
      add_ignored(gate, line);
    else
      found = found ? arena_printf(&gate->arena, "%s; %s", found, line) : line;
  }
  if (!found && rule->undecided && subject->undecided)
    found = arena_printf(&gate->arena, "undecided: %s", subject->undecided);
  return (struct gate_check){rule, !found,
                             found ? found : arena_text(&gate->arena, "no such finding")};
}

/* A run of one kind is not more than the limit, but in one case of a hundred: the prediction
 * interval of one more value. */
static double like_limit(const struct gate_rule *rule) {
  double mean = mean_of(rule->like, rule->n_like), spread = deviation_of(rule->like, rule->n_like);
  /* two-sided 98 % leaves 1 % above */
  return mean + student_quantile(0.98, rule->n_like - 1) * spread * sqrt(1 + 1.0 / rule->n_like);
}

static bool compare_figure(const struct gate_rule *rule, double value, char *limit, size_t bytes) {
  double number = rule->number, off = rule->within * fabs(number);
  switch (rule->comparison) {
  case GATE_AT_MOST:
    snprintf(limit, bytes, "at most %.6g", number);
    return value <= number;
  case GATE_AT_LEAST:
    snprintf(limit, bytes, "at least %.6g", number);
    return value >= number;
  case GATE_LESS:
    snprintf(limit, bytes, "less than %.6g", number);
    return value < number;
  case GATE_MORE:
    snprintf(limit, bytes, "more than %.6g", number);
    return value > number;
  case GATE_WITHIN:
    snprintf(limit, bytes, "%.6g to %.6g", number - off, number + off);
    return fabs(value - number) <= off;
  case GATE_LIKE:
    break;
  }
  number = like_limit(rule);
  snprintf(limit, bytes, "at most %.6g, which noise between %u runs explains", number,
           rule->n_like);
  return value <= number;
}

/* False where the report has no such figure. */
static bool check_figure(struct gate *gate, const struct gate_rule *rule,
                         const struct subject *subject, struct gate_check *check) {
  json_t *value = json_report_figure(subject->document, rule->figure);
  char limit[160];
  *check = (struct gate_check){.rule = rule};
  if (!json_is_number(value) && !json_is_null(value))
    return false;
  check->passed =
      compare_figure(rule, json_number_value(value), limit, sizeof(limit)) && json_is_number(value);
  check->reason =
      json_is_number(value)
          ? arena_printf(&gate->arena, "%s is %.6g, wanted %s", rule->figure,
                         json_number_value(value), limit)
          : arena_printf(&gate->arena, "%s is not known, wanted %s", rule->figure, limit);
  return true;
}

static struct subject subject_of(struct gate *gate, const struct results *results) {
  const struct diff_result *diff = results->diff;
  struct subject subject = {results->findings, results->n_findings, NULL, NULL};
  if (diff) {
    subject.findings = diff->findings;
    subject.n_findings = diff->n_findings;
    if (!diff->verdict || diff->verdict == STEPS_UNDECIDED)
      subject.undecided =
          arena_printf(&gate->arena, "how the step time changed: %s", text_or_empty(diff->reason));
  }
  for (u32 i = 0; !diff && i < results->n_undecided; i++)
    subject.undecided = arena_list(&gate->arena, subject.undecided, "; ", "%s: %s",
                                   results->undecided[i].what, results->undecided[i].why);
  return subject;
}

int gate_judge(struct gate *gate, const struct results *results, char *why, size_t why_bytes) {
  struct subject subject = subject_of(gate, results);
  subject.document = json_report_document(results);
  int error = 0;
  for (u32 i = 0; !error && i < gate->rules.n; i++) {
    const struct gate_rule *rule = &gate->rules.at[i];
    struct gate_check check;
    if (rule->kind == GATE_IGNORE)
      continue;
    if (rule->kind == GATE_FAIL_ON)
      check = check_findings(gate, rule, &subject);
    else if (!check_figure(gate, rule, &subject, &check))
      error = -1;
    if (error)
      snprintf(why, why_bytes,
               "%s: this report has no figure '%s'; docs/outputs/report-json.md lists them",
               gate_rule_place(rule), rule->figure);
    gate->n_failed += !error && !check.passed;
    if (!error)
      VECTOR_PUSH(&gate->checks, check);
  }
  json_decref(subject.document);
  return error;
}

void gate_free(struct gate *gate) {
  FREE_EACH(gate, rules.at, checks.at, ignored.at);
  arena_release(&gate->arena);
}
