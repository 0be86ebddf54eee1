/* SPDX-License-Identifier: MIT
 *
 * What each line of the program cost. Part of struct results.
 */
#ifndef TSCOPE_LINE_RESULT_H
#define TSCOPE_LINE_RESULT_H

enum { LINES_LISTED = 100, LINE_STACKS_LISTED = 400 };

#define RESULT_TABLE "analyses/lines/line_result.def"
#include "analyses/results/result_structs.h"

#endif
