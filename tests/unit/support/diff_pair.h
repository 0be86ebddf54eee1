/* SPDX-License-Identifier: MIT
 *
 * Compares invented runs with each other: one per side, or several.
 */
#pragma once

#include "analyse_cluster.h"
#include "diff/diff.h"

/* One run per side. */
struct pair {
  struct cluster *before, *after;
  struct results *old, *new;
};

/* One run each; that after gets the comparison. */
void diff_results(struct results *before, struct results *after);

/* `edit` changes the runs before they are analysed; NULL: no change. Freed by pair_free(). */
struct pair compare_with(struct cluster_options before, struct cluster_options after,
                         void (*edit)(struct pair *));
void pair_free(struct pair *pair);

/* The finding `id` about the later run, or NULL. */
const struct finding *found(const struct pair *pair, const char *id);
const struct finding *found_in(const struct diff_result *diff, const char *id);
const struct diff_row *row(const struct pair *pair, const char *section, const char *name);

/* Several runs per side. */
enum { RUNS = 3 };

struct sides {
  struct cluster *clusters[2][RUNS];
  struct results *runs[2][RUNS];
  struct results *shown;
};

/* `runs` runs on each side. `factor` multiplies the forward passes of each run, because hosts,
 * clocks and other jobs differ from run to run. Freed by sides_free(). */
struct sides compare_several(struct cluster_options before, struct cluster_options after, u32 runs,
                             const double factor[2][RUNS], void (*edit)(struct sides *));
void sides_free(struct sides *all);

/* Two ranks and 20 steps, with a little noise. */
struct cluster_options small(void);

/* Factors for similar runs. */
extern const double even[2][RUNS];
