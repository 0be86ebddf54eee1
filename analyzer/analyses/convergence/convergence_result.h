/* SPDX-License-Identifier: MIT
 *
 * What the job's own values (loss, gradient norm, learning rate) show about its training: a part of
 * struct results. NAN where not known.
 */
#pragma once

#include <stdbool.h>

#include "analyses/results/words.h"
#include "format/scalar_line.h"
#include "format/tscope_format.h"

/* A loss that never fell. */
enum not_falling {
  LOSS_HAS_FALLEN, /* or that is not known */
  LOSS_RISES,      /* higher at the end than at the beginning, all the way */
  LOSS_NEVER_MOVES /* has never moved */
};

enum {
  CONVERGENCE_POINTS = 1000,
  CONVERGENCE_OWN_NUMBERS = 16 /* names for which no role is known */
};

/* The role of a training value, from its name; NULL ends them. */
extern const char *const scalar_role_words[];

#define RESULT_TABLE "analyses/convergence/convergence_result.def"
#include "analyses/results/result_structs.h"

/* Nothing known. */
struct convergence_result convergence_result_unknown(void);
