/* SPDX-License-Identifier: MIT */
#include "base/command_line.h"

#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "format/default_directory.h"

/* getopt's codes: the row's number above every character it may return. */
#define FIRST_CODE 256

enum { WHAT_COLUMN = 28, WHAT_COLUMNS = 72 }; /* of --help */

bool command_line_amount(const char *argument, double *value) {
  static const char suffixes[] = "kMGBTPE";
  static const double scales[] = {1e3, 1e6, 1e9, 1e9, 1e12, 1e15, 1e18};
  char *end;
  double number = strtod(argument, &end);
  const char *suffix = *end ? strchr(suffixes, *end) : NULL;
  if (suffix) {
    number *= scales[suffix - suffixes];
    end++;
  }
  if (end == argument || *end || !isfinite(number) || number <= 0)
    return false;
  *value = number;
  return true;
}

const char *command_line_steps(const char *argument, unsigned *first, unsigned *last) {
  enum { TOO_MANY = 1000000000 };
  const char *colon, *end;
  *first = (unsigned)leading_number(argument, TOO_MANY, &colon);
  const char *to = *colon == ':' ? colon + 1 : argument;
  u64 until = leading_number(to, TOO_MANY, &end);
  *last = end > to ? (unsigned)until : UINT_MAX;
  bool steps = !*end && (colon > argument || end > to) && *first < TOO_MANY && until < TOO_MANY &&
               *first <= *last;
  return steps ? NULL
               : "a range of steps, including the last, such as 10:50, 10:, :50 or 10; the first "
                 "step is 0";
}

static bool read_whole(const char *argument, double least, double most, unsigned *value) {
  const char *end;
  u64 number = leading_number(argument, UINT32_MAX, &end);
  if (end == argument || *end || (double)number < least || (double)number > most)
    return false;
  *value = (unsigned)number;
  return true;
}

static bool read_seconds(const char *argument, double least, double most, double *value) {
  char *end;
  double number = strtod(argument, &end);
  if (end == argument || *end || !(number >= least && number <= most))
    return false;
  *value = number;
  return true;
}

/* The place of a word in "auto, always or never". */
static bool find_word(const char *argument, const char *words, unsigned *place) {
  size_t n = strlen(argument);
  *place = 0;
  for (const char *at = words; *at; (*place)++) {
    size_t length = strcspn(at, ", ");
    if (n && length == n && strncmp(at, argument, n) == 0)
      return true;
    at += length;
    at += strspn(at, ", ");
    if (text_starts_with(at, "or "))
      at += 3;
  }
  return false;
}

static const char *wanted_range(const struct command_option *row, const char *what) {
  static char wanted[64];
  snprintf(wanted, sizeof(wanted), "%s from %.10g to %.10g", what, row->least, row->most);
  return wanted;
}

/* NULL, or what the argument should have been. */
static const char *read_argument(const struct command_option *row, void *options,
                                 const char *argument) {
  void *member = (char *)options + row->offset;
  switch (row->kind) {
  case OPTION_FLAG:
    *(bool *)member = true;
    return NULL;
  case OPTION_TEXT:
    *(const char **)member = argument;
    return *argument ? NULL : row->wanted;
  case OPTION_WHOLE:
    return read_whole(argument, row->least, row->most, member)
               ? NULL
               : wanted_range(row, "a whole number");
  case OPTION_AMOUNT:
    return command_line_amount(argument, member) ? NULL : row->wanted;
  case OPTION_SECONDS:
    return read_seconds(argument, row->least, row->most, member) ? NULL
                                                                 : wanted_range(row, "seconds");
  case OPTION_ONE_OF:
    return find_word(argument, row->wanted, member) ? NULL : row->wanted;
  default:
    return row->read(options, argument);
  }
}

static struct option *getopt_table(const struct command_line *line) {
  struct option *table = memory_zeroed(size_sum(line->n_rows, 2), sizeof(*table));
  size_t n = 0;
  for (size_t i = 0; i < line->n_rows; i++) {
    const struct command_option *row = &line->rows[i];
    if (row->name)
      table[n++] = (struct option){row->name, *row->argument ? required_argument : no_argument,
                                   NULL, FIRST_CODE + (int)i};
  }
  return table;
}

int command_line_parse(const struct command_line *line, int argc, char **argv, void *options,
                       char *why, size_t why_bytes) {
  SCOPED struct option *table = getopt_table(line);
  int code, at = 0;
  opterr = 0;
  optind = 0; /* GNU: start over, for callers that parse more than once */
  while (at == 0 && (code = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
    if (code < FIRST_CODE && code != 'h') {
      snprintf(why, why_bytes, "%s %s; %s --help shows every option", argv[optind - 1],
               code == ':' ? "needs a value" : "is not an option here", line->program);
      at = -1;
      break;
    }
    const struct command_option *row =
        code == 'h' ? FIND(line->rows, line->n_rows, one, one->name && !strcmp(one->name, "help"))
                    : &line->rows[code - FIRST_CODE];
    const char *wanted = read_argument(row, options, optarg);
    if (wanted) {
      snprintf(why, why_bytes, "--%s wants %s, not '%s'", row->name, wanted, optarg);
      at = -1;
    }
  }
  return at < 0 ? at : optind;
}

/* Names may be shortened, as getopt allows. */
bool command_line_takes_next(const struct command_line *line, const char *given) {
  size_t n = strlen(given + 2), found = 0;
  bool takes = false;
  FOR_EACH(line->rows, line->n_rows, row) {
    if (!row->name || strncmp(row->name, given + 2, n) != 0)
      continue;
    found++;
    takes = *row->argument;
    if (!row->name[n])
      return takes;
  }
  return found == 1 && takes;
}

/* Broken at spaces, in the column of what options do. */
static void print_words(const char *text, FILE *out) {
  for (;;) {
    size_t n = strlen(text);
    if (n > WHAT_COLUMNS)
      for (n = WHAT_COLUMNS; n > 1 && text[n] != ' ';)
        n--;
    fprintf(out, "%.*s\n", (int)n, text);
    if (!text[n])
      return;
    fprintf(out, "%*s", WHAT_COLUMN, "");
    text += n + 1;
  }
}

void command_line_print_options(const struct command_line *line, FILE *out) {
  for (size_t i = 0; i < line->n_rows; i++) {
    const struct command_option *row = &line->rows[i];
    if (!row->name) {
      fprintf(out, "%s%s:\n", i ? "\n" : "", row->what);
      continue;
    }
    char usage[64];
    snprintf(usage, sizeof(usage), "--%s%s%s", row->name, *row->argument ? " " : "", row->argument);
    fprintf(out, "  %-*s  ", WHAT_COLUMN - 4, usage);
    print_words(row->what, out);
  }
}

const char *directory_to_read(const char *program) {
  static char path[TSCOPE_DEFAULT_DIRECTORY_BYTES];
  const char *set = getenv("TSCOPE_DIR");
  unsigned owner;
  if (set && *set)
    return set;
  if (tscope_directory_to_read(path, &owner))
    fprintf(stderr,
            "%s: %s belongs to another user (number %u), and you have no directory of your own "
            "there: what follows is from that user's files\n",
            program, path, owner);
  return path;
}
