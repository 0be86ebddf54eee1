/* SPDX-License-Identifier: MIT
 *
 * The options of a program, as rows of its table (report/options.def and others): its parser,
 * --help, the manual page and the completions of shells are made from the same rows.
 *
 *   G("heading") starts a group in --help; O("name", "ARGUMENT" or "" if it takes none,
 *   "what it does", HOW) is an option. HOW says where its value goes, in the struct that the macro
 *   OPTIONS names, and what is accepted:
 *     FLAG(member)                bool
 *     TEXT(member, "wanted")      const char *: any text but the empty one
 *     WHOLE(member, least, most)  unsigned
 *     AMOUNT(member, "wanted")    double above 0, with k, M, G or B (1e9), T, P or E behind it
 *     SECONDS(member, least, most) double
 *     ONE_OF(member, "a, b or c") enum: the place of the word
 *     READ(function)              what the function makes of it
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Takes one option's argument in: NULL, or what the argument should have been. */
typedef const char *option_reader(void *options, const char *argument);

enum option_kind {
  OPTION_HEADING,
  OPTION_FLAG,
  OPTION_TEXT,
  OPTION_WHOLE,
  OPTION_AMOUNT,
  OPTION_SECONDS,
  OPTION_ONE_OF,
  OPTION_READ
};

struct command_option {
  const char *name, *argument, *what; /* a heading has only `what` */
  enum option_kind kind;
  size_t offset; /* of the member */
  double least, most;
  const char *wanted;
  option_reader *read;
};

#define OPTION_GROUP(heading) {NULL, NULL, heading, OPTION_HEADING, 0, 0, 0, NULL, NULL},
#define OPTION_ROW(name, argument, what, ...) {name, argument, what, __VA_ARGS__},

/* Its offset; does not compile if the member has another type. */
#define OPTION_AT(type, member)                                                                    \
  (offsetof(OPTIONS, member) + 0 * sizeof(_Generic(((OPTIONS *)0)->member, type : 1)))
#define FLAG(member) OPTION_FLAG, OPTION_AT(bool, member), 0, 0, NULL, NULL
#define TEXT(member, wanted) OPTION_TEXT, OPTION_AT(const char *, member), 0, 0, wanted, NULL
#define WHOLE(member, least, most)                                                                 \
  OPTION_WHOLE, OPTION_AT(unsigned, member), least, most, NULL, NULL
#define AMOUNT(member, wanted) OPTION_AMOUNT, OPTION_AT(double, member), 0, 0, wanted, NULL
#define SECONDS(member, least, most)                                                               \
  OPTION_SECONDS, OPTION_AT(double, member), least, most, NULL, NULL
#define ONE_OF(member, words) OPTION_ONE_OF, OPTION_AT(unsigned, member), 0, 0, words, NULL
#define READ(function) OPTION_READ, 0, 0, 0, NULL, function

struct command_line {
  const char *program;
  const struct command_option *rows;
  size_t n_rows;
};
/* What AMOUNT() wants where any number will do. */
#define OPTION_A_NUMBER "a number above 0, such as 1.5e15, 7B or 512k"

#define COMMAND_LINE(program, rows)                                                                \
  { program, rows, LENGTH_OF(rows) }

/* The place of the first argument that is no option; they stand at the end of argv afterwards. -1
 * when the command line makes no sense: `why` then says so in one line, with what to do. Texts
 * point into argv. */
int command_line_parse(const struct command_line *line, int argc, char **argv, void *options,
                       char *why, size_t why_bytes);

/* Whether the argument behind this one is its value: "--width 80", not "--width=80". */
bool command_line_takes_next(const struct command_line *line, const char *given);

void command_line_print_options(const struct command_line *line, FILE *out);

/* Where a program looks for traces if its command line names no directory: TSCOPE_DIR, else where
 * this user's jobs write. If that belongs to another user, says so in a line on stderr. Static. */
const char *directory_to_read(const char *program);

/* A positive number, with k, M, G or B (1e9), T, P or E behind it. */
bool command_line_amount(const char *argument, double *value);

/* "a", or "a:b", of which one may be left out: the steps from a to b, with b. Returns NULL, or what
 * is wanted. */
const char *command_line_steps(const char *argument, unsigned *first, unsigned *last);
