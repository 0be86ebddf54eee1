/* SPDX-License-Identifier: MIT */
#include "programs/reduce_options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/directory_to_read.h"
#include "programs/reduce_options.def"

/* Each parses one option's argument: NULL, or what the argument should have been. */

#define FLAG(id, member)                                                                           \
  static const char *option_##id(struct reduce_options *options, const char *argument) {           \
    (void)argument;                                                                                \
    options->member = true;                                                                        \
    return NULL;                                                                                   \
  }
FLAG(merge, merge)
FLAG(include_warmup, model.include_warmup)
FLAG(version, version)
FLAG(help, help)
#undef FLAG

#define TEXT(id, member, wanted)                                                                   \
  static const char *option_##id(struct reduce_options *options, const char *argument) {           \
    options->member = argument;                                                                    \
    return *argument ? NULL : wanted;                                                              \
  }
TEXT(output, output, "a folder")
TEXT(with, with, "the folder to which all nodes have written")
TEXT(run, run, "the name of a run (tscope list shows them)")
TEXT(steps, model.steps, "steps, such as 10:20")
TEXT(kernel_categories, kernel_categories, "a file")
#undef TEXT

static const char *option_number(const char *argument, u32 *number) {
  char *end;
  unsigned long value = strtoul(argument, &end, 10);
  *number = (u32)value;
  return end != argument && !*end && value > 0 && value <= 1u << 20 ? NULL : "a number from 1 on";
}

static const char *option_attempt(struct reduce_options *options, const char *argument) {
  return option_number(argument, &options->model.attempt);
}

static const char *option_threads(struct reduce_options *options, const char *argument) {
  return option_number(argument, &options->model.threads);
}

static const struct {
  const char *name, *argument, *what;
  const char *(*parse)(struct reduce_options *options, const char *argument);
} table[] = {
#define O(id, name, argument, what) {name, argument, what, option_##id},
    TSCOPE_REDUCE_OPTIONS(O)
#undef O
};
enum { N_OPTIONS = sizeof(table) / sizeof(*table) };

void reduce_options_help(FILE *out) {
  fputs("usage: tscope-reduce [OPTION]... --output FOLDER [DIR]...\n\n"
        "Keeps what the report on a run needs of each rank, on the node that has the traces: some\n"
        "KB for each. tscope report FOLDER then makes the report from what all nodes kept. Where\n"
        "several nodes have traces, run it on each, and once all have finished, again with --with\n"
        "FOLDER.\n\n",
        out);
  for (int i = 0; i < N_OPTIONS; i++) {
    char option[40];
    snprintf(option, sizeof(option), "--%s%s%s", table[i].name, *table[i].argument ? " " : "",
             table[i].argument);
    fprintf(out, "  %-24s %s\n", option, table[i].what);
  }
}

bool reduce_options_parse(int argc, char **argv, struct reduce_options *options, char *why,
                          size_t why_bytes) {
  static const char *here;
  struct option long_options[N_OPTIONS + 1] = {{0}};
  for (int i = 0; i < N_OPTIONS; i++)
    long_options[i] = (struct option){
        table[i].name, *table[i].argument ? required_argument : no_argument, NULL, 256 + i};
  *options = (struct reduce_options){0};
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
  if (!options->output && !options->help && !options->version) {
    snprintf(why, why_bytes, "give a folder for the summaries with --output");
    return false;
  }
  options->paths = (const char *const *)argv + optind;
  options->n_paths = (u32)(argc - optind);
  if (options->n_paths == 0) {
    here = directory_to_read("tscope-reduce");
    options->paths = &here;
    options->n_paths = 1;
  }
  return true;
}
