/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "model/model.h"

struct reduce_options {
  const char *const *paths;
  u32 n_paths;
  const char *output, *run, *with, *kernel_categories;
  struct model_options model;
  bool merge, version, help;
};

/* False, with a line in `why`, if the command line is wrong. */
bool reduce_options_parse(int argc, char **argv, struct reduce_options *options, char *why,
                          size_t why_bytes);
void reduce_options_help(FILE *out);
