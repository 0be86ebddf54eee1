/* SPDX-License-Identifier: MIT
 *
 * The command line of tscope-report, read by the table in options.def.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "report/gate/gate_rules.h"
#include "report/report.h"
#include "report/text/terminal.h"

enum { OPTIONS_MOST_RULES = 64 };

struct options {
  const char *const *paths;
  u32 n_paths;
  const char *run, *steps, *output, *kernel_categories; /* NULL if not given */
  const char *ranks, *groups, *export;                  /* likewise */
  const struct report_backend *backend;
  double limit;                                                         /* bytes */
  double flops_per_step, params, tokens_per_step, peak_tflops, gpu_gib; /* NAN if not given */
  unsigned attempt;                                                     /* 0: the last */
  unsigned timed_steps;                                                 /* 0: all */
  unsigned threads;                                                     /* 0: one per core */
  unsigned top;                                                         /* 0 if not given */
  struct terminal_wishes terminal;
  struct {
    enum gate_kind kind;
    const char *text;
  } rules[OPTIONS_MOST_RULES]; /* of the gate */
  u32 n_rules;
  const char *expectations, *write_expectations, *junit; /* files; NULL if not given */
  u64 quick;                                             /* 0 if not given */
  double older_than, max_size;                           /* days and bytes; 0 if not given */
  unsigned keep;                                         /* 0 if not given */
  bool prune, yes;
  bool hosts;
  const char *prometheus; /* of hosts; NULL if not given */
  bool list, include_warmup, open, github, version, help;
  bool stacks;
  bool diff; /* the first n_before of paths are the earlier runs, the others the later */
  u32 n_before;
};

/* False when the command line makes no sense; `why` then says so in one line, with what to do. The
 * options point into argv. */
bool options_parse(int argc, char **argv, struct options *options, char *why, size_t why_bytes);

void options_print_help(FILE *out);
