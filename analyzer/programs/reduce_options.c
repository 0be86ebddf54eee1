/* SPDX-License-Identifier: MIT */
#include "programs/reduce_options.h"

#include "base/command_line.h"
#include "programs/reduce_options.def"

static const char *read_steps(void *options, const char *argument) {
  ((struct reduce_options *)options)->model.steps = argument;
  return command_line_steps(argument, &(u32){0}, &(u32){0});
}

#define OPTIONS struct reduce_options
static const struct command_option rows[] = {TSCOPE_REDUCE_OPTIONS(OPTION_GROUP, OPTION_ROW)};
static const struct command_line line = COMMAND_LINE("tscope-reduce", rows);

void reduce_options_help(FILE *out) {
  fputs("usage: tscope-reduce [OPTION]... --output FOLDER [DIR]...\n\n"
        "Keeps what the report on a run needs of each rank, on the node that has the traces: some\n"
        "KB for each. tscope report FOLDER then makes the report from what all nodes kept. Where\n"
        "several nodes have traces, run it on each, and once all have finished, again with --with\n"
        "FOLDER.\n\n",
        out);
  command_line_print_options(&line, out);
}

bool reduce_options_parse(int argc, char **argv, struct reduce_options *options, char *why,
                          size_t why_bytes) {
  static const char *here;
  *options = (struct reduce_options){0};
  int first = command_line_parse(&line, argc, argv, options, why, why_bytes);
  if (first < 0)
    return false;
  if (!options->output && !options->help && !options->version) {
    snprintf(why, why_bytes, "give a folder for the summaries with --output");
    return false;
  }
  options->paths = (const char *const *)argv + first;
  options->n_paths = (u32)(argc - first);
  if (options->n_paths == 0) {
    here = directory_to_read("tscope-reduce");
    options->paths = &here;
    options->n_paths = 1;
  }
  return true;
}
