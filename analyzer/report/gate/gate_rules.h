/* SPDX-License-Identifier: MIT
 *
 * The rules of a gate: what a run must be like to pass. On the command line and in a file of
 * expectations they are the same: "--fail-on critical:DIST" there is "fail-on critical:DIST" here.
 *
 *   fail-on [SEVERITY:]WHAT      no such finding; also a severity alone, or "undecided"
 *   ignore WHAT                  findings that no fail-on is about
 *   expect FIGURE <= NUMBER      a figure of the JSON report by its path; also >=, <, >
 *   expect FIGURE within X % of NUMBER
 *   expect FIGURE like NUMBER NUMBER NUMBER...    not more than runs with these figures differ
 *
 * WHAT is a list of groups (DIST) and ids (DIST.STRAGGLER), separated by commas.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyses/results/results.h"

enum gate_kind { GATE_FAIL_ON, GATE_IGNORE, GATE_EXPECT };
enum gate_comparison { GATE_AT_MOST, GATE_AT_LEAST, GATE_LESS, GATE_MORE, GATE_WITHIN, GATE_LIKE };

enum { GATE_MOST_LIKE = 32, GATE_LEAST_LIKE = 3, GATE_FIGURE_BYTES = 160 };

struct gate_rule {
  enum gate_kind kind;
  const char *text; /* as it was written, without the word before it */
  const char *file; /* where; NULL: on the command line */
  unsigned line;
  enum severity severity; /* of fail-on: at least this */
  bool undecided;         /* of fail-on: what could not be judged fails too */
  const char *what;       /* of fail-on and ignore: the list, in `text`; NULL: all findings */
  char figure[GATE_FIGURE_BYTES];
  enum gate_comparison comparison;
  double number, within;       /* fraction */
  double like[GATE_MOST_LIKE]; /* figures of earlier runs */
  u32 n_like;
};

extern const char *const gate_kind_words[]; /* "fail-on", "ignore", "expect", NULL */

/* `text` must live as long as the rule. NULL, or what it should have been. */
const char *gate_rule_parse(enum gate_kind kind, const char *text, struct gate_rule *rule);

/* Whether fail-on or ignore is about this finding. */
bool gate_rule_selects(const struct gate_rule *rule, const struct finding *finding);
