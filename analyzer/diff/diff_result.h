/* SPDX-License-Identifier: MIT
 *
 * How one run, or several of a kind, differs from others before it. NAN and NULL where not known;
 * all of it where there was nothing to compare with.
 */
#ifndef TSCOPE_DIFF_RESULT_H
#define TSCOPE_DIFF_RESULT_H

#include "analyses/results/words.h"
#include "format/tscope_format.h"

struct finding;
struct results;

/* Runs of a kind that the spread between them takes; fewer a side say what is different, not
 * whether a change made it so. */
enum { DIFF_LEAST_RUNS = 3 };

#define RESULT_TABLE "diff/diff_result.def"
#include "analyses/results/result_structs.h"

/* Nothing compared. */
extern const struct diff_result diff_none;

#endif
