/* SPDX-License-Identifier: MIT */
#include "report/options.h"

#include <math.h>
#include <string.h>

#include "base/command_line.h"
#include "format/default_directory.h"
#include "import/inputs.def"
#include "report/options.def"
#include "report/selection.h"

static const char *read_steps(void *options, const char *argument) {
  ((struct options *)options)->steps = argument;
  return command_line_steps(argument, &(u32){0}, &(u32){0});
}

static const char *read_quick(void *options, const char *argument) {
  double events;
  if (!command_line_amount(argument, &events) || events < 1 || events > 1e15)
    return "a number of events, such as 500k";
  ((struct options *)options)->quick = (u64)events;
  return NULL;
}

static const char *read_format(void *options, const char *argument) {
  const struct report_backend *backend = report_backend_find(argument);
  ((struct options *)options)->backend = backend;
  return backend ? NULL : report_backend_names(NULL);
}

static bool shows_diff(const struct report_backend *backend) {
  return backend->write_diff != NULL;
}

static bool can_be_opened(const struct report_backend *backend) {
  return backend->opens != OPENS_NOTHING;
}

static const char *read_ranks(void *options, const char *argument) {
  ((struct options *)options)->ranks = argument;
  return selection_is_ranks(argument) ? NULL : "a list of ranks such as 0,4-7";
}

static const char *add_rule(struct options *options, enum gate_kind kind, const char *text) {
  struct gate_rule rule;
  if (options->n_rules == OPTIONS_MOST_RULES)
    return "at most 64 rules; put them into a file for --expectations";
  options->rules[options->n_rules].kind = kind;
  options->rules[options->n_rules++].text = text;
  return gate_rule_parse(kind, text, &rule);
}

static const char *read_fail_on(void *options, const char *argument) {
  return add_rule(options, GATE_FAIL_ON, argument);
}

static const char *read_ignore(void *options, const char *argument) {
  return add_rule(options, GATE_IGNORE, argument);
}

static const char *read_expect(void *options, const char *argument) {
  return add_rule(options, GATE_EXPECT, argument);
}

#define OPTIONS struct options
static const struct command_option rows[] = {TSCOPE_REPORT_OPTIONS(OPTION_GROUP, OPTION_ROW)};
static const struct command_line line = COMMAND_LINE("tscope-report", rows);

/* Where the shim writes by default. */
static const char *const *default_paths(void) {
  static const char *paths[1];
  paths[0] = directory_to_read("tscope-report");
  return paths;
}

/* "--" between the sides of diff would end getopt's options: this replaces it. */
static char between_sides[] = "between the sides";

static void mark_sides(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--") == 0) {
      argv[i] = between_sides;
      return;
    }
}

/* The runs of diff: BEFORE AFTER, or several, "--", several. Takes the mark out again. */
static bool read_sides(struct options *options, char **paths, char *why, size_t why_bytes) {
  u32 n = options->n_paths, mark = n;
  for (u32 i = 0; i < n; i++)
    if (paths[i] == between_sides)
      mark = i;
  options->n_before = mark;
  if (mark < n) {
    memmove(paths + mark, paths + mark + 1, (n - mark - 1) * sizeof(*paths));
    options->n_paths = --n;
  } else if (n == 2) {
    options->n_before = 1;
  }
  bool good = options->n_before && options->n_before < n && (mark < n + 1 || n == 2);
  if (!good)
    snprintf(why, why_bytes,
             "diff needs two runs, or several runs on each side with -- between the sides, for "
             "example: tscope-report diff /tmp/before1 /tmp/before2 /tmp/before3 -- /tmp/after1 "
             "/tmp/after2 /tmp/after3");
  return good;
}

/* Options may come before the word "diff": it is moved to the front, and they keep their order. */
static void move_diff_first(int argc, char **argv) {
  int at = 1;
  while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0)
    at += argv[at][1] == '-' && command_line_takes_next(&line, argv[at]) ? 2 : 1;
  if (at >= argc || strcmp(argv[at], "diff") != 0)
    return;
  char *word = argv[at];
  memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
  argv[1] = word;
}

bool options_parse(int argc, char **argv, struct options *options, char *why, size_t why_bytes) {
  *options = (struct options){.backend = report_backend_default(),
                              .flops_per_step = NAN,
                              .params = NAN,
                              .tokens_per_step = NAN,
                              .peak_tflops = NAN,
                              .gpu_gib = NAN,
                              .limit = REPORT_DEFAULT_LIMIT};
  move_diff_first(argc, argv);
  options->diff = argc > 1 && strcmp(argv[1], "diff") == 0;
  if (options->diff) { /* the word takes the program's place */
    argc--;
    argv++;
    mark_sides(argc, argv);
  }
  int first = command_line_parse(&line, argc, argv, options, why, why_bytes);
  if (first < 0)
    return false;
  if (options->help || options->version)
    return true;
  options->paths = (const char *const *)argv + first;
  options->n_paths = (u32)(argc - first);
  if (options->n_paths == 0 && !options->diff) {
    options->paths = default_paths();
    options->n_paths = 1;
  }
  if (options->prune && !options->keep && !(options->older_than > 0) && !(options->max_size > 0)) {
    snprintf(why, why_bytes,
             "prune needs to know which runs: --older-than DAYS, --keep COUNT or --max-size BYTES");
    return false;
  }
  if (options->diff && !read_sides(options, argv + first, why, why_bytes))
    return false;
  if (options->diff && !shows_diff(options->backend)) {
    snprintf(why, why_bytes, "--format %s shows one run; diff wants %s",
             report_backend_name(options->backend), report_backend_names(shows_diff));
    return false;
  }
  if (options->open && !can_be_opened(options->backend)) {
    snprintf(why, why_bytes, "--open shows a page or a timeline: also give --format %s",
             report_backend_names(can_be_opened));
    return false;
  }
  return true;
}

/* Every kind of input, in as many lines as it takes. */
static void print_inputs(FILE *out) {
#define K(id, one, several, contains) several,
  static const char *const kinds[] = {TSCOPE_INPUTS(K)};
#undef K
  int column = 0;
  for (size_t i = 0; i < LENGTH_OF(kinds); i++) {
    if (column + (int)strlen(kinds[i]) > 88) {
      fputs(",\n", out);
      column = 0;
    }
    column += fprintf(out, "%s%s", column ? ", " : "  ", kinds[i]);
  }
  fputc('\n', out);
}

void options_print_help(FILE *out) {
  fputs(
      "usage: tscope-report [OPTION]... [PATH]...\n"
      "       tscope-report diff [OPTION]... BEFORE AFTER\n"
      "       tscope-report diff [OPTION]... BEFORE... -- AFTER...\n"
      "\n"
      "Says where the time of a training run went and what to do about it. PATH is the directory\n"
      "that libtscope.so wrote to, one run in it, one rank's file, or files or folders of other\n"
      "tools. Several paths are joined by rank. The default is TSCOPE_DIR, "
      "else\n" TSCOPE_DEFAULT_DIRECTORY " or, if that is another user's, " TSCOPE_DEFAULT_DIRECTORY
      "-UID. It reads:\n",
      out);
  print_inputs(out);
  fputc('\n', out);
  command_line_print_options(&line, out);
  fputs("\n"
        "examples:\n"
        "  tscope-report                                  the newest run, as text\n"
        "  tscope-report --list /tmp/tscope               which runs there are\n"
        "  tscope-report --params 7B --tokens-per-step 4M /tmp/tscope\n"
        "                                                 with utilisation (MFU)\n"
        "  tscope-report --format json /tmp/tscope | jq .distributed.stragglers\n"
        "  tscope-report --fail-on critical:DIST,MEMORY --ignore HOST.OVERSUBSCRIBED /tmp/tscope\n"
        "                                                 a gate for CI\n"
        "  tscope-report --format perfetto --open /tmp/tscope\n"
        "                                                 the timeline, in ui.perfetto.dev\n"
        "  tscope-report diff /tmp/before /tmp/after      what changed\n"
        "  tscope-report diff A1 A2 A3 -- B1 B2 B3        three runs on each side: is it noise?\n"
        "\n"
        "exit status: 0; 1 when a rule of the gate fails; 2 when the input or the command line is "
        "bad, or\n"
        "when diff --fail-on has fewer than three runs on a side.\n",
        out);
}
