/* SPDX-License-Identifier: MIT
 *
 * Figures of results, and results of a model by the options of an empty command line.
 */
#pragma once

#include <math.h>
#include <string.h>

#include "analyses/analysis.h"

#define assert_near(a, b, tolerance)                                                               \
  do {                                                                                             \
    double x_ = (a), y_ = (b);                                                                     \
    if (!(fabs(x_ - y_) <= (tolerance)))                                                           \
      fail_msg("%s is %.6f, not %.6f", #a, x_, y_);                                                \
  } while (0)

static inline struct analyse_options no_options(void) {
  return (struct analyse_options){.flops_per_step = NAN,
                                  .params = NAN,
                                  .tokens_per_step = NAN,
                                  .peak_tflops = NAN,
                                  .threads = 2};
}

static inline struct results *analyse_all(const struct model *model) {
  const struct analyse_options options = no_options();
  return analyse(model, &options);
}

static inline double path_ms(const struct results *r, const char *category) {
  for (u32 i = 0; i < r->n_path_by_category; i++)
    if (!strcmp(r->path_by_category[i].name, category))
      return r->path_by_category[i].ms;
  return NAN;
}

static inline double step_if(const struct results *r, enum what_if_kind kind) {
  for (u32 i = 0; i < r->n_what_if; i++)
    if (r->what_if[i].kind == kind)
      return r->what_if[i].step_ms;
  return NAN;
}

static inline double saved_ms(const struct results *r, enum what_if_kind kind) {
  for (u32 i = 0; i < r->n_what_if; i++)
    if (r->what_if[i].kind == kind)
      return r->what_if[i].saving.ms;
  return NAN;
}
