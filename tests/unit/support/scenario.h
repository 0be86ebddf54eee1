/* SPDX-License-Identifier: MIT
 *
 * A run on invented ranks, and whether it gives a finding.
 */
#pragma once

#include "analyse_cluster.h"

struct scenario {
  struct cluster_options options;
  struct analyse_options given;
  void (*spoil)(struct cluster *); /* NULL, or changes the model before it is analysed */
};

/* A healthy run, which a test then changes. */
struct scenario healthy_scenario(void);

/* Whether the report has the finding `id`. Checks the text of the finding too. */
bool fires(const struct scenario *s, const char *id);
