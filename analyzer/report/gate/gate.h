/* SPDX-License-Identifier: MIT
 *
 * A gate for a pipeline: rules (gate_rules.h), and what becomes of them on one run or comparison.
 * Each rule has one answer, with its reason.
 */
#pragma once

#include <stdio.h>

#include "base/arena.h"
#include "base/vector.h"
#include "report/gate/gate_rules.h"

struct gate_check {
  const struct gate_rule *rule;
  bool passed;
  char *reason; /* in one line */
};

struct gate {
  VECTOR(struct gate_rule) rules;
  VECTOR(struct gate_check) checks; /* of fail-on and expect, in the order of the rules */
  VECTOR(char *) ignored;           /* findings that fail-on would be about, a line each */
  u32 n_failed;
  struct arena arena; /* of all texts */
};

/* Reads a file of expectations: a rule on each line, "#" begins a remark. 0, or -1 with a line in
 * `why`. */
int gate_read_file(struct gate *gate, const char *path, char *why, size_t why_bytes);

/* Whether there is anything to check, and not only what to ignore. */
bool gate_checks_something(const struct gate *gate);

/* Answers every rule; results that were compared are judged by their comparison's findings. 0, or
 * -1 with a line in `why` if a rule names a figure that no report has. */
int gate_judge(struct gate *gate, const struct results *results, char *why, size_t why_bytes);

/* Where a rule was written: "--fail-on critical" or "expectations:3: ...". Static until the next
 * call. */
const char *gate_rule_place(const struct gate_rule *rule);

/* A line for each check on standard error; `github`: failed ones also as GitHub's annotations. */
void gate_print(struct gate *gate, bool github);

/* As JUnit's XML, one test case for each check. 0, or negative errno. */
int gate_write_junit(struct gate *gate, const struct results *results, const char *path);

/* A file of expectations that this run would pass, to begin with. 0, or negative errno. */
int gate_write_expectations(const struct results *results, const char *path);

void gate_free(struct gate *gate);
