/* SPDX-License-Identifier: MIT
 *
 * The tables of documents and manual pages, made from the code, for scripts/doc_tables.py:
 * print_tables variables | records | values | fields | inputs | hosts | findings | settings |
 * report-options | top-options | reduce-options | stacks-options | version. `settings` and the
 * options are in roff, for the manual pages.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "analyses/findings/diff_findings.def"
#include "analyses/findings/findings.h"
#include "format/tscope_format.h"
#include "import/inputs.def"
#include "programs/reduce_options.def"
#include "programs/stacks_options.def"
#include "report/json/json_fields.h"
#include "report/options.def"
#include "report/sections.h"
#include "settings/env.def"
#include "top/top_options.def"

static void print_variables(void) {
  puts("| Variable | Default | Values | Meaning |\n|---|---|---|---|");
#define X(member, TYPE, variable, standard, values, doc)                                           \
  printf("| `%s` | %s%s%s | %s | %s |\n", variable, *standard ? "`" : "", standard,                \
         *standard ? "`" : "", values, doc);
  TSCOPE_ENV(X)
#undef X
}

static void print_records(void) {
#define FIELD(type, field, doc) printf("| `%s` | %s | %s |\n", #field, #type, doc);
#define X(NAME, name, id, retention, doc)                                                          \
  printf("### `%s` 0x%02x, %s\n%zu bytes: %s.\n\n| Field | Type | Meaning |\n|---|---|---|\n",     \
         #NAME, id, TSCOPE_##retention == TSCOPE_RETAINED ? "retained" : "ring",                   \
         sizeof(struct tscope_##name##_record), doc);                                              \
  TSCOPE_FIELDS_##NAME(FIELD);                                                                     \
  putchar('\n');
  TSCOPE_RECORDS(X)
#undef X
#undef FIELD
}

static void print_title(const char *title) {
  printf("### %s\n\n| Value | Name | Meaning |\n|---|---|---|\n", title);
}

static void print_values(void) {
#define ROW(NAME, value, text) printf("| %d | `%s` | %s |\n", value, #NAME, text);
#define TABLE(title, VALUES)                                                                       \
  print_title(title);                                                                              \
  VALUES(ROW)                                                                                      \
  putchar('\n');
  TABLE("Backend", TSCOPE_BACKENDS)
  TABLE("Op", TSCOPE_OPS)
  TABLE("One-sided", TSCOPE_ONE_SIDED_KINDS)
  TABLE("Reduction", TSCOPE_REDOPS)
  TABLE("End of a communicator", TSCOPE_COMM_ENDS)
  TABLE("Phase", TSCOPE_PHASES)
  TABLE("Copy", TSCOPE_MEMCPYS)
  TABLE("Memory", TSCOPE_MEMORIES)
  TABLE("Mapping", TSCOPE_MAPPINGS)
  TABLE("Refusal", TSCOPE_REFUSALS)
  TABLE("Range", TSCOPE_RANGES)
  TABLE("Sync", TSCOPE_SYNCS)
  TABLE("GPU clock", TSCOPE_GPU_CLOCKS)
  TABLE("GPU overhead", TSCOPE_GPU_OVERHEADS)
  TABLE("Condition", TSCOPE_CONDITIONS)
  TABLE("Loss", TSCOPE_LOSSES)
  TABLE("Activity", TSCOPE_ACTIVITIES)
  TABLE("End", TSCOPE_ENDS)
  TABLE("Failed call", TSCOPE_FAILED_CALLS)
  TABLE("Info", TSCOPE_INFOS)
#undef TABLE
#undef ROW
#define ROW(NAME, value, text, bytes)                                                              \
  printf("| %d | `%s` | %s, %d bytes |\n", value, #NAME, text, bytes);
  print_title("Data type");
  TSCOPE_DTYPES(ROW)
#undef ROW
}

/* The values that the field may have: "low", "medium" or "high". */
static void print_words(const struct json_field *field) {
  const char *const *words = field->words + (field->words[0] == NULL);
  const char *before = *field->meaning ? ": " : "";
  for (; *words; words++) {
    printf("%s\"%s\"", before, *words);
    before = words[1] && !words[2] ? " or " : ", ";
  }
}

static void print_field(void *user, const char *path, const struct json_field *field) {
  (void)user;
  printf("| `%s` | %s | %s", path, field->type, field->meaning);
  if (field->words)
    print_words(field);
  puts(" |");
}

static void print_fields(void) {
  puts("| Field | Type | Meaning |\n|---|---|---|");
  json_fields_visit(print_field, NULL);
}

/* In roff an unescaped - may be shown as another character. Code in backquotes becomes bold. */
static void print_roff(const char *text) {
  bool bold = false;
  for (const char *c = text; *c; c++) {
    if (*c == '`')
      fputs((bold = !bold) ? "\\fB" : "\\fR", stdout);
    else
      printf(*c == '-' ? "\\-" : "%c", *c);
  }
}

static void print_setting(const char *variable, const char *standard, const char *meaning) {
  printf(".TP\n.B %s", variable);
  if (*standard)
    printf(" \\fR(%s)", standard);
  putchar('\n');
  print_roff(meaning);
  putchar('\n');
}

static void print_option(const char *name, const char *argument, const char *meaning) {
  fputs(".TP\n.B \\-\\-", stdout);
  print_roff(name);
  if (*argument)
    printf(" \\fI%s\\fR", argument);
  putchar('\n');
  print_roff(meaning);
  putchar('\n');
}

static void print_settings(void) {
#define X(member, TYPE, variable, standard, values, doc) print_setting(variable, standard, doc);
  TSCOPE_ENV(X)
#undef X
}

#define HEADING(text)
#define OPTION(name, argument, text, ...) print_option(name, argument, text);

static void print_report_options(void) {
  TSCOPE_REPORT_OPTIONS(HEADING, OPTION)
}

static void print_top_options(void) {
  TSCOPE_TOP_OPTIONS(HEADING, OPTION)
}

static void print_reduce_options(void) {
  TSCOPE_REDUCE_OPTIONS(HEADING, OPTION)
}

static void print_stacks_options(void) {
  TSCOPE_STACKS_OPTIONS(HEADING, OPTION)
}

static void print_inputs(void) {
  puts("| Kind | What it contains |\n|---|---|");
#define K(id, one, several, contains) puts("| " several " | " contains " |");
  TSCOPE_INPUTS(K)
#undef K
}

static void print_hosts(void) {
  puts("| Table | Field | What it is |\n|---|---|---|");
#define TABLE(table, ...)                                                                          \
  for (const char *name = #table; strcmp(name, "documentation"); name = "documentation") {
#define COLUMN(field, type, what, ...) printf("| `%s` | `" #field "` | " what " |\n", name);
#define END_TABLE }
#include "hosts/host_schema.def"
}

static void print_traits(u32 traits) {
  static const struct {
    u32 trait;
    const char *words;
  } all[] = {{FIRST_OF_ALL, "stands first"},
             {BEFORE_COSTS, "stands before findings about time"},
             {NEEDS_ALL_RANKS, "needs all ranks"},
             {NEEDS_CORES, "needs enough cores"}};
  const char *before = "";
  for (size_t i = 0; i < LENGTH_OF(all); i++)
    if (traits & all[i].trait) {
      printf("%s%s", before, all[i].words);
      before = ", ";
    }
}

static void print_finding(const char *id, const enum section_id *sections, u32 traits) {
  printf("| `%s` | ", id);
  for (; *sections != N_SECTIONS; sections++)
    printf("%s%s", section_title(*sections), sections[1] != N_SECTIONS ? ", " : "");
  fputs(" | ", stdout);
  print_traits(traits);
  puts(" |");
}

static void print_findings(void) {
  puts("| Finding | Sections whose badge shows it | Its place, and what it depends on "
       "|\n|---|---|---|");
#define IN(name) SECTION_##name,
#define F(group, name, rule, sections, traits, ...)                                                \
  print_finding(#group "." #name, (const enum section_id[]){sections N_SECTIONS}, traits);
  TSCOPE_FINDINGS(F)
#undef F
#define F(group, name, rule, sections, ...)                                                        \
  print_finding(#group "." #name, (const enum section_id[]){sections N_SECTIONS}, 0);
  TSCOPE_DIFF_FINDINGS(F)
#undef F
#undef IN
}

static void print_version(void) {
  printf("%d.%d\n", TSCOPE_VERSION_MAJOR, TSCOPE_VERSION_MINOR);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*print)(void);
  } tables[] = {{"variables", print_variables},
                {"records", print_records},
                {"values", print_values},
                {"fields", print_fields},
                {"inputs", print_inputs},
                {"hosts", print_hosts},
                {"findings", print_findings},
                {"settings", print_settings},
                {"report-options", print_report_options},
                {"top-options", print_top_options},
                {"reduce-options", print_reduce_options},
                {"stacks-options", print_stacks_options},
                {"version", print_version}};
  for (size_t i = 0; argc == 2 && i < LENGTH_OF(tables); i++)
    if (strcmp(argv[1], tables[i].name) == 0) {
      tables[i].print();
      return 0;
    }
  fputs("print_tables variables | records | values | fields | inputs | hosts | findings | "
        "settings | report-options | "
        "top-options | reduce-options | stacks-options | version\n",
        stderr);
  return 2;
}
