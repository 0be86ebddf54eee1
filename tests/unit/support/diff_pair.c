/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "diff_pair.h"

const double even[2][RUNS] = {{1, 1.01, 0.99}, {1.01, 0.99, 1}};

void diff_results(struct results *before, struct results *after) {
  struct results *shown;
  diff_sides(&(struct diff_side){.runs = &before, .n = 1},
             &(struct diff_side){.runs = &after, .n = 1}, &shown);
}

struct pair compare_with(struct cluster_options before, struct cluster_options after,
                         void (*edit)(struct pair *)) {
  struct pair pair = {.before = cluster_new(&before), .after = cluster_new(&after)};
  struct analyse_options options = no_options();
  if (edit)
    edit(&pair);
  pair.old = cluster_analyse(pair.before, &options);
  pair.new = cluster_analyse(pair.after, &options);
  diff_results(pair.old, pair.new);
  return pair;
}

void pair_free(struct pair *pair) {
  results_free(pair->old);
  cluster_end(pair->new, pair->before);
  cluster_free(pair->after);
}

const struct finding *found(const struct pair *pair, const char *id) {
  const struct diff_result *diff = pair->new->diff;
  for (u32 i = 0; i < diff->n_findings; i++)
    if (!strcmp(finding_id_words[diff->findings[i].id], id))
      return &diff->findings[i];
  return NULL;
}

const struct diff_row *row(const struct pair *pair, const char *section, const char *name) {
  const struct diff_result *diff = pair->new->diff;
  for (u32 i = 0; i < diff->n_rows; i++)
    if (!strcmp(diff_section_words[diff->rows[i].section], section) &&
        !strcmp(diff->rows[i].name, name))
      return &diff->rows[i];
  return NULL;
}

struct sides compare_several(struct cluster_options before, struct cluster_options after, u32 runs,
                             const double factor[2][RUNS], void (*edit)(struct sides *)) {
  struct sides all = {.shown = NULL};
  struct analyse_options options = no_options();
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < runs; i++) {
      struct cluster_options one = side ? after : before;
      one.forward = (i64)((double)one.forward * factor[side][i]);
      one.seed = 1 + 100 * side + i;
      all.clusters[side][i] = cluster_new(&one);
    }
  if (edit)
    edit(&all);
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < runs; i++)
      all.runs[side][i] = cluster_analyse(all.clusters[side][i], &options);
  const struct diff_side was = {.runs = all.runs[0], .n = runs};
  const struct diff_side is = {.runs = all.runs[1], .n = runs};
  diff_sides(&was, &is, &all.shown);
  return all;
}

void sides_free(struct sides *all) {
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++)
      if (all->runs[side][i])
        cluster_end(all->runs[side][i], all->clusters[side][i]);
}

const struct finding *found_in(const struct diff_result *diff, const char *id) {
  for (u32 i = 0; i < diff->n_findings; i++)
    if (!strcmp(finding_id_words[diff->findings[i].id], id))
      return &diff->findings[i];
  return NULL;
}

struct cluster_options small(void) {
  struct cluster_options o = healthy_gpu();
  o.ranks = 2;
  o.steps = 20;
  o.noise = 0.02;
  return o;
}
