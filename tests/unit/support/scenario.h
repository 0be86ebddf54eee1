/* SPDX-License-Identifier: MIT
 *
 * A run on made-up ranks, and whether a finding is made of it.
 */
#ifndef TSCOPE_SCENARIO_H
#define TSCOPE_SCENARIO_H

#include "analyse_cluster.h"

struct scenario {
  struct cluster_options options;
  struct analyse_options given;
  void (*spoil)(struct cluster *); /* NULL, or changes the model before it is analysed */
};

/* A healthy run, to be spoilt. */
struct scenario well(void);

/* Whether the report finds `id` in it; what it says then is looked at too. */
bool fires(const struct scenario *s, const char *id);

#endif
