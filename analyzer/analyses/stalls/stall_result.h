/* SPDX-License-Identifier: MIT
 *
 * Where ranks stalled: a part of struct results.
 */
#pragma once

#include <stdbool.h>

#include "analyses/results/words.h"
#include "format/tscope_format.h"

enum { PAST_STALLS_LISTED = 20 };

#define RESULT_TABLE "analyses/stalls/stall_result.def"
#include "analyses/results/result_structs.h"
