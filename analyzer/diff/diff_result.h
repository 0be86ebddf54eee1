/* SPDX-License-Identifier: MIT
 *
 * How one run differs from another, earlier one. NAN and NULL where not known; all of it where
 * there was nothing to compare with.
 */
#ifndef TSCOPE_DIFF_RESULT_H
#define TSCOPE_DIFF_RESULT_H

#include "format/tscope_format.h"

struct finding;
struct results;

#define RESULT_TABLE "diff/diff_result.def"
#include "analyses/result_structs.h"

/* Nothing compared. */
extern const struct diff_result diff_none;

#endif
