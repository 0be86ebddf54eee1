/* SPDX-License-Identifier: MIT
 *
 * How the run ended, and who ended it: a part of struct results.
 */
#ifndef TSCOPE_RUN_END_RESULT_H
#define TSCOPE_RUN_END_RESULT_H

#include "analyses/results/words.h"
#include "format/tscope_format.h"

#define RESULT_TABLE "analyses/run_end/run_end_result.def"
#include "analyses/results/result_structs.h"

#endif
