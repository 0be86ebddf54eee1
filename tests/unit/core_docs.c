/* SPDX-License-Identifier: MIT
 *
 * docs/configuration.md and docs/trace-format.md say exactly what the tables in the code say: every
 * variable, record, field and value is there, and no others. `core_docs print` shows the rows as
 * they have to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/tscope_format.h"
#include "process/env.def"

/* Makes the table row in `row`. */
#define ROW(...) snprintf(row, sizeof row, __VA_ARGS__)

typedef void (*take_row)(const char *row, void *more);

static void each_variable(take_row take, void *more) {
  char row[1024];
#define X(member, TYPE, variable, standard, values, doc)                                           \
  ROW("| `%s` | %s%s%s | %s | %s |\n", variable, *standard ? "`" : "", standard,                   \
      *standard ? "`" : "", values, doc);                                                          \
  take(row, more);
  TSCOPE_ENV(X)
#undef X
}

static void each_record(take_row take, void *more) {
  char row[1024];
#define FIELD(type, field, doc)                                                                    \
  ROW("| `%s` | %s | %s |\n", #field, #type, doc);                                                 \
  take(row, more);
#define X(NAME, name, id, retention, doc)                                                          \
  ROW("### `%s` 0x%02x, %s\n", #NAME, id,                                                          \
      TSCOPE_##retention == TSCOPE_RETAINED ? "retained" : "ring");                                \
  take(row, more);                                                                                 \
  ROW("%zu bytes: %s.\n", sizeof(struct tscope_##name##_record), doc);                             \
  take(row, more);                                                                                 \
  TSCOPE_FIELDS_##NAME(FIELD)
  TSCOPE_RECORDS(X)
#undef X
#undef FIELD
}

static void each_value(take_row take, void *more) {
  char row[1024];
#define TITLE(title)                                                                               \
  ROW("### %s\n", title);                                                                          \
  take(row, more)
#define X(NAME, value, text)                                                                       \
  ROW("| %d | `%s` | %s |\n", value, #NAME, text);                                                 \
  take(row, more);
  TITLE("Backend");
  TSCOPE_BACKENDS(X)
  TITLE("Op");
  TSCOPE_OPS(X)
  TITLE("One-sided");
  TSCOPE_ONE_SIDED_KINDS(X)
  TITLE("Reduction");
  TSCOPE_REDOPS(X)
  TITLE("End of a communicator");
  TSCOPE_COMM_ENDS(X)
  TITLE("Phase");
  TSCOPE_PHASES(X)
  TITLE("Copy");
  TSCOPE_COPIES(X)
  TITLE("Memory");
  TSCOPE_MEMORIES(X)
  TITLE("Mapping");
  TSCOPE_MAPPINGS(X)
  TITLE("Refusal");
  TSCOPE_REFUSALS(X)
  TITLE("Range");
  TSCOPE_RANGES(X)
  TITLE("Sync");
  TSCOPE_SYNCS(X)
  TITLE("GPU clock");
  TSCOPE_GPU_CLOCKS(X)
  TITLE("GPU wait");
  TSCOPE_GPU_WAITS(X)
  TITLE("GPU overhead");
  TSCOPE_GPU_OVERHEADS(X)
  TITLE("Condition");
  TSCOPE_CONDITIONS(X)
  TITLE("Loss");
  TSCOPE_LOSSES(X)
  TITLE("End");
  TSCOPE_ENDS(X)
  TITLE("Failed call");
  TSCOPE_FAILED_CALLS(X)
  TITLE("Info");
  TSCOPE_INFOS(X)
#undef X
#define X(NAME, value, text, bytes)                                                                \
  ROW("| %d | `%s` | %s, %d bytes |\n", value, #NAME, text, bytes);                                \
  take(row, more);
  TITLE("Data type");
  TSCOPE_DTYPES(X)
#undef X
#undef TITLE
}

/* --- against the pages --- */

static char *read_page(const char *name) {
  char path[1024];
  const char *folder = getenv("DOCS");
  assert_non_null(folder);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  static char page[1 << 18];
  size_t bytes = fread(page, 1, sizeof page - 1, file);
  page[bytes] = '\0';
  fclose(file);
  return page;
}

/* Rows come in the table's order, so that a field is found under its own record. */
struct search {
  const char *at;
  int rows, missing;
};

static void find_row(const char *row, void *more) {
  struct search *search = more;
  const char *found = strstr(search->at, row);
  search->rows++;
  if (found) {
    search->at = found + strlen(row);
  } else {
    print_error("missing, or out of order: %s", row);
    search->missing++;
  }
}

static int rows_between(const char *page, const char *from, const char *to) {
  const char *start = strstr(page, from), *end = to ? strstr(page, to) : NULL;
  int rows = 0;
  assert_non_null(start);
  for (const char *at = start; (at = strstr(at, "\n| ")) && (!end || at < end); at++)
    rows++;
  return rows;
}

/* A first header row of each table is no row of ours; nor are the lines that are no table rows. */
static int count_tables(const char *page, const char *from, const char *to) {
  const char *start = strstr(page, from), *end = to ? strstr(page, to) : NULL;
  int tables = 0;
  for (const char *at = start; (at = strstr(at, "\n|--")) && (!end || at < end); at++)
    tables++;
  return tables;
}

static struct search search_page(const char *page, const char *from,
                                 void (*each)(take_row, void *)) {
  struct search search = {.at = strstr(page, from)};
  assert_non_null(search.at);
  each(find_row, &search);
  return search;
}

static void count_table_row(const char *row, void *more) {
  *(int *)more += row[0] == '|';
}

static void assert_section(const char *page, const char *from, const char *to,
                           void (*each)(take_row, void *)) {
  int expected = 0;
  each(count_table_row, &expected);
  assert_int_equal(search_page(page, from, each).missing, 0);
  assert_int_equal(rows_between(page, from, to) - count_tables(page, from, to), expected);
}

static void variables_are_all_there(void **state) {
  (void)state;
  const char *page = read_page("configuration.md");
  assert_section(page, "## Variables", "## What is left on the disk", each_variable);
}

static void records_and_fields_are_all_there(void **state) {
  (void)state;
  assert_section(read_page("trace-format.md"), "## Records", "## Values", each_record);
}

static void values_are_all_there(void **state) {
  (void)state;
  assert_section(read_page("trace-format.md"), "## Values", "## Versions", each_value);
}

static void this_version_is_described(void **state) {
  (void)state;
  char row[64];
  ROW("\n| %d.%d | ", TSCOPE_VERSION_MAJOR, TSCOPE_VERSION_MINOR);
  const char *versions = strstr(read_page("trace-format.md"), "## Versions");
  assert_non_null(versions);
  assert_non_null(strstr(versions, row));
}

static void print_row(const char *row, void *nothing) {
  (void)nothing;
  bool title = row[0] == '#';
  printf("%s%s", title ? "\n" : "", row);
  if (title && strncmp(row, "### `", 5) != 0)
    printf("\n| Value | Name | Meaning |\n|---|---|---|\n");
  if (row[0] != '#' && row[0] != '|')
    printf("\n| Field | Type | Meaning |\n|---|---|---|\n");
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "print") == 0) {
    each_variable(print_row, NULL);
    each_record(print_row, NULL);
    each_value(print_row, NULL);
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(variables_are_all_there),
      cmocka_unit_test(records_and_fields_are_all_there),
      cmocka_unit_test(values_are_all_there),
      cmocka_unit_test(this_version_is_described),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
