/* SPDX-License-Identifier: MIT
 *
 * How one run, or several of a kind, differs from earlier ones. NAN and NULL if not known; all of
 * it if there was nothing to compare with.
 */
#pragma once

#include "analyses/results/words.h"
#include "format/tscope_format.h"

struct finding;
struct results;

/* The number of runs of a kind that is needed to know the spread between them. With fewer on a
 * side, the comparison says what differs, not whether a change caused it. */
enum { DIFF_LEAST_RUNS = 3 };

#define RESULT_TABLE "diff/diff_result.def"
#include "analyses/results/result_structs.h"

/* Nothing compared. */
extern const struct diff_result diff_none;
