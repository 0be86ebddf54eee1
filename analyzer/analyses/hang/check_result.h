/* SPDX-License-Identifier: MIT
 *
 * Whether the ranks of a job called the same collectives, and who holds it up if it hangs: a part
 * of struct results. It comes from flight-recorder dumps, or from traces of a run that did not end.
 */
#ifndef TSCOPE_CHECK_RESULT_H
#define TSCOPE_CHECK_RESULT_H

#include <stdbool.h>

#include "analyses/results/words.h"
#include "format/tscope_format.h"

struct ledger;

enum { CHECK_WAITS_LISTED = 60 };

#define RESULT_TABLE "analyses/hang/check_result.def"
#include "analyses/results/result_structs.h"

/* Nothing to check. */
struct collective_check collective_check_unknown(void);

#endif
