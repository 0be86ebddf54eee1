/* SPDX-License-Identifier: MIT
 *
 * Invented results, so that reports can be tested without the analyses and their constants.
 */
#pragma once

#include "analyses/results/results.h"

struct example {
  const char *name;
  const char *summary;
  struct results *(*make)(void);
};

/* NULL name at the end. */
extern const struct example examples[];

struct results *example_make(const char *name); /* NULL if there is none */
void example_free(struct results *results);
