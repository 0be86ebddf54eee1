/* SPDX-License-Identifier: MIT */
#include "report/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/directory_to_read.h"
#include "format/default_directory.h"
#include "import/inputs.def"
#include "report/options.def"
#include "report/selection.h"

/* Each takes one option's argument in: NULL, or what the argument should have been. */

static const char *option_list(struct options *options, const char *argument) {
  (void)argument;
  options->list = true;
  return NULL;
}

static const char *option_hosts(struct options *options, const char *argument) {
  (void)argument;
  options->hosts = true;
  return NULL;
}

static const char *option_prometheus(struct options *options, const char *argument) {
  options->prometheus = argument;
  return *argument ? NULL : "the name of a file";
}

static const char *option_run(struct options *options, const char *argument) {
  options->run = argument;
  return *argument ? NULL : "the name of a run (--list shows them)";
}

/* One end of a range: nothing, or digits up to `stop`. */
static bool parse_step(const char *text, char stop, const char **end) {
  size_t digits = strspn(text, "0123456789");
  *end = text + digits;
  return digits <= 9 && text[digits] == stop;
}

static const char *option_steps(struct options *options, const char *argument) {
  static const char wanted[] =
      "a range of steps, including the last, such as 10:50, 10:, :50 or 10; the first step is 0";
  const char *colon, *end;
  if (parse_step(argument, '\0', &end) && end > argument) {
    options->steps = argument;
    return NULL;
  }
  if (!parse_step(argument, ':', &colon) || !parse_step(colon + 1, '\0', &end))
    return wanted;
  bool first = colon > argument, last = end > colon + 1;
  if (!first && !last)
    return wanted;
  if (first && last && strtol(argument, NULL, 10) > strtol(colon + 1, NULL, 10))
    return wanted;
  options->steps = argument;
  return NULL;
}

static const char *option_include_warmup(struct options *options, const char *argument) {
  (void)argument;
  options->include_warmup = true;
  return NULL;
}

static const char *parse_amount(const char *argument, double *value);

static const char *option_quick(struct options *options, const char *argument) {
  double events;
  const char *wanted = parse_amount(argument, &events);
  if (wanted || events < 1 || events > 1e15)
    return "a number of events, such as 500k";
  options->quick = (u64)events;
  return NULL;
}

/* A positive number, with k, M, G or B (1e9), T, P or E behind it. */
static const char *parse_amount(const char *argument, double *value) {
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
    return "a number above 0, such as 1.5e15, 7B or 512k";
  *value = number;
  return NULL;
}

static const char *option_prune(struct options *options, const char *argument) {
  (void)argument;
  options->prune = true;
  return NULL;
}

static const char *option_older_than(struct options *options, const char *argument) {
  return parse_amount(argument, &options->older_than) ? "a number of days, such as 14" : NULL;
}

static const char *option_max_size(struct options *options, const char *argument) {
  return parse_amount(argument, &options->max_size) ? "a number of bytes, such as 500M or 20G"
                                                    : NULL;
}

static const char *option_yes(struct options *options, const char *argument) {
  (void)argument;
  options->yes = true;
  return NULL;
}

static const char *option_flops_per_step(struct options *options, const char *argument) {
  return parse_amount(argument, &options->flops_per_step);
}

static const char *option_params(struct options *options, const char *argument) {
  return parse_amount(argument, &options->params);
}

static const char *option_tokens_per_step(struct options *options, const char *argument) {
  return parse_amount(argument, &options->tokens_per_step);
}

static const char *option_peak_tflops(struct options *options, const char *argument) {
  return parse_amount(argument, &options->peak_tflops);
}

static const char *option_kernel_categories(struct options *options, const char *argument) {
  options->kernel_categories = argument;
  return *argument ? NULL : "the name of a file";
}

static const char *option_gpu_gb(struct options *options, const char *argument) {
  return parse_amount(argument, &options->gpu_gib);
}

static const char *option_format(struct options *options, const char *argument) {
  options->backend = report_backend_find(argument);
  return options->backend ? NULL : report_backend_names(NULL);
}

static bool shows_diff(const struct report_backend *backend) {
  return backend->write_diff != NULL;
}

static bool can_be_opened(const struct report_backend *backend) {
  return backend->opens != OPENS_NOTHING;
}

static const char *option_output(struct options *options, const char *argument) {
  options->output = argument;
  return *argument ? NULL : "the name of a file";
}

static const char *option_open(struct options *options, const char *argument) {
  (void)argument;
  options->open = true;
  return NULL;
}

static const char *option_limit(struct options *options, const char *argument) {
  return parse_amount(argument, &options->limit) ? "a number of bytes, such as 500M or 2G" : NULL;
}

static int find_word(const char *argument, const char *const *words) {
  for (int i = 0; words[i]; i++)
    if (strcmp(argument, words[i]) == 0)
      return i;
  return -1;
}

static const char *option_color(struct options *options, const char *argument) {
  static const char *const words[] = {"auto", "always", "never", NULL};
  int when = find_word(argument, words);
  if (when < 0)
    return "auto, always or never";
  options->color = (enum color_when)when;
  return NULL;
}

static bool parse_whole_number(const char *argument, unsigned least, unsigned most,
                               unsigned *value) {
  char *end;
  errno = 0;
  unsigned long number = strtoul(argument, &end, 10);
  if (errno || !strchr("0123456789", *argument) || !*argument || *end || number < least ||
      number > most)
    return false;
  *value = (unsigned)number;
  return true;
}

static const char *option_width(struct options *options, const char *argument) {
  bool good = parse_whole_number(argument, REPORT_MIN_WIDTH, REPORT_MAX_WIDTH, &options->width);
  return good ? NULL : "a whole number from 60 to 160";
}

static const char *option_attempt(struct options *options, const char *argument) {
  return parse_whole_number(argument, 1, 100000, &options->attempt)
             ? NULL
             : "a whole number from 1 to 100000";
}

static const char *option_keep(struct options *options, const char *argument) {
  return parse_whole_number(argument, 1, 100000, &options->keep)
             ? NULL
             : "a whole number from 1 to 100000";
}

static const char *option_top(struct options *options, const char *argument) {
  return parse_whole_number(argument, 1, REPORT_MOST_ROWS, &options->top)
             ? NULL
             : "a whole number from 1 to 100000";
}

static const char *option_ascii(struct options *options, const char *argument) {
  (void)argument;
  options->ascii = true;
  return NULL;
}

static const char *add_rule(struct options *options, enum gate_kind kind, const char *text) {
  struct gate_rule rule;
  if (options->n_rules == OPTIONS_MOST_RULES)
    return "at most 64 rules; put them into a file for --expectations";
  options->rules[options->n_rules].kind = kind;
  options->rules[options->n_rules++].text = text;
  return gate_rule_parse(kind, text, &rule);
}

static const char *option_fail_on(struct options *options, const char *argument) {
  return add_rule(options, GATE_FAIL_ON, argument);
}

static const char *option_ignore(struct options *options, const char *argument) {
  return add_rule(options, GATE_IGNORE, argument);
}

static const char *option_expect(struct options *options, const char *argument) {
  return add_rule(options, GATE_EXPECT, argument);
}

static const char *option_expectations(struct options *options, const char *argument) {
  options->expectations = argument;
  return *argument ? NULL : "the name of a file";
}

static const char *option_write_expectations(struct options *options, const char *argument) {
  options->write_expectations = argument;
  return *argument ? NULL : "the name of a file";
}

static const char *option_junit(struct options *options, const char *argument) {
  options->junit = argument;
  return *argument ? NULL : "the name of a file";
}

static const char *option_github(struct options *options, const char *argument) {
  (void)argument;
  options->github = true;
  return NULL;
}

static const char *option_ranks(struct options *options, const char *argument) {
  options->ranks = argument;
  return selection_is_ranks(argument) ? NULL : "a list of ranks such as 0,4-7";
}

static const char *option_groups(struct options *options, const char *argument) {
  options->groups = argument;
  return *argument ? NULL : "a list of groups, separated by commas";
}

static const char *option_stacks(struct options *options, const char *argument) {
  (void)argument;
  options->stacks = true;
  return NULL;
}

static const char *option_export(struct options *options, const char *argument) {
  options->export = argument;
  return *argument ? NULL : "the name of a folder";
}

static const char *option_threads(struct options *options, const char *argument) {
  return parse_whole_number(argument, 1, 1024, &options->threads) ? NULL
                                                                  : "a whole number from 1 to 1024";
}

static const char *option_version(struct options *options, const char *argument) {
  (void)argument;
  options->version = true;
  return NULL;
}

static const char *option_help(struct options *options, const char *argument) {
  (void)argument;
  options->help = true;
  return NULL;
}

struct option_row {
  const char *name; /* NULL: `text` is a heading */
  const char *argument;
  const char *text;
  const char *(*parse)(struct options *, const char *);
};

#define HEADING(text) {NULL, NULL, text, NULL},
#define ROW(id, name, argument, text) {name, argument, text, option_##id},
static const struct option_row rows[] = {TSCOPE_REPORT_OPTIONS(HEADING, ROW)};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

/* getopt's codes: the row's number above every character it may return. */
#define FIRST_CODE 256

static void getopt_table(struct option table[N_ROWS + 1]) {
  size_t n = 0;
  for (size_t i = 0; i < N_ROWS; i++)
    if (rows[i].name)
      table[n++] =
          (struct option){rows[i].name, *rows[i].argument ? required_argument : no_argument, NULL,
                          FIRST_CODE + (int)i};
  table[n] = (struct option){0};
}

static void describe_misuse(char **argv, int code, char *why, size_t why_bytes) {
  const char *given = argv[optind - 1];
  snprintf(why, why_bytes, "%s %s; tscope-report --help shows every option", given,
           code == ':' ? "needs a value" : "is not an option here");
}

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

/* Whether the argument behind this one is its value: "--width 80", not "--width=80". Names may be
 * shortened, as getopt allows. */
static bool next_is_value(const char *given) {
  size_t n = strlen(given + 2), found = 0;
  bool takes = false;
  for (size_t i = 0; i < N_ROWS; i++) {
    if (!rows[i].name || strncmp(rows[i].name, given + 2, n) != 0)
      continue;
    found++;
    takes = *rows[i].argument;
    if (!rows[i].name[n])
      return takes;
  }
  return found == 1 && takes;
}

/* Options may come before the word "diff": it is moved to the front, and they keep their order. */
static void move_diff_first(int argc, char **argv) {
  int at = 1;
  while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0)
    at += argv[at][1] == '-' && next_is_value(argv[at]) ? 2 : 1;
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
  struct option table[N_ROWS + 1];
  getopt_table(table);
  move_diff_first(argc, argv);
  options->diff = argc > 1 && strcmp(argv[1], "diff") == 0;
  if (options->diff) { /* the word takes the program's place */
    argc--;
    argv++;
    mark_sides(argc, argv);
  }
  opterr = 0;
  optind = 0; /* GNU: start over, for callers that parse more than once */
  int code;
  while ((code = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
    if (code == 'h') {
      options->help = true;
      continue;
    }
    if (code < FIRST_CODE) {
      describe_misuse(argv, code, why, why_bytes);
      return false;
    }
    const struct option_row *row = &rows[code - FIRST_CODE];
    const char *wanted = row->parse(options, optarg);
    if (wanted) {
      snprintf(why, why_bytes, "--%s wants %s, not '%s'", row->name, wanted, optarg);
      return false;
    }
  }
  if (options->help || options->version)
    return true;
  options->paths = (const char *const *)argv + optind;
  options->n_paths = (u32)(argc - optind);
  if (options->n_paths == 0 && !options->diff) {
    options->paths = default_paths();
    options->n_paths = 1;
  }
  if (options->prune && !options->keep && !(options->older_than > 0) && !(options->max_size > 0)) {
    snprintf(why, why_bytes,
             "prune needs to know which runs: --older-than DAYS, --keep COUNT or --max-size BYTES");
    return false;
  }
  if (options->diff && !read_sides(options, argv + optind, why, why_bytes))
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
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
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
  for (size_t i = 0; i < N_ROWS; i++) {
    if (!rows[i].name) {
      fprintf(out, "\n%s:\n", rows[i].text);
      continue;
    }
    char usage[64];
    snprintf(usage, sizeof(usage), "--%s%s%s", rows[i].name, *rows[i].argument ? " " : "",
             rows[i].argument);
    fprintf(out, "  %-24s  %s\n", usage, rows[i].text);
  }
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
