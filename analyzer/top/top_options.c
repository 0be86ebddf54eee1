/* SPDX-License-Identifier: MIT */
#include "top/top_options.h"

#include <getopt.h>
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/directory_to_read.h"
#include "base/terminal_color.h"
#include "format/default_directory.h"
#include "top/top_options.def"

/* Each parses one option's argument: NULL, or what the argument should have been. */

#define FLAG(name)                                                                                 \
  static const char *option_##name(struct top_options *options, const char *argument) {            \
    (void)argument;                                                                                \
    options->name = true;                                                                          \
    return NULL;                                                                                   \
  }
FLAG(once)
FLAG(ascii)
FLAG(version)
FLAG(help)
#undef FLAG

static const char *option_run(struct top_options *options, const char *argument) {
  options->run = argument;
  return *argument ? NULL : "the name of a run (tscope list shows them)";
}

static const char *option_format(struct top_options *options, const char *argument) {
  options->json = strcmp(argument, "json") == 0;
  return options->json || strcmp(argument, "text") == 0 ? NULL : "text or json";
}

static const char *option_prometheus(struct top_options *options, const char *argument) {
  options->prometheus = argument;
  return *argument ? NULL : "a file, such as /var/lib/node_exporter/tscope.prom";
}

static const char *option_html(struct top_options *options, const char *argument) {
  options->html = argument;
  return *argument ? NULL : "a file, such as job.html";
}

static const char *option_interval(struct top_options *options, const char *argument) {
  char *end;
  options->interval_s = strtod(argument, &end);
  return end != argument && !*end && options->interval_s >= 0.1 && options->interval_s <= 3600
             ? NULL
             : "seconds, 0.1 to 3600";
}

static const char *option_sort(struct top_options *options, const char *argument) {
  options->sort = top_sort_find(argument);
  return options->sort != TOP_SORT_AUTO ? NULL : "rank, trouble, late, step, gpu, memory or quiet";
}

static const char *option_color(struct top_options *options, const char *argument) {
  static const char *const names[] = {"auto", "always", "never"};
  for (unsigned i = 0; i < 3; i++)
    if (strcmp(argument, names[i]) == 0) {
      options->color = (enum top_color)i;
      return NULL;
    }
  return "auto, always or never";
}

static const char *option_width(struct top_options *options, const char *argument) {
  char *end;
  unsigned long width = strtoul(argument, &end, 10);
  options->width = (unsigned)width;
  return end != argument && !*end && width >= TOP_MIN_WIDTH && width <= TOP_MAX_WIDTH
             ? NULL
             : "columns, 40 to 1000";
}

static const struct {
  const char *name, *argument, *what;
  const char *(*parse)(struct top_options *options, const char *argument);
} table[] = {
#define O(id, name, argument, what) {name, argument, what, option_##id},
    TSCOPE_TOP_OPTIONS(O)
#undef O
};
enum { N_OPTIONS = sizeof(table) / sizeof(*table) };

void top_options_help(FILE *out) {
  fputs("usage: tscope-top [OPTION]... [DIR]\n\n"
        "Shows what a job does while it runs, from the traces that it writes into DIR (else\n"
        "TSCOPE_DIR, else " TSCOPE_DEFAULT_DIRECTORY
        " or, if that is another user's,\n" TSCOPE_DEFAULT_DIRECTORY
        "-UID). It only reads and does not touch the job.\n\n",
        out);
  for (int i = 0; i < N_OPTIONS; i++) {
    char option[40];
    snprintf(option, sizeof(option), "--%s%s%s", table[i].name, *table[i].argument ? " " : "",
             table[i].argument);
    fprintf(out, "  %-20s %s\n", option, table[i].what);
  }
  fputs("\nOn the page: q quits, space freezes, s sorts by the next key, arrows choose a rank,\n"
        "Enter shows it, ? explains the columns.\n",
        out);
}

bool top_options_parse(int argc, char **argv, struct top_options *options, char *why,
                       size_t why_bytes) {
  struct option long_options[N_OPTIONS + 1] = {{0}};
  for (int i = 0; i < N_OPTIONS; i++)
    long_options[i] = (struct option){
        table[i].name, *table[i].argument ? required_argument : no_argument, NULL, 256 + i};
  *options = (struct top_options){.sort = TOP_SORT_AUTO};
  opterr = 0;
  for (int got; (got = getopt_long(argc, argv, ":", long_options, NULL)) != -1;) {
    if (got < 256) {
      snprintf(why, why_bytes, "%s %s; --help lists the options", argv[optind - 1],
               got == ':' ? "needs an argument" : "is not an option");
      return false;
    }
    const char *wanted = table[got - 256].parse(options, optarg);
    if (wanted) {
      snprintf(why, why_bytes, "--%s wants %s, not \"%s\"", table[got - 256].name, wanted, optarg);
      return false;
    }
  }
  if (argc - optind > 1) {
    snprintf(why, why_bytes, "only one directory; \"%s\" is too many", argv[optind + 1]);
    return false;
  }
  options->directory = argc > optind ? argv[optind] : directory_to_read("tscope-top");
  return true;
}

static bool find_color(const struct top_options *options, int fd) {
  return options->color == TOP_COLOR_AUTO ? terminal_wants_color(fd)
                                          : options->color == TOP_COLOR_ALWAYS;
}

static unsigned find_width(const struct top_options *options, int fd) {
  struct winsize size;
  const char *columns = getenv("COLUMNS");
  unsigned width = options->width;
  if (!width && ioctl(fd, TIOCGWINSZ, &size) == 0)
    width = size.ws_col;
  if (!width && columns)
    width = (unsigned)strtoul(columns, NULL, 10);
  if (!width)
    width = REPORT_DEFAULT_WIDTH;
  return width < TOP_MIN_WIDTH ? TOP_MIN_WIDTH : width > TOP_MAX_WIDTH ? TOP_MAX_WIDTH : width;
}

struct report_view top_find_display(const struct top_options *options, int fd) {
  return (struct report_view){.width = find_width(options, fd),
                              .color = find_color(options, fd),
                              .utf8 = !options->ascii &&
                                      strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0};
}
